"""In every shape: what is booked before it is made, what an interruption leaves, and how processes share a round."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_sandboxbench.clock import now_ns
from pytest_sandboxbench.ledger import Ledger
from pytest_sandboxbench.load.barrier import Aborted
from pytest_sandboxbench.model import Sample
from pytest_sandboxbench.providers.fake import FakeProvider

from .blocks import OWNER, TIMEOUT_S, Notes, block, fake, run

SHAPES = ["burst", "closed-24", "closed-150ms", "rate-100", "stagger-10ms"]


class Book(Ledger):
    """A ledger that counts how often something is written before a create, and what it may not write."""

    def __init__(self, folder: Path, provider: FakeProvider, *, full: bool = False) -> None:
        super().__init__(folder, OWNER)
        self.can(provider.name, "fake", {}, provider.capabilities)
        self.intents: list[int] = []
        self.full = full

    def making(self, name: str, number: int = 1) -> None:
        if self.full:
            raise OSError("no space left")
        self.intents.append(number)
        super().making(name, number)


def booked(tmp_path: Path, **settings: Any) -> tuple[FakeProvider, Book]:
    provider = fake(state_dir=str(tmp_path / "fake"), **settings)
    return provider, Book(tmp_path / "ledger", provider)


def assert_nothing_open(ledger: Ledger, folder: Path) -> None:
    assert ledger.unknown.total() == 0
    assert ledger.live == {}
    ledger.close()
    assert not list(folder.glob("ledger/*"))


# -- the ledger


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scenario", ["start", "exec", "cold_run", "round_trip"])
def test_nothing_is_open_in_the_ledger_at_the_end(tmp_path: Path, shape: str, scenario: str) -> None:
    provider, ledger = booked(tmp_path, create="0.005", round_trip="0.005")
    asyncio.run(run(block(scenario, level=4, shape=shape, rounds=2), provider, ledger=ledger))
    assert provider.live == ()
    assert_nothing_open(ledger, tmp_path)


@pytest.mark.parametrize("shape", SHAPES)
def test_nor_where_creates_are_refused_or_fail(tmp_path: Path, shape: str) -> None:
    provider, ledger = booked(tmp_path, create="0.005,0.005+reject:rate,error:no,...")
    asyncio.run(run(block("exec", level=4, shape=shape, rounds=2), provider, ledger=ledger))
    assert_nothing_open(ledger, tmp_path)


@pytest.mark.parametrize(("shape", "number"), [("burst", 4), ("closed-24", 24), ("rate-100", 4), ("stagger-10ms", 4)])
def test_all_creates_of_a_round_are_booked_at_once(tmp_path: Path, shape: str, number: int) -> None:
    provider, ledger = booked(tmp_path)
    asyncio.run(run(block("start", level=4, shape=shape, rounds=3), provider, ledger=ledger))
    assert ledger.intents == [number] * 3


def test_where_nobody_knows_how_many_they_are_booked_in_growing_numbers(tmp_path: Path) -> None:
    provider, ledger = booked(tmp_path, create="0.002")
    notes = asyncio.run(run(block("start", level=2, shape="closed-300ms"), provider, ledger=ledger))
    made = len(notes.of("startup"))
    assert ledger.intents[:3] == [2, 3, 6]
    assert len(ledger.intents) < 2 + made.bit_length()
    assert made <= sum(ledger.intents) < 2 * made + 2
    assert_nothing_open(ledger, tmp_path)


@pytest.mark.parametrize("shape", SHAPES)
def test_without_a_ledger_that_can_be_written_nothing_is_made(tmp_path: Path, shape: str) -> None:
    provider = fake(state_dir=str(tmp_path / "fake"))
    ledger = Book(tmp_path / "ledger", provider, full=True)
    notes = asyncio.run(run(block("start", level=2, shape=shape), provider, ledger=ledger))
    assert set(notes.outcomes("startup")) == {"failed"}
    assert "no space left" in notes.error("startup")
    assert provider.calls["create"] == 0
    assert ledger.unknown.total() == 0


# -- interruption


async def interrupted(what: Any, provider: FakeProvider, after_s: float, **runner: Any) -> Notes:
    notes = Notes()
    task = asyncio.create_task(run(what, provider, notes=notes, **runner))
    await asyncio.sleep(after_s)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return notes


@pytest.mark.parametrize("shape", ["burst", "closed-1000", "closed-60s", "rate-100", "stagger-10ms"])
def test_an_interruption_leaves_nothing_and_hands_on_what_was_measured(tmp_path: Path, shape: str) -> None:
    provider, ledger = booked(tmp_path, exec="12x0.01,hang")
    what = block("exec", level=4, shape=shape, rounds=20, timeout_s=30)
    notes = asyncio.run(interrupted(what, provider, 0.6, ledger=ledger))
    assert provider.live == ()
    assert 4 <= len(notes.of("exec")) <= 8
    assert set(notes.outcomes("exec")) == {"ok"}
    assert notes.leaks == []
    assert_nothing_open(ledger, tmp_path)


@pytest.mark.parametrize("shape", ["rate-1", "stagger-1s"])
def test_a_lane_that_is_not_due_yet_begins_nothing_when_it_is_interrupted(shape: str) -> None:
    provider = fake()
    notes = asyncio.run(interrupted(block("start", level=3, shape=shape), provider, 0.2))
    assert provider.calls["create"] == provider.calls["destroy"] == 1
    assert len(notes.of("startup")) == 1


def test_an_interruption_between_two_lives_leaves_nothing() -> None:
    provider = fake(destroy="0.3")
    notes = asyncio.run(interrupted(block("exec", level=2, shape="closed-50", timeout_s=5), provider, 0.15))
    assert notes.outcomes("exec") == ["ok", "ok"]
    assert provider.live == ()
    assert provider.calls["create"] == 2


# -- several processes


class Meeting:
    """Where the parties of a round meet; here they run on one loop."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.instants: list[int] = []
        self._gates = asyncio.Barrier(size)
        self._ends = asyncio.Barrier(size)

    async def released(self) -> int:
        await self._gates.wait()
        if not self.instants or now_ns() - self.instants[-1] > 50_000_000:
            self.instants.append(now_ns())
        return self.instants[-1]

    async def done(self) -> None:
        await self._ends.wait()


