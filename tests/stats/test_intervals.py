from __future__ import annotations

import math
import random
import time
from itertools import chain
from statistics import NormalDist

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_sandboxbench.stats import (
    Interval,
    Side,
    cluster_interval,
    median,
    median_interval,
    needed,
    order_interval,
    percentile_interval,
    ratio_interval,
    success_interval,
)
from pytest_sandboxbench.stats.intervals import _expanded

INF = math.inf
values = st.lists(st.floats(min_value=0.0, max_value=1e12), min_size=1, max_size=120)
inner = st.floats(min_value=0.01, max_value=0.99)
confidences = st.floats(min_value=0.5, max_value=0.999)
sides: st.SearchStrategy[Side] = st.sampled_from(["both", "lower", "upper"])
many_rounds = st.lists(
    st.lists(st.floats(min_value=0.0, max_value=1e6), min_size=0, max_size=5), min_size=6, max_size=12
).filter(lambda rounds: any(rounds))


def chance_to_cover(n: int, q: float, low: int, high: int) -> float:
    """Chance that the ranks ``low`` and ``high`` (from 1) enclose the quantile: a plain sum of binomial terms."""
    return math.fsum(math.comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(low, high))


# Order statistics


def test_literal_ranks_of_the_median() -> None:
    # The table of every textbook: n -> ranks of the 95 % interval of the median.
    for n, low, high in [(6, 1, 6), (8, 1, 8), (9, 2, 8), (10, 2, 9), (20, 6, 15), (30, 10, 21), (100, 40, 61)]:
        ranks = [float(i) for i in range(1, n + 1)]
        assert order_interval(ranks, 0.5) == Interval((n + 1) / 2, low, high, 0.95, n)


def test_too_few_units_leave_a_side_open() -> None:
    assert order_interval([1.0, 2.0, 3.0, 4.0, 5.0], 0.5) == Interval(3.0, -INF, INF, 0.95, 5)
    assert median_interval([7.0]) == Interval(7.0, -INF, INF, 0.95, 1)
    interval = order_interval([float(i) for i in range(59)], 0.95)
    assert math.isfinite(interval.low)
    assert interval.high == INF
    assert not interval.bounded


@pytest.mark.parametrize(("q", "n"), [(0.95, 59), (0.99, 299)])
def test_one_sided_bound_of_a_tail_percentile(q: float, n: int) -> None:
    data = [float(i) for i in range(1, n + 1)]
    assert order_interval(data, q, side="upper").high == n
    assert order_interval(data[:-1], q, side="upper").high == INF
    assert order_interval(data, q, side="upper").low == -INF


@given(st.integers(min_value=1, max_value=400), inner, confidences, sides)
def test_finite_exactly_from_the_number_that_is_needed(n: int, q: float, confidence: float, side: Side) -> None:
    interval = order_interval([float(i) for i in range(n)], q, confidence, side=side)
    enough = n >= needed(q, confidence, side)
    if side == "both":
        assert interval.bounded == enough
    else:
        assert math.isfinite(interval.high if side == "upper" else interval.low) == enough


@given(st.integers(min_value=1, max_value=300), inner, st.sampled_from([0.8, 0.9, 0.95, 0.99]))
@example(2, 0.03125, 0.8)  # the first value alone would do as upper bound, but the estimate lies above it
def test_coverage_is_at_least_nominal_and_no_wider_than_it_must(n: int, q: float, confidence: float) -> None:
    interval = order_interval([float(i) for i in range(1, n + 1)], q, confidence)
    low = 0 if interval.low == -INF else int(interval.low)
    high = n + 1 if interval.high == INF else int(interval.high)
    assert chance_to_cover(n, q, low, high) >= confidence - 1e-9
    error = (1 - confidence) / 2
    estimate = interval.estimate  # the values are their own ranks
    if low and low + 1 <= estimate:  # the next rank inwards would err too often
        assert chance_to_cover(n, q, 0, low + 1) > error * (1 - 1e-8)
    if estimate <= high - 1 <= n - 1:
        assert chance_to_cover(n, q, high - 1, n + 1) > error * (1 - 1e-8)


