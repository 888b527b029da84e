"""What becomes of a series as the level rises: verdicts on bursts whose cause is known, and what holds for any."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_sandboxbench.stats import FEWEST_ROUNDS, Interval, percentile_interval, ratio_of_intervals
from pytest_sandboxbench.stats.scaling import FLAT, GENERATOR, IDLE, LIMITER, Finding, Level, examine

MS = 1e6


def measured(lanes: int, rounds: Sequence[Sequence[float]], **more: Any) -> Level:
    """A level from the latencies (ns) of its bursts: a round is over when its last lane is."""
    throughput = sum(map(len, rounds)) / sum(max(one) / 1e9 for one in rounds)
    return Level(lanes, percentile_interval(rounds, 0.5), throughput, **more)


def burst(lanes: int, ms: float, *, width: float = math.inf, apart_ms: float = 0.0) -> list[float]:
    """The latencies of one burst whose lanes pass through a lock of a width, then through what they need not share."""
    return [(ms * (1 + (lane // width if width < math.inf else 0)) + apart_ms) * MS for lane in range(lanes)]


def noisy(lanes: int, one: Sequence[float], count: int = 12, **more: Any) -> Level:
    draw = random.Random(lanes)
    return measured(lanes, [[ns * factor for ns in one] for factor in _factors(draw, count)], **more)


def _factors(draw: random.Random, count: int) -> list[float]:
    return [draw.lognormvariate(0, 0.02) for _ in range(count)]


def scaled(
    ms: float,
    *,
    width: float = math.inf,
    apart_ms: float = 0.0,
    levels: Sequence[int] = (1, 4, 16),
    busy: float | None = 0.06,
    **more: Any,
) -> Finding:
    return examine(
        noisy(lanes, burst(lanes, ms, width=width, apart_ms=apart_ms), busy=busy, **more) for lanes in levels
    )


def floors(low: float, top: float, *, rates: tuple[float, float] | None = None) -> list[dict[str, float]]:
    """What a floor took at 1 and at 16 lanes (ms), and its acts a second."""
    rates = rates or (1000 / low, 16_000 / top)
    return [{"floor": ms * MS, "floor_throughput": rate} for ms, rate in zip((low, top), rates, strict=True)]


def pair(
    low: Sequence[float], top: Sequence[float], floor: Sequence[Mapping[str, Any]] = ({}, {}), **more: Any
) -> Finding:
    """Level 1 and level 16."""
    return examine([noisy(1, low, **floor[0], **more), noisy(16, top, **floor[1], **more)])


# Case 5: a lock is named, what has none is flat


def test_a_lock() -> None:
    phases = [{"create": ms * MS, "first_exec": 0.5 * MS} for ms in (20.0, 170.0)]
    low, top = (noisy(n, burst(n, 20, width=1), busy=0.06, phases=p) for n, p in zip((1, 16), phases, strict=True))
    found = examine([top, low])
    assert (found.verdict, found.phases, found.lanes) == ("serialised", ("create",), (1, 16))
    assert found.growth is not None
    assert found.growth.estimate == pytest.approx(8.5, rel=0.05)
    exact = examine(
        replace(level, median=replace(level.median, estimate=ms * MS), throughput=50.0)
        for level, ms in ((low, 20.0), (top, 170.0))
    )
    assert exact.text.startswith("serialised: 16 lanes take 8.50× (")
    assert exact.text.endswith(
        ") one lane's time at 50.0/s, as 1 lane does (50.0/s), while CPUs are 6 % busy; phase create grows"
    )


def test_no_lock() -> None:
    found = scaled(20)
    assert found.verdict == "flat"
    assert found.phases == ()
    assert re.match(
        r"flat: 16 lanes take (1\.0|0\.9)\d+× \(.*\) one lane's time at \d+/s, where 1 lane does", found.text
    )


def test_a_lock_of_four_is_no_lock_of_one() -> None:
    found = scaled(20, width=4)
    assert found.verdict == "grows"
    assert found.at_once == pytest.approx(4, rel=0.1)
    assert "are in service at a time" in found.text


def test_a_lock_in_one_phase_only() -> None:
    """Half of the act is behind a lock: throughput doubles, but one act at a time is in that half."""
    levels = [
        noisy(
            lanes,
            burst(lanes, 20, width=1, apart_ms=20),
            busy=0.1,
            phases={"boot": ms * MS, "boot.wait": (ms - 20) * MS, "agent": 20 * MS},
        )
        for lanes, ms in ((1, 20.0), (16, 170.0))
    ]
    found = examine(levels)
    assert (found.verdict, found.phases) == ("serialised", ("boot", "boot.wait"))
    assert found.text.endswith("phases boot and boot.wait grow")
    without = examine([replace(level, phases={}) for level in levels])
    assert without.verdict == "grows", "what is half of an act is not seen in the whole"


def test_in_a_closed_loop_a_lane_waits_for_all_others() -> None:
    levels = [Level(n, percentile_interval([[20.0 * n] * n] * 8, 0.5), 50.0, busy=0.05) for n in (1, 16)]
    assert examine(levels).verdict == "serialised"


# The CPU is no lock


ALONE, QUEUED = burst(1, 20), [ms * 10 * MS for ms in range(1, 17)]  # 2 CPUs, 20 ms of work in each of 16 lanes


@pytest.mark.parametrize("busy", [0.7, 0.95, 1.0])
def test_what_keeps_the_cpus_busy_is_no_lock(busy: float) -> None:
    low, top = noisy(1, ALONE, busy=0.5), noisy(16, QUEUED, busy=busy)
    assert examine([low, top]).verdict == "cpu bound"
    lock = noisy(16, burst(16, 20, width=1), busy=busy)
    assert examine([low, lock]).verdict == "cpu bound", "even if it looks like one"
    assert examine([replace(low, busy=None), lock]).verdict == "cpu bound"


def test_cpus_that_others_keep_busy_prove_nothing() -> None:
    found = scaled(20, width=1, busy=1.0)
    assert found.verdict == "grows"
    assert "CPUs are 100 % busy (with 1 lane 100 %)" in found.text
    assert scaled(20, width=1, busy=1.0, cpus=1, levels=(2, 16)).text.count("the CPU is 100 % busy (with 2 lanes") == 1
    assert pair(ALONE, QUEUED, floors(1, 4.4, rates=(1000, 2000)), busy=1.0).verdict == "cpu bound"


@pytest.mark.parametrize("busy", [None, 0.3, 0.6])
@pytest.mark.parametrize(
    ("low", "top", "floor"),
    [
        (ALONE, QUEUED, floors(20, 85, rates=(50, 100))),  # the same work without a sandbox
        (ALONE, QUEUED, floors(1, 4.4, rates=(1000, 2000))),  # a bare `true`: as large a factor, hardly any time
        (burst(1, 20), burst(16, 30), floors(1, 10)),  # waiting that does not grow, and the floor's growth
        (burst(1, 20), burst(16, 20, width=1), floors(20, 170, rates=(50, 50))),  # of one CPU
    ],
)
def test_what_grows_as_the_floor_is_no_lock(
    low: Sequence[float], top: Sequence[float], floor: Sequence[Mapping[str, float]], busy: float | None
) -> None:
    found = pair(low, top, floor, busy=busy)
    assert found.verdict == ("grows" if busy == 0.3 else "cpu bound")


@pytest.mark.parametrize("floor", [({}, {}), floors(1, 1.1), floors(1, 5)])
def test_without_the_cpus_share_no_lock_is_proved(floor: Sequence[Mapping[str, float]]) -> None:
    """A sandbox may use the CPU where its floor does not."""
    found = pair(ALONE, burst(16, 20, width=1), floor)
    assert found.verdict == "grows"
    assert "CPU use unknown" in found.text


def test_a_lock_is_found_though_the_floor_grows_too() -> None:
    """100 starts of a bare process take 45 times as long as one; a lock of 20 ms takes 50 times as long."""
    levels = [
        noisy(1, burst(1, 20), busy=0.05, floor=0.6 * MS, floor_throughput=1600.0),
        noisy(100, burst(100, 20, width=1), busy=0.1, floor=27 * MS, floor_throughput=2500.0),
    ]
    assert examine(levels).verdict == "serialised"
    assert examine([replace(level, busy=0.4) for level in levels]).verdict == "serialised", "it loses throughput"
    harness = [replace(level, floor_throughput=1600.0) for level in levels]
    assert examine(harness).verdict == "serialised", "the CPUs were free all the time"
    assert examine([replace(level, busy=0.4) for level in harness]).verdict == "grows"
    assert examine([replace(level, busy=None) for level in harness]).verdict == "cpu bound"


def test_neither_is_proved_when_the_cpus_were_half_busy() -> None:
    assert scaled(20, width=1, busy=0.6).verdict == "grows"


# The load generator


def test_a_queue_of_the_generator_is_no_lock_of_the_provider() -> None:
    levels = [noisy(n, burst(n, 20, width=1), busy=0.05, lag=lag * MS) for n, lag in ((1, 0.01), (16, 140.0))]
    found = examine(levels)
    assert (found.verdict, found.phases) == ("grows", (GENERATOR,))
    assert "what grows is the queue of this program" in found.text
    phases = [{"spawn_queue": 0.0, "create": 20 * MS}, {"spawn_queue": 150 * MS, "create": 170 * MS}]
    named = [replace(level, lag=None, phases=p) for level, p in zip(levels, phases, strict=True)]
    assert examine(named).phases == (GENERATOR,)


def test_a_queue_under_our_own_limits_is_no_lock_of_the_provider() -> None:
    phases = [{"create": ms * MS} for ms in (20.0, 170.0)]
    low, top = (noisy(n, burst(n, 20, width=1), busy=0.05, phases=p) for n, p in zip((1, 16), phases, strict=True))
    assert examine([low, top]).verdict == "serialised"
    found = examine([low, replace(top, held=150 * MS, lag=1 * MS)])
    assert (found.verdict, found.phases) == ("grows", (LIMITER,))
    assert found.text.endswith("; what serialises is our own limit (limiter=ours), not the sandbox")
    assert examine([low, replace(top, held=30 * MS, lag=60 * MS)]).phases == (GENERATOR,), "together they are half"
    assert examine([low, replace(top, held=30 * MS)]).verdict == "serialised"


def test_a_phase_of_the_provider_may_be_called_queue() -> None:
    phases = [{"queue": 1 * MS, "create": 20 * MS}, {"queue": 150 * MS, "create": 21 * MS}]
    low, top = (noisy(n, burst(n, 20, width=1), busy=0.05, phases=p) for n, p in zip((1, 16), phases, strict=True))
    found = examine([low, replace(top, lag=0.1 * MS)])
    assert (found.verdict, found.phases) == ("serialised", ("queue",))


# Too few


@pytest.mark.parametrize(
    ("levels", "why"),
    [
        ([measured(4, [burst(4, 20)] * 9)], "only level 4 was measured, and it takes two"),
        ([measured(1, [burst(1, 20)] * 9), measured(4, [burst(4, 20)] * 5)], "level 4 has 5 rounds, and it takes 6"),
        ([measured(1, [burst(1, 20)]), measured(4, [burst(4, 20)] * 9)], "level 1 has 1 round, and it takes 6"),
        ([Level(1, percentile_interval([[0.0]] * 9, 0.5)), measured(4, [burst(4, 20)] * 9)], "no time at all"),
    ],
)
def test_too_few_to_tell(levels: list[Level], why: str) -> None:
    found = examine(levels)
    assert found.verdict == "unknown"
    assert why in found.text


def test_rounds_that_differ_too_much() -> None:
    draw = random.Random(1)
    rounds = [[[20 * MS * draw.lognormvariate(0, 0.6)] * n for _ in range(8)] for n in (1, 4)]
    found = examine(measured(n, r) for n, r in zip((1, 4), rounds, strict=True))
    assert found.verdict == "unknown"
    assert "neither flat nor growing, about " in found.text
    assert "rounds would tell" in found.text


@pytest.mark.parametrize(
    ("growth", "told"),
    [
        ((1.118, 0.9, 1.3), "about 17 rounds would tell"),  # 9 rounds, and the interval is to be narrower by a fifth
        ((1.2, 0.99, 1.5), "about 11 rounds would tell"),
        ((1.12, 0.01, 300.0), "no number of rounds that one would wait for"),
        ((1.1, -math.inf, math.inf), "more rounds are needed"),
    ],
)
def test_how_many_rounds_would_tell(growth: tuple[float, float, float], told: str) -> None:
    found = examine([Level(1, Interval(1.0, 1.0, 1.0, 0.95, 9)), Level(4, Interval(*growth, 0.95, 9))])
    assert found.verdict == "unknown"
    assert told in found.text


def test_no_level() -> None:
    with pytest.raises(ValueError, match="at least one level"):
        examine([])


def test_without_one_lane_alone_a_queue_is_not_taken_for_a_lock() -> None:
    """4 of 4 and 4 of 16 at a time give as many acts a second."""
    assert scaled(20, width=4, levels=(4, 16)).verdict == "grows"
    found = scaled(20, width=1, levels=(4, 16))
    assert found.verdict == "grows"
    assert "16 lanes take 3." in found.text
    assert "4 lanes' time at" in found.text


# Whatever was measured

POSITIVE = st.floats(1e-3, 1e9)
SHARES = st.none() | st.floats(0.0, 1.0)
PHASES = st.dictionaries(
    st.sampled_from(["create", "boot", "queue", "spawn_queue", "first_exec"]), POSITIVE, max_size=3
)


@st.composite
def some_levels(draw: st.DrawFn) -> list[Level]:
    lanes = draw(st.lists(st.integers(1, 200), min_size=1, max_size=3, unique=True))
    return [
        Level(
            n,
            percentile_interval([*draw(st.lists(st.lists(POSITIVE, max_size=2), min_size=5, max_size=9)), [1.0]], 0.5),
            draw(st.none() | POSITIVE),
            draw(PHASES),
            draw(st.none() | POSITIVE),
            draw(st.none() | POSITIVE),
            draw(SHARES),
            draw(st.none() | st.integers(1, 99)),
            draw(st.none() | POSITIVE),
            draw(st.none() | POSITIVE),
        )
        for n in lanes
    ]


@given(some_levels(), st.randoms())
def test_any_levels_have_a_finding(levels: list[Level], shuffle: random.Random) -> None:
    found = examine(levels)
    assert found.text.startswith(f"{found.verdict}: ")
    assert "\n" not in found.text
    shuffle.shuffle(levels)
    assert examine(levels) == found
    top = max(levels, key=lambda level: level.lanes)
    if found.verdict == "serialised":
        assert top.busy is not None
        assert top.busy <= IDLE
        assert min(level.lanes for level in levels) == 1
        assert found.phases not in ((GENERATOR,), (LIMITER,))
    if found.verdict == "flat":
        assert found.growth is not None
        assert found.growth.high <= FLAT
    elif found.verdict != "unknown":
        assert found.growth is not None
        assert found.growth.low > 1
        assert found.growth.units >= FEWEST_ROUNDS


@given(some_levels(), st.sampled_from([0.25, 1024.0]))
def test_the_unit_of_time_is_no_matter(levels: list[Level], factor: float) -> None:
    def times(value: float | None) -> float | None:
        return None if value is None else value * factor

    def interval(one: Interval) -> Interval:
        return replace(one, estimate=one.estimate * factor, low=one.low * factor, high=one.high * factor)

    other = [
        replace(
            level,
            median=interval(level.median),
            phases={name: value * factor for name, value in level.phases.items()},
            floor=times(level.floor),
            lag=times(level.lag),
            held=times(level.held),
        )
        for level in levels
    ]
    before, after = examine(levels), examine(other)
    assert (before.verdict, before.phases) == (after.verdict, after.phases)


# The ratio of two intervals


def test_a_ratio_of_intervals() -> None:
    first, second = Interval(8.0, 4.0, 16.0, 0.95, 9), Interval(2.0, 1.0, 4.0, 0.9, 7)
    ratio = ratio_of_intervals(first, second)
    spread = 2 ** math.sqrt(2)
    assert (ratio.estimate, ratio.confidence, ratio.units) == (4.0, 0.9, 7)
    assert ratio.low == pytest.approx(4 / spread)
    assert ratio.high == pytest.approx(4 * spread)


# A bound at 0 opens the ratio; one a hair above it, smaller than any clock's step, has an inverse that no float holds.
INTERVALS = st.tuples(POSITIVE, st.just(0.0) | st.floats(1e-6, 1), st.floats(1, 10)).map(
    lambda of: Interval(of[0], of[0] * of[1], of[0] * of[2], 0.95, 9)
)


@given(INTERVALS, INTERVALS)
def test_a_ratio_the_other_way_round_is_its_inverse(first: Interval, second: Interval) -> None:
    one, other = ratio_of_intervals(first, second), ratio_of_intervals(second, first)
    assert one.low <= one.estimate <= one.high
    assert other.estimate == pytest.approx(1 / one.estimate)
    if one.low > 0:
        assert other.high == pytest.approx(1 / one.low)
    else:
        assert other.high == math.inf


def test_an_open_side_opens_the_ratio() -> None:
    whole = Interval(2.0, 1.0, 4.0, 0.95, 9)
    above = replace(whole, high=math.inf)
    assert ratio_of_intervals(above, whole).high == math.inf
    assert ratio_of_intervals(above, whole).low > 0
    assert ratio_of_intervals(whole, above).low == -math.inf
    assert ratio_of_intervals(whole, above).high < math.inf
    with pytest.raises(ValueError, match="above 0"):
        ratio_of_intervals(whole, replace(whole, estimate=0.0, low=0.0))
