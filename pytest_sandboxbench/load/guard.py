"""A provider and its sandboxes as the rest of the project sees them: with deadlines, and booked in the ledger."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Protocol, cast, runtime_checkable

from ..errors import CreateFailed, Rejected, SandboxError, Unsupported
from ..ledger import Ledger
from ..model import Capabilities, ExecResult, Output, Owner, PauseKind, SandboxRef, SandboxSpec
from ..providers.limits import Limits
from ..providers.protocol import OneShot, Pausable, Provider, Sandbox, Timings
from .admission import Admission, Place
from .deadlines import GRACE_S, Guard, Pulse, bounded, describe, tamed

__all__ = ["GuardedProvider", "GuardedSandbox", "Pulse"]

_DESTROYS = 16
"""How many destroys run at once at the end."""

_LONGEST_NAME = 60


class GuardedSandbox:
    """A provider's sandbox with our deadline around each call. The protocol's methods; ``deadline_s`` is optional."""

    def __init__(self, inner: Sandbox, guard: Guard, timeout_s: float, *, limited: bool = False) -> None:
        """``limited``: a phase called ``queue`` is the wait at our limits, and the provider's own has another name."""
        self._inner = inner
        self._guard = guard
        self._timeout_s = timeout_s
        self._limited = limited
        self.paused = False

    @property
    def ref(self) -> SandboxRef:
        with tamed("ref"):
            return self._inner.ref

    @property
    def id(self) -> str:
        return self.ref.id

    @property
    def path(self) -> str:
        return self._inner.path

    @property
    def unenforced(self) -> frozenset[str]:
        return self._inner.unenforced

    @property
    def unguarded(self) -> Sandbox:
        """The provider's own object, for what the protocol does not have."""
        return self._inner

    def phases(self) -> Mapping[str, tuple[int, int]]:
        """Phases that the provider itself reports for the operation that just ended; empty where it reports none.

        What is no phase (not a name, not two instants in order) is left out.
        """
        if not isinstance(self._inner, Timings):
            return {}
        with tamed("phases"):
            found = {name: (span[0], span[1]) for name, span in self._inner.phases().items() if _is_phase(name, span)}
        if self._limited and "queue" in found:
            found["provider_queue"] = found.pop("queue")
        return found

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        deadline_s: float | None = None,
    ) -> ExecResult:
        limit = self._timeout_s if deadline_s is None else deadline_s
        call = self._inner.exec(argv, stdin=stdin, cwd=cwd, env=env, deadline_s=limit)
        return await self._guard.within(f"exec {list(argv)!r}", self.id, call, limit)

    async def stream(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        deadline_s: float | None = None,
    ) -> AsyncIterator[Output]:
        limit = self._timeout_s if deadline_s is None else deadline_s
        ends = time.monotonic() + limit
        pieces = self._inner.stream(argv, stdin=stdin, cwd=cwd, env=env, deadline_s=limit)
        try:
            while True:
                try:
                    left = max(0.0, ends - time.monotonic())
                    piece = await self._guard.within(f"stream {list(argv)!r}", self.id, anext(pieces), left)
                except StopAsyncIteration:
                    return
                yield piece
        finally:
            close = getattr(pieces, "aclose", None)
            if close is not None:
                await bounded("closing a stream", close(), self._timeout_s)

    async def write_file(self, path: str, data: bytes, *, deadline_s: float | None = None) -> None:
        limit = self._timeout_s if deadline_s is None else deadline_s
        await self._guard.within(
            f"write_file {path}", self.id, self._inner.write_file(path, data, deadline_s=limit), limit
        )

    async def read_file(self, path: str, *, deadline_s: float | None = None) -> bytes:
        limit = self._timeout_s if deadline_s is None else deadline_s
        return await self._guard.within(
            f"read_file {path}", self.id, self._inner.read_file(path, deadline_s=limit), limit
        )

    async def pause(self, *, kind: PauseKind, deadline_s: float | None = None) -> None:
        limit = self._timeout_s if deadline_s is None else deadline_s
        await self._guard.within("pause", self.id, self._pausable("pause").pause(kind=kind, deadline_s=limit), limit)
        self.paused = True

    async def resume(self, *, deadline_s: float | None = None) -> None:
        limit = self._timeout_s if deadline_s is None else deadline_s
        await self._guard.within("resume", self.id, self._pausable("resume").resume(deadline_s=limit), limit)
        self.paused = False

    def _pausable(self, tried: str) -> Pausable:
        if not isinstance(self._inner, Pausable):
            raise Unsupported(tried, sandbox=self.id, said=f"{self._inner.ref.provider} cannot pause")
        return self._inner