def test_coverage_holds_for_a_coin() -> None:
    # Discrete with huge ties: zeros and ones, 60 % ones; the median is 1 and must be in the interval.
    rng = random.Random(3)
    covered = sum(1.0 in median_interval([float(rng.random() < 0.6) for _ in range(25)]) for _ in range(2000))
    assert covered / 2000 >= 0.95


@given(values, inner, confidences, sides)
def test_contains_the_estimate_and_bounds_are_values(
    data: list[float], q: float, confidence: float, side: Side
) -> None:
    interval = order_interval(sorted(data), q, confidence, side=side)
    assert interval.estimate in interval
    assert interval.low in {-INF, *data}
    assert interval.high in {INF, *data}


@given(values, st.randoms(use_true_random=False))
def test_median_interval_does_not_depend_on_the_order(data: list[float], rng: random.Random) -> None:
    shuffled = list(data)
    rng.shuffle(shuffled)
    assert median_interval(data) == median_interval(shuffled)


@given(values, st.sampled_from([0.5, 4.0, 1024.0]))
def test_median_interval_scales(data: list[float], factor: float) -> None:
    one, other = median_interval(data), median_interval([x * factor for x in data])
    assert other.estimate == pytest.approx(one.estimate * factor)
    assert (other.low, other.high) == (one.low * factor, one.high * factor)


@given(st.lists(st.integers(min_value=0, max_value=10**9), min_size=1, max_size=60), st.integers(0, 10**9))
def test_median_interval_shifts(data: list[int], shift: int) -> None:
    one, other = median_interval(data), median_interval([x + shift for x in data])
    assert (other.estimate, other.low, other.high) == (one.estimate + shift, one.low + shift, one.high + shift)


@given(st.floats(min_value=0.0, max_value=1e12), st.integers(min_value=6, max_value=100))
def test_equal_values_have_an_interval_of_no_width(value: float, n: int) -> None:
    assert median_interval([value] * n) == Interval(value, value, value, 0.95, n)


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        median_interval([])
    with pytest.raises(ValueError, match="inside 0 and 1"):
        order_interval([1.0], 1.0)
    with pytest.raises(ValueError, match="confidence"):
        order_interval([1.0], 0.5, 95)


# Ratios and success rates


def test_ratio_is_taken_pair_by_pair() -> None:
    # A slow phase of the host doubles both halves of a pair; the ratio does not see it.
    pairs = [(30.0, 10.0), (60.0, 20.0), (33.0, 11.0), (90.0, 30.0), (36.0, 12.0), (120.0, 40.0)]
    assert ratio_interval(pairs) == Interval(3.0, 3.0, 3.0, 0.95, 6)


@given(
    st.lists(st.tuples(st.floats(min_value=1, max_value=1e9), st.floats(min_value=1, max_value=1e9)), min_size=1),
    st.sampled_from([0.5, 8.0]),
)
def test_ratio_has_no_unit(pairs: list[tuple[float, float]], factor: float) -> None:
    assert ratio_interval([(a * factor, b * factor) for a, b in pairs]) == ratio_interval(pairs)


@pytest.mark.parametrize("floor", [0.0, -1.0, math.nan])
def test_ratio_refuses_a_floor_that_is_not_above_0(floor: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        ratio_interval([(1.0, floor)])


def test_ratio_of_no_pairs() -> None:
    with pytest.raises(ValueError, match="no values"):
        ratio_interval([])


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    # From tables of the method: Clopper & Pearson's own (8 of 10), and the rule (alpha / 2) ** (1 / n) at the ends.
    [(8, 10, 0.4439, 0.9748), (50, 50, 0.9289, 1.0), (0, 50, 0.0, 0.0711), (99, 100, 0.9455, 0.99975)],
)
def test_literal_success_rates(successes: int, n: int, low: float, high: float) -> None:
    interval = success_interval(successes, n)
    assert interval.estimate == successes / n
    assert interval.low == pytest.approx(low, abs=1e-4)
    assert interval.high == pytest.approx(high, abs=1e-4)


