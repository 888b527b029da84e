"""A verdict and its numbers in words, without colours. Names of providers, phases, places are others': made harmless.

A number stands in the unit of the estimate that it belongs to; a limit in its own, as a person would write it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..records.generator import of_several_lanes
from ..records.schema import parse_key
from ..records.series import Series
from ..records.untrusted import harmless
from ..stats import Interval, median, shown_from
from ..stats.digits import duration, number, plain, unit_of
from .evidence import Evidence
from .grammar import write
from .model import Budget, Verdict

__all__ = [
    "describe",
    "generator_bound",
    "headline",
    "moved",
    "outcomes",
    "straddles",
    "too_few",
]

_FEWEST_PHASES = 2  # one phase alone is the operation once more


def describe(verdict: Verdict) -> str:
    """Two or three lines: the finding, the budget with its place, the phase that owes most where it is not kept.

    ::

        startup on bubblewrap at 16 lanes: median 63.2 ms (61.0 .. 66.1, 95 %, 20 rounds, 320 samples) is above 52 ms
          budget: startup median 44ms..52ms @1,16 (pyproject.toml: [tool.sandboxbench] budgets, entry 2)
          most of it: create 38.2 ms, 81 % of the median
    """
    placed = verdict.placed
    lines = [headline(verdict), f"  budget: {harmless(write(placed.budget), 600)} ({harmless(placed.where, 600)})"]
    if verdict.moved and verdict.outcome != "pass":
        lines.append(f"  {'what grew most' if ' -> ' in verdict.moved else 'most of it'}: {harmless(verdict.moved)}")
    return "\n".join(lines)


def headline(verdict: Verdict) -> str:
    """What was found, in one line: the first of :func:`describe`."""
    budget, interval, reason = verdict.placed.budget, verdict.interval, harmless(verdict.reason, 600)
    undecided = verdict.outcome == "inconclusive"
    subject = _subject(verdict)
    if interval is None:
        return f"{subject}: {_statistic(budget)} is undecided: {reason}" if undecided else f"{subject}: {reason}"
    text = f"{subject}: {_statistic(budget)} {_estimate(verdict, interval)} ({_told(verdict, interval)})"
    if undecided:
        return f"{text} is undecided: {reason}"
    text += f" is {_standing(verdict, interval)}"
    return f"{text}; {reason}" if reason else text


def _subject(verdict: Verdict) -> str:
    budget = verdict.placed.budget
    try:
        key = parse_key(verdict.series)
    except ValueError:  # of somebody's own hook
        return harmless(verdict.series)
    phase = f".{harmless(budget.phase, 100)}" if budget.phase else ""
    text = f"{harmless(key.label)}{phase} on {harmless(key.provider, 100)} at {_lanes(key.level)}"
    return text + ("" if key.shape == "burst" else f", {harmless(key.shape, 100)}")


def _statistic(budget: Budget) -> str:
    """``median``; of a ratio ``median / floor`` or ``median / median at 1 lane``."""
    names = [budget.statistic]
    for over in budget.over:
        if over.kind == "level":
            names.append(f"{budget.statistic} at {_lanes(over.level)}")
        else:
            names.append(harmless(over.provider, 100) if over.kind == "series" else over.kind)
    return " / ".join(names)


def _lanes(level: int) -> str:
    return f"{level} lane{'s' * (level != 1)}"


def _estimate(verdict: Verdict, interval: Interval) -> str:
    """As in the tables a percentile of few values is not shown: it is the maximum under another name."""
    if _hidden(verdict):
        return "n/a"
    name, size = _unit(verdict.placed.budget, interval.estimate)
    return f"{_number(verdict.placed.budget, interval.estimate, size)}{name}"


def _hidden(verdict: Verdict) -> bool:
    q = verdict.placed.budget.quantile
    return q is not None and verdict.n < shown_from(q)


def _told(verdict: Verdict, interval: Interval) -> str:
    """``61.0 .. 66.1, 95 %, 20 rounds, 320 samples``."""
    budget, by_round = verdict.placed.budget, _by_round(verdict)
    percent, count = plain(round(100 * interval.confidence, 1)), _count(interval.units, by_round)
    text = f"{_span(budget, interval, unit=_hidden(verdict))}, {percent} %, {count}"
    return text + (f", {_count(verdict.n, False)}" if by_round and verdict.n != interval.units else "")


def _count(units: int, several: bool) -> str:
    return f"{units} {_unit_word(several)}{'s' * (units != 1)}"


def _by_round(verdict: Verdict) -> bool:
    """Of a ratio within rounds and of a throughput the rounds are the units, also with one lane."""
    budget = verdict.placed.budget
    if budget.statistic == "throughput" or any(over.kind in ("floor", "series") for over in budget.over):
        return True
    try:
        return any(of_several_lanes(parse_key(key)) for key in (verdict.series, *verdict.keys))
    except ValueError:
        return False


def _standing(verdict: Verdict, interval: Interval) -> str:
    budget = verdict.placed.budget
    low, high = (_limit(budget, one) for one in (budget.low, budget.high))
    if verdict.outcome == "fail":
        # Of a hook's own verdict the interval may say nothing.
        return f"above {high}" if interval.low > budget.high or interval.estimate > budget.high else f"below {low}"
    if budget.low == budget.high:
        return f"{low}, as it must be"
    if math.isfinite(budget.low) and math.isfinite(budget.high):
        return f"within {low} .. {high}"
    return f"not above {high}" if math.isfinite(budget.high) else f"not below {low}"


# -- numbers


def _unit(budget: Budget, around: float) -> tuple[str, float]:
    """What stands behind a statistic of this size, and how much 1 of it is."""
    if budget.over:
        return "×", 1.0
    if budget.statistic == "success":
        return " %", 0.01
    if budget.statistic == "throughput":
        return "/s", 1.0
    name, size = unit_of(around)
    return f" {name}", size


def _number(budget: Budget, value: float, size: float) -> str:
    if math.isinf(value):
        return "…"
    if budget.statistic == "success" and not budget.over:
        # Never rounded up to a perfect score.
        return "100" if value == 1 else f"{min(value * 100, 99.9):.1f}"
    return number(value / size)


def _span(budget: Budget, interval: Interval, *, unit: bool) -> str:
    name, size = _unit(budget, interval.estimate)
    text = f"{_number(budget, interval.low, size)} .. {_number(budget, interval.high, size)}"
    return text + name if unit and not budget.over else text


def _limit(budget: Budget, value: float) -> str:
    """``52 ms``, ``99.5 %``, ``30/s``, ``1.2``."""
    if math.isinf(value):
        return "any limit"
    name, size = _unit(budget, value)
    # 0.995 / 0.01 is 99.49999999999999: ten digits are enough for all that a person writes.
    return f"{plain(float(f'{value / size:.10g}'))}{'' if budget.over else name}"


# -- reasons


def _unit_word(several: bool) -> str:
    return "round" if several else "sample"


def too_few(statistic: str, q: float | None, needs: int, have: int, *, several: bool, where: str = "") -> str:
    """Why a side has no bound: ``p95 needs 20 samples, have 9`` below what it is shown from on, else from what on it is
    judged: ``p95 is judged from 72 samples on, have 20``.

    Units are samples, of ``several`` lanes rounds. ``where`` says what has so few, if that is not the series itself.
    """
    unit = _unit_word(several)
    if q is not None and not several and have < (least := shown_from(q)):
        return f"{statistic} needs {least} {unit}s, have {have}{where}"
    return f"{statistic} is judged from {needs} {unit}s on, have {have}{where}"


def straddles(budget: Budget, interval: Interval) -> str:
    """Which limits an interval holds: ``its interval 43.1 .. 52.6 ms holds the limit 52 ms``."""
    held = [_limit(budget, one) for one in (budget.low, budget.high) if math.isfinite(one) and one in interval]
    limits = f"limit{'s' * (len(held) > 1)} {' and '.join(held)}"
    return f"its interval {_span(budget, interval, unit=True)} holds the {limits}"


def generator_bound(share: float, of: str = "") -> str:
    """``share`` of 1 is what the median of a series owes to the load generator; ``of`` says which, if not the first."""
    return f"generator bound: {100 * share:.0f} % of the median{of} is the load generator's"


def outcomes(counts: Sequence[tuple[str, int]], attempts: int) -> str:
    """``2 of 60 attempts did not succeed: 1 failed, 1 timeout``; ``counts`` are of the outcomes but ``ok``."""
    told = ", ".join(f"{count} {harmless(outcome, 60)}" for outcome, count in counts)
    missing = sum(count for _, count in counts)
    return f"{missing} of {attempts} attempt{'s' * (attempts != 1)} did not succeed: {told}"


# -- phases


def moved(budget: Budget, evidence: Evidence) -> str:
    """The phase that owes most: by how much it grew from what is below the line, or as a share of the median."""
    if budget.phase or budget.statistic == "success":
        return ""
    now, kinds = _medians(evidence.series), [over.kind for over in budget.over]
    before = evidence.other if "series" in kinds else evidence.floor if "floor" in kinds else None
    if "level" in kinds:
        before = evidence.below.series if evidence.below is not None else None
    if before is not None:
        earlier = _medians(before)
        grown = max((name for name in now if name in earlier), key=lambda name: now[name] - earlier[name], default="")
        if grown and now[grown] > earlier[grown]:
            return _grown(grown, earlier[grown], now[grown])
    middle = median(sorted(evidence.series.latencies)) if evidence.series.ok else 0.0
    if len(now) < _FEWEST_PHASES or not middle:
        return ""
    largest = max(now, key=lambda name: now[name])
    return _largest(largest, now[largest], middle)


def _medians(series: Series) -> dict[str, float]:
    return {name: median(sorted(durations)) for name, durations in series.phases.items() if durations}


def _largest(name: str, ns: float, median_ns: float) -> str:
    """``create 38.2 ms, 81 % of the median``."""
    return f"{harmless(name, 100)} {duration(ns)}, {100 * ns / median_ns:.0f} % of the median"


def _grown(name: str, before: float, now: float) -> str:
    """``create: 12.1 -> 38.2 ms``; both are nanoseconds."""
    unit, size = unit_of(now)
    return f"{harmless(name, 100)}: {number(before / size)} -> {number(now / size)} {unit}"
