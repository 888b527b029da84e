"""The gate at which the lanes of a round wait for each other, and for the instant at which each is due."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from ..clock import NS_PER_S, now_ns
from .barrier import ALONE, Barrier
from .shapes import BURST, Shape

__all__ = ["Gate"]

_COARSE_NS = 1_000_000
"""Timers of an event loop are this coarse: what is left of a wait is waited for by looking at the clock."""


class Gate:
    """Lets the lanes of a round go together: the last one that arrives releases all, at one instant.

    ``lanes`` are those of this process; ``barrier`` waits for the others' as well. A lane that is over leaves, so that
    nobody ever waits for it. In a burst that is so whenever they arrive; in any other ``shape`` only once: then each
    lane waits until it is due, and is on its own.
    """

    def __init__(self, lanes: Iterable[int], barrier: Barrier = ALONE, shape: Shape = BURST) -> None:
        self._expected = set(lanes)
        self._barrier = barrier
        self._shape = shape
        self._waiting: list[asyncio.Future[int]] = []
        self._releasing: asyncio.Task[None] | None = None
        self._on_their_own: set[int] = set()
        self.released_ns: int | None = None
        """The last common release."""

    async def arrive(self, lane: int) -> tuple[int, int]:
        """Wait for the others, and until this lane is due. ``Aborted`` where others will never come.

        Returns two instants in nanoseconds: when it was due, and when the lanes were released.
        """
        if lane in self._on_their_own:
            at = now_ns()
            return at, at
        released = self.released_ns = await self._released()
        if self._shape.kind == "burst":
            return released, released
        self._on_their_own.add(lane)
        due = released + self._shape.due_ns(lane)
        await _until(due)
        return due, released

    async def _released(self) -> int:
        if len(self._expected) <= 1 and self._barrier.size == 1:
            return now_ns()
        mine: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        self._release_if_complete()
        try:
            return await mine
        finally:
            if mine in self._waiting:  # cancelled: it must not stand for a lane that is still to come
                self._waiting.remove(mine)

    def leave(self, lane: int) -> None:
        self._expected.discard(lane)
        self._release_if_complete()

    def close(self) -> None:
        """The round is over: nobody waits for the others any more."""
        if self._releasing is not None:
            self._releasing.cancel()

    def _release_if_complete(self) -> None:
        if len(self._waiting) < len(self._expected) or not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        if self._barrier.size == 1:
            _release(waiting, now_ns())
        else:
            self._releasing = asyncio.create_task(self._release_together(waiting))

    async def _release_together(self, waiting: list[asyncio.Future[int]]) -> None:
        try:
            instant = await self._barrier.released()
        except Exception as error:
            for future in waiting:
                if not future.done():
                    future.set_exception(error)
        else:
            _release(waiting, instant)


def _release(waiting: Iterable[asyncio.Future[int]], instant: int) -> None:
    for future in waiting:
        if not future.done():
            future.set_result(instant)


async def _until(due_ns: int) -> None:
    """Wait for an instant. The last millisecond goes by in turns of the loop, which serves everybody else meanwhile."""
    while (left_ns := due_ns - now_ns()) > 0:  # noqa: ASYNC110 -- no event has the clock's precision
        await asyncio.sleep(max(0, left_ns - _COARSE_NS) / NS_PER_S)
