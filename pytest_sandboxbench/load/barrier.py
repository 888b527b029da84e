"""What keeps the processes in step that drive the lanes of one block together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..clock import now_ns

__all__ = ["ALONE", "Aborted", "Alone", "Barrier"]


class Aborted(Exception):
    """The block cannot go on: another process that drives its lanes is gone or cannot take part. Says which and why."""


class Barrier(Protocol):
    """One process's place among those that measure a block: it drives the lanes ``rank``, ``rank + size``, ...

    ``released`` and ``done`` are called in this order, any number of times each, ``enough`` between the turns; all may
    raise :class:`Aborted`, and do so ever after.
    """

    rank: int
    size: int

    async def released(self) -> int:
        """All lanes of this process stand at the gate: wait for those of the others; returns at the common instant.

        That instant in nanoseconds of this process's clock.
        """
        ...

    async def done(self, over: bool) -> bool:
        """No lane of this process is under way any more: wait for the others. Whether any of them said ``over``."""
        ...

    async def enough(self, judge: Callable[[bytes], bool]) -> bool:
        """Whether the rounds until now are enough, as rank 0 says: ``judge`` gets the samples of all others."""
        ...


class Alone:
    """One process drives all lanes."""

    rank = 0
    size = 1

    async def released(self) -> int:
        return now_ns()

    async def done(self, over: bool) -> bool:
        return over

    async def enough(self, judge: Callable[[bytes], bool]) -> bool:
        return judge(b"")


ALONE = Alone()
