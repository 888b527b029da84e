"""Arrivals by the clock (``rate``), or a fixed time apart (``stagger``): when lanes begin, and what latency is then."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from pytest_sandboxbench.load.lanes import Lane

from .blocks import TIMEOUT_S, Notes, block, fake, life, measure, run, seconds

MS = 1_000_000


@pytest.mark.parametrize(("shape", "apart_ms"), [("rate-50", 20), ("stagger-30ms", 30), ("rate-80", 12.5)])
def test_each_lane_is_due_in_its_turn_and_begins_then(shape: str, apart_ms: float) -> None:
    notes = measure("start", level=5, shape=shape, create="0.05")
    samples = sorted(notes.of("startup"), key=lambda s: s.lane)
    assert len({s.released_ns for s in samples}) == 1
    assert [s.scheduled_ns - s.released_ns for s in samples] == [round(lane * apart_ms * MS) for lane in range(5)]
    late = [s.started_ns - s.scheduled_ns for s in samples]
    assert min(late) >= 0
    assert max(late) < 15 * MS
    assert sorted(late)[1] < MS / 2, "a timer alone is a millisecond coarse"
    assert {str(s.key) for s in samples} == {f"fake:startup@5/{shape}"}


def test_phases_add_up_from_the_instant_that_was_due() -> None:
    notes = measure("start", level=3, shape="stagger-20ms", create="0.02", exec="0.01")
    for whole, create, first in zip(notes.of("startup"), notes.of("create"), notes.of("first_exec"), strict=True):
        assert create.scheduled_ns == whole.scheduled_ns
        assert (create.released_ns, create.started_ns) == (whole.released_ns, whole.started_ns)
        assert first.scheduled_ns == first.released_ns == first.started_ns >= create.ended_ns
        assert first.ended_ns <= whole.ended_ns


def test_a_stall_is_in_the_latency_of_all_that_were_due_meanwhile() -> None:
    """Coordinated omission: the loop was blocked, so the others began late, and their own time shows nothing of it."""
    notes = asyncio.run(
        run(block("round_trip", level=10, shape="rate-50", timeout_s=5), fake(round_trip="0.01,block:0.3,0.01"))
    )
    assert notes.outcomes("round_trip") == ["ok"] * 10
    samples = sorted(notes.of("round_trip"), key=lambda s: s.lane)
    held_up = samples[2:]
    for s in held_up:
        stalled_s = 0.32 - s.lane * 0.02  # the block began when lane 1 was due, at 20 ms
        assert seconds(s) >= stalled_s
        assert (s.ended_ns - s.started_ns) / 1e9 < 0.1
    assert seconds(held_up[0]) > seconds(held_up[-1])


def test_a_provider_that_serves_one_after_another_shows_its_queue() -> None:
    notes = measure("round_trip", level=6, shape="rate-100", round_trip="0.03", lock="serial", lock_on="round_trip")
    for s in notes.of("round_trip"):
        assert seconds(s) >= 0.03 + s.lane * 0.02 - 0.001


def test_what_comes_before_the_timed_region_is_done_before_the_release() -> None:
    notes = measure("exec", level=3, shape="rate-50", create="0.1,0.05,0", exec="0.005")
    assert notes.outcomes("exec") == ["ok"] * 3
    assert len({s.released_ns for s in notes.of("exec")}) == 1
    assert all(seconds(s) < 0.05 for s in notes.of("exec"))


def test_later_regions_of_a_life_wait_for_nobody() -> None:
    notes = measure("start", level=3, shape="stagger-100ms")
    startups = {s.lane: s for s in notes.of("startup")}
    destroys = {s.lane: s for s in notes.of("destroy")}
    for lane in range(3):
        assert 0 <= destroys[lane].started_ns - startups[lane].ended_ns < 40 * MS
        assert destroys[lane].scheduled_ns == destroys[lane].released_ns
    assert destroys[0].ended_ns < startups[1].started_ns


def test_waiting_to_be_due_is_no_sign_of_death() -> None:
    """The last one is due long after the deadline of a single operation."""
    notes = measure("round_trip", level=3, shape=f"stagger-{round(TIMEOUT_S * 2500)}ms")
    assert notes.outcomes("round_trip") == ["ok"] * 3
    assert all(seconds(s) < 0.1 for s in notes.of("round_trip"))


@pytest.mark.parametrize("shape", ["rate-100", "stagger-10ms"])
def test_each_lane_makes_one_request_whatever_comes_of_it(shape: str) -> None:
    provider = fake(create="0.01,error:no,reject:quota,hang,0.01")
    notes = asyncio.run(run(block("start", level=6, shape=shape, rounds=2, warmup=1), provider))
    outcomes = Counter(s.outcome for s in notes.samples if s.key.operation == "startup")
    assert outcomes == {"ok": 15, "failed": 1, "rejected(quota)": 1, "timeout": 1}
    assert Counter(s.lane for s in notes.of("startup")) == dict.fromkeys(range(6), 2)
    assert provider.calls["create"] == 18
    assert provider.live == ()
    for operation in ("startup", "create", "first_exec", "destroy"):
        assert len(notes.of(operation)) == 12


def test_a_lane_whose_preparation_failed_leaves_the_others_their_turn() -> None:
    notes = measure("exec", level=3, shape="stagger-30ms", create="error:no room,0")
    assert sorted(notes.outcomes("exec")) == ["failed", "ok", "ok"]
    for s in notes.of("exec"):
        if s.outcome == "ok":
            assert s.scheduled_ns - s.released_ns == s.lane * 30 * MS


def test_an_adapter_that_never_comes_back_keeps_nobody() -> None:
    notes = measure("round_trip", level=4, shape="rate-50", round_trip="swallow:1e6,0.01")
    assert Counter(notes.outcomes("round_trip")) == {"timeout": 1, "ok": 3}


@pytest.mark.parametrize("shape", ["rate-20", "stagger-50ms"])
def test_one_lane_alone_is_due_at_once(shape: str) -> None:
    (sample,) = measure("round_trip", shape=shape).of("round_trip")
    assert sample.scheduled_ns == sample.released_ns


def test_nothing_keeps_the_loop_while_a_lane_waits_for_its_instant() -> None:
    """Ticks of another task go on through the last millisecond before each arrival."""
    gaps: list[float] = []

    async def ticks() -> None:
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(0)
            gaps.append(loop.time() - before)

    async def main() -> Notes:
        task = asyncio.create_task(ticks())
        notes = await run(block("round_trip", level=10, shape="rate-100"), fake())
        task.cancel()
        return notes

    notes = asyncio.run(main())
    assert len(notes.of("round_trip")) == 10
    assert sorted(gaps)[len(gaps) * 99 // 100] < 0.001


def test_a_region_that_follows_at_once_is_not_put_off() -> None:
    async def live(lane: Lane) -> None:
        async with lane.timed("act", together=False):
            pass
        async with lane.timed("after"):
            pass

    notes = measure(life(live, "act", "after"), level=2, shape="stagger-50ms")
    assert all(s.scheduled_ns == s.released_ns for s in notes.of("act"))
    assert [s.scheduled_ns - s.released_ns for s in notes.of("after")] == [0, 50 * MS]
