"""Who may create a sandbox, and when: the limits of an instance, kept over all processes of a run.

``Slots`` decides, and knows no event loop. One process asks it at a ``LocalDesk``; with several, one of them has a
``SharedDesk`` and the others a ``RemoteDesk`` each, over whatever carries their messages:

``("ask", PROVIDER, ID)``                            a create; the ID is the asker's own
``("forget", ID)``                                   it does not wait any more
``("leave", PROVIDER)``                              a sandbox is gone, or a create made none
``("verdict", PROVIDER, ID, REASON, BEGIN_NS, AT_ONCE)``    the answer
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from ..clock import NS_PER_S, now_ns
from ..providers.limits import Limits

__all__ = ["Desk", "LocalDesk", "RemoteDesk", "SharedDesk", "Slots", "Verdict"]

Asker = tuple[str, int]
"""A process, and the number that it gave to its create."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """``reason`` is empty for yes, or the limit that says no.

    ``begin_ns``  the instant (``CLOCK_MONOTONIC``) from which the create may begin
    ``at_once``   the answer came without any wait
    """

    reason: Literal["", "queue", "rate", "total"] = ""
    begin_ns: int = 0
    at_once: bool = False


class _Slot:
    """One instance: who is in, who waits, and when the last ones began."""

    __slots__ = ("begun", "inside", "limits", "waiting", "window_ns")

    def __init__(self, limits: Limits) -> None:
        rate = limits.create_rate
        burst = 1 if rate is None else max(1, int(rate))
        self.limits = limits
        self.inside = 0
        self.waiting: dict[Asker, int] = {}
        self.begun: deque[int] = deque(maxlen=burst)
        self.window_ns = 0 if rate is None else int(burst / rate * NS_PER_S)

    @property
    def full(self) -> bool:
        return self.limits.max_live is not None and self.inside >= self.limits.max_live

    def admit(self, asked_ns: int, now: int, patience_ns: int) -> Verdict:
        """Let one in that there is room for; no when its turn by the rate is too far away for it."""
        begin = now
        if self.limits.create_rate is not None:
            if len(self.begun) == self.begun.maxlen:
                begin = max(now, self.begun[0] + self.window_ns)
            if begin - asked_ns > patience_ns:
                return Verdict("rate", now)
            self.begun.append(begin)
        self.inside += 1
        return Verdict("", begin)


class Slots:
    """The decisions: first come, first served. Not thread-safe. A provider without limits is always let in.

    Nobody waits for its turn by the rate longer than ``patience_ns``: it is told at once. Whoever waits for room gives
    up by itself. ``most`` is how many creates there may be in all.
    """

    def __init__(self, limits: Mapping[str, Limits], patience_ns: int, most: int | None = None) -> None:
        """``limits`` may still be filled: those of a provider are read when it is first asked for."""
        self._limits = limits
        self._left = math.inf if most is None else most
        self._slots: dict[str, _Slot] = {}
        self._patience_ns = patience_ns

    def ask(self, asker: Asker, provider: str, now: int) -> Verdict | None:
        """The verdict, or None: it waits, and a later ``leave`` returns its verdict."""
        slot = self._slots.get(provider)
        if slot is None:
            slot = self._slots[provider] = _Slot(self._limits.get(provider, Limits()))
        if self._left <= 0:
            return Verdict("total", now)
        if not slot.full:
            return self._admit(slot, now, now)
        if slot.limits.max_queued is not None and len(slot.waiting) >= slot.limits.max_queued:
            return Verdict("queue", now)
        slot.waiting[asker] = now
        return None

    def leave(self, provider: str, now: int) -> list[tuple[Asker, Verdict]]:
        """There is room for one more: the verdicts on those who waited for it."""
        slot = self._slots.get(provider)
        if slot is None or not slot.inside:
            return []
        slot.inside -= 1
        told = []
        while slot.waiting and not slot.full:
            asker = next(iter(slot.waiting))
            told.append((asker, self._admit(slot, slot.waiting.pop(asker), now)))
        return told

    def _admit(self, slot: _Slot, asked_ns: int, now: int) -> Verdict:
        if self._left <= 0:
            return Verdict("total", now)
        verdict = slot.admit(asked_ns, now, self._patience_ns)
        self._left -= not verdict.reason
        return verdict

    def forget(self, asker: Asker) -> None:
        """It does not wait any more. One that has its verdict leaves as everybody does."""
        for slot in self._slots.values():
            slot.waiting.pop(asker, None)

    def lost(self, worker: str) -> None:
        """A process is dead: none of its creates waits any more, and what it made counts until the run ends."""
        for slot in self._slots.values():
            for asker in [asker for asker in slot.waiting if asker[0] == worker]:
                del slot.waiting[asker]


class Desk(Protocol):
    """Where a process asks. All of it is called on the event loop.

    After an ``ask`` that was cancelled comes ``forget``: whatever the answer was to be, it is given back.
    """

    async def ask(self, provider: str, id: int) -> Verdict: ...

    def leave(self, provider: str) -> None: ...

    def forget(self, id: int) -> None: ...


class LocalDesk:
    """The desk of a run in one process."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._asked: dict[int, tuple[str, asyncio.Future[Verdict]]] = {}

    async def ask(self, provider: str, id: int) -> Verdict:
        verdict = self._slots.ask(("", id), provider, now_ns())
        if verdict is not None:
            return Verdict(verdict.reason, verdict.begin_ns, at_once=True)
        return await _waiting(self._asked, provider, id)

    def leave(self, provider: str) -> None:
        free = 1
        while free:
            free -= 1
            for (_, id), verdict in self._slots.leave(provider, now_ns()):
                _, future = self._asked[id]
                if not future.done():
                    future.set_result(verdict)
                elif not verdict.reason:  # cancelled, and its `forget` is still to come
                    free += 1

    def forget(self, id: int) -> None:
        provider, future = self._asked.pop(id, ("", None))
        self._slots.forget(("", id))
        if _has_a_yes(future):
            self.leave(provider)


