"""The closed loop: each lane begins again when it ends, until so many requests were begun, or the time is over."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import pytest

from pytest_sandboxbench.errors import UsageError
from pytest_sandboxbench.load.lanes import Lane
from pytest_sandboxbench.model import Sample

from .blocks import GIVEN_UP_S, Notes, block, fake, life, measure, run, seconds

FOREVER = "1e6"


def at_once(samples: Sequence[Sample]) -> int:
    """The most that were under way at one instant."""
    edges = sorted([(s.started_ns, 1) for s in samples] + [(s.ended_ns, -1) for s in samples])
    now = most = 0
    for _, step in edges:
        now += step
        most = max(most, now)
    return most


def by_lane(samples: Sequence[Sample]) -> Counter[int]:
    return Counter(s.lane for s in samples)


# -- how many


@pytest.mark.parametrize(("level", "number"), [(1, 1), (1, 7), (4, 4), (4, 25), (16, 33)])
def test_requests_are_counted_exactly(level: int, number: int) -> None:
    provider = fake(create="0.002")
    what = block("start", level=level, shape=f"closed-{number}", rounds=2, warmup=1)
    notes = asyncio.run(run(what, provider))
    assert provider.calls["create"] == provider.calls["destroy"] == 3 * number
    assert provider.live == ()
    for operation in ("startup", "create", "first_exec", "destroy"):
        assert notes.outcomes(operation) == ["ok"] * (2 * number)
    assert Counter(s.round for s in notes.samples if s.key.operation == "startup") == dict.fromkeys((-1, 0, 1), number)
    assert [len(turn) for turn in notes.turns] == [4 * number] * 3
    assert {str(s.key) for s in notes.of("startup")} == {f"fake:startup@{level}/closed-{number}"}
    assert set(by_lane(notes.of("startup"))) == set(range(level))


def test_the_lanes_are_kept_busy_to_the_end_and_never_more_than_they_are() -> None:
    notes = measure("round_trip", level=4, shape="closed-21", round_trip="0.04")
    samples = notes.of("round_trip")
    assert len(samples) == 21
    assert at_once(samples) == 4
    last = max(s.started_ns for s in samples)
    for lane in range(4):
        mine = [s for s in samples if s.lane == lane]
        assert mine[-1].ended_ns > last - 20_000_000, "no lane was idle while there were requests left"
        for one, other in pairwise(mine):
            assert 0 <= other.started_ns - one.ended_ns < 50_000_000


def test_a_lane_that_is_stalled_does_not_keep_requests_for_itself() -> None:
    notes = measure("round_trip", level=2, shape="closed-12", round_trip="0.25,0.01")
    counts = by_lane(notes.of("round_trip"))
    assert counts.total() == 12
    assert sorted(counts.values()) == [1, 11]


def test_the_first_lives_go_together_and_the_later_ones_wait_for_nobody() -> None:
    notes = measure("round_trip", level=3, shape="closed-9", round_trip="0.01,0.02,0.03,0.01,0.02,0.03,...")
    samples = notes.of("round_trip")
    first = {s.lane: s for s in reversed(samples)}.values()
    assert len({s.released_ns for s in first}) == 1
    assert len({s.released_ns for s in samples}) == 7
    assert all(s.scheduled_ns == s.released_ns for s in samples)


def test_fewer_requests_than_lanes_are_refused() -> None:
    with pytest.raises(UsageError, match="closed-3 is fewer requests than the 4 lanes"):
        measure("start", level=4, shape="closed-3")


# -- by time


def test_no_request_is_begun_after_the_end_and_those_under_way_are_finished() -> None:
    notes = measure("round_trip", level=3, shape="closed-200ms", round_trip="0.03")
    samples = notes.of("round_trip")
    assert {s.outcome for s in samples} == {"ok"}
    ends = min(s.released_ns for s in samples) + 200_000_000
    assert max(s.started_ns for s in samples) < ends + 10_000_000
    assert max(s.ended_ns for s in samples) > ends
    assert at_once(samples) == 3
    assert 3 * 3 <= len(samples) <= 3 * 7
    assert len({str(s.key) for s in samples}) == 1


def test_the_time_begins_with_the_release() -> None:
    """The first sandbox takes longer than the whole round: what is prepared before the release is not in it."""
    notes = measure("exec", level=2, shape="closed-100ms", create="0.2,0", exec="0.02")
    samples = notes.of("exec")
    assert {s.outcome for s in samples} == {"ok"}
    assert len(samples) >= 4


# -- one life after another


def test_a_lane_has_one_sandbox_at_a_time() -> None:
    """A fourth one would be refused."""
    provider = fake(max_live=3, exec="0.001", destroy="0.002")
    notes = asyncio.run(run(block("exec", level=3, shape="closed-30"), provider))
    assert notes.outcomes("exec") == ["ok"] * 30
    assert len({s.sandbox for s in notes.of("exec")}) == 30
    assert provider.calls["destroy"] == 30
    assert provider.live == ()


def test_the_end_of_a_life_is_in_no_sample() -> None:
    notes = measure("exec", level=1, shape="closed-3", destroy="0.1")
    assert all(seconds(s) < 0.09 for s in notes.of("exec"))


def test_what_cannot_be_destroyed_is_told_once_and_stops_nobody() -> None:
    provider = fake(destroy="stuck,2x0,stuck")
    notes = asyncio.run(run(block("exec", level=2, shape="closed-8"), provider))
    assert notes.outcomes("exec") == ["ok"] * 8
    assert sorted(left.ref.id for left in notes.leaks) == sorted(provider.live)
    assert len(notes.leaks) == 6


def test_a_destroy_that_never_comes_back_is_left_behind_and_the_lane_goes_on() -> None:
    provider = fake(destroy=f"swallow:{FOREVER},0")
    notes = asyncio.run(run(block("exec", level=2, shape="closed-100ms", rounds=2), provider))
    assert {s.outcome for s in notes.of("exec")} == {"ok"}
    assert len(notes.leaks) == 1
    assert "destroy" in notes.leaks[0].reason


# -- what goes wrong


def test_failures_and_rejections_are_requests_like_others() -> None:
    script = "0.002,error:no,0.002,reject:rate,0.002"
    notes = measure("round_trip", level=2, shape="closed-10", round_trip=script)
    assert Counter(notes.outcomes("round_trip")) == {"ok": 8, "failed": 1, "rejected(rate)": 1}
    assert at_once(notes.of("round_trip")) == 2


@pytest.mark.parametrize("word", ["hang", "block:20"])
def test_a_request_that_times_out_is_followed_by_the_next(word: str) -> None:
    notes = measure("round_trip", level=1, shape="closed-4", round_trip=f"{word},0.01")
    assert notes.outcomes("round_trip") == ["timeout", "ok", "ok", "ok"]


@pytest.mark.parametrize("word", [f"swallow:{FOREVER}", "swallow:0.7"])
def test_a_lane_that_had_to_be_abandoned_stops_and_the_others_take_over(word: str) -> None:
    """Also where its call comes back while they still work."""
    provider = fake(round_trip=f"{word},0.05")
    notes = asyncio.run(run(block("round_trip", level=2, shape="closed-20"), provider))
    stopped = next(s for s in notes.of("round_trip") if s.outcome == "timeout")
    assert Counter(notes.outcomes("round_trip")) == {"timeout": 1, "ok": 19}
    assert by_lane(notes.of("round_trip"))[stopped.lane] == 1
    assert seconds(stopped) < GIVEN_UP_S


def test_a_call_that_comes_back_after_its_lane_was_abandoned_begins_nothing() -> None:
    provider = fake(round_trip="swallow:0.9,0.01")

    async def main() -> Notes:
        notes = await run(block("round_trip", shape="closed-5"), provider)
        await asyncio.sleep(0.8)
        return notes

    notes = asyncio.run(main())
    assert notes.outcomes("round_trip") == ["timeout"]
    assert provider.calls["round_trip"] == 1


def test_a_preparation_that_fails_at_once_uses_up_no_requests_before_the_release() -> None:
    """The other lane still makes its sandbox when this one was refused, and would be refused again and again."""
    notes = measure("exec", level=2, shape="closed-12", create="0.1,4xerror:no room,0", exec="0.005")
    samples = notes.of("exec")
    assert Counter(notes.outcomes("exec")) == {"ok": 8, "failed": 4}
    released = min(s.released_ns for s in samples if s.outcome == "ok")
    assert [s.outcome for s in samples if s.released_ns < released] == ["failed"]
    assert by_lane(samples)[1] > 4


def test_lanes_that_wait_for_the_release_with_nothing_to_show_do_not_share_one_request() -> None:
    notes = measure("exec", level=4, shape="closed-5", create="3xerror:no room,0.05,0")
    assert Counter(notes.outcomes("exec")) == {"ok": 2, "failed": 3}


@pytest.mark.parametrize("shape", ["closed-12", "closed-50ms"])
def test_a_provider_that_can_nothing_ends_the_round_as_well(shape: str) -> None:
    notes = measure("exec", level=3, shape=shape, create="error:no room")
    assert {s.outcome for s in notes.samples} == {"failed"}
    assert len(notes.samples) == 12 or shape == "closed-50ms"
    assert set(by_lane(notes.samples)) == {0, 1, 2}


def test_a_lane_that_fails_at_once_leaves_the_loop_to_the_others() -> None:
    async def live(lane: Lane) -> None:
        async with lane.timed("act"):
            if lane.index:
                raise ValueError("at once, and without waiting for anything")
            await asyncio.sleep(0.01)

    notes = measure(life(live), level=2, shape="closed-150ms")
    assert notes.outcomes("act").count("ok") >= 5


def test_an_adapter_that_cancels_itself_fails_one_request_only() -> None:
    async def live(lane: Lane) -> None:
        async with lane.timed("act"):
            if lane.index:
                raise asyncio.CancelledError
            await asyncio.sleep(0.001)

    notes = measure(life(live), level=2, shape="closed-10")
    assert len(notes.of("act")) == 10
    assert by_lane(notes.of("act"))[1] > 1
    assert {s.outcome for s in notes.of("act") if s.lane} == {"failed"}


def test_a_life_that_times_nothing_fails_each_time() -> None:
    async def live(lane: Lane) -> None:
        await lane.sandbox()

    assert measure(life(live), level=2, shape="closed-6").outcomes("act") == ["failed"] * 6


def test_a_time_limit_of_the_block_ends_it_after_whole_rounds() -> None:
    what = block("round_trip", level=2, shape="closed-10", rounds=1000, max_time_s=0.15)
    notes = asyncio.run(run(what, fake(round_trip="0.01")))
    assert 2 <= len(notes.turns) <= 4
    assert {len(turn) for turn in notes.turns} == {10}
