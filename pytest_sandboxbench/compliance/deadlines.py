"""What is late is ended, and everything that it started with it."""

from __future__ import annotations

from .check import among

__all__ = ["CHECKS"]

CHECKS = among(tuple(globals().values()))
