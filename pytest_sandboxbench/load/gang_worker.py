"""xdist's workers: each says which tests are benches, comes to one when the others do, and tells what it measured."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from .gang import CHANNEL

if TYPE_CHECKING:
    from .coordinator import Bench
    from .desk import RemoteDesk
    from .member import Member

__all__ = ["ToController", "WorkerHooks", "say", "say_benches", "worker_desk", "worker_hooks"]

_WORKER = "sandboxbench-worker"


class WorkerHooks:
    """The worker's side: comes to each bench when the others do, and reports those that it leads.

    ``member`` is this worker's part in the bench that runs now.
    """

    def __init__(self, config: pytest.Config, benches: Mapping[str, Bench]) -> None:
        from .member import Link

        worker = config.workerinput["workerid"]  # type: ignore[attr-defined]
        self._link = Link(config.workerinput[CHANNEL], worker)  # type: ignore[attr-defined]
        self._benches = benches
        self.desk = self._link.desk
        self._link.compare_clocks(config.workerinput["sandboxbench"]["clock"])  # type: ignore[attr-defined]
        self.member: Member | None = None
        self.failure = ""

    @property
    def clock(self) -> tuple[int, int]:
        """How far the controller's clock is ahead of ours, and how well that is known, in nanoseconds."""
        return self._link.ahead_ns, self._link.clock_error_ns

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        if item.nodeid not in self._benches:
            return (yield)
        with self._alive():
            return (yield from self._part_in(item))

    def _part_in(self, item: pytest.Item) -> Generator[None, Any, Any]:
        answer = self._link.ask("at", item.nodeid)
        self.member, self.failure = None, ""
        if answer[0] == "go":
            from .member import Member

            self.member = Member(self._link, answer[1], answer[2])
        elif answer[0] != "skip":
            item.session.shouldstop = answer[1] if answer[0] == "stop" else "the controller is gone"
        try:
            return (yield)
        finally:
            if self.member is not None:
                self.member.over()
                stop = str(item.session.shouldfail or item.session.shouldstop or "")
                self._link.say("left", (self.failure, stop))

    @contextmanager
    def _alive(self) -> Iterator[None]:
        """Signs of life from a thread, since fixtures may take their time; while it measures, the loop gives them."""
        from .member import BEAT_S

        over = threading.Event()

        def beat() -> None:
            while not over.wait(BEAT_S):
                if self.member is None or not self.member.measures:
                    self._link.say("alive")

        threading.Thread(target=beat, name="sandboxbench-alive", daemon=True).start()
        try:
            yield
        finally:
            over.set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._link.say("bye", str(session.shouldfail or session.shouldstop or ""))


class _Followers:
    """Runs what this worker does not report. Apart from the hooks above, which go around it."""

    def __init__(self, hooks: WorkerHooks, benches: Mapping[str, Bench]) -> None:
        self._hooks = hooks
        self._benches = benches

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if item.nodeid not in self._benches:
            return None
        member = self._hooks.member
        if member is None:
            _tear_down(item, nextitem)
            return True
        if member.rank == 0:
            return None
        from _pytest.runner import runtestprotocol

        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        self._hooks.failure = next((_why(report) for report in reports if not report.passed), "")
        return True


def _why(report: pytest.TestReport) -> str:
    """Why it failed or was skipped, in a line where that is possible."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if isinstance(report.longrepr, tuple):
        text = report.longrepr[2]
    else:
        text = report.longreprtext if crash is None else f"{crash.message} ({crash.path}:{crash.lineno})"
    return f"{report.when}: {text[-600:]}"


def _tear_down(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """What was set up for the test before ends here, where this one does not need it."""
    try:
        item.session._setupstate.teardown_exact(nextitem)
    except Exception as error:
        warnings.warn(pytest.PytestWarning(f"after a bench that other workers ran: {error!r}"), stacklevel=2)


def worker_desk(config: pytest.Config) -> RemoteDesk | None:
    """Where a worker asks for room under our limits: at the controller's."""
    hooks = worker_hooks(config)
    return None if hooks is None else hooks.desk


def worker_hooks(config: pytest.Config) -> WorkerHooks | None:
    """Its part in the benches, in a worker that has some."""
    hooks: WorkerHooks | None = config.pluginmanager.get_plugin(_WORKER)
    return hooks


def say_benches(config: pytest.Config, benches: Sequence[Bench]) -> None:
    """In a worker with tests of ours: let the controller know which are benches, and run them as it says."""
    if not say(config, "ours", True):
        return
    say(config, "benches", {bench.nodeid: (bench.level, bench.block) for bench in benches})
    known = {bench.nodeid: bench for bench in benches}
    hooks = WorkerHooks(config, known)
    config.pluginmanager.register(hooks, _WORKER)
    config.pluginmanager.register(_Followers(hooks, known), f"{_WORKER}-followers")


class ToController:
    """In a worker: what it measures goes to the controller as it happens."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def rows(self, text: bytes) -> None:
        say(self._config, "rows", text)

    def header(self, text: bytes) -> None:
        say(self._config, "header", text)


def say(config: pytest.Config, subject: str, what: Any) -> bool:
    """The worker's side: tell the controller. False without one.

    It arrives before the test reports that are sent after it, and also when the worker has no report left to send.
    """
    channel = getattr(config, "workerinput", {}).get(CHANNEL)
    if channel is None:
        return False
    with suppress(OSError):  # the controller is gone, and with it everybody who could read this
        channel.send((config.workerinput["workerid"], subject, what))  # type: ignore[attr-defined]
    return True
