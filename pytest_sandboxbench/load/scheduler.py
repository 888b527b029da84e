"""How tests are dealt out to xdist's workers: ordinary ones by xdist's own scheduler, benches to all, after those.

A worker starts a test only when it holds the next one, or knows that there is none: so each gets all benches at once,
and the end behind them. Who drives lanes of which is the coordinator's to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .coordinator import Coordinator

__all__ = ["Scheduler"]


class Scheduler:
    """xdist's protocol of a scheduler. Without benches in the collection all goes to its own, untouched.

    ``usual`` makes xdist's own. ``decide`` is told once what was collected, and returns the coordinator of the benches
    in it (None: xdist's own scheduler runs), or raises ``UsageError``. ``lost`` is told that a worker is gone, and
    returns the bench that it led, or nothing.
    """

    def __init__(
        self,
        usual: Callable[[], Any],
        decide: Callable[[Sequence[str]], Coordinator | None],
        lost: Callable[[Any], str],
    ) -> None:
        self._usual = usual
        self._decide = decide
        self._lost = lost
        self._first = usual()  # collects, and decides when that is complete
        self._gangs: _Gangs | None = None
        self._collections: dict[Any, list[str]] = {}
        self._decided = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gangs or self._first, name)

    # xdist names its scheduler by this, and so does who asks with ``isinstance``.
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._first)

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        if not self._decided:
            self._collections[node] = list(collection)
        self.__getattr__("add_node_collection")(node, collection)

    def remove_node(self, node: Any) -> str | None:
        self._collections.pop(node, None)
        crashed: str | None = self.__getattr__("remove_node")(node)
        return crashed

    def schedule(self) -> None:
        if not self._decided:
            self._decided = True
            collections, self._collections = self._collections, {}
            collected = next(iter(collections.values()))
            # Workers that collected different tests are xdist's to tell.
            same = all(collection == collected for collection in collections.values())
            coordinator = self._decide(collected) if same else None
            if coordinator is not None:
                self._gangs = _Gangs(self._usual, coordinator, self._lost, collected)
                for node in self._first.nodes:
                    self._gangs.add_node(node)
                for node, collection in collections.items():
                    self._gangs.add_node_collection(node, collection)
        self.__getattr__("schedule")()


class _Ordinary:
    """A worker as xdist's scheduler of the ordinary tests sees it: it holds only those, and its end is not the end."""

    def __init__(self, node: Any, indices: Sequence[int], over: Callable[[], None]) -> None:
        self._node = node
        self._indices = indices
        self._over = over
        self._is_over = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)

    @property
    def shutting_down(self) -> bool:
        return self._is_over or bool(self._node.shutting_down)

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        self._node.send_runtest_some([self._indices[i] for i in indices])

    def send_runtest_all(self) -> None:
        self.send_runtest_some(range(len(self._indices)))

    def send_steal(self, indices: Sequence[int]) -> None:
        self._node.send_steal([self._indices[i] for i in indices])

    def shutdown(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._over()


class _Gangs:
    """The scheduler of a collection with benches."""

    def __init__(
        self,
        usual: Callable[[], Any],
        coordinator: Coordinator,
        lost: Callable[[Any], str],
        collected: Sequence[str],
    ) -> None:
        self._coordinator = coordinator
        self._lost = lost
        self._collected = collected
        benches = {bench.nodeid for bench in coordinator.benches}
        self._benches = {nodeid: at for at, nodeid in enumerate(collected) if nodeid in benches}
        others = [at for at, nodeid in enumerate(collected) if nodeid not in self._benches]
        self._others = others
        self._place = {at: place for place, at in enumerate(others)}
        self._inner: Any = usual() if others else None
        self._ordinary: dict[Any, _Ordinary] = {}
        self._pending: dict[Any, list[int]] = {}

    # -- what xdist asks

    @property
    def nodes(self) -> list[Any]:
        return list(self._pending)

    @property
    def collection_is_completed(self) -> bool:
        return True

    @property
    def has_pending(self) -> bool:
        return any(self._pending.values()) or (self._inner is not None and bool(self._inner.has_pending))

    @property
    def tests_finished(self) -> bool:
        """Each worker gets its end with its benches, so xdist never has to send it; but one may still be to come."""
        return bool(self._pending) and not self.has_pending and not self._coordinator.unrun

    # -- what xdist tells

    def add_node(self, node: Any) -> None:
        self._pending[node] = []
        self._coordinator.expect(node.gateway.id)
        if self._inner is not None and not (self._ordinary and self._inner.tests_finished):
            self._ordinary[node] = _Ordinary(node, self._others, lambda: self._send_benches(node))
            self._inner.add_node(self._ordinary[node])

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        if list(collection) != self._collected:  # a replacement that sees other tests than those before
            node.shutdown()
        elif node in self._ordinary:
            self._inner.add_node_collection(self._ordinary[node], [self._collected[at] for at in self._others])
        else:
            self._send_benches(node)

    def schedule(self) -> None:
        if self._inner is not None and self._ordinary:
            self._inner.schedule()
            self._end_ordinary()

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        if item_index in self._place:
            self._inner.mark_test_complete(self._ordinary[node], self._place[item_index], duration)
            self._end_ordinary()
        else:
            self._pending[node].remove(item_index)

    def mark_test_pending(self, item: str) -> None:
        self._inner.mark_test_pending(item)

    def remove_pending_tests_from_node(self, node: Any, indices: Sequence[int]) -> None:
        self._inner.remove_pending_tests_from_node(self._ordinary[node], [self._place[at] for at in indices])
        self._end_ordinary()

    def remove_node(self, node: Any) -> str | None:
        self._pending.pop(node)
        crashed = None
        ordinary = self._ordinary.pop(node, None)
        if ordinary is not None and ordinary in self._inner.nodes:
            crashed = self._inner.remove_node(ordinary)
            self._end_ordinary()
        led = self._lost(node)  # in any case: whoever is left waits for it no more
        return crashed or led or None

    # -- phases

    def _end_ordinary(self) -> None:
        """xdist itself ends the workers once nothing is left to give them."""
        if self._inner.tests_finished:
            for ordinary in list(self._ordinary.values()):
                ordinary.shutdown()

    def _send_benches(self, node: Any) -> None:
        if node not in self._pending:
            return
        indices = [self._benches[nodeid] for nodeid in self._coordinator.join(node.gateway.id)]
        self._pending[node] = indices
        if indices:
            node.send_runtest_some(indices)
        node.shutdown()
