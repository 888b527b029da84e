"""The section after the table: what becomes of an operation as its level rises, as bars and in a sentence.

Nothing is shown of what was measured at one level, but for the ramp of lanes that were let go one after another.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..model import SeriesKey
from ..records.series import asked_rows, row_of_key
from ..stats import median
from .levels import Ladder, ladders
from .table import Line, Row
from .text import clip, columns, duration, harmless, number, unit_of, wrap

__all__ = ["scaling"]

_LONGEST_NAME = 24
_LONGEST_BAR = 60
_SHORTEST_BAR = 10
_MOST_BINS = 5
_STAGGER = "stagger-"


@dataclass(frozen=True, slots=True)
class _Glyphs:
    bar: str
    floor: str
    end: str


_DRAWN = _Glyphs("█", "░", "│")
_TYPED = _Glyphs("#", ".", "|")

_ASCII = str.maketrans({"µ": "u", "×": "x", "…": "~"})


def scaling(
    groups: Sequence[Sequence[Row]], header: Mapping[str, Any], width: int, encoding: str | None = None
) -> list[Line]:
    """The section as lines of at most ``width`` characters; all ASCII where the terminal's ``encoding`` lacks ours."""
    asked = asked_rows(header)
    drawn = _has(encoding, "█░│µ×…")
    lines = [
        *(line for ladder in ladders(groups, header) for line in _chart(ladder, width, _DRAWN if drawn else _TYPED)),
        *(line for group in groups for line in _ramp(group, asked, width)),
    ]
    return lines if drawn else [Line(_typed(line.text, width), line.kind) for line in lines]


def _has(encoding: str | None, text: str) -> bool:
    """Without an encoding nothing is encoded, as in a test."""
    try:
        text.encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _typed(text: str, width: int) -> str:
    text = text.translate(_ASCII).encode("ascii", "backslashreplace").decode()
    return text if len(text) <= width else f"{text[: width - 1]}~"


# -- levels


def _chart(providers: Sequence[Ladder], width: int, glyphs: _Glyphs) -> Iterable[Line]:
    rows = [row for ladder in providers for row in ladder.rows]
    scale = max((row.summary.high or row.summary.median or 0.0 for row in rows), default=0.0)
    key = providers[0].key
    kinds = {dict(ladder.key.variants).get("kind") for ladder in providers}
    variants = tuple(v for v in key.variants if v[0] != "kind" or len(kinds) == 1)
    label = harmless(f"{SeriesKey('', key.operation, variants).label} @{_levels(rows)}/{key.shape}")
    title = f"{label}: the median, a full bar is {duration(scale)}; {glyphs.end} ends its 95 % interval"
    yield from (Line(text, "title") for text in wrap(title, width, more="    ", most=3))
    names = [_name(ladder, len(kinds) > 1) for ladder in providers]
    first = min(_LONGEST_NAME, width // 4, max(map(columns, names)))
    level = max(len(str(row.key.level)) for row in rows)
    told = {id(row): (_median(row), _rate(row)) for row in rows}
    sizes = [max(len(cells[i]) for cells in told.values()) for i in range(2)]
    room = width - 2 - first - 2 - level - 2 - 2 - sizes[0] - 2 - sizes[1]
    bar = min(_LONGEST_BAR, max(_SHORTEST_BAR, room))
    for name, ladder in zip(names, providers, strict=True):
        shown = clip(name, first)
        for row in ladder.rows:
            median_text, rate = told[id(row)]
            padded = shown + " " * (first - columns(shown))
            text = (
                f"  {padded}  {row.key.level:>{level}}  {_bar(row, scale, bar, glyphs)}  "
                f"{median_text:>{sizes[0]}}  {rate:>{sizes[1]}}"
            )
            yield Line(clip(text.rstrip(), width), "floor" if row.floor else "row" if row.summary.n else "bad")
            shown = ""
    others = [ladder for ladder in providers if not ladder.floor]
    for name, ladder in zip(names, providers, strict=True):
        finding = ladder.finding
        if finding is not None and (not ladder.floor or not others):
            text = harmless(f"{name}: {finding.text}", 600)
            kind = "head" if finding.verdict in ("serialised", "cpu bound") else "row"
            yield from (Line(line, kind) for line in wrap(text, width, indent="  ", more="  ", most=5))


def _levels(rows: Sequence[Row]) -> str:
    return ",".join(map(str, sorted({row.key.level for row in rows})))


def _name(ladder: Ladder, kinds_differ: bool) -> str:
    kind = dict(ladder.key.variants).get("kind")
    return harmless(f"{ladder.key.provider} ({kind})" if kind and kinds_differ else ladder.key.provider)


def _median(row: Row) -> str:
    return "n/a" if row.summary.median is None else duration(row.summary.median)


def _rate(row: Row) -> str:
    """Also of one lane: beside other levels it says something."""
    return "" if row.summary.throughput is None else f"{number(row.summary.throughput)}/s"


def _bar(row: Row, scale: float, width: int, glyphs: _Glyphs) -> str:
    """As long as the median is; the ends of its interval stand where they fall, which may be beyond the bar."""
    value = row.summary.median
    if value is None or not scale > 0:
        return " " * width
    filled = max(1, round(value / scale * width))
    cells = [(glyphs.floor if row.floor else glyphs.bar) if at < filled else " " for at in range(width)]
    for bound in (row.summary.low, row.summary.high):
        if bound is not None:
            cells[min(width - 1, int(bound / scale * width))] = glyphs.end
    return "".join(cells)


# -- ramps


def _ramp(group: Sequence[Row], asked: Container[SeriesKey], width: int) -> Iterable[Line]:
    """Of lanes that were due one after another: whether those that came later took longer."""
    key = group[0].key
    if not key.shape.startswith(_STAGGER):
        return
    bins = min(_MOST_BINS, key.level)
    ramps = [(row, row.series.ramp(bins)) for row in group if row_of_key(row.key) in asked]
    steps = next((ramp for _, ramp in ramps if len(ramp) > 1), None)
    if steps is None:
        return
    unit, size = unit_of(steps[-1].first_ns)
    label = harmless(f"{row_of_key(key).label} @{key.level}/{key.shape}")
    title = f"{label}: the median by when a lane was due, from so many {unit} after the release on"
    yield from (Line(text, "title") for text in wrap(title, width, more="    ", most=3))
    head = ["0", *(number(step.first_ns / size) for step in steps[1:])]
    table = [
        (row, [duration(median(step.latencies)) if step.latencies else "n/a" for step in ramp]) for row, ramp in ramps
    ]
    column = max(len(cell) for cells in (head, *(cells for _, cells in table)) for cell in cells)
    lines = [("due", "head", head)]
    lines += [(harmless(row.key.provider), "floor" if row.floor else "row", cells) for row, cells in table]
    longest = max(columns(name) for name, _, _ in lines)
    first = min(longest, _LONGEST_NAME, max(8, width - 2 - (column + 2) * len(head)))
    for name, kind, cells in lines:
        shown = clip(name, first)
        padded = shown + " " * (first - columns(shown))
        yield Line(clip(f"  {padded}" + "".join(f"  {cell:>{column}}" for cell in cells), width), kind)
