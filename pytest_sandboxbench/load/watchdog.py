"""The last line of defence: an adapter that blocks the event loop is interrupted where it blocks.

A thread sleeps until the latest deadline that it knows of has passed, then asks the loop for an answer. Only when
none comes does it send a real-time signal to the main thread, whose handler raises :class:`LoopBlocked` inside the
blocking call. A loop that merely waits, or a process that was stopped and goes on, answers and is left alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

__all__ = ["LoopBlocked", "Watchdog"]

_SLACK_S = 0.1
_ANSWER_S = 0.3


class LoopBlocked(BaseException):
    """A provider's code kept the event loop for longer than its deadline.

    Not an ``Exception``: an adapter that tries again after any error must not swallow it.
    """


class Watchdog:
    """Watches the loop that runs in :meth:`watching`; it needs the main thread, and real-time signals (Linux)."""

    def __init__(self) -> None:
        self._due: float | None = None
        self._wakes = math.inf
        self._changed = threading.Event()
        self._unanswered: threading.Event | None = None
        self._outer: Watchdog | None = None

    def expect(self, expires: float) -> None:
        """The loop may be busy until ``expires`` (seconds of ``time.monotonic``); the latest of all counts.

        The thread is woken only where it would sleep too long: it would compete with what is being timed.
        """
        if self._outer is not None:
            self._outer.expect(expires)
            return
        due, known = expires + _SLACK_S, self._due
        if known is None or due > known:
            self._due = due
        if known is None and due < self._wakes:
            self._changed.set()

    def rest(self) -> None:
        self._due = None

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Inside of another one, that one's thread watches for both."""
        global _watching
        outer = _watching
        if outer is self or (outer is not None and threading.current_thread() is not threading.main_thread()):
            yield
            return
        if outer is not None:
            due, self._outer = outer._due, outer
            try:
                yield
            finally:
                self._outer, outer._due = None, due
            return
        number = getattr(signal, "SIGRTMIN", None)
        if number is None or threading.current_thread() is not threading.main_thread():
            yield
            return
        number += 5
        if signal.getsignal(number) not in (signal.SIG_DFL, None):
            yield
            return
        target = threading.get_ident()
        stop = threading.Event()
        previous = signal.signal(number, self._raise)
        thread = threading.Thread(
            target=self._watch,
            args=(stop, target, number, asyncio.get_running_loop()),
            name="sandboxbench-watchdog",
            daemon=True,
        )
        try:
            thread.start()
        except BaseException:  # the host has no thread left
            signal.signal(number, previous)
            raise
        _watching = self
        try:
            yield
        finally:
            _watching = None
            self.rest()
            stop.set()
            self._changed.set()
            thread.join()
            signal.signal(number, previous)

    def _raise(self, _number: int, _frame: FrameType | None) -> None:
        unanswered, self._unanswered = self._unanswered, None
        if unanswered is not None and not unanswered.is_set():
            raise LoopBlocked("the event loop was blocked")

    def _watch(self, stop: threading.Event, target: int, number: int, loop: asyncio.AbstractEventLoop) -> None:
        while not stop.is_set():
            due = self._due
            self._wakes = math.inf if due is None else due
            if self._due is not None and self._due < self._wakes:  # set before `_wakes` could be seen
                continue
            self._changed.wait(None if due is None else max(0.0, due - time.monotonic()))
            self._changed.clear()
            due = self._due
            if due is None or time.monotonic() < due or stop.is_set():
                continue
            answer = threading.Event()
            loop.call_soon_threadsafe(answer.set)
            while not answer.wait(_ANSWER_S) and not stop.is_set():
                # Again and again: native code cannot be interrupted, and a loop around a blocking call goes on.
                self._unanswered = answer
                signal.pthread_kill(target, number)
            self._unanswered = None
            if self._due == due:
                self._due = time.monotonic() + 1.0


_watching: Watchdog | None = None
"""The one whose thread runs."""
