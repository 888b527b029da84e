"""Confidence intervals by independent unit.

Where units are single values (a sandbox each), an interval is a pair of order statistics: exact whatever the
distribution, coverage at least nominal. Under load the lanes of a round share its fate; the round is the unit,
and the interval is a bootstrap over whole rounds. Nothing is trimmed.

A side that the data cannot bound is infinite, never a guess: comparisons with a limit then come out right by
themselves (an infinite upper bound is below no limit).
"""

from __future__ import annotations

import math
import random
import sys
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from operator import ge, mul
from statistics import NormalDist

from pytest_sandboxbench.stats.binomial import lower_rank, proportion_above
from pytest_sandboxbench.stats.percentiles import Side, check_confidence, median, percentile

__all__ = [
    "FEWEST_ROUNDS",
    "Interval",
    "Statistic",
    "cluster_interval",
    "median_interval",
    "order_interval",
    "percentile_interval",
    "ratio_interval",
    "ratio_of_intervals",
    "success_interval",
]

Statistic = float | Callable[[Sequence[float]], float]
"""A quantile by its ``q``, or a function of the pooled values in ascending order."""

FEWEST_ROUNDS = 6
"""Below this number of rounds a bootstrap over rounds is too narrow to be given; see ``cluster_interval``."""

_MOST_CLUSTERS = 128


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate between two bounds, in the unit of the values.

    ``low`` is ``-inf`` and ``high`` is ``inf`` where ``units`` (the number of independent units) are too few to
    bound that side, or where it was not asked for. ``low <= estimate <= high`` always.
    """

    estimate: float
    low: float
    high: float
    confidence: float
    units: int

    @property
    def bounded(self) -> bool:
        """Whether both sides are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


def order_interval(
    sorted_values: Sequence[float], q: float, confidence: float = 0.95, *, side: Side = "both"
) -> Interval:
    """Interval for the ``q`` quantile from independent values in ascending order, one value a unit.

    The bounds are order statistics whose ranks come from the binomial distribution (David & Nagaraja, "Order
    Statistics", 3rd ed. 2003, section 7.1). Coverage is at least ``confidence`` for every distribution,
    discrete ones and ties included. With ``side="both"`` either side errs with at most
    ``(1 - confidence) / 2``; with one side that side alone errs, with at most ``1 - confidence``.

    ``needed(q, confidence, side)`` says from how many values the sides asked for are finite.
    Raises ``ValueError`` for no values, a ``q`` not inside 0..1 or a confidence outside 0.5..1.
    """
    n = len(sorted_values)
    below, above = _ranks(n, q, confidence, side)
    return Interval(
        estimate=percentile(sorted_values, q),
        low=float(sorted_values[below - 1]) if below else -math.inf,
        high=float(sorted_values[above - 1]) if above <= n else math.inf,
        confidence=confidence,
        units=n,
    )


def median_interval(units: Sequence[float], confidence: float = 0.95) -> Interval:
    """``order_interval`` of the median of independent values in any order; finite from 6 of them at 95 %."""
    return order_interval(sorted(units), 0.5, confidence)


def ratio_interval(pairs: Sequence[tuple[float, float]], confidence: float = 0.95) -> Interval:
    """Median of the ratios first / second, pair by pair, with its order-statistic interval.

    For "x floor" a pair is what a provider and the floor took in the same round, so that what slowed both falls
    out. One pair is one unit: under load give one pair a round (of its medians), not one a lane. The result has
    no unit. It is the median of ratios, not the ratio of medians.

    Raises ``ValueError`` for no pairs and for a second value that is not above 0.
    """
    for first, second in pairs:
        if not second > 0:
            raise ValueError(f"a ratio needs a value above 0 to divide by, not {second!r} (the pair of {first!r})")
    return median_interval([first / second for first, second in pairs], confidence)


def ratio_of_intervals(first: Interval, second: Interval) -> Interval:
    """The ratio first / second of two estimates that were made apart, not pair by pair; it has no unit.

    The distances to the bounds are added as squares, on the scale of logarithms, where a ratio is a difference: Zou &
    Donner, "Construction of confidence limits about effect measures: a general approach", Statistics in Medicine 27
    (2008). It keeps the confidence of the two (the lower of them), and an open side of either opens that of the ratio.

    Raises ``ValueError`` unless both estimates are above 0.
    """
    if not (first.estimate > 0 and second.estimate > 0):
        raise ValueError(f"a ratio of medians needs two above 0, not {first.estimate!r} and {second.estimate!r}")
    ratio = first.estimate / second.estimate
    below = math.hypot(_distance(first.low, first.estimate), _distance(second.estimate, second.high))
    above = math.hypot(_distance(first.estimate, first.high), _distance(second.low, second.estimate))
    return Interval(
        estimate=ratio,
        low=ratio * math.exp(-below) if math.isfinite(below) else -math.inf,
        high=_scaled(ratio, above),
        confidence=min(first.confidence, second.confidence),
        units=min(first.units, second.units),
    )


