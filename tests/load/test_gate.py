"""The lanes of a round go together, and none waits for one that is over."""

from __future__ import annotations

import asyncio

import pytest

from pytest_sandboxbench.load.gate import Gate
from pytest_sandboxbench.load.lanes import Lane

from .blocks import TIMEOUT_S, block, fake, life, measure, run, seconds


def test_all_lanes_are_released_at_one_instant() -> None:
    notes = measure("start", level=16, create="0.02")
    for operation in ("startup", "destroy"):
        samples = notes.of(operation)
        assert len(samples) == 16
        assert len({s.scheduled_ns for s in samples}) == 1
        assert {s.lane for s in samples} == set(range(16))
        assert all(s.started_ns >= s.released_ns == s.scheduled_ns for s in samples)


def test_a_region_starts_when_the_slowest_lane_has_come() -> None:
    """Three sandboxes come at once and one 0.1 s later: all four commands are released after that one."""
    notes = measure("exec", level=4, create="3x0,0.1,0")
    assert notes.outcomes("exec") == ["ok"] * 4
    made = [s for s in notes.samples if s.key.operation == "exec"]
    assert len({s.released_ns for s in made}) == 1
    assert all(seconds(s) < 0.1 for s in made)


def test_latency_counts_from_the_common_release() -> None:
    """An adapter that blocks the loop makes the other lane wait: the user waits, so the number says so."""
    notes = measure("exec", level=2, exec="2x0,2xblock:0.1,0")
    latencies = sorted(seconds(s) for s in notes.of("exec"))
    assert latencies[1] >= 0.19
    late = max(notes.of("exec"), key=lambda s: s.latency_ns)
    assert late.latency_ns == late.ended_ns - late.released_ns


def test_a_lane_that_failed_is_not_waited_for() -> None:
    notes = measure("exec", level=4, create="error:no room,3x0.01")
    assert sorted(notes.outcomes("exec")) == ["failed", "ok", "ok", "ok"]
    released = {s.released_ns for s in notes.of("exec") if s.outcome == "ok"}
    assert len(released) == 1


def test_a_lane_that_hangs_is_waited_for_until_its_deadline() -> None:
    notes = measure("exec", level=3, create="hang,2x0")
    assert sorted(notes.outcomes("exec")) == ["ok", "ok", "timeout"]


@pytest.mark.parametrize("level", [1, 2])
def test_regions_without_a_gate_follow_each_other(level: int) -> None:
    async def live(lane: Lane) -> None:
        async with lane.timed("act"):
            await asyncio.sleep(0.05 if lane.index else 0)
        async with lane.timed("after", together=False):
            pass

    notes = measure(life(live, "act", "after"), level=level)
    after = notes.of("after")
    assert len(after) == level
    assert len({s.released_ns for s in after}) == level
    assert all(seconds(s) < 0.04 for s in after)


def test_a_lane_that_was_cancelled_at_the_gate_stands_for_nobody() -> None:
    async def main() -> None:
        gate = Gate(range(3))
        waiting = [asyncio.create_task(gate.arrive(lane)) for lane in range(2)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        gate.leave(0)
        await asyncio.sleep(0.01)
        assert not waiting[1].done(), "released without lane 2"
        gate.leave(2)
        due, released = await waiting[1]
        assert due == released > 0

    asyncio.run(main())


def test_an_empty_gate_holds_nobody() -> None:
    async def main() -> None:
        gate = Gate(range(2))
        gate.leave(0)
        gate.leave(1)
        gate.leave(1)
        async with asyncio.timeout(1):
            await gate.arrive(2)

    asyncio.run(main())


def test_waiting_for_others_is_no_sign_of_death() -> None:
    """A lane may wait at the gate for far longer than one operation's deadline."""

    async def live(lane: Lane) -> None:
        for _ in range(4 if lane.index else 0):
            await lane.create()
            await asyncio.sleep(TIMEOUT_S * 0.6)
        async with lane.timed("act"):
            pass

    notes = asyncio.run(run(block(life(live), level=2), fake()))
    assert notes.outcomes("act") == ["ok", "ok"]
