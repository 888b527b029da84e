"""What dead owners left is destroyed, and nobody else's is touched: by ledgers, and by labels."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_sandboxbench import clearing
from pytest_sandboxbench.ledger import Ledger, books, this_process
from pytest_sandboxbench.model import Capabilities, Owner, SandboxRef, SandboxSpec
from pytest_sandboxbench.providers.fake import FakeProvider, factory
from pytest_sandboxbench.providers.registry import Registry
from pytest_sandboxbench.reaping import Reaped, Survey, reap, reap_ledgers, survey

from .test_ledger import crash, dead

LABELS = Capabilities("container", labels=True)
NO_LABELS = Capabilities("container", labels=False)
ME = this_process("20260101-000000-cccccc")
ELSEWHERE = Owner("20260101-000000-dddddd", "another", 5, "1")


class World:
    """A user's state folder and a scripted provider whose sandboxes outlive their makers."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "ledger"
        self.state = root / "fake"
        self.configure("p")

    def configure(self, *names: str, **options: str) -> None:
        lines = []
        for name in names:
            lines += [f"[tool.sandboxbench.providers.{name}]", 'kind = "fake"', f'state_dir = "{self.state}"']
            lines += [f'{key} = "{value}"' for key, value in options.items()]
        (self.root / "pyproject.toml").write_text("\n".join(lines) + "\n")

    def make(self, owner: Owner, number: int = 1, name: str = "p") -> list[SandboxRef]:
        provider = factory(name, {"state_dir": str(self.state)})

        async def main() -> list[SandboxRef]:
            return [(await provider.create(SandboxSpec(), owner=owner, deadline_s=5)).ref for _ in range(number)]

        return asyncio.run(main())

    def book(
        self, owner: Owner, refs: Sequence[SandboxRef], *, unknown: int = 0, can: Capabilities = LABELS, **how: str
    ) -> Path:
        """The ledger of a process that was killed."""
        ledger = Ledger(self.folder, owner)
        name, kind = how.pop("name", "p"), how.pop("kind", "fake")
        ledger.can(name, kind, {"state_dir": str(self.state), **how}, can)
        ledger.making(name, len(refs) + unknown)
        for ref in refs:
            ledger.made(ref)
        ledger.settle()
        crash(ledger)
        return max(self.folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)

    @property
    def live(self) -> set[str]:
        return set(factory("p", {"state_dir": str(self.state)}).live)

    def reap(self, *names: str, run_id: str | None = None, timeout_s: float = 5.0) -> Reaped:
        return asyncio.run(reap(Registry(self.root), names, self.folder, timeout_s=timeout_s, run_id=run_id))

    def reap_ledgers(self, timeout_s: float = 5.0) -> Reaped:
        return asyncio.run(reap_ledgers(Registry(self.root), self.folder, timeout_s=timeout_s))

    def survey(self, *names: str, run_id: str | None = None) -> Survey:
        return asyncio.run(survey(Registry(self.root), names or None, self.folder, run_id=run_id))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def ids(refs: Sequence[SandboxRef]) -> set[str]:
    return {ref.id for ref in refs}


def test_what_a_dead_owner_left_is_destroyed_and_its_ledger_goes(world: World) -> None:
    left = world.make(dead(), 3)
    others = [*world.make(ME), *world.make(ELSEWHERE)]
    world.book(dead(), left[:1], unknown=2)
    reaped = world.reap_ledgers()
    assert {found.ref.id for found in reaped.destroyed} == ids(left)
    assert (reaped.left, reaped.problems, reaped.unknown) == ([], [], [])
    assert world.live == ids(others)
    assert books(world.folder) == []


def test_a_living_owners_is_not_touched(world: World) -> None:
    world.book(ME, mine := world.make(ME, 2))
    reaped = world.reap("p")
    assert reaped == Reaped()
    assert world.live == ids(mine)
    assert len(books(world.folder)) == 1


def test_a_pid_that_is_used_again_is_dead(world: World) -> None:
    before_me = Owner("20260101-000000-eeeeee", ME.host, ME.pid, "1")
    world.book(before_me, world.make(before_me, 2))
    assert len(world.reap_ledgers().destroyed) == 2
    assert world.live == set()


def test_another_hosts_is_left_alone_until_it_is_named(world: World) -> None:
    world.book(ELSEWHERE, left := world.make(ELSEWHERE, 2))
    mine = world.make(ME)
    assert world.reap("p") == Reaped()
    assert world.live == ids([*left, *mine])
    reaped = world.reap("p", run_id=ELSEWHERE.run_id)
    assert len(reaped.destroyed) == 2
    assert world.live == ids(mine)
    assert books(world.folder) == []


