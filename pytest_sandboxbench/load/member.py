"""The worker's half of a gang: its link to the controller, and its place among those who measure a block."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ..clock import NS_PER_S, clock_name, now_ns
from .barrier import Aborted
from .desk import RemoteDesk

__all__ = ["Link", "Member"]

_BEAT_S = 1.0
_LOOKS_AT_CLOCK = 9

_COARSE_S = 0.002
"""An event loop's timers are a millisecond coarse: the rest is slept through, with no lane of ours under way."""

GONE = ("gone",)

_BEGINNINGS = ("go", "skip", "stop", "gone")


class Link:
    """Says something to the controller, and waits for what it answers: one question at a time."""

    def __init__(self, channel: Any, worker: str) -> None:
        self._channel = channel
        self._worker = worker
        self._answers: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._waiter: tuple[asyncio.AbstractEventLoop, asyncio.Future[tuple[Any, ...]]] | None = None
        self._lock = threading.Lock()
        self.ahead_ns = 0
        """The controller's clock minus ours, known to ``clock_error_ns``; both 0 where it is one clock."""
        self.clock_error_ns = 0
        self.desk = RemoteDesk(lambda message: self.say("desk", message))
        channel.setcallback(self._hear, endmarker=GONE)

    def say(self, subject: str, what: Any = None) -> None:
        # The controller may be gone, and with it everybody who could read this.
        with suppress(OSError):
            self._channel.send((self._worker, subject, what))

    def ask(self, subject: str, what: Any = None) -> tuple[Any, ...]:
        """Blocks until there is an answer to how the next bench begins."""
        self.say(subject, what)
        while True:
            answer = self._answers.get()
            if answer[0] in _BEGINNINGS:  # what else comes was for a question that nobody waits for any more
                return answer

    def compare_clocks(self, theirs: str) -> None:
        """Find out how far the controller's clock is ahead, where ``theirs`` is not the name of ours (Cristian)."""
        if theirs == clock_name():
            return
        found = []
        for _ in range(_LOOKS_AT_CLOCK):
            asked = now_ns()
            answer = self.ask("clock")
            took = now_ns() - asked
            if answer[0] == "clock":
                found.append((took // 2, answer[1] - asked - took // 2))
        self.clock_error_ns, self.ahead_ns = min(found, default=(0, 0))

    async def question(self, subject: str, what: Any = None) -> tuple[Any, ...]:
        """The same on the event loop."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[tuple[Any, ...]] = loop.create_future()
        with self._lock:
            self._waiter = (loop, answer)
        try:
            self.say(subject, what)
            return await answer
        finally:
            with self._lock:
                self._waiter = None

    def _hear(self, answer: tuple[Any, ...]) -> None:
        """On the thread that receives."""
        if answer[0] == "verdict":
            self.desk.hear((*answer[:-1], answer[-1] - self.ahead_ns))
            return
        with self._lock:
            waiter = self._waiter
            if waiter is None:
                self._answers.put(answer)
                return
        loop, future = waiter
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(_set, future, answer)


def _set(future: asyncio.Future[tuple[Any, ...]], answer: tuple[Any, ...]) -> None:
    if not future.done():
        future.set_result(answer)


class Member:
    """A worker's part in one bench. It is the :class:`.barrier.Barrier` of the block that it measures there.

    ``known`` is set where the block was measured before: the rows that others measured, and why it was cut, if it was.
    """

    beat_s: float | None = None

    def __init__(self, link: Link, rank: int, size: int) -> None:
        self._link = link
        self.rank = rank
        self.size = size
        self.known: tuple[bytes, str] | None = None
        self._why = ""
        self._beating: asyncio.Task[None] | None = None

    async def begin(self, plan: Mapping[str, Any]) -> Mapping[str, Any]:
        """Wait for the others; returns the plan of rank 0. ``Aborted`` when one cannot take part."""
        answer = await self._ask("begin", dict(plan))
        if answer[0] == "known":
            self.known = answer[1], answer[2]
            return plan
        if self.size > 1:
            self._beating = asyncio.create_task(self._beat())
        theirs: Mapping[str, Any] = answer[1]
        return theirs

    async def released(self) -> int:
        _, told = await self._ask("ready")
        instant = int(told) - self._link.ahead_ns
        if (left := instant / NS_PER_S - time.monotonic()) > _COARSE_S:
            await asyncio.sleep(left - _COARSE_S)
        if (left_ns := instant - now_ns()) > 0:
            time.sleep(left_ns / NS_PER_S)  # noqa: ASYNC251 -- see _COARSE_S
        return instant

    async def done(self, over: bool) -> bool:
        if self.size == 1:
            return over
        return bool((await self._ask("done", over))[1])

    async def _beat(self) -> None:
        """Signs of life, as long as the event loop has one."""
        while True:
            await asyncio.sleep(_BEAT_S)
            self._link.say("alive")

    def alive(self) -> None:
        pass

    async def end(self, why: str = "") -> bytes:
        """The block is over here, for a reason if it was cut: wait for the others. For rank 0 the rows of theirs."""
        try:
            answer = await self._link.question("end", why)
        finally:
            if self._beating is not None:
                self._beating.cancel()
        return bytes(answer[1]) if answer[0] == "ended" else b""

    async def _ask(self, subject: str, what: Any = None) -> tuple[Any, ...]:
        if self._why:
            raise Aborted(self._why)
        answer = await self._link.question(subject, what)
        if answer[0] in ("abort", "gone"):
            self._why = str(answer[1]) if answer[0] == "abort" else "the controller is gone"
            raise Aborted(self._why)
        return answer