@given(st.integers(min_value=1, max_value=60), st.floats(min_value=0.001, max_value=0.999))
@settings(max_examples=50)
def test_success_interval_covers_every_rate(n: int, rate: float) -> None:
    inside = math.fsum(
        math.comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(n + 1) if rate in success_interval(k, n)
    )
    assert inside >= 0.95 - 1e-9


@given(st.integers(min_value=1, max_value=10**6), st.data())
@settings(max_examples=30)
def test_success_interval_is_symmetric_and_contains_its_estimate(n: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(min_value=0, max_value=n))
    interval, other = success_interval(successes, n), success_interval(n - successes, n)
    assert interval.estimate in interval
    assert interval.low >= 0.0
    assert interval.high <= 1.0
    assert (interval.low, interval.high) == pytest.approx((1 - other.high, 1 - other.low), abs=1e-12)


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (2, 1), (-1, 1)])
def test_success_interval_refuses_nonsense(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="successes <= n"):
        success_interval(successes, n)


# Rounds


def bursts(
    rng: random.Random, rounds: int, lanes: int, *, between: float = 0.05, within: float = 0.16
) -> list[list[float]]:
    """Log-normal lanes whose round shares a factor; the true median is 1."""
    found = []
    for _ in range(rounds):
        shared = rng.gauss(0.0, between)
        found.append([math.exp(shared + rng.gauss(0.0, within)) for _ in range(lanes)])
    return found


def test_pooled_interval_misses_a_round_effect_that_the_cluster_interval_covers() -> None:
    rng = random.Random(11)
    runs, clustered, pooled = 200, 0, 0
    for seed in range(runs):
        rounds = bursts(rng, 20, 100)
        clustered += 1.0 in cluster_interval(rounds, 0.5, resamples=400, seed=seed)
        pooled += 1.0 in median_interval(list(chain.from_iterable(rounds)))
    assert clustered / runs >= 0.90
    assert pooled / runs <= 0.65


def test_few_rounds_are_covered_too() -> None:
    rng = random.Random(12)
    runs, covered = 200, 0
    for seed in range(runs):
        covered += 1.0 in cluster_interval(bursts(rng, 6, 8), 0.5, resamples=1000, seed=seed)
    assert covered / runs >= 0.90


@pytest.mark.parametrize(("rounds", "student"), [(6, 2.5706), (10, 2.2622), (20, 2.0930), (60, 2.0010), (128, 1.9788)])
def test_bootstrap_tail_is_moved_out_to_students_t(rounds: int, student: float) -> None:
    # student: the 97.5 % point of Student's t with rounds - 1 degrees of freedom, from the usual table
    reach = -NormalDist().inv_cdf(_expanded(0.025, rounds))
    assert reach == pytest.approx(student * math.sqrt(rounds / (rounds - 1)), abs=1e-3)


def test_fewer_than_six_rounds_have_no_interval() -> None:
    interval = cluster_interval(bursts(random.Random(1), 5, 100), 0.5, seed=1)
    assert (interval.low, interval.high, interval.units) == (-INF, INF, 5)
    assert cluster_interval(bursts(random.Random(1), 6, 100), 0.5, seed=1).bounded


def test_a_tail_percentile_needs_rounds_not_values() -> None:
    rounds = bursts(random.Random(2), 59, 20)
    assert math.isfinite(cluster_interval(rounds, 0.95, seed=1, side="upper").high)
    assert cluster_interval(rounds[1:], 0.95, seed=1, side="upper").high == INF
    assert cluster_interval(rounds, 0.95, seed=1).high == INF
    assert math.isfinite(cluster_interval(rounds, 0.95, seed=1).low)


def test_same_seed_same_bounds() -> None:
    rounds = bursts(random.Random(3), 12, 10)
    assert cluster_interval(rounds, 0.5, seed=5) == cluster_interval(rounds, 0.5, seed=5)
    assert len({cluster_interval(rounds, 0.5, seed=seed, resamples=50).low for seed in range(10)}) > 1


