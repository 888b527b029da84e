"""How a number is written for people."""

from __future__ import annotations

__all__ = ["UNITS", "duration", "number", "plain", "unit_of"]

UNITS: tuple[tuple[str, float], ...] = (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0))


def number(value: float) -> str:
    """Three significant digits, never an exponent, four decimals at most.

    >>> number(6.1249), number(61.249), number(612.49), number(6124.9)
    ('6.12', '61.2', '612', '6125')
    >>> number(0.61249), number(0.061249)
    ('0.612', '0.0612')
    """
    size = abs(value)
    limits = (0.09995, 0.9995, 9.995, 99.95)
    return f"{value:.{sum(size < limit for limit in limits)}f}"


def plain(value: float) -> str:
    """All digits that it takes to read the same number again, and no point behind a whole one.

    >>> plain(52.0), plain(0.1)
    ('52', '0.1')
    """
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


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
