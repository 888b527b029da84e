"""An event loop whose time jumps: a 60 s deadline passes in microseconds.

For unit tests of code that waits by ``asyncio`` alone (``sleep``, ``timeout``, ``wait_for``). Its time stands still
while code runs and jumps to the next timer when nothing is ready, so that durations are exact. What it can not do:
``time.sleep`` takes real time and none of the loop's; a timer does not wait for a thread, a socket or a child process,
so that deadlines around those fire at once; and :func:`pytest_sandboxbench.clock.now_ns` knows nothing of it: a test
of code that measures patches that name with :meth:`VirtualLoop.now_ns`. The scripted provider follows either clock.
"""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

from ..clock import NS_PER_S, now_ns

__all__ = ["VirtualLoop", "loop_ns", "run_virtual"]

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):
    """Where the loop would wait ``timeout`` seconds for a timer, time moves on by as much."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ns = now_ns()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select(None)
        events = super().select(0)
        if not events:
            self.now_ns += math.ceil(max(0.0, timeout) * NS_PER_S)
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """Use as a loop factory: ``asyncio.Runner(loop_factory=VirtualLoop)``, or :func:`run_virtual`."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_ns / NS_PER_S

    def now_ns(self) -> int:
        return self._jumping.now_ns

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Without the time limit that ``asyncio.run`` gives it from Python 3.12 on: here it would pass at once."""
        await super().shutdown_default_executor()


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """``asyncio.run`` on a virtual clock."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def loop_ns() -> int:
    """Nanoseconds on the clock that the running loop's timers follow: virtual there, else :func:`clock.now_ns`."""
    try:
        loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
    except RuntimeError:  # a generator that is closed after its loop
        loop = None
    return loop.now_ns() if isinstance(loop, VirtualLoop) else now_ns()
