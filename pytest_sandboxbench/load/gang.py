"""xdist's controller: W workers drive the lanes of a bench together, and one of them reports it.

A collection without benches is left to xdist's own scheduler, whatever ``--dist`` says. Which tests are benches only a
worker knows: it says so over a channel that was handed to it at its start, before it reports its collection. Over the
same channel it says what it measured, as it happens, and is kept in step with the others (``gang_worker.py``).
Imports nothing heavy: every run with xdist loads it.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from ..clock import now_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .coordinator import Coordinator
    from .desk import SharedDesk, Slots

__all__ = ["CHANNEL", "ControllerHooks", "Heard"]

CHANNEL = "sandboxbench_channel"
"""Where a worker finds its channel, in what it is given at its start."""

_LOOKS_S = 0.5

_AT_ONCE = 16_384
"""Bytes. More than this may not fit into the pipe to a worker that is stopped, and nobody else shall wait for that."""


class Heard:
    """What the workers said that is for the session: as it came, from threads that receive.

    ``news`` holds the latest of each worker, ``rows`` the samples that nobody took in yet, ``header`` the records'
    header (JSON) as whoever leads wrote it last, ``ends`` a line for each worker that ended before its time.
    """

    def __init__(self) -> None:
        self.news: dict[str, Mapping[str, Any]] = {}
        self.rows: deque[bytes] = deque()
        self.header = b""
        self.ends: list[str] = []
        self.unrun = 0


class ControllerHooks:
    """The controller's side: shares the run's identity, learns which tests are benches, chooses the scheduler.

    ``shared`` gives what all workers must know; ``collected`` is told, once, whether there are benches, and may refuse
    the run with a ``UsageError``. A worker may be silent for ``silence_s()`` while others wait for it; ``slots()``
    keeps our limits for all of them together.
    """

    def __init__(
        self,
        config: pytest.Config,
        shared: Callable[[], Mapping[str, str]],
        collected: Callable[[bool], None],
        heard: Heard,
        silence_s: Callable[[], float],
        slots: Callable[[], Slots],
    ) -> None:
        self._config = config
        self._shared = shared
        self._collected = collected
        self._heard = heard
        self._silence_s = silence_s
        self._slots = slots
        self._desk: SharedDesk | None = None
        self._ours = False
        self._nodes: dict[str, Any] = {}
        self._channels: dict[str, Any] = {}
        self._benches: dict[str, tuple[int, str]] = {}
        self._mistakes: list[str] = []
        self._coordinator: Coordinator | None = None
        self._over = threading.Event()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["sandboxbench"] = dict(self._shared())
        channel = node.gateway.newchannel()
        node.workerinput[CHANNEL] = channel
        self._nodes[node.gateway.id], self._channels[node.gateway.id] = node, channel
        channel.setcallback(self._hear)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        dsession: Any = config.pluginmanager.get_plugin("dsession")

        def usual() -> Any:
            return dsession.pytest_xdist_make_scheduler(config=config, log=log)

        from .scheduler import Scheduler

        return Scheduler(usual, self._decide, self._lost)

    def _decide(self, collected: Sequence[str]) -> Coordinator | None:
        """``UsageError`` for what a worker must not raise itself: for xdist that is a crash."""
        if self._mistakes:
            raise pytest.UsageError(self._mistakes[0])
        self._collected(self._ours)
        if self._ours:
            from .desk import SharedDesk

            self._desk = SharedDesk(self._slots(), self._send)
        if not self._benches:
            return None
        from .coordinator import Bench, Coordinator

        benches = [Bench(nodeid, *self._benches[nodeid]) for nodeid in collected if nodeid in self._benches]
        self._coordinator = Coordinator(benches, self._silence_s(), self._send, self._kill)
        threading.Thread(target=self._watch, args=(self._coordinator,), name="sandboxbench-gang", daemon=True).start()
        return self._coordinator

    def _watch(self, coordinator: Coordinator) -> None:
        while not self._over.wait(_LOOKS_S):
            coordinator.watch()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self._over.set()
        ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if self._coordinator is not None and ended and not self._coordinator.stopped:
            self._heard.unrun = self._coordinator.unrun

    def stop(self, why: str) -> None:
        """End the run: ``-x`` was given, and what failed is no test of a worker's, which xdist would have counted."""
        dsession: Any = self._config.pluginmanager.get_plugin("dsession")
        dsession.shouldstop = why

    def _hear(self, said: tuple[str, str, Any]) -> None:
        worker, subject, what = said
        if subject == "ours":
            self._ours = True
        elif subject == "benches":
            self._benches.update(what)
        elif subject == "mistake":
            self._mistakes.append(what)
        elif subject == "news":
            self._heard.news[worker] = what
        elif subject == "header":
            self._heard.header = what
        elif subject == "clock":
            self._send(worker, ("clock", now_ns()))
        elif subject == "desk":
            if self._desk is not None:
                self._desk.hear(worker, what)
        else:
            if subject == "rows":
                self._heard.rows.append(what)
            if self._coordinator is not None:
                self._coordinator.hear(worker, subject, what)
            elif subject == "at":
                self._send(worker, ("stop", "the workers collected different tests, and benches need all of them"))

    def _send(self, worker: str, answer: tuple[Any, ...]) -> None:
        if any(isinstance(part, bytes) and len(part) > _AT_ONCE for part in answer):
            threading.Thread(
                target=self._send_now, args=(worker, answer), name="sandboxbench-rows", daemon=True
            ).start()
        else:
            self._send_now(worker, answer)

    def _send_now(self, worker: str, answer: tuple[Any, ...]) -> None:
        with suppress(OSError):  # it is gone, which xdist will say
            self._channels[worker].send(answer)

    def _kill(self, worker: str) -> None:
        """By its handle: xdist started it."""
        self._nodes[worker].gateway._io.kill()

    def _lost(self, node: Any) -> str:
        """A worker is gone, at its end or before. Returns the bench that it led and nobody else will report."""
        if self._desk is not None:
            self._desk.lost(node.gateway.id)
        if self._coordinator is None:
            return ""
        worker = node.gateway.id
        silent = self._coordinator.silent(worker)
        how = silent or _how(node)
        led = self._coordinator.lost(worker, how)
        if led:
            self._heard.ends.append(f"worker {worker} {how} in {led}: what was measured until then is kept")
        elif silent:
            self._heard.ends.append(f"worker {worker} {silent.rstrip(',')}")
        return led


def _how(node: Any) -> str:
    process = getattr(node.gateway._io, "popen", None)
    # One that said its last word lives on until xdist ends it: there is nothing to wait for.
    if process is None or not node._down or hasattr(node, "workeroutput"):
        return "ended"
    try:
        status = process.wait(1)
    except Exception:
        return "ended"
    return f"ended (exit {status})" if status >= 0 else f"ended (signal {-status})"
