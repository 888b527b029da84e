"""The last line of defence: an adapter that blocks the event loop is interrupted where it blocks.

A thread sleeps until the latest known sign of life is overdue, then sends a real-time signal to the main thread,
whose handler raises :class:`LoopBlocked` inside the blocking call. A loop that merely waits is never
interrupted: its supervisor has moved the deadline long before.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

__all__ = ["LoopBlocked", "Watchdog"]

_SLACK_S = 0.4


class LoopBlocked(Exception):
    """A provider's code kept the event loop for longer than its deadline."""


class Watchdog:
    """Watches the thread that enters :meth:`watching`; it needs the main thread, and real-time signals (Linux)."""

    def __init__(self) -> None:
        self._due: float | None = None
        self._changed = threading.Event()

    def expect(self, expires: float) -> None:
        """The loop must have moved this on before ``expires`` (seconds of ``time.monotonic``)."""
        waiting = self._due is None
        self._due = expires + _SLACK_S
        if waiting:
            self._changed.set()

    def rest(self) -> None:
        self._due = None

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
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
            target=self._watch, args=(stop, target, number), name="sandboxbench-watchdog", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            self.rest()
            stop.set()
            self._changed.set()
            thread.join()
            signal.signal(number, previous)

    def _raise(self, _number: int, _frame: FrameType | None) -> None:
        due = self._due
        if due is not None and time.monotonic() >= due:
            self._due = None
            raise LoopBlocked("the event loop was blocked")

    def _watch(self, stop: threading.Event, target: int, number: int) -> None:
        while not stop.is_set():
            due = self._due
            self._changed.wait(None if due is None else max(0.0, due - time.monotonic()))
            self._changed.clear()
            due = self._due
            if due is not None and time.monotonic() >= due and not stop.is_set():
                signal.pthread_kill(target, number)
                # The handler clears it; a call that cannot be interrupted (native code) gets the signal again.
                self._changed.wait(_SLACK_S)
