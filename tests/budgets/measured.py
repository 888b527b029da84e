"""Series and verdicts as the tests of budgets make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_sandboxbench.budgets.evidence import Evidence
from pytest_sandboxbench.budgets.grammar import parse
from pytest_sandboxbench.budgets.judging import judge
from pytest_sandboxbench.budgets.model import Placed, Verdict
from pytest_sandboxbench.records.schema import Row, parse_key
from pytest_sandboxbench.records.series import Series

__all__ = ["MS", "alone", "lanes", "measured", "verdict"]

MS = 1_000_000


def measured(
    key: str,
    rounds: Sequence[Sequence[float | str]],
    *,
    phases: Mapping[str, float] | None = None,
    lag: float = 0.0,
) -> Series:
    """A series of these latencies in ms, or outcomes; ``phases`` are shares of the latency, and so is the ``lag``."""
    series = Series(parse_key(key))
    for number, lanes in enumerate(rounds):
        due = (number + 1) * 10**10
        for lane, value in enumerate(lanes):
            ns = 100 * MS if isinstance(value, str) else round(value * MS)
            told = {} if isinstance(value, str) else phases or {}
            series.add(
                Row(
                    key,
                    number,
                    lane,
                    number,
                    due,
                    due + int(lag * ns),
                    due + ns,
                    value if isinstance(value, str) else "ok",
                    phases={name: (due, due + int(share * ns)) for name, share in told.items()},
                )
            )
    return series


def alone(*values: float | str, key: str = "p:startup@1/burst", **more: Any) -> Series:
    return measured(key, [[value] for value in values], **more)


def lanes(level: int, *medians: float, shape: str = "burst", provider: str = "p", **more: Any) -> Series:
    """A round for each median, whose lanes lie evenly around it, 1 % apart."""
    around = [1 + (lane - (level - 1) / 2) / 100 for lane in range(level)]
    key = f"{provider}:startup@{level}/{shape}"
    return measured(key, [[middle * factor for factor in around] for middle in medians], **more)


def verdict(text: str, series: Series, **beside: Any) -> Verdict:
    return judge(Placed(parse(text), "here"), Evidence(series, **beside))