@runtime_checkable
class Queueing(Protocol):
    """A *provider* that lets creates wait for room under its ``max_live``, and says how many."""

    @property
    def max_queued(self) -> int: ...


class GuardedProvider:
    """A provider with our deadline around each call, and the list of what was made through it and still exists.

    ``on_wait`` is told, when it is over, of a wait for room under our limits: start and end in nanoseconds.
    """

    def __init__(
        self,
        inner: Provider,
        *,
        owner: Owner,
        spec: SandboxSpec,
        timeout_s: float,
        pulse: Pulse,
        ledger: Ledger | None = None,
        booked: int = 0,
        admission: Admission | None = None,
    ) -> None:
        """``booked`` creates are in the ledger already; whoever booked them lets it settle, too.

        ``admission`` keeps our limits, where this instance has any.
        """
        self._inner = inner
        self._owner = owner
        self._ledger = ledger
        self._booked = booked
        self._settles = not booked
        limited = admission is not None and (admission.most is not None or admission.limits.get(inner.name))
        self._admission = admission if limited else None
        self._guard = Guard(pulse, timeout_s)
        self.timeout_s = timeout_s
        self.spec = spec
        self.live: dict[str, SandboxRef] = {}
        self.on_wait: Callable[[int, int], None] = lambda start_ns, end_ns: None

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def capabilities(self) -> Capabilities:
        with tamed("capabilities"):
            return self._inner.capabilities

    @property
    def unguarded(self) -> Provider:
        """The provider's own object, for what the protocol does not have."""
        return self._inner

    @property
    def limits(self) -> Limits:
        """Those of this instance that we keep ourselves."""
        return Limits() if self._admission is None else self._admission.limits.get(self.name, Limits())

    @property
    def capacity(self) -> int | None:
        """How many creates are accepted of those that come at once, waiting ones included; None where nobody says."""
        ours = self.limits.capacity
        theirs = self.capabilities.max_live
        with tamed("max_queued"):
            if theirs is not None and isinstance(self._inner, Queueing):
                theirs += self._inner.max_queued
        known = [capacity for capacity in (ours, theirs) if capacity is not None]
        return min(known) if known else None

    async def create(self, spec: SandboxSpec | None = None, *, deadline_s: float | None = None) -> GuardedSandbox:
        limit = self.timeout_s if deadline_s is None else deadline_s
        place = await self._enter("create")

        async def make() -> Sandbox:
            made = await self._inner.create(self.spec if spec is None else spec, owner=self._owner, deadline_s=limit)
            await self._keep(made.ref, place)
            return made

        with place or nullcontext(), self._booking("create"):
            made = await self._guard.within("create", "", make(), limit)
        return GuardedSandbox(made, self._guard, self.timeout_s, limited=place is not None)

    async def _enter(self, tried: str) -> Place | None:
        """Room under our limits; waiting for it is no call to the provider. ``TurnedAway`` where there will be none."""
        if self._admission is None or self._guard.over:
            return None
        pulse = self._guard.pulse
        pulse.hold()
        try:
            place = await self._admission.enter(self.name, tried)
        finally:
            pulse.returned()
        if place.waited is not None:
            self.on_wait(*place.waited)
        if self._guard.over:
            place.free()
        return place

    async def _keep(self, ref: SandboxRef, place: Place | None) -> None:
        """Book what was made, before anything can go wrong with the call that made it."""
        if place is not None:
            place.keep(ref)
        if self._ledger is not None:
            self._ledger.made(ref)
        if self._guard.over:
            # It comes after the end: nobody else destroys it.
            await self._inner.destroy(ref, deadline_s=self.timeout_s)
            self._gone(ref)
            raise asyncio.CancelledError(f"{ref.id} came after the end of the lane")
        self.live[ref.id] = ref

    @contextmanager
    def _booking(self, tried: str) -> Iterator[None]:
        """The intent is in the ledger before the call, and what came of it after."""
        if self._ledger is None or self._guard.over:
            yield
            return
        if self._booked:
            self._booked -= 1
        else:
            try:
                self._ledger.making(self.name)
            except OSError as error:
                cure = "without it nothing would lead to a sandbox that a kill leaves"
                raise CreateFailed(tried, said=str(error), cure=cure) from None
        try:
            yield
        except (Rejected, CreateFailed, Unsupported):
            self._ledger.over(self.name)
            raise
        finally:
            if self._settles:
                self._ledger.settle()

    def _gone(self, ref: SandboxRef) -> None:
        self.live.pop(ref.id, None)
        if self._admission is not None:
            self._admission.gone(ref)
        if self._ledger is not None:
            self._ledger.gone(ref)
            if self._settles:
                self._ledger.settle()

    def unbook(self) -> None:
        """Creates that were booked and never asked for."""
        if self._ledger is not None and self._booked:
            self._ledger.over(self.name, self._booked)
            self._booked = 0

    async def run_once(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        spec: SandboxSpec | None = None,
        deadline_s: float | None = None,
    ) -> tuple[ExecResult, SandboxRef]:
        """One command in a new sandbox: the provider's own way where it has one, else create and exec."""
        limit = self.timeout_s if deadline_s is None else deadline_s
        spec = self.spec if spec is None else spec
        one_shot = self._inner
        if self.capabilities.one_shot:
            if not isinstance(one_shot, OneShot):
                raise Unsupported("run_once", said=f"{self.name} declares one_shot, and has no method run_once")
            place = await self._enter("run_once")

            async def run() -> tuple[ExecResult, SandboxRef]:
                result, ref = await one_shot.run_once(spec, argv, stdin=stdin, owner=self._owner, deadline_s=limit)
                await self._keep(ref, place)
                return result, ref

            with place or nullcontext(), self._booking("run_once"):
                return await self._guard.within(f"run_once {list(argv)!r}", "", run(), limit)
        sandbox = await self.create(spec, deadline_s=limit)
        return await sandbox.exec(argv, stdin=stdin, deadline_s=limit), sandbox.ref

    async def destroy(self, sandbox: GuardedSandbox | SandboxRef, *, deadline_s: float | None = None) -> None:
        limit = self.timeout_s if deadline_s is None else deadline_s
        ref = sandbox if isinstance(sandbox, SandboxRef) else sandbox.ref
        await self._guard.within("destroy", ref.id, self._inner.destroy(ref, deadline_s=limit), limit)
        self._gone(ref)

    async def owned(self, run_id: str | None = None) -> Sequence[SandboxRef]:
        """What exists; also after the end, and whatever the adapter does. ``SandboxError`` for what is no such list."""
        guard = Guard(self._guard.pulse, self.timeout_s)
        call = guard.within("owned", "", self._inner.owned(run_id))
        found = await bounded("owned", call, self.timeout_s + 2 * GRACE_S)
        if not isinstance(found, list | tuple) or not all(map(_is_ref, found)):
            cure = "a list of SandboxRef with texts for id and details is asked for: report it to its author"
            raise SandboxError("owned", said=f"it returned {found!r:.200}", cure=cure)
        return found

    async def round_trip(self) -> None:
        await self._guard.within("round_trip", "", self._inner.round_trip())

    async def destroy_all(self) -> list[tuple[SandboxRef, str]]:
        """Destroy what is still there; returns what could not be, with the reason. No provider's fault is raised.

        It is the end: no call that is still under way, or comes later, makes anything that stays.
        """
        self._guard.over = True
        few = asyncio.Semaphore(_DESTROYS)

        async def destroy(ref: SandboxRef) -> str:
            async with few:
                guard = Guard(self._guard.pulse, self.timeout_s)
                call = guard.within("destroy", ref.id, self._inner.destroy(ref, deadline_s=self.timeout_s))
                try:
                    await bounded("destroy", call, self.timeout_s + 2 * GRACE_S)
                except Exception as error:
                    told = describe(error)
                    return told if isinstance(error, SandboxError) else f"destroy on {ref.id} raised {told}"
                self._gone(ref)
                return ""

        refs = list(self.live.values())
        reasons = await asyncio.gather(*map(destroy, refs))
        return [(ref, reason) for ref, reason in zip(refs, reasons, strict=True) if reason]


def _is_ref(found: object) -> bool:
    if not isinstance(found, SandboxRef):
        return False
    id_, details = cast("object", found.id), cast("object", found.details)
    if not (isinstance(id_, str) and isinstance(details, Mapping)):
        return False
    return all(isinstance(text, str) for pair in details.items() for text in pair)


def _is_phase(name: object, span: object) -> bool:
    if not (isinstance(name, str) and name.isprintable() and 0 < len(name) <= _LONGEST_NAME):
        return False
    if not (isinstance(span, tuple | list) and len(span) == 2 and all(type(at) is int for at in span)):
        return False
    return bool(0 <= span[0] <= span[1] < 1 << 63)
