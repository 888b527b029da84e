"""The headline table: for each operation one line a provider, the floor last.

Columns are dropped from the least important on until the table fits; at 80 columns the median with its interval, the
range, the success rate and the multiple of the floor remain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..model import SeriesKey
from ..records.generator import Generator, of_several_lanes
from ..records.series import Series, SeriesTable, asked_rows, row_of_key
from ..stats import Summary, median, summarise
from .limiter import rejections
from .phases import phases
from .text import clip, columns, duration, harmless, number, unit_of, wrap

__all__ = ["Line", "Row", "build", "describe_row", "render", "row_of", "shown_columns", "summary_of"]


@dataclass(frozen=True, slots=True)
class Row:
    """One series with its numbers. ``floor`` marks the row of a provider that stands for "no sandbox".

    ``unlike`` says that its floor pauses in another way, so that the ratio compares two acts; ``generator`` what the
    load generator did, where there are several lanes.
    """

    series: Series
    summary: Summary
    floor: bool
    unlike: bool = False
    generator: Generator | None = None

    @property
    def key(self) -> SeriesKey:
        return self.series.key

    @property
    def throughput(self) -> float | None:
        """None for the bursts of one lane: beside its latency it says nothing."""
        return self.summary.throughput if of_several_lanes(self.key) else None


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the report and how it is meant: ``title``, ``head``, ``row``, ``floor``, ``bad`` or ``note``."""

    text: str
    kind: str


def summary_of(series: Series, floor: Series | None = None) -> Summary:
    """The numbers of a series; ``floor`` is that of the bare process, paired round by round."""
    rounds = [values for _number, values in sorted(series.rounds.items()) if values]
    pairs = None
    if floor is not None and floor is not series and not series.rejected:  # fewer at a time are another load
        pairs = [
            (median(sorted(values)), median(sorted(floor.rounds[number])))
            for number, values in sorted(series.rounds.items())
            if values and floor.rounds.get(number) and median(sorted(floor.rounds[number])) > 0
        ]
    return summarise(
        rounds,
        failures=series.failed,
        rejected=series.rejected,
        floor_pairs=pairs or None,
        wall_s=(series.wall_s or None) if series.ok else None,
        lags=series.lags if of_several_lanes(series.key) else None,
    )


def row_of(series: Series) -> Row:
    """A series by itself, without a floor."""
    return Row(series, summary_of(series), False)


def build(series: SeriesTable, header: Mapping[str, Any], *, everything: bool = False) -> list[list[Row]]:
    """Rows grouped by operation, variants and level, in the order of the definitions; providers as they were chosen.

    Shown is what was asked for; ``everything`` adds the operations that were measured along with it.
    """
    asked = asked_rows(header)
    floors = {str(block["floor"]) for block in header.get("blocks", []) if block.get("floor")}
    operations = {name: at for at, name in enumerate(header.get("operations", {}))}
    providers = {name: at for at, name in enumerate(header.get("providers", {}))}
    bare = _by_group(series, floors)
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for one in series:
        shown = everything or row_of_key(one.key) in asked
        if not one.attempts or not shown:
            continue
        floor = None if one.key.provider in floors else bare.get(_group_key(one.key))
        summary = summary_of(one, floor)
        unlike = floor is not None and floor.key.variants != one.key.variants
        row = Row(one, summary, one.key.provider in floors, unlike, one.generator())
        groups.setdefault(_group_key(one.key), []).append(row)

    def place(group: tuple[Any, ...]) -> tuple[Any, ...]:
        return (operations.get(group[0], len(operations)), *group)

    def rank(row: Row) -> tuple[Any, ...]:
        name = row.key.provider
        return (row.floor, providers.get(name, len(providers)), name)

    return [sorted(groups[group], key=rank) for group in sorted(groups, key=place)]


def _group_key(key: SeriesKey) -> tuple[Any, ...]:
    """Providers stand beside each other also where they pause in different ways."""
    return (key.operation, row_of_key(key).variants, key.level, key.shape)


def _by_group(series: SeriesTable, floors: set[str]) -> dict[tuple[Any, ...], Series]:
    """The floor of each group that has one: the first with a success."""
    found: dict[tuple[Any, ...], Series] = {}
    for one in series:
        if one.key.provider in floors and one.ok:
            found.setdefault(_group_key(one.key), one)
    return found


# -- rendering


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    cell: Callable[[Row, float], str]
    rank: int
    """0 is always shown; the highest goes first."""


def _unit(row: Row) -> tuple[str, float]:
    return unit_of(row.summary.median) if row.summary.median is not None else ("", 1.0)


