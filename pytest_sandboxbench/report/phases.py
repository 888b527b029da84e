"""Where the time of an operation goes, under its row: its phases, unless they stand in rows of their own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ..model import SeriesKey
from ..records.series import Series, row_of_key
from ..stats import Summary, summarise

__all__ = ["phases"]

_FEWEST = 2  # one phase alone is the operation once more


def phases(series: Series, shown: Collection[SeriesKey]) -> Mapping[str, Summary]:
    """Phase -> its numbers over all successful samples. ``shown`` are the rows of the table (:func:`row_of_key`)."""
    row = row_of_key(series.key)
    if len(series.phases) < _FEWEST or any(replace(row, operation=name) in shown for name in series.phases):
        return {}
    started = {name: list(durations) for name, durations in series.phases.items() if durations}
    return {name: summarise([durations], failures=0, rejected=0) for name, durations in started.items()}
