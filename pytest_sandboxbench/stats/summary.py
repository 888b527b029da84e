"""All numbers of one series, from the values of its rounds. Nothing is trimmed, no failure is left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from pytest_sandboxbench.stats.intervals import percentile_interval, ratio_interval
from pytest_sandboxbench.stats.percentiles import median, percentile, shown

__all__ = ["GENERATOR_BOUND", "Summary", "summarise"]

GENERATOR_BOUND = 0.1
"""The share of its median that a series may owe to the load generator.

The medians of one and the same code differ by 11 to 14 % between runs: the generator may not be what one sees.
"""


@dataclass(frozen=True, slots=True)
class Summary:
    """The numbers of a series. Latencies are in the unit of the values given, usually nanoseconds.

    ``n``             values: acts that succeeded
    ``units``         independent units among them: sandboxes at level 1, rounds with a value under load
    ``median``        with ``low`` and ``high``, the bounds of its interval; a bound is None for too few units
    ``minimum``       and ``maximum``: the range of all values
    ``mean``          and ``stdev`` (of the sample, divisor n - 1; None below 2 values): for comparison with
                      published tables
    ``p95``, ``p99``  None below 20 and 100 values
    ``failures``      acts that failed or ran into their deadline
    ``rejected``      acts that the provider refused because of a limit
    ``attempts``      ``n + failures + rejected``
    ``success_rate``  ``n / attempts``; None without an attempt
    ``floor_ratio``   median of value / floor, pair by pair, with ``floor_low`` and ``floor_high``; None without
                      pairs
    ``throughput``    successful acts a second of wall time; None where no wall time was given
    ``lag``           median of how long an act waited for the load generator itself; None where that was not given

    With ``n = 0`` every latency is None. None stands for "not known" throughout, so that a summary is plain JSON;
    for verdicts take the intervals themselves, whose open sides are infinite.
    """

    n: int
    units: int
    median: float | None
    low: float | None
    high: float | None
    minimum: float | None
    maximum: float | None
    mean: float | None
    stdev: float | None
    p95: float | None
    p99: float | None
    failures: int
    rejected: int
    attempts: int
    success_rate: float | None
    floor_ratio: float | None
    floor_low: float | None
    floor_high: float | None
    throughput: float | None
    lag: float | None

    @property
    def lag_share(self) -> float | None:
        """The generator's lag as a share of the median, which it is a part of; None where one of them is not known."""
        return self.lag / self.median if self.lag is not None and self.median else None

    @property
    def generator_bound(self) -> bool:
        """Whether the lag is more than :data:`GENERATOR_BOUND` of the median: then it is no number of the provider."""
        return (self.lag_share or 0.0) > GENERATOR_BOUND


def summarise(
    rounds: Sequence[Sequence[float]],
    *,
    failures: int = 0,
    rejected: int = 0,
    floor_pairs: Sequence[tuple[float, float]] | None = None,
    wall_s: float | None = None,
    lags: Sequence[float] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Summary:
    """Summarise the successful acts of a series: one sequence of latencies a round, in any order.

    Where rounds hold one value each (level 1), each value is a unit; otherwise the round is: so values that share
    a sandbox or a release belong in one round. ``floor_pairs`` holds one (value, floor) pair a unit, from the same
    round. ``wall_s`` is the time in seconds in which all of it happened: give it where acts a second mean
    something. ``lags`` holds how long each act waited for the load generator, in the unit of the values, in any order.
    ``seed`` is that of the bootstrap over rounds.

    Raises ``ValueError`` for values that are not finite, negative counts, a ``wall_s`` not above 0, a floor not
    above 0, a confidence outside 0.5..1.
    """
    if failures < 0 or rejected < 0:
        raise ValueError(f"counts are not negative: failures {failures!r}, rejected {rejected!r}")
    if wall_s is not None and not wall_s > 0:
        raise ValueError(f"wall_s is above 0, or None where throughput has no meaning; not {wall_s!r}")
    values = list(chain.from_iterable(rounds))
    n = len(values)
    total = math.fsum(values)
    if not math.isfinite(total):
        raise ValueError("a value is not finite; a failed act is counted in failures, not given as a value")
    values.sort()

    middle = low = high = mean = stdev = None
    units = 0
    if n:
        interval = percentile_interval(rounds, 0.5, confidence, seed=seed)
        middle, units = interval.estimate, interval.units
        low, high = _finite(interval.low), _finite(interval.high)
        # The quotient may be a rounding error outside the range, for equal values for instance.
        mean = min(max(total / n, values[0]), values[-1])
        if n > 1:
            stdev = math.sqrt(math.fsum([(value - mean) ** 2 for value in values]) / (n - 1))
    ratio = ratio_interval(floor_pairs, confidence) if floor_pairs else None
    attempts = n + failures + rejected
    return Summary(
        n=n,
        units=units,
        median=middle,
        low=low,
        high=high,
        minimum=float(values[0]) if n else None,
        maximum=float(values[-1]) if n else None,
        mean=mean,
        stdev=stdev,
        p95=percentile(values, 0.95) if shown(0.95, n) else None,
        p99=percentile(values, 0.99) if shown(0.99, n) else None,
        failures=failures,
        rejected=rejected,
        attempts=attempts,
        success_rate=n / attempts if attempts else None,
        floor_ratio=ratio.estimate if ratio else None,
        floor_low=_finite(ratio.low) if ratio else None,
        floor_high=_finite(ratio.high) if ratio else None,
        throughput=n / wall_s if wall_s is not None else None,
        lag=median(sorted(lags)) if lags else None,
    )


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None
