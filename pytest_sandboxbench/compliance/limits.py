"""Limits hold, seen from inside."""

from __future__ import annotations

from .check import among

__all__ = ["CHECKS"]

CHECKS = among(tuple(globals().values()))
