"""The rows of a table that differ by nothing but their level, and what they show together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..model import SeriesKey
from ..records.busy import busy_shares, cpus_usable
from ..records.rejections import is_our_wait
from ..records.series import asked_rows, row_of_key
from ..stats import Interval, median
from ..stats.scaling import Finding, Level, examine
from .limiter import limiter
from .table import Row

__all__ = ["Ladder", "ladders"]


@dataclass(frozen=True, slots=True)
class Ladder:
    """One operation of one provider at rising levels; ``finding`` is None where nothing succeeded at all."""

    rows: tuple[Row, ...]
    finding: Finding | None

    @property
    def key(self) -> SeriesKey:
        """That of the lowest level."""
        return self.rows[0].key

    @property
    def floor(self) -> bool:
        return self.rows[0].floor


def ladders(groups: Sequence[Sequence[Row]], header: Mapping[str, Any]) -> list[list[Ladder]]:
    """For each operation that was asked for at two levels or more, its providers in the order of the table."""
    asked = asked_rows(header)
    found: dict[tuple[Any, ...], dict[tuple[Any, ...], list[Row]]] = {}
    floors: dict[tuple[Any, ...], Row] = {}
    for group in groups:
        for row in group:
            act = (row.key.operation, row_of_key(row.key).variants, row.key.shape)
            if row_of_key(row.key) in asked:
                found.setdefault(act, {}).setdefault((row.key.provider, row.key.variants), []).append(row)
            if row.floor and row.summary.n:
                floors.setdefault((act, row.key.level), row)
    busy = {} if _throttled(header) else busy_shares(header)
    out = []
    for act, providers in found.items():
        if len({row.key.level for rows in providers.values() for row in rows}) < 2:
            continue
        made = [
            _ladder(rows, {r.key.level: floors.get((act, r.key.level)) for r in rows}, busy, header)
            for rows in providers.values()
        ]
        out.append(sorted(made, key=lambda ladder: ladder.floor))
    return out


def _throttled(header: Mapping[str, Any]) -> bool:
    """Whether a quota gives the run less than its CPUs: these are idle then while an act waits for CPU time."""
    quota = header.get("host", {}).get("cpu_quota")
    if quota is None:
        return False
    cpus = cpus_usable(header)
    try:
        limit, period = map(int, str(quota).split())
    except ValueError:  # cgroup v1 has no period beside it
        return True
    return cpus is None or limit < cpus * period


def _ladder(
    rows: Sequence[Row],
    floors: Mapping[int, Row | None],
    busy: Mapping[SeriesKey, float],
    header: Mapping[str, Any],
) -> Ladder:
    ordered = sorted(rows, key=lambda row: row.key.level)
    measured = [row for row in ordered if row.summary.n]
    ends = [measured[0], measured[-1]][: len(measured)] if measured else []
    levels = [_level(row, floors[row.key.level], busy.get(row_of_key(row.key)), header) for row in ends]
    return Ladder(tuple(ordered), examine(levels) if levels else None)


def _level(row: Row, floor: Row | None, busy: float | None, header: Mapping[str, Any]) -> Level:
    summary = row.summary
    held = _held(row, header)
    compared = floor if floor is not None and not row.floor else None
    return Level(
        lanes=row.key.level,
        median=Interval(
            summary.median or 0.0,
            -math.inf if summary.low is None else summary.low,
            math.inf if summary.high is None else summary.high,
            0.95,
            summary.units,
        ),
        throughput=summary.throughput,
        phases={
            name: median(sorted(durations))
            for name, durations in row.series.phases.items()
            # Elsewhere a phase of this name is the provider's own.
            if held is None or not is_our_wait(name)
        },
        floor=compared.summary.median if compared else None,
        floor_throughput=compared.summary.throughput if compared else None,
        busy=busy,
        cpus=cpus_usable(header),
        lag=summary.lag,
        held=held,
    )


def _held(row: Row, header: Mapping[str, Any]) -> float | None:
    """How much lower the median would be without the waits for our own limits; None where these had no part in it."""
    told = limiter(row.series, header)
    if told is None or told["median_without_wait_ns"] is None or row.summary.median is None:
        return None
    return row.summary.median - float(told["median_without_wait_ns"])