def test_only_the_run_that_is_named(world: World) -> None:
    first, second = dead(), dead("20260101-000000-ffffff")
    world.book(first, world.make(first))
    world.book(second, kept := world.make(second))
    world.reap("p", run_id=first.run_id)
    assert world.live == ids(kept)
    assert [book.owner for book in books(world.folder)] == [second]


def test_a_living_run_that_is_named_is_not_touched(world: World) -> None:
    mine = world.make(ME)
    assert world.reap("p", run_id=ME.run_id) == Reaped()
    assert world.live == ids(mine)


def test_by_labels_alone_where_the_provider_is_of_this_host(world: World) -> None:
    world.make(dead(), 2)
    assert len(world.reap("p").destroyed) == 2
    assert world.live == set()


def test_a_hosted_providers_label_proves_nothing_without_a_ledger(world: World) -> None:
    world.configure("p", hosted="true")
    left = world.make(dead(), 2)
    reaped = world.reap("p")
    assert {found.ref.id for found in reaped.unproved} == ids(left)
    assert not any(found.proved for found in world.survey("p").found)
    assert (reaped.destroyed, reaped.problems) == ([], [])
    assert world.live == ids(left)
    world.book(dead(), left[:1], hosted="true")
    assert len(world.reap("p").destroyed) == 2, "the ledger proves that its owner was of this host"
    assert world.live == set()


def test_a_hosted_provider_may_finish_a_create_later(world: World) -> None:
    path = world.book(dead(), [], unknown=1, hosted="true")
    world.reap_ledgers()
    assert path.exists(), "the next one looks again"
    late = world.make(dead())
    assert {found.ref.id for found in world.reap_ledgers().destroyed} == ids(late)
    os.utime(path, (1, 1))
    world.reap_ledgers()
    assert not path.exists(), "after some minutes nothing comes any more"


def test_without_labels_the_ids_of_the_ledger_are_destroyed_and_the_unknown_are_told(world: World) -> None:
    left = world.make(dead(), 3)
    path = world.book(dead(), left[:2], unknown=1, can=NO_LABELS)
    reaped = world.reap_ledgers()
    assert ids(left[:2]) <= {found.ref.id for found in reaped.destroyed}
    assert reaped.unknown == [("p", 1, dead().run_id)]
    assert path.exists()
    assert world.reap_ledgers().unknown == [("p", 1, dead().run_id)], "until somebody looked, and says so"


def test_without_labels_and_with_all_ids_nothing_stays(world: World) -> None:
    path = world.book(dead(), world.make(dead(), 2), can=NO_LABELS)
    assert world.reap_ledgers().unknown == []
    assert world.live == set()
    assert not path.exists()


def test_an_instance_of_another_project_is_made_as_the_ledger_remembers_it(world: World) -> None:
    left = world.make(dead(), 2, name="theirs")
    world.book(dead(), [], unknown=2, name="theirs")
    assert "theirs" not in Registry(world.root).names
    table = factory("theirs", {"state_dir": str(world.state)})
    assert set(table.live) == ids(left)
    assert {found.ref.id for found in world.reap_ledgers().destroyed} == ids(left)
    assert table.live == ()


def test_settings_are_those_of_the_run_not_those_of_today(world: World, tmp_path: Path) -> None:
    world.book(dead(), world.make(dead()))
    here, world.state = world.state, tmp_path / "moved"
    world.configure("p")
    assert len(world.reap_ledgers().destroyed) == 1
    assert factory("p", {"state_dir": str(here)}).live == ()


def test_a_kind_that_is_not_installed_any_more_is_told_and_kept(world: World) -> None:
    path = world.book(dead(), [SandboxRef("gone", "x")], name="gone", kind="gone-cloud")
    reaped = world.reap_ledgers()
    ((run, problem),) = reaped.problems
    assert "'gone-cloud' is not installed" in problem
    assert run == dead().run_id
    assert path.exists()


def test_a_provider_that_is_not_ready_now_is_told_and_kept(world: World) -> None:
    left = world.make(dead())
    path = world.book(dead(), left, missing="no daemon", cure="start it")
    reaped = world.reap_ledgers()
    assert any("no daemon" in problem and "start it" in problem for _run, problem in reaped.problems)
    assert path.exists()
    assert world.live == ids(left)


@pytest.mark.parametrize("word", ["stuck", "hang", "raise:KeyError", "lie"])
def test_what_cannot_be_destroyed_is_told_and_kept(world: World, word: str) -> None:
    left = world.make(dead())
    path = world.book(dead(), left, destroy=word)
    reaped = world.reap_ledgers(timeout_s=0.3)
    assert [ref.id for ref, _reason in reaped.left] == [left[0].id]
    assert path.exists()


def test_a_provider_that_does_not_list_is_told_and_its_ledger_kept(world: World) -> None:
    path = world.book(dead(), world.make(dead()), owned="raise:OSError")
    reaped = world.reap_ledgers()
    assert "could not be listed" in reaped.left[-1][1]
    assert path.exists()
    assert world.live == set(), "what is written down is destroyed all the same"


