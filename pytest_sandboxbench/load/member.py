"""The worker's half of a gang: its link to the controller, and its place among those who measure a block."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from ..clock import NS_PER_S, clock_name, now_ns
from .barrier import Aborted
from .desk import RemoteDesk

__all__ = ["BEAT_S", "Link", "Member"]

BEAT_S = 1.0
_LOOKS_AT_CLOCK = 9

_COARSE_S = 0.002
"""An event loop's timers are a millisecond coarse: the rest is slept through, with no lane of ours under way."""

GONE = ("gone",)

_ANSWERS = {
    "at": ("go", "skip", "stop"),
    "clock": ("clock",),
    "begin": ("begun", "known", "abort"),
    "ready": ("release", "abort"),
    "done": ("on", "abort"),
    "look": ("rows", "abort"),
    "end": ("ended",),
}
"""What a question is answered with. What else comes was for one that nobody waits for any more."""


class _Waiter(NamedTuple):
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[tuple[Any, ...]]
    expected: Collection[str]


class Link:
    """Says something to the controller, and waits for what it answers: one question at a time."""

    def __init__(self, channel: Any, worker: str) -> None:
        self._channel = channel
        self._worker = worker
        self._answers: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._waiter: _Waiter | None = None
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
        """Blocks until there is an answer."""
        with self._lock:
            self._waiter = None
        self.say(subject, what)
        while True:
            answer = self._answers.get()
            if answer == GONE or answer[0] in _ANSWERS[subject]:
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
        mine = _Waiter(loop, loop.create_future(), _ANSWERS[subject])
        with self._lock:
            self._waiter = mine
        try:
            self.say(subject, what)
            return await mine.answer
        finally:
            with self._lock:
                if self._waiter is mine:
                    self._waiter = None

    def _hear(self, answer: tuple[Any, ...]) -> None:
        """On the thread that receives."""
        if answer[0] == "verdict":
            what, provider, id, reason, begin_ns, at_once = answer
            self.desk.hear((what, provider, id, reason, begin_ns - self.ahead_ns, at_once))
            return
        with self._lock:
            waiter = self._waiter
            if waiter is None:
                self._answers.put(answer)
                return
        if answer == GONE or answer[0] in waiter.expected:
            with suppress(RuntimeError):  # the loop is closed
                waiter.loop.call_soon_threadsafe(_set, waiter.answer, answer)


def _set(future: asyncio.Future[tuple[Any, ...]], answer: tuple[Any, ...]) -> None:
    if not future.done():
        future.set_result(answer)


class Member:
    """A worker's part in one bench. It is the :class:`.barrier.Barrier` of the block that it measures there.

    ``known`` is set where the block was measured before: the rows that others measured, and why it was cut, if it was.
    """

    def __init__(self, link: Link, rank: int, size: int) -> None:
        self._link = link
        self.rank = rank
        self.size = size
        self.known: tuple[bytes, str] | None = None
        self._why = ""
        self._beating: asyncio.Task[None] | None = None
        self.measures = False
        """Signs of life are the event loop's to give."""

    async def begin(self, plan: Mapping[str, Any]) -> Mapping[str, Any]:
        """Wait for the others; returns the plan of rank 0. ``Aborted`` when one cannot take part."""
        answer = await self._ask("begin", dict(plan))
        if answer[0] == "known":
            self.known = answer[1], answer[2]
            return plan
        self.measures = True
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

    async def enough(self, judge: Callable[[bytes], bool]) -> bool:
        over = False
        if self.rank == 0:
            _, rows = await self._ask("look")
            over = judge(bytes(rows))
        return await self.done(over)

    async def _beat(self) -> None:
        """Signs of life, as long as the event loop has one."""
        while True:
            await asyncio.sleep(BEAT_S)
            self._link.say("alive")

    async def end(self, why: str = "") -> bytes:
        """The block is over here, for a reason if it was cut: wait for the others. For rank 0 the rows of theirs."""
        try:
            answer = await self._link.question("end", why)
        finally:
            self.over()
        return bytes(answer[1]) if answer[0] == "ended" else b""

    def over(self) -> None:
        """Nothing is measured any more, however that came."""
        self.measures = False
        if self._beating is not None:
            self._beating.cancel()

    async def _ask(self, subject: str, what: Any = None) -> tuple[Any, ...]:
        if self._why:
            raise Aborted(self._why)
        answer = await self._link.question(subject, what)
        if answer[0] in ("abort", "gone"):
            self._why = str(answer[1]) if answer[0] == "abort" else "the controller is gone"
            raise Aborted(self._why)
        return answer
