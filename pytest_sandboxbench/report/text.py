"""Text for people: durations with three significant digits, and untrusted text made harmless."""

from __future__ import annotations

import unicodedata

from ..records.untrusted import harmless
from ..stats.digits import number

__all__ = ["UNITS", "clip", "columns", "duration", "harmless", "number", "unit_of", "wrap"]

UNITS: tuple[tuple[str, float], ...] = (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0))


def unit_of(ns: float) -> tuple[str, float]:
    """Name and size (in ns) of the unit in which a duration, rounded, has one to three digits before the point.

    >>> unit_of(999_499)[0], unit_of(999_500)[0]
    ('µs', 'ms')
    """
    return next((unit for unit in UNITS if ns >= 0.9995 * unit[1]), UNITS[-1])


def duration(ns: float) -> str:
    """A duration in its own unit.

    >>> duration(6_124_900)
    '6.12 ms'
    """
    name, size = unit_of(ns)
    return f"{number(ns / size)} {name}"


def columns(text: str) -> int:
    """How many columns of a terminal a harmless text takes, at most."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def clip(text: str, width: int) -> str:
    """A text cut to a number of columns, with an ellipsis where something is missing.

    >>> clip("sandbox", 5)
    'sand…'
    """
    if columns(text) <= width:
        return text
    used, kept = 1, []
    for c in text:
        used += columns(c)
        if used > width:
            break
        kept.append(c)
    return "".join(kept) + "…"


def wrap(text: str, width: int, *, indent: str = "", more: str = "", most: int = 10) -> list[str]:
    """A text as at most ``most`` lines; the first starts with ``indent``, the others with ``indent`` and ``more``.

    >>> wrap("a sandbox of one", 10, indent="  ", more=" ")
    ['  a', '   sandbox', '   of one']
    """
    lines, line, start = [], "", indent
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if not line or columns(start + longer) <= width:
            line = longer
        else:
            lines.append(start + line)
            line, start = word, indent + more
    lines.append(start + line)
    if len(lines) > most:
        rest = " ".join(piece.strip() for piece in lines[most - 1 :])
        lines[most - 1 :] = [(indent if most == 1 else indent + more) + rest]
    return [clip(line, width) for line in lines]
