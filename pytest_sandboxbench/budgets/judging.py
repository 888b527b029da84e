"""Whether a budget holds for a series: by the interval of its statistic, never by the number alone.

*Pass* is said when the whole interval lies inside of the limits, which belong to the inside; *fail* when the whole of
it lies beyond one of them; anything else is *inconclusive*, and so is what cannot be judged, with a reason. Only sides
that have a limit matter. A side that too few units leave open is infinite and passes no limit: that a p95 lies above
its limit shows earlier than that it lies below.

With the usual confidence of 95 % either verdict is wrong in at most 2.5 % of cases; ``docs/error-rates.md`` has the
rates of a simulation, and where they are higher. The intervals are

- of a quantile with a unit a value, and of a throughput (one value a round): order statistics, exact
- of a median under several lanes: the bootstrap over rounds that the tables have. It knows only what the rounds that
  were measured did: where whole rounds are slow now and then, too many pass as long as there are few
- of another quantile under several lanes: see :func:`tail_interval`; the bootstrap does not hold what it promises there
- of a success rate: Clopper and Pearson's; under several lanes as if each round were one attempt
- of a ratio within rounds (floor, another provider): the median of the rounds' ratios, by order statistics; of a
  quantile that no single round has, and of everything that was not measured side by side: Zou and Donner's, of two
  intervals
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NoReturn

from ..records.generator import of_several_lanes
from ..records.series import Series
from ..records.untrusted import harmless
from ..stats import (
    FEWEST_ROUNDS,
    GENERATOR_BOUND,
    Interval,
    median,
    needed,
    order_interval,
    percentile,
    percentile_interval,
    ratio_interval,
    ratio_of_intervals,
    success_interval,
)
from . import wording
from .evidence import Evidence
from .matching import no_phase
from .model import Budget, Outcome, Placed, Verdict

__all__ = ["decide", "judge", "tail_interval"]

_TIE = 1e-9  # slack for sums of shares


class _UndecidedError(Exception):
    """There is no interval; why is its text."""


def judge(placed: Placed, evidence: Evidence) -> Verdict:
    """The verdict on one budget. It takes what it needs of the evidence, and never raises for what is missing in it.

    ``n`` of the verdict counts the samples of the series that succeeded, for a success rate its attempts.

    Where no sample succeeded a limit of a latency is not kept: fail. Neither is one of a phase that the series does not
    have; a caller who leaves such series out asks :func:`~.matching.applies`. ``success = 100%`` is a statement on this
    run, not on what one may expect: any other outcome fails it.

    Lag of the load generator adds to a latency and takes off a throughput. Where it is more than
    :data:`~..stats.GENERATOR_BOUND` of the median, what it may have caused is inconclusive: a latency above an upper
    limit, or not below a lower one. A latency that keeps its upper limit in spite of it keeps it; one that is below
    its lower limit would be without it, too. In a ratio the lag of what stands below the line works the other way; not
    that of a floor, which is what the host takes with this program's lag inside. Phases are a provider's own times and
    hold no lag.
    """
    budget, series = placed.budget, evidence.series
    counted = series.attempts if budget.statistic == "success" else series.ok
    verdict = Verdict(
        "inconclusive", placed, str(series.key), keys=list(dict.fromkeys(_used(budget, evidence))), n=counted
    )
    if not series.attempts:
        return replace(verdict, reason="nothing was measured")
    if not series.ok and budget.statistic != "success":
        return replace(verdict, outcome="fail", reason="no sample succeeded")
    if budget.phase and budget.phase not in series.phases:
        return replace(verdict, outcome="fail", reason=no_phase(series.key.operation, budget.phase, series.phases))
    try:
        found = _find(budget, evidence)
    except _UndecidedError as why:
        return replace(verdict, reason=str(why), moved=wording.moved(budget, evidence))
    verdict = replace(verdict, interval=found.interval)
    if budget.statistic == "success":
        return _of_success(verdict, found, series)
    outcome, reason, needs = _outcome(budget, found)
    moved = "" if outcome == "pass" else wording.moved(budget, evidence)
    return replace(verdict, outcome=outcome, reason=reason, needs=needs, moved=moved)


def _used(budget: Budget, evidence: Evidence) -> Iterator[str]:
    """The keys of what a verdict rests on, of all that there is."""
    kinds = {over.kind for over in budget.over}
    beside = {"floor": evidence.floor, "series": evidence.other}
    yield str(evidence.series.key)
    yield from (str(one.key) for kind, one in beside.items() if kind in kinds and one is not None)
    if "level" in kinds and evidence.below is not None:
        yield from _used(budget, replace(evidence.below, below=None))


def decide(budget: Budget, interval: Interval) -> Outcome:
    """Where an interval lies: inside of the limits, beyond one of them, or neither. Without a limit a side is kept."""
    if budget.low <= interval.low and interval.high <= budget.high:
        return "pass"
    return "fail" if interval.low > budget.high or interval.high < budget.low else "inconclusive"


def _outcome(budget: Budget, found: _Found) -> tuple[Outcome, str, int]:
    """The outcome, why it is inconclusive, and how many units it takes."""
    interval, outcome = found.interval, decide(budget, found.interval)
    if outcome == "inconclusive":
        wanted = (budget.low, interval.low), (budget.high, interval.high)
        if found.units < found.needs and any(math.isfinite(a) and math.isinf(b) for a, b in wanted):
            where, several = found.where, found.several
            few = wording.too_few(
                budget.statistic, budget.quantile, found.needs, found.units, several=several, where=where
            )
            return outcome, few, found.needs
        return outcome, wording.straddles(budget, interval), 0
    if outcome == "pass":
        spoilt = (found.up if math.isfinite(budget.low) else "") or (found.down if math.isfinite(budget.high) else "")
    else:
        spoilt = found.up if interval.low > budget.high else found.down
    return ("inconclusive", spoilt, 0) if spoilt else (outcome, "", 0)


def _of_success(verdict: Verdict, found: _Found, series: Series) -> Verdict:
    budget, interval = verdict.placed.budget, found.interval
    failed = [(outcome, count) for outcome, count in sorted(series.outcomes.items()) if outcome != "ok" and count]
    told = wording.outcomes(failed, series.attempts) if failed else ""
    if budget.low >= 1:
        return replace(verdict, outcome="fail" if failed else "pass", reason=told)
    outcome = decide(budget, interval)
    if outcome != "inconclusive":
        return replace(verdict, outcome=outcome, reason=told if outcome == "fail" else "")
    if budget.low > 0 and found.units < (needs := _successes_needed(budget.low, interval.confidence)):
        name = f"a success rate of {100 * budget.low:g} %"
        few = wording.too_few(name, None, needs, found.units, several=found.several)
        return replace(verdict, reason=few, needs=needs)
    return replace(verdict, reason=wording.straddles(budget, interval))


def _successes_needed(rate: float, confidence: float) -> int:
    """The fewest attempts that prove a rate by all succeeding: Clopper and Pearson's limit is error ** (1 / n) then."""
    return max(1, math.ceil((math.log((1.0 - confidence) / 2.0) + math.log1p(_TIE)) / math.log(rate)))


