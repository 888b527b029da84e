"""What a budget is, whichever way it was written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..stats import Interval

__all__ = ["Budget", "Outcome", "Placed", "Reference", "Verdict"]

Outcome = Literal["pass", "fail", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Reference:
    """What a statistic is divided by.

    ``level``     the same series at this level: flatness, ``startup median@100/median@1 ..1.2``
    ``floor``     the floor of the same block, pair by pair: ``startup median / floor ..20``
    ``baseline``  the same series of the run that it is compared with
    ``series``    the same series of another ``provider``, pair by pair: ``startup median / docker: ..0.5``
    """

    kind: Literal["level", "floor", "baseline", "series"]
    level: int = 0
    provider: str = ""


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit on a statistic of the series that it addresses. What is empty or None is any.

    ``operation``   None: that of the test which the marker stands at
    ``variants``    all of these must be among the series'
    ``phase``       "" is the whole operation
    ``levels``      () is every level that was measured; for a flatness the level above the line, one
    ``statistic``   ``median``, ``p90``, ``p95``, ``p99``, ... ; ``success``; ``throughput``
    ``over``        what it is divided by, one after another: two of them are a relative flatness
    ``low, high``   the limits, both inclusive; -inf and inf where a side is open. Nanoseconds, a share of 1, acts a
                    second, or a plain number where ``over`` is not empty
    """

    operation: str | None
    statistic: str
    low: float = -math.inf
    high: float = math.inf
    provider: str | None = None
    variants: tuple[tuple[str, str], ...] = ()
    phase: str = ""
    levels: tuple[int, ...] = ()
    shape: str | None = None
    over: tuple[Reference, ...] = ()

    @property
    def quantile(self) -> float | None:
        """0.5 for the median, 0.95 for p95; None for what is no quantile."""
        if self.statistic == "median":
            return 0.5
        return float(self.statistic[1:]) / 100 if self.statistic[:1] == "p" else None

    @property
    def of_several(self) -> bool:
        """Whether it takes more than one test's series: its verdict is a result of its own."""
        return any(reference.kind != "floor" for reference in self.over)


@dataclass(frozen=True, slots=True)
class Placed:
    """A budget and where it stands: ``--sandbox-budget``, ``pyproject.toml: [tool.sandboxbench] budgets[2]``."""

    budget: Budget
    where: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a budget holds for one series.

    ``series``    its canonical key; ``keys`` those of all series that it was judged on
    ``interval``  of the statistic, in the budget's unit; None where there was no value
    ``needs``     how many independent units it takes before it can be judged; 0 where there are enough
    ``reason``    why it is inconclusive: ``p95 needs 20 samples, have 9``
    ``moved``     the phase that owes most, in words; "" where none is known
    """

    outcome: Outcome
    placed: Placed
    series: str
    keys: Sequence[str] = ()
    interval: Interval | None = None
    n: int = 0
    needs: int = 0
    reason: str = ""
    moved: str = ""
