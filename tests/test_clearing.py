"""Destroying all that an owner made: what is known, what is listed, what comes late, and what does not go."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from pytest_sandboxbench import clearing
from pytest_sandboxbench.clearing import Cleared, clear
from pytest_sandboxbench.load.deadlines import Pulse
from pytest_sandboxbench.load.guard import GuardedProvider
from pytest_sandboxbench.model import Owner, SandboxRef, SandboxSpec
from pytest_sandboxbench.providers.fake import FakeProvider, factory

OWNER = Owner("20260101-000000-aaaaaa", "here", 1, "1")
OTHER = Owner("20260101-000000-bbbbbb", "here", 2, "1")
SAME_RUN = Owner("20260101-000000-aaaaaa", "here", 3, "1")


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clearing, "_BETWEEN_LOOKS_S", 0.02)
    monkeypatch.setattr(clearing, "_PATIENCE_S", 0.1)


class Stage:
    """A scripted provider with sandboxes of several owners, and one act of clearing."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.provider: FakeProvider = factory("p", {"state_dir": str(folder / "fake"), **settings})

    async def made(self, owner: Owner, number: int = 1) -> list[SandboxRef]:
        made = [await self.provider.create(SandboxSpec(), owner=owner, deadline_s=5) for _ in range(number)]
        return [sandbox.ref for sandbox in made]

    async def clear(self, known: Iterable[SandboxRef] = (), **how: Any) -> Cleared:
        timeout_s = how.pop("timeout_s", 5.0)
        pulse = Pulse(timeout_s, rest=lambda: None)
        guarded = GuardedProvider(self.provider, owner=OWNER, spec=SandboxSpec(), timeout_s=timeout_s, pulse=pulse)
        return await clear(guarded, OWNER, known, **how)


def ids(refs: Iterable[SandboxRef]) -> set[str]:
    return {ref.id for ref in refs}


def test_what_is_known_and_what_is_listed_is_destroyed_and_nothing_else(tmp_path: Path) -> None:
    async def main() -> None:
        stage = Stage(tmp_path)
        mine = await stage.made(OWNER, 3)
        others = [*await stage.made(OTHER), *await stage.made(SAME_RUN)]
        cleared = await stage.clear(mine[:1])
        assert cleared.is_clean
        assert ids(cleared.destroyed) == ids(mine)
        assert set(stage.provider.live) == ids(others)

    asyncio.run(main())


def test_what_is_spared_stays(tmp_path: Path) -> None:
    async def main() -> None:
        stage = Stage(tmp_path)
        mine = await stage.made(OWNER, 2)
        cleared = await stage.clear(spare={mine[0].id})
        assert ids(cleared.destroyed) == {mine[1].id}
        assert stage.provider.live == (mine[0].id,)

    asyncio.run(main())


def test_nothing_there_is_one_look_and_no_waiting(tmp_path: Path) -> None:
    async def main() -> None:
        stage = Stage(tmp_path)
        cleared = await stage.clear()
        assert cleared == Cleared()
        assert stage.provider.calls == {"owned": 1}

    asyncio.run(main())


def test_what_is_known_and_gone_already_is_done(tmp_path: Path) -> None:
    async def main() -> None:
        stage = Stage(tmp_path)
        (ref,) = await stage.made(OWNER)
        await stage.provider.destroy(ref, deadline_s=5)
        cleared = await stage.clear([ref])
        assert cleared.is_clean

    asyncio.run(main())


def test_one_that_names_no_owner_may_be_anybodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        stage = Stage(tmp_path)
        (mine, somebodys) = await stage.made(OWNER, 2)

        async def owned(_run_id: str | None = None) -> list[SandboxRef]:
            return [SandboxRef("p", id_) for id_ in stage.provider.live]

        monkeypatch.setattr(stage.provider, "owned", owned)
        cleared = await stage.clear([mine])
        assert cleared.is_clean
        assert stage.provider.live == (somebodys.id,)

    asyncio.run(main())


@pytest.mark.parametrize(
    "answer",
    [None, "p-1", {"p-1": 1}, [None], ["p-1"], [SandboxRef("p", 7)], [SandboxRef("p", "7", {"owner": 1})]],  # type: ignore[arg-type,dict-item]
    ids=repr,
)
def test_a_list_that_is_none_keeps_nothing_from_being_destroyed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    async def main() -> None:
        stage = Stage(tmp_path)
        known = await stage.made(OWNER, 2)

        async def owned(_run_id: str | None = None) -> Any:
            return answer

        monkeypatch.setattr(stage.provider, "owned", owned)
        cleared = await stage.clear(known)
        assert ids(cleared.destroyed) == ids(known)
        assert stage.provider.live == ()
        assert not cleared.listed
        ((_ref, reason),) = cleared.left
        assert "a list of SandboxRef" in reason

    asyncio.run(main())


def test_what_comes_late_is_awaited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clearing, "_PATIENCE_S", 5.0)

    async def main() -> None:
        stage = Stage(tmp_path, create="late:0.3")
        creating = asyncio.ensure_future(stage.made(OWNER))
        await asyncio.sleep(0.05)
        cleared = await stage.clear(late=1)
        assert len(cleared.destroyed) == 1
        assert stage.provider.live == ()
        creating.cancel()

    asyncio.run(main())


def test_what_never_comes_is_not_awaited_for_ever(tmp_path: Path) -> None:
    async def main() -> None:
        stage = Stage(tmp_path)
        cleared = await stage.clear(late=3)
        assert cleared.is_clean
        assert cleared.destroyed == []
        assert stage.provider.calls["owned"] < 10

    asyncio.run(main())


def test_a_lie_is_told(tmp_path: Path) -> None:
    async def main() -> None:
        stage = Stage(tmp_path, destroy="lie")
        (ref,) = await stage.made(OWNER)
        cleared = await stage.clear()
        assert not cleared.is_clean
        assert cleared.destroyed == []
        ((left, reason),) = cleared.left
        assert left.id == ref.id
        assert "still lists it" in reason

    asyncio.run(main())


def test_one_that_cannot_be_destroyed_keeps_no_other(tmp_path: Path) -> None:
    async def main() -> None:
        stage = Stage(tmp_path, destroy="stuck,0")
        mine = await stage.made(OWNER, 3)
        cleared = await stage.clear(mine)
        assert len(cleared.destroyed) == 2
        ((left, reason),) = cleared.left
        assert "still running" in reason
        assert stage.provider.live == (left.id,)

    asyncio.run(main())


@pytest.mark.parametrize("word", ["raise:KeyError", "error:no such page", "hang", "swallow:3"])
def test_a_provider_that_does_not_list_is_told_and_what_is_known_is_destroyed(tmp_path: Path, word: str) -> None:
    async def main() -> None:
        stage = Stage(tmp_path, owned=word)
        mine = await stage.made(OWNER, 2)
        cleared = await stage.clear(mine[:1], timeout_s=0.2)
        assert not cleared.is_clean
        assert not cleared.listed
        assert ids(cleared.destroyed) == {mine[0].id}
        assert "could not be listed" in cleared.left[-1][1]
        assert stage.provider.live == (mine[1].id,)

    asyncio.run(main())


@pytest.mark.parametrize("word", ["hang", "swallow:3", "raise:MemoryError", "error"])
def test_no_fault_of_a_destroy_is_raised(tmp_path: Path, word: str) -> None:
    async def main() -> None:
        stage = Stage(tmp_path, destroy=word)
        mine = await stage.made(OWNER, 3)
        cleared = await stage.clear(timeout_s=0.2)
        assert ids(ref for ref, _reason in cleared.left) == ids(mine)

    asyncio.run(main())