def tail_interval(rounds: Sequence[Sequence[float]], q: float, confidence: float = 0.95) -> Interval:
    """Interval for the ``q`` quantile of values whose rounds share their fate, for a ``q`` away from the median.

    As many independent values as there are rounds would be bounded by two of them, the ``l``-th and the ``k``-th
    smallest; here the bounds are the values of all rounds up to which ``k`` rounds' worth of them lie, and from which
    on all but ``l - 1`` do, a value being worth 1 / (values of its round). Where the lanes of a round are all alike,
    that is the exact interval, with its exact error; where they differ, the sum of the rounds' shares varies less than
    the number of independent values would, and the error is lower. The price is a wide interval: of 72 to 109 rounds
    the upper bound of p95 is the largest value.

    A bootstrap over rounds is narrower, and wrong: a run in which no slow round happens to be seen has none to draw.

    Raises ``ValueError`` for no value, as :func:`..stats.order_interval` does.
    """
    filled = [sorted(values) for values in rounds if len(values)]
    pooled = sorted(chain.from_iterable(filled))
    ranks = order_interval(range(1, len(filled) + 1), q, confidence)
    estimate = percentile(pooled, q)

    def worth(side: Callable[[Sequence[float], float], int], value: float) -> float:
        return math.fsum(side(values, value) / len(values) for values in filled)

    low, high = -math.inf, math.inf
    if math.isfinite(ranks.low):
        above = bisect_right(pooled, ranks.low - 1 + _TIE, key=lambda value: worth(bisect_left, value))
        low = float(pooled[above - 1])
    if math.isfinite(ranks.high):
        at = bisect_left(pooled, ranks.high - _TIE, key=lambda value: worth(bisect_right, value))
        high = float(pooled[min(at, len(pooled) - 1)])
    # Rounds of different sizes: what weighs them alike is not quite what the estimate does.
    return Interval(estimate, min(low, estimate), max(high, estimate), confidence, len(filled))


