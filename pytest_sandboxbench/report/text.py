"""Text for people: wrapped and cut to columns, untrusted text made harmless."""

from __future__ import annotations

import unicodedata

from ..records.untrusted import harmless
from ..stats.digits import duration, number, unit_of

__all__ = ["clip", "columns", "duration", "harmless", "number", "unit_of", "wrap"]


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