@given(many_rounds, st.integers(0, 5), sides)
@settings(max_examples=60)
def test_quantile_bounds_are_those_of_resamples_built_in_full(rounds: list[list[float]], seed: int, side: Side) -> None:
    fast = cluster_interval(rounds, 0.5, seed=seed, resamples=60, side=side)
    lower = cluster_interval(rounds, lambda x: x[(len(x) - 1) // 2], seed=seed, resamples=60, side=side)
    upper = cluster_interval(rounds, lambda x: x[len(x) // 2], seed=seed, resamples=60, side=side)
    assert fast.low == lower.low
    assert fast.high == upper.high


@given(many_rounds, st.integers(0, 5))
@settings(max_examples=60)
def test_cluster_interval_contains_the_estimate(rounds: list[list[float]], seed: int) -> None:
    interval = cluster_interval(rounds, median, seed=seed, resamples=40)
    pooled = sorted(chain.from_iterable(rounds))
    assert interval.estimate == median(pooled)
    assert interval.estimate in interval
    assert interval.units == sum(1 for one in rounds if one)


@given(many_rounds, st.sampled_from([0.5, 4.0]), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_cluster_interval_scales_and_ignores_the_order_of_lanes(
    rounds: list[list[float]], factor: float, rng: random.Random
) -> None:
    one = cluster_interval(rounds, 0.5, seed=1, resamples=40)
    shuffled = [rng.sample(values, len(values)) for values in rounds]
    other = cluster_interval([[x * factor for x in one_round] for one_round in shuffled], 0.5, seed=1, resamples=40)
    assert (other.low, other.high) == (one.low * factor, one.high * factor)
    assert other.estimate == pytest.approx(one.estimate * factor)


def test_equal_values_in_rounds() -> None:
    assert cluster_interval([[3.0, 3.0]] * 8, 0.5, seed=1) == Interval(3.0, 3.0, 3.0, 0.95, 8)


def test_any_statistic_can_be_given() -> None:
    rounds = bursts(random.Random(4), 20, 10)
    interval = cluster_interval(rounds, lambda data: math.fsum(data) / len(data), seed=1, resamples=500)
    assert interval.estimate in interval
    assert interval.bounded
    assert interval.high - interval.low < 0.2


def test_more_than_128_rounds_are_grouped_and_still_counted() -> None:
    rounds = bursts(random.Random(5), 300, 4)
    interval = cluster_interval(rounds, 0.5, seed=1)
    assert interval.units == 300
    assert 1.0 in interval
    assert interval.high - interval.low < 0.06


def test_percentile_interval_knows_the_unit() -> None:
    singles = [[float(i)] for i in range(20)]
    assert percentile_interval([*singles, []], 0.5) == median_interval([float(i) for i in range(20)])
    rounds = bursts(random.Random(6), 10, 4)
    assert percentile_interval(rounds, 0.5, seed=3) == cluster_interval(rounds, 0.5, seed=3)
    # 500 acts in one sandbox are one unit.
    assert percentile_interval([[1.0] * 500], 0.5) == Interval(1.0, -INF, INF, 0.95, 1)
    with pytest.raises(ValueError, match="no values"):
        percentile_interval([[], []], 0.5)


def test_cluster_interval_refuses_nonsense() -> None:
    with pytest.raises(ValueError, match="no values"):
        cluster_interval([[], []], 0.5, seed=1)
    with pytest.raises(ValueError, match="resample"):
        cluster_interval([[1.0]] * 6, 0.5, seed=1, resamples=0)
    with pytest.raises(ValueError, match="inside 0 and 1"):
        cluster_interval([[1.0]] * 6, 95.0, seed=1)


def test_time_is_bounded() -> None:
    rounds = bursts(random.Random(7), 60, 100)
    began = time.process_time()
    cluster_interval(rounds, median, seed=1)
    assert time.process_time() - began < 0.5