# -- the interval of a budget


@dataclass(frozen=True, slots=True)
class _Found:
    """An interval, with what may speak against a verdict on it.

    ``units``  and ``needs``: how many independent units there are, and from how many on both sides are bounded; of a
               ratio the part that has fewest for what it needs. ``several``: they are rounds
    ``where``  which part that is, in words, if not the series itself
    ``up``     why the load generator may have raised the value, ``down``: lowered it; "" where it had little part in it
    """

    interval: Interval
    units: int
    needs: int
    several: bool
    where: str = ""
    up: str = ""
    down: str = ""


def _find(budget: Budget, evidence: Evidence) -> _Found:
    kinds = [over.kind for over in budget.over]
    if budget.statistic == "success":
        if kinds:
            raise _UndecidedError("a success rate is not divided")
        return _success(evidence.series, evidence.confidence)
    if "baseline" in kinds:
        if len(kinds) > 1:
            raise _UndecidedError("a baseline is compared with a series, not with a ratio")
        return _ratio(_alone(budget, evidence.series, evidence.confidence), _before(budget, evidence))
    level = next((over.level for over in budget.over if over.kind == "level"), None)
    top = _in_block(budget, evidence)
    if level is None:
        return top
    if evidence.below is None:
        raise _UndecidedError(f"level {level} was not measured")
    return _ratio(top, _in_block(budget, replace(evidence.below, confidence=evidence.confidence), f" at level {level}"))


def _in_block(budget: Budget, evidence: Evidence, where: str = "") -> _Found:
    """Of what was measured in one block: the statistic, or its ratio to that of the floor or of another provider."""
    over = next((over for over in budget.over if over.kind in ("floor", "series")), None)
    series, confidence = evidence.series, evidence.confidence
    if over is None:
        return _alone(budget, series, confidence, where)
    other = evidence.floor if over.kind == "floor" else evidence.other
    name = "the floor" if over.kind == "floor" else harmless(over.provider, 100)
    if other is None:
        raise _UndecidedError(f"{name} was not measured beside it{where}")
    for one, who in ((series, "its"), (other, f"{name}'s")):
        if one.rejected:
            attempts = f"{one.rejected} of {who} {one.attempts} attempts were rejected{where}"
            raise _UndecidedError(f"{attempts}: fewer at a time are another load")
    first = _alone(budget, series, confidence, where)
    second = _alone(budget, other, confidence, f" of {name}{where}")
    if over.kind == "floor":  # it is what the host takes, with this program's lag inside
        second = replace(second, up="", down="")
    if budget.quantile not in (None, 0.5):  # no single round has one
        return _ratio(first, second)
    firsts, seconds = _by_round(budget, series), _by_round(budget, other)
    pairs = [(firsts[number], seconds[number]) for number in sorted(firsts) if number in seconds]
    if not pairs:
        raise _UndecidedError(f"there is no round in which {name} succeeded as well{where}")
    try:
        interval = ratio_interval(pairs, confidence)
    except ValueError:
        raise _UndecidedError(f"a round of {name} came to 0{where}: nothing to divide by") from None
    needs = needed(0.5, confidence, "both")
    return _Found(interval, len(pairs), needs, True, where, first.up or second.down, first.down or second.up)


def _ratio(first: _Found, second: _Found) -> _Found:
    """Of two that were not measured side by side. What raises the second lowers their ratio."""
    try:
        interval = ratio_of_intervals(first.interval, second.interval)
    except ValueError:
        raise _UndecidedError("one of the two is 0: there is no ratio") from None
    short = second if second.units * first.needs < first.units * second.needs else first
    return replace(short, interval=interval, up=first.up or second.down, down=first.down or second.up)


