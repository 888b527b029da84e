"""Commands: what goes in, what comes out, how they end."""

from __future__ import annotations

from .check import among

__all__ = ["CHECKS"]

CHECKS = among(tuple(globals().values()))
