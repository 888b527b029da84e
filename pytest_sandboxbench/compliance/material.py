"""What checks send through a sandbox, and the scripts that several of them run there."""

from __future__ import annotations

import random

from .check import Trial

__all__ = ["ASKS", "EVERY_BYTE", "LEAVES", "NAP", "SIXTY_FOUR_MIB", "pattern", "plenty"]

EVERY_BYTE = bytes(range(256)) + b"\r\n\r\r\n\n\xff\xfe\xf0\x9f\xa6\xc3(\x1b[0m\x04\x00 and no line end"
"""Each byte, and what a text layer or a terminal would change."""

SIXTY_FOUR_MIB = (
    "cat >a; cat a a a a a a a a >b; cat b b b b b b b b >c; "
    "i=0; while [ $i -lt 16 ]; do cat c || exit; i=$((i+1)); done; rm a b c"
)
"""Writes its standard input 1024 times: 64 MiB of :func:`pattern`."""

NAP = "{ sleep 0.1 2>/dev/null || sleep 1; }"
"""POSIX knows whole seconds only; most guests know more."""

LEAVES = f"(until [ -e asked ]; do {NAP}; done; echo alive >answer) >/dev/null 2>&1 &"
"""Leaves a process in the background that waits for a file."""

ASKS = f": >asked; i=0; until [ -s answer ] || [ $i -ge 10 ]; do {NAP}; i=$((i+1)); done; cat answer"
"""Prints ``alive`` when that process does what it waited for. To look for its pid would also find a dead one."""


def pattern() -> bytes:
    """Bytes without a period, the same each time; a prime number of them: what is lost in blocks does not go unseen."""
    return random.Random(1).randbytes(65537)


def plenty(trial: Trial) -> float:
    """A deadline for commands that move much data."""
    return max(trial.timeout_s, 120.0)