def test_a_ledger_that_leads_to_nothing_goes(world: World) -> None:
    path = world.book(dead(), [])
    assert world.reap_ledgers() == Reaped()
    assert not path.exists()


def test_a_folder_that_others_may_write_is_told_and_nothing_is_done(world: World) -> None:
    left = world.make(dead())
    world.book(dead(), left)
    world.folder.chmod(0o777)
    ((_run, problem),) = world.reap_ledgers().problems
    assert "only user" in problem
    assert world.live == ids(left)


def test_a_ledger_that_somebody_else_clears_up_is_left_to_them(world: World) -> None:
    import fcntl

    path = world.book(dead(), left := world.make(dead()))
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert world.reap_ledgers() == Reaped()
    assert world.live == ids(left)
    assert len(world.reap_ledgers().destroyed) == 1


# -- what exists


def test_a_survey_says_whose_each_one_is(world: World) -> None:
    expected = {}
    for owner, standing in ((ME, "alive"), (dead(), "dead"), (ELSEWHERE, "elsewhere")):
        (made,) = world.make(owner)
        expected[made.id] = (owner, standing)
    seen = world.survey("p")
    assert {found.ref.id: (found.owner, found.standing) for found in seen.found} == expected
    assert [found.owner for found in world.survey("p", run_id=ME.run_id).found] == [ME]


def test_a_survey_of_two_instances_of_one_kind_shows_each_sandbox_once(world: World) -> None:
    world.configure("p")
    world.make(dead(), 2)
    world.book(dead(), [], unknown=2)
    assert len(world.survey("p").found) == 2


def test_a_survey_without_the_provider_shows_what_is_written(world: World) -> None:
    world.book(dead(), [SandboxRef("gone", "x")], name="gone", kind="gone-cloud", unknown=2)
    seen = world.survey()
    assert "x" in {found.ref.id for found in seen.found}, "beside what others have on this machine"
    assert seen.unknown == [("gone", 2, dead().run_id)]
    assert "gone-cloud" in seen.problems[0]


def test_only_what_is_named_is_reaped(world: World) -> None:
    path = world.book(dead(), left := world.make(dead()))
    world.configure("q")
    assert world.reap("q").destroyed == []
    assert world.live == ids(left)
    assert path.exists()


def asked(log: Path, operation: str) -> int:
    """How often the scripted provider was asked for it, in all processes."""
    return sum(json.loads(line)["op"] == operation for line in log.read_text().splitlines())


def test_one_that_does_not_answer_is_waited_for_once(world: World, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    paths = [world.book(dead(run), world.make(dead(run)), owned="hang", log=str(log)) for run in ("a", "b", "c")]
    reaped = world.reap_ledgers(timeout_s=0.3)
    assert asked(log, "owned") == 1
    assert "could not be listed" in reaped.left[0][1]
    assert all(path.exists() for path in paths)


def test_one_that_lists_what_it_has_destroyed_is_given_time_once(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clearing, "_BETWEEN_LOOKS_S", 0.02)
    monkeypatch.setattr(clearing, "_PATIENCE_S", 0.4)
    log = tmp_path / "calls"
    for run in ("a", "b", "c"):
        world.book(dead(run), world.make(dead(run)), destroy="lie", log=str(log))
    assert len(world.reap_ledgers().left) == 3
    looks = asked(log, "owned")
    assert 10 < looks < 35, f"{looks}: some twenty of the first, and a few of each other"


def test_a_run_whose_ledger_is_held_lives_wherever_it_is(world: World) -> None:
    """In another pid namespace that shares the home: its pid says nothing here."""
    refs = world.make(ELSEWHERE)
    ledger = Ledger(world.folder, ELSEWHERE)
    ledger.can("p", "fake", {"state_dir": str(world.state)}, LABELS)
    ledger.making("p")
    ledger.made(refs[0])
    ledger.settle()
    assert world.reap("p", run_id=ELSEWHERE.run_id).destroyed == []
    assert [found.standing for found in world.survey("p").found] == ["alive"]
    assert world.live == ids(refs)
    crash(ledger)
    assert len(world.reap("p", run_id=ELSEWHERE.run_id).destroyed) == 1


def test_what_an_adapter_prints_meanwhile_is_not_shown(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may hold its key, or move the cursor."""

    def loud(_self: FakeProvider) -> Capabilities:
        print("my key is s3cret")
        print("\x1b[2J", file=sys.stderr)
        return LABELS

    world.book(dead(), world.make(dead()))
    monkeypatch.setattr(FakeProvider, "capabilities", property(loud))
    assert len(world.reap_ledgers().destroyed) == 1
    assert len(world.survey("p").found) == 0
    assert capsys.readouterr() == ("", "")
