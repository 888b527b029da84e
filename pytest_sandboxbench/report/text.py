"""Text for people: durations with three significant digits, and untrusted text made harmless."""

from __future__ import annotations

__all__ = ["UNITS", "duration", "harmless", "number", "unit_of"]

UNITS: tuple[tuple[str, float], ...] = (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0))


def unit_of(ns: float) -> tuple[str, float]:
    """Name and size (in ns) of the unit in which a duration has at least one digit before the point."""
    return next((unit for unit in UNITS if ns >= unit[1]), UNITS[-1])


def number(value: float) -> str:
    """Three significant digits, never an exponent.

    >>> number(6.1249), number(61.249), number(612.49), number(6124.9)
    ('6.12', '61.2', '612', '6125')
    """
    return f"{value:.2f}" if abs(value) < 9.995 else f"{value:.1f}" if abs(value) < 99.95 else f"{value:.0f}"


def duration(ns: float) -> str:
    """A duration in its own unit.

    >>> duration(6_124_900)
    '6.12 ms'
    """
    name, size = unit_of(ns)
    return f"{number(ns / size)} {name}"


def harmless(text: str, limit: int = 300) -> str:
    """Text from a sandbox or provider on one line, without anything that a terminal would obey.

    >>> harmless("a\\x1b[31mb\\nc")
    'a\\\\x1b[31mb c'
    """
    text = " ".join(text.split())
    out = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return out if len(out) <= limit else out[: limit - 1] + "…"