def _span(low: float | None, high: float | None, size: float) -> str:
    if low is None and high is None:
        return "n/a"
    return f"{'…' if low is None else number(low / size)}-{'…' if high is None else number(high / size)}"


def _one(value: float | None, size: float) -> str:
    return "n/a" if value is None else number(value / size)


def _percent(row: Row, _size: float) -> str:
    rate = row.summary.success_rate
    if rate is None:
        return "n/a"
    # Never rounded up to a perfect score.
    return "100 %" if rate == 1 else f"{min(rate * 100, 99.9):.1f} %"


def _times(row: Row, _size: float) -> str:
    if row.floor:
        return "floor"
    ratio = row.summary.floor_ratio
    if ratio is None:
        return ""
    return f"({number(ratio)}×)" if row.unlike else f"{number(ratio)}×"


def _times_interval(row: Row, _size: float) -> str:
    ratio = row.summary.floor_ratio
    return "" if ratio is None else _span(row.summary.floor_low, row.summary.floor_high, 1.0)


def _median(row: Row, size: float) -> str:
    value = row.summary.median
    return "n/a" if value is None else f"{number(value / size)} {_unit(row)[0]}"


def _rate(row: Row, _size: float) -> str:
    value = row.throughput
    return "" if value is None else f"{number(value)}/s"


def _achieved(row: Row, _size: float) -> str:
    if row.generator is None:
        return ""
    least, most = row.generator.achieved_range
    return f"{most if least == most else f'{least}-{most}'}/{row.key.level}"


def _spread(row: Row, _size: float) -> str:
    if row.generator is None:
        return ""
    return duration(row.generator.spread_ns) if row.generator.spread_ns else "0"


_LONGEST_NAME = 24

_COLUMNS: tuple[_Column, ...] = (
    _Column("n", lambda row, _: str(row.summary.n), 0),
    _Column("median", _median, 0),
    _Column("95 % interval", lambda row, size: _span(row.summary.low, row.summary.high, size), 1),
    _Column("range", lambda row, size: _span(row.summary.minimum, row.summary.maximum, size), 2),
    _Column("p95", lambda row, size: _one(row.summary.p95, size), 5),
    _Column("p99", lambda row, size: _one(row.summary.p99, size), 7),
    _Column("mean", lambda row, size: _one(row.summary.mean, size), 8),
    _Column("sd", lambda row, size: _one(row.summary.stdev, size), 9),
    _Column("ok", _percent, 0),
    _Column("× floor", _times, 1),
    _Column("× interval", _times_interval, 10),
    _Column("rate", _rate, 3),
    _Column("at once", _achieved, 4),
    _Column("spread", _spread, 6),
)


_OF_PARTS = frozenset({"n", "median", "range", "p95", "p99", "mean", "sd"})


@dataclass(frozen=True, slots=True)
class _Layout:
    """By a row's identity its name, cells and lines below; and the columns for which there is room."""

    names: Mapping[int, str]
    cells: Mapping[int, Sequence[str]]
    parts: Mapping[int, Mapping[str, Sequence[str]]]
    shown: Sequence[int]
    widths: Sequence[int]
    first: int


def shown_columns(groups: Sequence[Sequence[Row]], width: int) -> frozenset[str]:
    """The titles of the columns for which a table of this width has room."""
    return frozenset(_COLUMNS[i].title for i in _lay_out(groups, width).shown) if groups else frozenset()


def _lay_out(groups: Sequence[Sequence[Row]], width: int) -> _Layout:
    rows = [row for group in groups for row in group]
    names = {id(row): harmless(name) for group in groups for row, name in zip(group, _names(group), strict=True)}
    cells = {id(row): [column.cell(row, _unit(row)[1]) for column in _COLUMNS] for row in rows}
    keys = {row_of_key(row.key) for row in rows}
    away = {id(row): {**_parts(row, phases(row.series, keys)), **_parts(row, rejections(row.series))} for row in rows}
    every = [*cells.values(), *(values for told in away.values() for values in told.values())]
    lesser = [len(outcome) + 4 for told in away.values() for outcome in told]
    first = max(len("operation"), *(columns(name) + 2 for name in names.values()), *lesser)
    shown = _fitting(min(first, _LONGEST_NAME), every, width)
    widths = [max(len(_COLUMNS[i].title), *(len(values[i]) for values in every)) for i in shown]
    first = max(len("operation"), min(first, width - sum(widths) - 2 * len(widths)))
    return _Layout(names, cells, away, shown, widths, first)