def _distance(low: float, high: float) -> float:
    """Between the logarithms of two bounds, the lower one first; infinite where one of them has none."""
    return math.log(high) - math.log(low) if low > 0 and high < math.inf else math.inf


def _scaled(ratio: float, distance: float) -> float:
    try:
        return ratio * math.exp(distance)
    except OverflowError:
        return math.inf


def success_interval(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Clopper-Pearson interval of a success rate, a share of 1; ``n`` counts every attempt.

    Clopper & Pearson, Biometrika 26 (1934), and not Wilson: like the order statistics it covers at least the
    nominal share for every true rate, where Wilson's dips below it for rates near 1, the ones that matter here.
    The price is some width: 50 of 50 give 92.9 %..100 %. Attempts are taken as independent; failures that come
    by the round make the true interval wider.

    Raises ``ValueError`` unless ``0 <= successes <= n`` and ``n > 0``.
    """
    check_confidence(confidence)
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"a success rate needs 0 <= successes <= n and n > 0, not {successes!r} of {n!r}")
    error = (1.0 - confidence) / 2.0
    return Interval(
        estimate=successes / n,
        # min: for rates within rounding of 0 the difference may come out above the estimate
        low=min(1.0 - proportion_above(n - successes, n, error), successes / n),
        high=proportion_above(successes, n, error),
        confidence=confidence,
        units=n,
    )


def percentile_interval(
    rounds: Sequence[Sequence[float]],
    q: float,
    confidence: float = 0.95,
    *,
    side: Side = "both",
    seed: int = 0,
) -> Interval:
    """Interval for the ``q`` quantile of all values of ``rounds``, by the unit that they have.

    Where no round holds more than one value, the values are the units: ``order_interval``. Otherwise the rounds
    are: ``cluster_interval``. Rounds without a value (all failed) are left out here; they count in the success
    rate. ``seed`` matters for the second kind only. Raises ``ValueError`` where those do.
    """
    if max(map(len, rounds), default=0) <= 1:
        return order_interval(sorted(chain.from_iterable(rounds)), q, confidence, side=side)
    return cluster_interval(rounds, q, confidence, side=side, seed=seed)


def cluster_interval(
    rounds: Sequence[Sequence[float]],
    statistic: Statistic,
    confidence: float = 0.95,
    *,
    resamples: int = 2000,
    seed: int,
    side: Side = "both",
) -> Interval:
    """Interval for a statistic of the pooled values, by a bootstrap that draws whole rounds.

    ``statistic`` is the ``q`` of a quantile (fast, whatever the number of values) or a function of the pooled
    values in ascending order (its cost times ``resamples``). Equal input and ``seed`` give equal bounds.

    Expanded percentile interval: the percentiles of the bootstrap distribution are taken further out, as much as
    Student's t and the factor ``sqrt(R / (R - 1))`` ask for, since with few rounds the plain one is too narrow
    (Hesterberg, "What teachers should know about the bootstrap", The American Statistician 69 (2015)). The
    bounds of a quantile are values that were measured, the outer neighbour where the rule interpolates.
    More than 128 rounds are grouped, neighbours together, into 128 larger independent units, which bounds the time.

    Below ``FEWEST_ROUNDS`` rounds no such correction helps, and both sides are infinite: too few units. So is a
    side of a quantile as long as there are fewer than ``needed(q, confidence, side)`` rounds, however many values
    they hold: a resample has no slow round that did not happen. Where rounds differ more than lanes (log-normal,
    0.16 between, 0.05 within), the p95 interval of 10 rounds of 16 lanes would cover 63 %.

    Coverage is approximate. Simulated with log-normal lanes at 95 %: the median 93..97 % for 6 to 60 rounds; the
    upper bound of p95 at 60 to 100 rounds 91..92 %.

    Raises ``ValueError`` for no values, a ``q`` not inside 0..1, a confidence outside 0.5..1, no resamples.
    """
    check_confidence(confidence)
    if resamples < 1:
        raise ValueError(f"a bootstrap needs at least one resample, not {resamples!r}")
    filled = [values for values in rounds if len(values)]
    count = min(len(filled), _MOST_CLUSTERS)
    edges = [i * len(filled) // count for i in range(count + 1)] if count else []
    clusters = [sorted(chain.from_iterable(filled[a:b])) for a, b in pairwise(edges)]
    pooled = sorted(chain.from_iterable(clusters))  # runs in order: a merge, not a new sort
    if not pooled:
        raise ValueError("an interval of no values does not exist")
    if statistic is median:
        statistic = 0.5
    below, above = 1, len(filled)
    if callable(statistic):
        estimate = statistic(pooled)
    else:
        below, above = _ranks(len(filled), statistic, confidence, side)
        estimate = percentile(pooled, statistic)

    low, high = -math.inf, math.inf
    if len(filled) >= FEWEST_ROUNDS:
        error = _expanded((1.0 - confidence) / (2.0 if side == "both" else 1.0), count)
        rank = max(1, math.floor(error * (resamples + 1)))
        if callable(statistic):
            low, high = _bounds_of_function(clusters, _draws(count, resamples, seed), statistic, rank)
        else:
            times = _times_drawn(count, resamples, seed)
            low, high = _bounds_of_quantile(clusters, pooled, times, resamples, statistic, rank)
    return Interval(
        estimate=estimate,
        low=min(low, estimate) if below and side != "upper" else -math.inf,
        high=max(high, estimate) if above <= len(filled) and side != "lower" else math.inf,
        confidence=confidence,
        units=len(filled),
    )


def _ranks(n: int, q: float, confidence: float, side: Side) -> tuple[int, int]:
    """Ranks from 1 of the two bounding order statistics; 0 and ``n + 1`` for a side without bound."""
    check_confidence(confidence)
    if not 0.0 < q < 1.0:
        raise ValueError(f"q is a share inside 0 and 1 (0.95 for p95), not {q!r}")
    if n < 1:
        raise ValueError("an interval of no values does not exist")
    error = (1.0 - confidence) / (2.0 if side == "both" else 1.0)
    below = 0 if side == "upper" else lower_rank(n, q, error)
    above = n + 1 if side == "lower" else n + 1 - lower_rank(n, 1.0 - q, error)
    # For an extreme q of few values, or a low confidence, a rank may stop short of the interpolated estimate.
    # Outwards is always safe.
    position = (n - 1) * q + 1.0
    return min(below, math.floor(position)), max(above, math.ceil(position))


def _bounds_of_function(
    clusters: list[list[float]],
    draws: list[list[int]],
    statistic: Callable[[Sequence[float]], float],
    rank: int,
) -> tuple[float, float]:
    outcomes = sorted(statistic(sorted(chain.from_iterable(clusters[i] for i in draw))) for draw in draws)
    return outcomes[rank - 1], outcomes[-rank]


def _bounds_of_quantile(
    clusters: list[list[float]], pooled: list[float], times: Sequence[int], resamples: int, q: float, rank: int
) -> tuple[float, float]:
    """The ``rank``-th smallest and largest of the resampled quantiles, without building one resample.

    A resample's k-th smallest value is at most x when its clusters hold k values up to x. So for an x one count
    a cluster answers for all resamples, and the bound is found by halving over the pooled values.
    """
    positions = [(size - 1) * q + 1.0 for size in _totals(times, map(len, clusters), resamples)]

    def first_reaching(wanted: list[int], least: int) -> float:
        left, right = 0, len(pooled) - 1
        while left < right:
            middle = (left + right) // 2
            up_to_x = _totals(times, (bisect_right(cluster, pooled[middle]) for cluster in clusters), resamples)
            if sum(map(ge, up_to_x, wanted)) >= least:
                right = middle
            else:
                left = middle + 1
        return float(pooled[left])

    low = first_reaching([math.floor(p) for p in positions], rank)
    high = first_reaching([math.ceil(p) for p in positions], resamples - rank + 1)
    return low, high


def _draws(count: int, resamples: int, seed: int) -> list[list[int]]:
    generator = random.Random(seed)
    indices = range(count)
    return [generator.choices(indices, k=count) for _ in range(resamples)]


@lru_cache(maxsize=4)
def _times_drawn(count: int, resamples: int, seed: int) -> tuple[int, ...]:
    """For each cluster, how often each resample holds it: one long integer, 64 bits a resample.

    So the sum over the clusters of a number times these counts, for all resamples at once, is plain arithmetic.
    """
    times = [array("Q", bytes(8 * resamples)) for _ in range(count)]
    for at, draw in enumerate(_draws(count, resamples, seed)):
        for cluster in draw:
            times[cluster][at] += 1
    return tuple(int.from_bytes(one.tobytes(), sys.byteorder) for one in times)


def _totals(times: Sequence[int], numbers: Iterable[int], resamples: int) -> array[int]:
    """For each resample the sum of its clusters' ``numbers``."""
    return array("Q", sum(map(mul, times, numbers)).to_bytes(8 * resamples, sys.byteorder))


def _expanded(error: float, units: int) -> float:
    """The tail to take from a bootstrap over ``units`` so that it errs like Student's t (Hesterberg 2015)."""
    normal = NormalDist()
    z = normal.inv_cdf(1.0 - error)
    d = units - 1
    # Student's quantile from the normal one: Abramowitz & Stegun 26.7.5; within 0.001 from 5 degrees on at 95 %.
    t = z + (z**3 + z) / (4 * d) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * d**2)
    t += (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * d**3)
    t += (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * d**4)
    return normal.cdf(-t * math.sqrt(units / d))
