"""Statistics for any values: what must not change when the data are turned, scaled, shifted or made worse."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_sandboxbench.stats import (
    Interval,
    Side,
    cluster_interval,
    order_interval,
    percentile,
    percentile_interval,
    ratio_interval,
    success_interval,
    summarise,
)

# Whole numbers as far as floats hold them exactly: what should be equal is equal, without a tolerance.
whole = st.integers(0, 1 << 40)
series = st.lists(whole, min_size=1, max_size=60)
tied = st.lists(st.integers(0, 3), min_size=1, max_size=60)
shares = st.integers(1, 63).map(lambda n: n / 64)  # 1 - q is exact
confidences = st.sampled_from([0.5, 0.75, 0.875, 0.9375])
sides: st.SearchStrategy[Side] = st.sampled_from(["both", "lower", "upper"])
rounds_of_lanes = st.lists(st.lists(whole, min_size=1, max_size=4), min_size=6, max_size=12)
MIRROR: dict[Side, Side] = {"both": "both", "lower": "upper", "upper": "lower"}


def close(one: float, other: float) -> bool:
    return one == other or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-3)


def same(one: Interval, other: Interval, factor: float = 1.0, shift: float = 0.0) -> bool:
    bounds = [(one.low, other.low), (one.high, other.high), (one.estimate, other.estimate)]
    return one.units == other.units and all(close(a * factor + shift, b) for a, b in bounds)


# Percentiles


@given(series | tied, shares)
def test_a_percentile_from_above_is_one_from_below(data: list[int], q: float) -> None:
    mirrored = percentile(sorted(-x for x in data), 1 - q)
    assert close(percentile(sorted(data), q), -mirrored)


@given(series, st.integers(0, 59), whole, st.floats(0, 1))
def test_a_slower_value_makes_no_percentile_faster(data: list[int], at: int, more: int, q: float) -> None:
    slower = list(data)
    slower[at % len(data)] += more
    assert percentile(sorted(slower), q) >= percentile(sorted(data), q)


# Intervals of order statistics


@given(series | tied, shares, confidences, sides)
def test_the_interval_of_a_mirror_image_is_the_mirror_image(
    data: list[int], q: float, confidence: float, side: Side
) -> None:
    one = order_interval(sorted(data), q, confidence, side=side)
    other = order_interval(sorted(-x for x in data), 1 - q, confidence, side=MIRROR[side])
    assert same(one, Interval(-other.estimate, -other.high, -other.low, confidence, other.units))


@given(series | tied, shares, confidences, sides, st.sampled_from([0.25, 1024.0]), whole)
def test_any_interval_scales_and_shifts(
    data: list[int], q: float, confidence: float, side: Side, factor: float, shift: int
) -> None:
    one = order_interval(sorted(data), q, confidence, side=side)
    other = order_interval(sorted(x * factor + shift for x in data), q, confidence, side=side)
    assert same(one, other, factor, shift)


@given(series | tied, shares, sides)
def test_more_confidence_is_never_narrower(data: list[int], q: float, side: Side) -> None:
    widths = [order_interval(sorted(data), q, confidence, side=side) for confidence in (0.5, 0.8, 0.95, 0.99)]
    for narrow, wide in pairwise(widths):
        assert wide.low <= narrow.low
        assert narrow.high <= wide.high


@given(series | tied, shares, confidences)
def test_a_one_sided_bound_is_that_of_two_sides_with_twice_the_error(
    data: list[int], q: float, confidence: float
) -> None:
    both = order_interval(sorted(data), q, confidence)
    one_side = (1 + confidence) / 2
    assert order_interval(sorted(data), q, one_side, side="lower").low == both.low
    assert order_interval(sorted(data), q, one_side, side="upper").high == both.high


@given(whole, shares, confidences, sides)
def test_one_value_bounds_only_what_it_may(value: int, q: float, confidence: float, side: Side) -> None:
    """It lies above the quantile with probability 1 - q, and below it with probability q."""
    interval = order_interval([value], q, confidence, side=side)
    error = (1 - confidence) / (2 if side == "both" else 1)
    assert (interval.estimate, interval.units) == (value, 1)
    assert interval.high == (value if side != "lower" and q <= error else math.inf)
    assert interval.low == (value if side != "upper" and 1 - q <= error else -math.inf)


def samples_of(n: int, values: int) -> Iterator[tuple[int, ...]]:
    """How often each of some values may come up in ``n`` draws."""
    if values == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in samples_of(n - first, values - 1):
            yield (first, *rest)


@pytest.mark.parametrize("weights", [(1, 1, 1), (6, 1, 1), (1, 6, 1), (1, 2, 5), (4, 0, 4), (0, 8, 0)], ids=str)
@pytest.mark.parametrize("q", [0.25, 0.5, 0.75])
def test_coverage_with_ties_is_at_least_nominal_by_counting_every_sample(weights: tuple[int, ...], q: float) -> None:
    """Three values with these odds: each possible sample with its exact probability, for every quantile there is."""
    chances = [Fraction(weight, sum(weights)) for weight in weights]
    quantiles = [x for x in range(3) if sum(chances[:x]) <= q <= sum(chances[: x + 1])]
    assert quantiles
    for n in range(1, 10):
        for confidence in (0.5, 0.75, 0.9):
            covered = dict.fromkeys(quantiles, Fraction())
            for counts in samples_of(n, 3):
                chance = Fraction(math.factorial(n))
                for count, each in zip(counts, chances, strict=True):
                    chance *= each**count / math.factorial(count)
                if chance:
                    data = list(chain.from_iterable([x] * count for x, count in enumerate(counts)))
                    interval = order_interval(data, q, confidence)
                    for x in quantiles:
                        covered[x] += chance * (x in interval)
            assert min(covered.values()) >= confidence, (n, confidence, covered)


# Rates and ratios


@given(st.integers(1, 400), st.integers(0, 399), confidences)
def test_one_more_success_lowers_no_bound(n: int, successes: int, confidence: float) -> None:
    successes %= n
    one, more = success_interval(successes, n, confidence), success_interval(successes + 1, n, confidence)
    assert one.low <= more.low
    assert one.high <= more.high


def test_the_rate_of_one_attempt() -> None:
    for successes, low, high in ((0, 0.0, 0.975), (1, 0.025, 1.0)):
        interval = success_interval(successes, 1)
        assert (interval.low, interval.high) == pytest.approx((low, high))


@given(st.lists(st.tuples(st.integers(1, 1 << 30), st.integers(1, 1 << 30)), min_size=1, max_size=40))
def test_the_ratio_the_other_way_round_is_one_over_it(pairs: list[tuple[int, int]]) -> None:
    one, other = ratio_interval(pairs), ratio_interval([(b, a) for a, b in pairs])
    assert close(one.low, 1 / other.high if math.isfinite(other.high) else -math.inf)
    assert close(one.high, 1 / other.low if math.isfinite(other.low) else math.inf)
    if len(pairs) % 2:  # of an even number it is the mean of two
        assert close(one.estimate, 1 / other.estimate)
    if len(pairs) == 1:
        assert (one.low, one.high) == (-math.inf, math.inf)


# Rounds


@given(rounds_of_lanes, st.integers(0, 3), whole)
@settings(max_examples=40)
def test_the_interval_of_rounds_shifts(rounds: list[list[int]], seed: int, shift: int) -> None:
    one = cluster_interval(rounds, 0.5, seed=seed, resamples=40)
    other = cluster_interval([[x + shift for x in lanes] for lanes in rounds], 0.5, seed=seed, resamples=40)
    assert same(one, other, shift=shift)


@given(rounds_of_lanes, st.integers(0, 3))
@settings(max_examples=40)
def test_the_bounds_of_rounds_are_values_that_were_measured(rounds: list[list[int]], seed: int) -> None:
    interval = percentile_interval(rounds, 0.5, seed=seed)
    measured = set(chain.from_iterable(rounds))
    assert interval.low in measured | {-math.inf, interval.estimate}
    assert interval.high in measured | {math.inf, interval.estimate}
    assert interval.low <= interval.estimate <= interval.high


@given(st.lists(st.lists(whole, max_size=4), max_size=30), st.sampled_from([0.25, 1024.0]))
@settings(max_examples=60)
def test_a_summary_scales_and_is_in_order(rounds: list[list[int]], factor: float) -> None:
    """In whatever unit the values are: the same numbers in that unit, and what has none stays."""
    pairs = [(lanes[0], lanes[-1] + 1) for lanes in rounds if lanes]
    one = summarise(rounds, failures=2, floor_pairs=pairs, wall_s=2.0)
    scaled = [[x * factor for x in lanes] for lanes in rounds]
    other = summarise(scaled, failures=2, floor_pairs=[(a * factor, b * factor) for a, b in pairs], wall_s=2.0)
    for name in ("median", "low", "high", "minimum", "maximum", "mean", "stdev", "p95", "p99"):
        before, after = getattr(one, name), getattr(other, name)
        assert (before is None) == (after is None)
        assert before is None or close(before * factor, after), name
    for name in ("n", "units", "attempts", "success_rate", "floor_ratio", "floor_low", "floor_high", "throughput"):
        assert getattr(one, name) == getattr(other, name), name
    order = [one.minimum, one.low, one.median, one.p95, one.p99, one.maximum]
    present = [value for value in order if value is not None]
    assert present == sorted(present)
    assert one.high is None or one.median is None or one.median <= one.high