class Party:
    """One of them."""

    def __init__(self, meeting: Meeting, rank: int) -> None:
        self.meeting = meeting
        self.rank = rank
        self.size = meeting.size
        self.gone = False

    async def released(self) -> int:
        if self.gone:
            raise Aborted("gw1 is gone")
        return await self.meeting.released()

    async def done(self, over: bool) -> bool:
        if self.gone:
            raise Aborted("gw1 is gone")
        await self.meeting.done()
        return over


def together(size: int, level: int, shape: str, **settings: Any) -> tuple[Sequence[Sample], list[list[Sample]]]:
    async def main() -> list[list[Sample]]:
        meeting = Meeting(size)
        what = block("start", level=level, shape=shape)
        parties = [run(what, fake(**settings), barrier=Party(meeting, rank)) for rank in range(size)]
        return [notes.of("startup") for notes in await asyncio.gather(*parties)]

    shares = asyncio.run(main())
    return [s for share in shares for s in share], shares


def test_processes_deal_the_requests_of_a_round_out_by_their_lanes() -> None:
    samples, shares = together(2, 5, "closed-23", create="0.005")
    assert [len(share) for share in shares] == [14, 9]
    assert [{s.lane for s in share} for share in shares] == [{0, 2, 4}, {1, 3}]
    first = {s.lane: s for s in sorted(samples, key=lambda s: -s.started_ns)}.values()
    assert len({s.released_ns for s in first}) == 1


def test_lanes_of_all_processes_are_due_in_one_order() -> None:
    samples, _ = together(2, 4, "stagger-20ms")
    samples = sorted(samples, key=lambda s: s.lane)
    assert len({s.released_ns for s in samples}) == 1
    assert [s.scheduled_ns - s.released_ns for s in samples] == [0, 20_000_000, 40_000_000, 60_000_000]


def test_the_time_of_a_closed_loop_is_over_for_all_processes_at_one_instant() -> None:
    samples, shares = together(2, 2, "closed-100ms", create="0.01")
    released = min(s.released_ns for s in samples)
    for share in shares:
        assert max(s.started_ns for s in share) < released + 110_000_000
        assert len(share) >= 4


@pytest.mark.parametrize("shape", SHAPES)
def test_a_process_that_is_gone_ends_the_block_without_a_sample(shape: str) -> None:
    async def main() -> Notes:
        notes = Notes()
        party = Party(Meeting(2), 0)
        party.gone = True
        with pytest.raises(Aborted, match="gw1 is gone"):
            await run(block("exec", level=4, shape=shape), provider, notes=notes, barrier=party)
        return notes

    provider = fake()
    notes = asyncio.run(asyncio.wait_for(main(), 20 * TIMEOUT_S))
    assert notes.samples == []
    assert provider.live == ()
    assert provider.calls["create"] == 2
