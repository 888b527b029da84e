"""SIGTERM and SIGHUP as Ctrl-C: a container that stops, a CI job that is cancelled, a terminal that is closed.

Their default action ends the process at once, and what it had made stays. Imports nothing heavy.
"""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["Termination", "interrupt"]


class Termination:
    """``number`` is the signal that came, 0 for none; ``interrupts`` how often somebody asked for the end, in any way.

    The first time all that was made is destroyed, however long it takes; the second time nobody waits any more.
    """

    def __init__(self) -> None:
        self.number = 0
        self.interrupts = 0
        self._installed: list[int] = []

    def install(self) -> None:
        """Where nobody else has a use for them. Only the main thread may."""
        if threading.current_thread() is not threading.main_thread():
            return
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, self._interrupt)
                self._installed.append(number)

    def uninstall(self) -> None:
        self.ending()
        while self._installed:
            signal.signal(self._installed.pop(), signal.SIG_DFL)

    def came(self, error: BaseException | None) -> None:
        """What ended the tests. asyncio turns the first interrupt into a cancellation, and raises the second itself."""
        if isinstance(error, KeyboardInterrupt):
            code = getattr(getattr(_runner(), "_on_sigint", None), "__code__", None)
            second = any(frame.f_code is code for frame, _line in traceback.walk_tb(error.__traceback__))
            self.interrupts = 2 if second else 1
            if self._installed and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                signal.signal(signal.SIGINT, self._count)  # pytest prints a traceback first, and would die of another

    def _count(self, _number: int, _frame: FrameType | None) -> None:
        self.interrupts += 1

    def ending(self) -> None:
        """From here on an interrupt is raised again, or is the event loop's."""
        if signal.getsignal(signal.SIGINT) == self._count:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        interrupt(frame)


def interrupt(frame: FrameType | None) -> None:
    """As Ctrl-C where ``frame`` runs. Around an event loop it cancels what runs and lets it clean up.

    Otherwise, and the second time, it raises ``KeyboardInterrupt``.
    """
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler) and handler is not signal.default_int_handler:
        handler(signal.SIGINT, frame)  # asyncio's own, as a rule
        return
    # Where Ctrl-C is ignored, as in the background of a shell, asyncio has no handler in place. Straight through the
    # event loop an exception would leave everybody in the middle of what they do.
    runner, task = _running(frame)
    if runner is None:
        raise KeyboardInterrupt
    runner._on_sigint(signal.SIGINT, frame, task)


def _running(frame: FrameType | None) -> tuple[Any, Any]:
    """The ``asyncio.Runner`` around a frame, and its task."""
    kind = _runner()
    run = getattr(getattr(kind, "run", None), "__code__", None)
    while frame is not None and hasattr(kind, "_on_sigint"):
        if frame.f_code is run:
            task = frame.f_locals.get("task")
            return (frame.f_locals["self"], task) if task is not None else (None, None)
        frame = frame.f_back
    return None, None


def _runner() -> Any:
    return getattr(sys.modules.get("asyncio.runners"), "Runner", None)
