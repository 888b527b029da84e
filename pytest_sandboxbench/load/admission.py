"""The side of those who create: asks for room under the limits, books the wait for it, knows which sandboxes count."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from itertools import count
from types import TracebackType
from typing import Literal

from ..clock import NS_PER_S, now_ns
from ..errors import CreateFailed, Rejected, Unsupported
from ..model import SandboxRef
from ..providers.limits import Limits
from .desk import Desk

__all__ = ["Admission", "Place", "TurnedAway"]


class TurnedAway(Rejected):
    """A rejection by us: the provider was never asked. ``waited`` is from the question to the no."""

    def __init__(
        self, tried: str, limit: Literal["queue", "rate", "quota"], waited: tuple[int, int], said: str, cure: str
    ) -> None:
        super().__init__(tried, limit, after_s=(waited[1] - waited[0]) / NS_PER_S, said=said, cure=cure)
        self.waited = waited


class Place:
    """Room for one sandbox, from before its create until it is gone. A context around the call that makes it.

    ``waited`` is (start_ns, end_ns) of the wait for it, None without one.
    """

    __slots__ = ("_admission", "is_open", "provider", "waited")

    def __init__(self, admission: Admission, provider: str, waited: tuple[int, int] | None) -> None:
        self._admission = admission
        self.is_open = True
        self.provider = provider
        self.waited = waited

    def __enter__(self) -> Place:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Rejected | CreateFailed | Unsupported):
            self.free()
        elif self.is_open:
            self._admission.unsure[self.provider].append(self)

    def keep(self, ref: SandboxRef) -> None:
        """A sandbox came of it: it leaves when that is gone."""
        if self.is_open:
            self.is_open = False
            self._admission.held[ref.provider, ref.id] = self.provider

    def free(self) -> None:
        """Nothing came of it."""
        if self.is_open:
            self.is_open = False
            self._admission.leave(self.provider)


class Admission:
    """The limits as seen by those who create. ``limits`` are those of the instances that have any.

    A create that may have made something, and does not say so, counts until :meth:`cleared`: ``unsure``. ``held`` are
    the sandboxes that count, by provider and id.
    """

    def __init__(self, desk: Desk, limits: Mapping[str, Limits], patience_s: float, most: int | None = None) -> None:
        """``most``: how many creates there may be in all; ``used_up``: one more than those was asked for."""
        self.most = most
        self.used_up = False
        self._desk = desk
        self._patience_s = patience_s
        self._ids = count()
        self.limits = limits
        self.held: dict[tuple[str, str], str] = {}
        self.unsure: defaultdict[str, list[Place]] = defaultdict(list)

    async def enter(self, provider: str, tried: str) -> Place:
        """Wait for room and for the rate. ``TurnedAway`` where too many wait already, or it lasted too long."""
        id, started = next(self._ids), now_ns()
        try:
            async with asyncio.timeout(self._patience_s):
                verdict = await self._desk.ask(provider, id)
        except TimeoutError:
            self._desk.forget(id)
            raise self._turned_away(
                provider, tried, "queue", started, f"no room within {self._patience_s:g} s"
            ) from None
        except BaseException:
            self._desk.forget(id)
            raise
        if verdict.reason == "total":
            self.used_up = True
            said = f"this run may make {self.most} sandboxes in all (--sandbox-max-sandboxes), and has made them"
            raise TurnedAway(tried, "quota", (started, now_ns()), said, "nothing more is made in this run")
        limits = self.limits.get(provider, Limits())
        if verdict.reason == "queue":
            raise self._turned_away(provider, tried, "queue", started, f"max_queued = {limits.max_queued} wait already")
        if verdict.reason:
            said = f"its turn is more than {self._patience_s:g} s away"
            raise self._turned_away(provider, tried, "rate", started, said)
        waits = not verdict.at_once
        try:
            while (left_ns := verdict.begin_ns - now_ns()) > 0:
                waits = True
                await asyncio.sleep(left_ns / NS_PER_S)
        except BaseException:
            self.leave(provider)
            raise
        return Place(self, provider, (started, now_ns()) if waits else None)

    def leave(self, provider: str) -> None:
        self._desk.leave(provider)

    def gone(self, ref: SandboxRef) -> None:
        """A sandbox is destroyed; whoever made it."""
        provider = self.held.pop((ref.provider, ref.id), None)
        if provider is not None:
            self.leave(provider)

    def cleared(self, provider: str) -> None:
        """Somebody looked: nothing is there any more of creates whose outcome was not known."""
        for place in self.unsure.pop(provider, ()):
            place.free()

    def _turned_away(
        self, provider: str, tried: str, limit: Literal["queue", "rate"], started: int, why: str
    ) -> TurnedAway:
        limits = ", ".join(f"{name} = {value}" for name, value in self.limits[provider].facts().items())
        unsure = sum(place.is_open for place in self.unsure.get(provider, ()))
        if unsure:
            why += f", {unsure} of the places are those of creates of which nobody knows what came"
        cure = "the provider was not asked: raise the limit, or lower the level"
        return TurnedAway(tried, limit, (started, now_ns()), f"this instance has {limits} here; {why}", cure)