def render(groups: Sequence[Sequence[Row]], header: Mapping[str, Any], width: int) -> list[Line]:
    """The table as lines of at most ``width`` characters."""
    rows = [row for group in groups for row in group]
    if not rows:
        return []
    laid = _lay_out(groups, width)
    names, cells, away, shown, widths, first = laid.names, laid.cells, laid.parts, laid.shown, laid.widths, laid.first

    def line(kind: str, name: str, values: Iterable[str]) -> Line:
        padded = "  ".join(value.rjust(w) for value, w in zip(values, widths, strict=True))
        name = clip(name, first)
        return Line(clip(f"{name}{' ' * (first - columns(name))}  {padded}".rstrip(), width), kind)

    lines = [line("head", "operation", (_COLUMNS[i].title for i in shown))]
    defined: set[str] = set()
    for group in groups:
        lines += [Line(text, "title") for text in _title(group, header, width, defined)]
        for row in group:
            bad = row.summary.failures > 0 or not row.summary.n or row.summary.generator_bound
            kind = "bad" if bad else "floor" if row.floor else "row"
            lines.append(line(kind, f"  {names[id(row)]}", (cells[id(row)][i] for i in shown)))
            for part, values in away[id(row)].items():
                lines.append(line("row", f"    {harmless(part)}", (values[i] for i in shown)))
            lines += [Line(text, "bad") for text in _troubles(row, width)]
    return lines


def _parts(row: Row, summaries: Mapping[str, Summary]) -> dict[str, list[str]]:
    """Cells of the lines below a row: its phases; its rejections by reason, which have a latency of their own."""
    found = {}
    for name, summary in summaries.items():
        told = Row(row.series, summary, False)
        size = _unit(told)[1]
        found[name] = [column.cell(told, size) if column.title in _OF_PARTS else "" for column in _COLUMNS]
    return found


def _names(group: Sequence[Row]) -> Iterable[str]:
    """The providers, with what sets a row apart in its group (the kind of a pause)."""
    kinds = [dict(row.key.variants).get("kind", "") for row in group]
    differ = len(set(kinds)) > 1
    for row, kind in zip(group, kinds, strict=True):
        yield f"{row.key.provider} ({kind})" if kind and differ else row.key.provider


def _title(group: Sequence[Row], header: Mapping[str, Any], width: int, defined: set[str]) -> list[str]:
    """The operation; where it stands for the first time, what it times as well."""
    key = group[0].key
    kinds = {dict(row.key.variants).get("kind") for row in group}
    variants = tuple(v for v in key.variants if v[0] != "kind" or len(kinds) == 1)
    title = SeriesKey("", key.operation, variants).label
    if (key.level, key.shape) != (1, "burst"):
        title += f" @{key.level}/{key.shape}"
    definition = header.get("operations", {}).get(key.operation)
    if definition and key.operation not in defined:
        defined.add(key.operation)
        title += f": {definition['start']} → {definition['end']}"
    return wrap(harmless(title), width, more="    ")


def _fitting(first: int, table: Sequence[Sequence[str]], width: int) -> list[int]:
    """Indexes of the columns that fit; one that is empty in every row is never shown."""
    shown = [i for i in range(len(_COLUMNS)) if any(row[i] not in ("", "n/a") for row in table) or _COLUMNS[i].rank < 6]
    shown = [i for i in shown if any(row[i] for row in table)]

    def needed() -> int:
        return first + sum(2 + max(len(_COLUMNS[i].title), *(len(row[i]) for row in table)) for i in shown)

    while needed() > width and any(_COLUMNS[i].rank for i in shown):
        shown.remove(max(shown, key=lambda i: _COLUMNS[i].rank))
    return shown


def _troubles(row: Row, width: int) -> Iterable[str]:
    if row.summary.generator_bound:
        lag, share = row.summary.lag or 0.0, row.summary.lag_share or 0.0
        text = f"GENERATOR BOUND: {share:.0%} of the median, {duration(lag)}, is waiting for the load generator itself"
        yield from wrap(text, width, indent="    ", more="  ", most=2)
    bad = [f"{count} {outcome}" for outcome, count in sorted(row.series.outcomes.items()) if outcome != "ok"]
    if bad:
        cause = f": {row.series.errors[0]}" if row.series.errors else ""
        text = harmless(f"{', '.join(bad)} of {row.summary.attempts}{cause}", 600)
        yield from wrap(text, width, indent="    ", more="  ", most=4)


def describe_row(row: Row) -> str:
    """One line on a series for messages: ``startup 6.12 ms (6.02-6.31), n 40``."""
    if row.summary.median is None:
        return f"{row.key.label}: no successful sample of {row.summary.attempts}"
    size = _unit(row)[1]
    interval = _span(row.summary.low, row.summary.high, size)
    return f"{row.key.label} {duration(row.summary.median)} ({interval}), n {row.summary.n}"
