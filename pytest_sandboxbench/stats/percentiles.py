"""The one percentile rule of the project, and from how many values a percentile may be shown or judged.

The rule is linear interpolation between order statistics: type 7 of Hyndman & Fan, "Sample quantiles in
statistical packages", The American Statistician 50 (1996). It is what ``statistics.quantiles(...,
method="inclusive")``, numpy's default and spreadsheets compute, and its median is ``statistics.median``, the
one in pytest-benchmark's table. So a number of this project can be checked with what people have at hand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

__all__ = ["TIE", "Side", "check_confidence", "judged_side", "median", "needed", "percentile", "shown", "shown_from"]

Side = Literal["both", "lower", "upper"]
"""Which sides of an interval are bounded. ``both`` splits the error equally; ``upper`` leaves the low side open."""

TIE = 1e-9
"""Relative slack in comparing a tail probability with its nominal value, so that an exact tie counts as reached."""


def percentile(sorted_values: Sequence[float], q: float) -> float:
    """The ``q`` quantile (``0 <= q <= 1``, so 0.95 for p95) of values in ascending order, in their unit.

    With ``n`` values it lies at position ``(n - 1) * q`` counted from 0, between neighbours in proportion
    (Hyndman & Fan 1996, type 7). It never leaves the range of the values and never falls as ``q`` rises.

    Raises ``ValueError`` for no values and for a ``q`` outside 0..1. The order is not checked.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 0.5)
    2.5
    """
    if not sorted_values:
        raise ValueError("a percentile of no values does not exist")
    if not 0.0 <= q <= 1.0:
        raise ValueError(f"q is a share between 0 and 1 (0.95 for p95), not {q!r}")
    position = (len(sorted_values) - 1) * q
    index = int(position)
    below = sorted_values[index]
    share = position - index
    if share == 0.0:
        return float(below)
    above = sorted_values[index + 1]
    # This form is monotone in q, rounding included: a share below 1 takes at least the last bit off the difference.
    return float(below + (above - below) * share)


def median(sorted_values: Sequence[float]) -> float:
    """``percentile(sorted_values, 0.5)``: the middle value, or the mean of the two in the middle."""
    return percentile(sorted_values, 0.5)


def shown_from(q: float) -> int:
    """From how many values on the ``q`` quantile may be shown: p90 from 10, p95 from 20, p99 from 100.

    On average at least one value then lies beyond it: ``n * min(q, 1 - q) >= 1``. With fewer it is the maximum
    under another name. The median and the two extremes (``q`` of 0 and 1) are shown from the first value on.

    Raises ``ValueError`` for a ``q`` outside 0..1.
    """
    if not 0.0 <= q <= 1.0:
        raise ValueError(f"q is a share between 0 and 1 (0.95 for p95), not {q!r}")
    tail = min(q, 1.0 - q)
    if tail in (0.0, 0.5):
        return 1
    return math.ceil(1.0 / tail * (1.0 - TIE))


def shown(q: float, n: int) -> bool:
    """Whether the ``q`` quantile of ``n`` values may be shown; see ``shown_from``."""
    return n >= shown_from(q)


def judged_side(q: float) -> Side:
    """The sides on which a verdict on the ``q`` quantile rests.

    ``both`` for the median, which has limits on either side (and moves both ways). A tail percentile is held
    against a limit on its own side: an ``upper`` bound for p95 and p99, a ``lower`` one below the median.
    """
    if q == 0.5:
        return "both"
    return "upper" if q > 0.5 else "lower"


def needed(q: float, confidence: float = 0.95, side: Side | None = None) -> int:
    """How many independent units it takes before order statistics bound the ``q`` quantile.

    ``side`` defaults to ``judged_side(q)``. The largest of ``n`` values is an upper bound when
    ``q ** n <= error``, the smallest a lower one when ``(1 - q) ** n <= error``, where the error is
    ``1 - confidence`` for one side and half of that for both (David & Nagaraja, "Order Statistics", 3rd ed.
    2003, section 7.1). At 95 %: median 6, p90 29, p95 59, p99 299; with both sides p95 72, p99 368.

    Raises ``ValueError`` for a ``q`` not inside 0..1 or a confidence outside 0.5..1.

    >>> needed(0.5), needed(0.95), needed(0.99)
    (6, 59, 299)
    """
    if not 0.0 < q < 1.0:
        raise ValueError(f"q is a share inside 0 and 1 (0.95 for p95), not {q!r}")
    check_confidence(confidence)
    side = side or judged_side(q)
    if side == "both":
        worst = max(q, 1.0 - q)
        error = (1.0 - confidence) / 2.0
    else:
        worst = q if side == "upper" else 1.0 - q
        error = 1.0 - confidence
    return max(1, math.ceil((math.log(error) + math.log1p(TIE)) / math.log(worst)))


def check_confidence(confidence: float) -> None:
    """Raise ``ValueError`` unless ``0.5 <= confidence < 1``."""
    if not 0.5 <= confidence < 1.0:
        raise ValueError(f"confidence is a share from 0.5 to below 1 (0.95 for 95 %), not {confidence!r}")