class RemoteDesk:
    """The desk of one process among several. ``send`` takes a message to the shared one; ``hear`` takes the answers."""

    def __init__(self, send: Callable[[tuple[Any, ...]], None]) -> None:
        self._send = send
        self._asked: dict[int, tuple[str, asyncio.Future[Verdict]]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    async def ask(self, provider: str, id: int) -> Verdict:
        self._loop = asyncio.get_running_loop()
        self._send(("ask", provider, id))
        return await _waiting(self._asked, provider, id)

    def leave(self, provider: str) -> None:
        self._send(("leave", provider))

    def forget(self, id: int) -> None:
        provider, future = self._asked.pop(id, ("", None))
        self._send(("leave", provider) if _has_a_yes(future) else ("forget", id))

    def hear(self, message: tuple[Any, ...]) -> None:
        """Take a verdict in; on any thread."""
        if self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._take, *message[1:])
            except RuntimeError:
                pass  # the loop is closed, and nobody waits

    def _take(self, provider: str, id: int, reason: Any, begin_ns: int, at_once: bool) -> None:
        _, future = self._asked.get(id, ("", None))
        if future is not None and not future.done():
            future.set_result(Verdict(reason, begin_ns, at_once))
        elif not reason:
            self.leave(provider)  # nobody waits for it any more


async def _waiting(asked: dict[int, tuple[str, asyncio.Future[Verdict]]], provider: str, id: int) -> Verdict:
    """Wait for a verdict. Cancelled, it stays among those asked for until it is forgotten."""
    future: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
    asked[id] = (provider, future)
    verdict = await future
    del asked[id]
    return verdict


def _has_a_yes(future: asyncio.Future[Verdict] | None) -> bool:
    return future is not None and future.done() and not future.cancelled() and not future.result().reason


class SharedDesk:
    """The one desk of several processes. ``send(worker, message)`` is called without a lock held, on any thread."""

    def __init__(self, slots: Slots, send: Callable[[str, tuple[Any, ...]], None]) -> None:
        self._slots = slots
        self._send = send
        self._lock = threading.Lock()

    def hear(self, worker: str, message: tuple[Any, ...]) -> None:
        what, *rest = message
        told: list[tuple[str, Asker, Verdict]] = []
        with self._lock:
            if what == "ask":
                provider, id = rest
                verdict = self._slots.ask((worker, id), provider, now_ns())
                if verdict is not None:
                    told.append((provider, (worker, id), replace(verdict, at_once=True)))
            elif what == "forget":
                self._slots.forget((worker, rest[0]))
            else:
                told += [(rest[0], asker, verdict) for asker, verdict in self._slots.leave(rest[0], now_ns())]
        for provider, (asked, id), verdict in told:
            self._send(asked, ("verdict", provider, id, verdict.reason, verdict.begin_ns, verdict.at_once))

    def lost(self, worker: str) -> None:
        """A process is dead."""
        with self._lock:
            self._slots.lost(worker)
