"""One command in a sandbox of its own, as one act."""

from __future__ import annotations

from .check import among

__all__ = ["CHECKS"]

CHECKS = among(tuple(globals().values()))
