"""One line below the tests that says how far a long block is; gone when it ends."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import pytest

__all__ = ["Progress"]

_FIRST_S = 1.0
_EVERY_S = 0.2
_EVERY_LOG_S = 15.0


class Progress:
    """Called between the turns of a block. On a terminal the line is redrawn; in a log one is written every 15 s."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._block = ""
        self._next = 0.0
        self._column: int | None = None

    def __call__(self, block: str, provider: str, done: int, planned: int) -> None:
        now = time.monotonic()
        if block != self._block:
            self._block, self._next = block, now + _FIRST_S
        if done >= planned:
            self._erase()
            self._block = ""
        elif now >= self._next:
            self._draw(f"{block}: {provider}, {done} of {planned} turns", now)

    def _draw(self, text: str, now: float) -> None:
        reporter = self._reporter()
        if reporter is None or self._config.get_verbosity() < 0:
            return
        with self._uncaptured():
            writer = reporter._tw
            if reporter.isatty:
                self._next = now + _EVERY_S
                if self._column is None:
                    self._column = writer.width_of_current_line
                    start = "\n"
                else:
                    start = "\r\x1b[2K"
                # Relative moves only: they hold when the terminal scrolls.
                writer._file.write(f"{start}{text[: writer.fullwidth - 1]}")
                writer._file.flush()
            else:
                self._next = now + _EVERY_LOG_S
                reporter.ensure_newline()
                reporter.write_line(f"  … {text}")

    def _erase(self) -> None:
        if self._column is None:
            return
        column, self._column = self._column, None
        with self._uncaptured():
            file = self._reporter()._tw._file
            file.write("\r\x1b[2K\x1b[1A\r" + (f"\x1b[{column}C" if column else ""))
            file.flush()

    def _reporter(self) -> Any:
        return self._config.pluginmanager.get_plugin("terminalreporter")

    @contextlib.contextmanager
    def _uncaptured(self) -> Iterator[None]:
        capture = self._config.pluginmanager.get_plugin("capturemanager")
        if capture is None:
            yield
            return
        with capture.global_and_fixture_disabled():
            yield
