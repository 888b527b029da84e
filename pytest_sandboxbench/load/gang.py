"""All that knows xdist. With ``-n`` the benches run on one worker, one after another, and nothing else beside them.

A collection without benches is left to xdist's own scheduler, whatever ``--dist`` says. Which tests are benches only a
worker knows: it says so over a channel that was handed to it at its start, before it reports its collection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

__all__ = ["ControllerHooks", "say"]

_CHANNEL = "sandboxbench_channel"


class ControllerHooks:
    """The controller's side: shares the run's identity, learns which tests are benches, chooses the scheduler.

    ``shared`` gives what all workers must know; ``collected`` is told, once, whether there are benches, and may refuse
    the run with a ``UsageError``. ``news`` gets the latest that each worker said besides, by the worker's name.
    """

    def __init__(
        self,
        config: pytest.Config,
        shared: Callable[[], Mapping[str, str]],
        collected: Callable[[bool], None],
        news: dict[str, Mapping[str, Any]],
    ) -> None:
        self._config = config
        self._shared = shared
        self._heard = _Heard(collected, news)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["sandboxbench"] = dict(self._shared())
        channel = node.gateway.newchannel()
        node.workerinput[_CHANNEL] = channel
        channel.setcallback(self._heard.hear)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        dsession: Any = config.pluginmanager.get_plugin("dsession")
        usual = dsession.pytest_xdist_make_scheduler(config=config, log=log)
        return _Scheduler(usual, config, log, self._heard)


class _Heard:
    """What the workers said."""

    def __init__(self, collected: Callable[[bool], None], news: dict[str, Mapping[str, Any]]) -> None:
        self._collected = collected
        self._news = news
        self.benches: set[str] = set()
        self.mistakes: list[str] = []

    def hear(self, said: tuple[str, str, Any]) -> None:
        worker, subject, what = said
        if subject == "benches":
            self.benches.update(what)
        elif subject == "mistake":
            self.mistakes.append(what)
        else:
            self._news[worker] = what

    def check(self) -> None:
        """``UsageError`` for what a worker must not raise itself: for xdist that is a crash."""
        if self.mistakes:
            raise pytest.UsageError(self.mistakes[0])
        self._collected(bool(self.benches))


class _Scheduler:
    """xdist's own scheduler until the collection is known; with benches in it, one worker gets all."""

    def __init__(self, usual: Any, config: pytest.Config, log: Any, heard: _Heard) -> None:
        self._inner = usual
        self._config = config
        self._log = log
        self._heard = heard
        self._collections: dict[Any, list[str]] = {}
        self._decided = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def add_node_collection(self, node: Any, collection: list[str]) -> None:
        if not self._decided:
            self._collections[node] = list(collection)
        self._inner.add_node_collection(node, collection)

    def schedule(self) -> None:
        if not self._decided:
            self._decided = True
            self._heard.check()
            if self._heard.benches:
                self._inner = self._alone()
            self._collections = {}
        self._inner.schedule()

    def _alone(self) -> Any:
        from xdist.scheduler import LoadScopeScheduling

        class OneWorker(LoadScopeScheduling):  # type: ignore[misc]
            def _split_scope(self, nodeid: str) -> str:
                return "benches"

            def remove_node(self, node: Any) -> str | None:
                # What was running when the worker ended is not run again, as in xdist's default: it may end the next
                # one, too, and what it makes may cost money.
                groups = self.assigned_work[node].values()
                running = next((name for group in groups for name, done in group.items() if not done), None)
                for group in groups:
                    if running in group:
                        group[running] = True
                super().remove_node(node)
                return running

        scheduler = OneWorker(self._config, self._log)
        for node, collection in self._collections.items():
            scheduler.add_node(node)
            scheduler.add_node_collection(node, collection)
        return scheduler


def say(config: pytest.Config, subject: str, what: Any) -> bool:
    """The worker's side: tell the controller of ``benches``, a ``mistake`` or ``news``. False without a controller.

    It arrives before the test reports that are sent after it, and also when the worker has no report left to send.
    """
    channel = getattr(config, "workerinput", {}).get(_CHANNEL)
    if channel is None:
        return False
    try:
        channel.send((config.workerinput["workerid"], subject, what))  # type: ignore[attr-defined]
    except OSError:
        pass  # the controller is gone, and with it everybody who could read this
    return True
