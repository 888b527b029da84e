"""All that knows xdist. With ``-n`` the benches run on one worker, one after another, and nothing else beside them.

A collection without benches is left to xdist's own scheduler, whatever ``--dist`` says. Which tests are benches only a
worker knows: it says so over a channel that was handed to it at its start, before it reports its collection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

__all__ = ["ControllerHooks", "announce"]

_CHANNEL = "sandboxbench_channel"


class ControllerHooks:
    """The controller's side: shares the run's identity, learns which tests are benches, chooses the scheduler.

    ``shared`` gives what all workers must know; ``collected`` is told, once, whether there are benches, and may refuse
    the run with a ``UsageError``.
    """

    def __init__(
        self, config: pytest.Config, shared: Callable[[], Mapping[str, str]], collected: Callable[[bool], None]
    ) -> None:
        self._config = config
        self._shared = shared
        self._heard = _Heard(collected)

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
    """What the workers said of their collections."""

    def __init__(self, collected: Callable[[bool], None]) -> None:
        self._collected = collected
        self.benches: set[str] = set()
        self.mistakes: list[str] = []

    def hear(self, said: tuple[list[str], str]) -> None:
        benches, mistake = said
        self.benches.update(benches)
        if mistake:
            self.mistakes.append(mistake)

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

        scheduler = OneWorker(self._config, self._log)
        for node, collection in self._collections.items():
            scheduler.add_node(node)
            scheduler.add_node_collection(node, collection)
        return scheduler


def announce(config: pytest.Config, benches: list[str], mistake: str = "") -> bool:
    """The worker's side: tell the controller which tests are benches, or why they cannot run. True where there is one."""
    channel = getattr(config, "workerinput", {}).get(_CHANNEL)
    if channel is not None and (benches or mistake):
        channel.send((benches, mistake))
    return channel is not None
