"""What a budget is judged on: the series that it is about, and those that it is divided by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..model import SeriesKey
from ..records.series import Series, SeriesTable, row_of_key
from .model import Budget

__all__ = ["Evidence", "evidence_of"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """``confidence`` is that of the interval to take, a share. What a budget does not ask for is None.

    ``series``    that of the level above the line
    ``floor``     the floor of the same block; ``other``: the series of another provider in it
    ``below``     the same of the level below the line
    ``baseline``  latencies of the run that it is compared with, in nanoseconds, in the order measured
    """

    series: Series
    confidence: float = 0.95
    floor: Series | None = None
    other: Series | None = None
    below: Evidence | None = None
    baseline: Sequence[float] | None = None


def _like(table: Iterable[Series], key: SeriesKey, **changed: object) -> Series | None:
    """The series of a key with something ``changed``; a provider's own kind of pause does not part them."""
    wanted = row_of_key(replace(key, **changed))  # type: ignore[arg-type]
    return next((series for series in table if row_of_key(series.key) == wanted), None)


def evidence_of(
    budget: Budget,
    series: Series,
    table: SeriesTable,
    floor: str | None,
    *,
    confidence: float = 0.95,
    baseline: Sequence[float] | None = None,
) -> Evidence:
    """What there is in ``table`` of what the budget asks for; ``floor`` names the provider that stands for none."""
    other = next((over.provider for over in budget.over if over.kind == "series"), None)
    level = next((over.level for over in budget.over if over.kind == "level"), None)
    below = None if level is None else _like(table, series.key, level=level)

    def at(one: Series) -> Evidence:
        return Evidence(
            one,
            confidence,
            floor=_like(table, one.key, provider=floor) if floor is not None else None,
            other=_like(table, one.key, provider=other) if other is not None else None,
        )

    return replace(at(series), below=None if below is None else at(below), baseline=baseline)
