"""How a number is written for people."""

from __future__ import annotations

__all__ = ["number"]


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
