"""All checks, in the order in which they are run."""

from __future__ import annotations

from . import at_once, deadlines, exec, files, lifecycle, limits, one_shot, pause, stream
from .check import Check

__all__ = ["CHECKS"]

CHECKS: tuple[Check, ...] = (
    *lifecycle.CHECKS,
    *exec.CHECKS,
    *stream.CHECKS,
    *deadlines.CHECKS,
    *files.CHECKS,
    *pause.CHECKS,
    *limits.CHECKS,
    *one_shot.CHECKS,
    *at_once.CHECKS,
)