def _alone(budget: Budget, series: Series, confidence: float, where: str = "") -> _Found:
    """The statistic of one series by itself."""
    if not series.ok:
        raise _UndecidedError(f"no sample{where} succeeded")
    lag = _lag(budget, series, where)
    if budget.quantile is None:
        interval = order_interval(sorted(_by_round(budget, series).values()), 0.5, confidence)
        return _Found(interval, interval.units, needed(0.5, confidence, "both"), True, where, down=lag)
    several = of_several_lanes(series.key)
    return replace(_latency(budget.quantile, _rounds(budget, series), confidence, several, where), up=lag)


def _latency(q: float, rounds: Sequence[Sequence[float]], confidence: float, several: bool, where: str) -> _Found:
    needs = needed(q, confidence, "both")
    if max(map(len, rounds)) > 1:
        several, needs = True, max(needs, FEWEST_ROUNDS)
    exact = several and q != 0.5
    interval = (tail_interval if exact else percentile_interval)(rounds, q, confidence)
    return _Found(interval, interval.units, needs, several, where)


def _success(series: Series, confidence: float) -> _Found:
    """Under several lanes a round's share counts as that part of one success, rounded away from the estimate."""
    successes, n = series.ok, series.attempts
    several = of_several_lanes(series.key)
    interval = success_interval(successes, n, confidence)
    if several:
        rounds = series.successes()
        total, n = math.fsum(ok / attempts for ok, attempts in rounds), len(rounds)
        low = success_interval(math.floor(total + _TIE), n, confidence).low
        high = success_interval(math.ceil(total - _TIE), n, confidence).high
        interval = replace(interval, low=min(low, interval.low), high=max(high, interval.high), units=n)
    return _Found(interval, n, 0, several)


def _before(budget: Budget, evidence: Evidence) -> _Found:
    """The baseline's samples, put into rounds again by their order."""
    key, samples = evidence.series.key, evidence.baseline
    if budget.quantile is None or budget.phase or not samples:  # no text says the first two
        raise _UndecidedError("there is no baseline of this series")
    size = key.level
    if key.shape.startswith("closed-"):
        requests = key.shape.removeprefix("closed-")
        if not requests.isdecimal():
            raise _UndecidedError(f"which rounds the baseline's samples are of is not known of {key.shape}")
        size = int(requests)
    if len(samples) % size:
        raise _UndecidedError(f"the baseline's {len(samples)} samples are no whole rounds of {size}: some failed")
    rounds = [samples[at : at + size] for at in range(0, len(samples), size)]
    several = of_several_lanes(key)
    return _latency(budget.quantile, rounds, evidence.confidence, several, " in the baseline")


def _rounds(budget: Budget, series: Series) -> list[Sequence[float]]:
    """Latencies, or durations of the phase, by round; ns."""
    by_round = _latencies(budget, series)
    if by_round is not None:
        return [values for _, values in sorted(by_round.items()) if values]
    if max(map(len, series.rounds.values())) > 1:
        _lacking(budget.phase)
    return [(duration,) for duration in series.phases[budget.phase]]


def _by_round(budget: Budget, series: Series) -> dict[int, float]:
    """The median of each round, or the successes a second of it."""
    if budget.quantile is None:
        if not all(series.walls_ns.values()):
            raise _UndecidedError("a round took no time: it has no throughput")
        return {number: 1e9 * len(series.rounds[number]) / wall for number, wall in series.walls_ns.items()}
    by_round = _latencies(budget, series) or _lacking(budget.phase)
    return {number: median(sorted(values)) for number, values in by_round.items() if values}


def _latencies(budget: Budget, series: Series) -> dict[int, list[int]] | None:
    """By round; None of a phase that not every sample has."""
    if not budget.phase:
        return series.rounds
    if budget.phase not in series.phases:
        raise _UndecidedError(no_phase(series.key.operation, budget.phase, series.phases))
    return series.phase_rounds(budget.phase)


def _lacking(phase: str) -> NoReturn:
    raise _UndecidedError(f"not every sample has the phase {harmless(phase, 100)!r}: of which rounds is not known")


def _lag(budget: Budget, series: Series, of: str) -> str:
    """Why a verdict may be the generator's; "" where it had little part in what was measured."""
    if budget.phase or not of_several_lanes(series.key) or not series.lags:
        return ""
    middle = median(sorted(series.latencies))
    share = median(sorted(series.lags)) / middle if middle else 0.0
    return wording.generator_bound(share, of) if share > GENERATOR_BOUND else ""
