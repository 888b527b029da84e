"""SIGTERM and SIGHUP as Ctrl-C: a container that stops, a CI job that is cancelled, a terminal that is closed.

Their default action ends the process at once, and what it had made stays. Imports nothing heavy.
"""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["Termination"]


class Termination:
    """``number`` is the signal that came, 0 for none."""

    def __init__(self) -> None:
        self.number = 0
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
        while self._installed:
            signal.signal(self._installed.pop(), signal.SIG_DFL)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        # asyncio has a handler of its own, which cancels what runs and lets it clean up.
        interrupt = signal.getsignal(signal.SIGINT)
        if callable(interrupt):
            interrupt(signal.SIGINT, frame)
        else:
            raise KeyboardInterrupt
