"""Deadlines of ours around every call into a provider, whatever the adapter does.

Three lines of defence. A call that is still running at its deadline is cancelled. One that swallows the
cancellation is abandoned by the supervisor of its lane (``block.py``). One that blocks the event loop is
interrupted by a signal (``watchdog.py``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from ..clock import NS_PER_S, now_ns
from ..errors import OperationTimeout, SandboxError, Unsupported
from ..model import Capabilities, ExecResult, Output, Owner, PauseKind, SandboxRef, SandboxSpec
from ..providers.protocol import OneShot, Pausable, Provider, Sandbox, Timings
from .watchdog import LoopBlocked

__all__ = ["GRACE_S", "GuardedProvider", "GuardedSandbox", "Pulse", "bounded", "forget"]

GRACE_S = 0.1
"""How long after its deadline an adapter may take to report the time-out itself, in its better words."""

_DESTROYS = 16
"""How many destroys run at once at the end."""

_LONGEST_NAME = 60

T = TypeVar("T")


class Pulse:
    """When a lane must next show a sign of life; the supervisor and the watchdog read it.

    ``expires`` counts in ``time.monotonic`` (the event loop's clock), or is None while the lane waits for others.
    ``tried`` is the call into the provider that is under way, if one is.
    """

    __slots__ = ("expires", "rest", "timeout_s", "tried", "watch")

    def __init__(
        self,
        timeout_s: float,
        watch: Callable[[float], None] | None = None,
        rest: Callable[[], None] | None = None,
    ) -> None:
        """``watch`` is told when the loop must be free; ``rest``, outside of blocks, that no call is under way."""
        self.timeout_s = timeout_s
        self.watch = watch
        self.rest = rest
        self.tried = ""
        self.expires: float | None = None
        self.beat()

    def beat(self, deadline_s: float | None = None) -> None:
        self.expires = time.monotonic() + (self.timeout_s if deadline_s is None else deadline_s) + 2 * GRACE_S
        if self.watch is not None:
            self.watch(self.expires)

    def hold(self) -> None:
        self.expires = None

    def returned(self) -> None:
        """A call into the provider is over."""
        self.tried = ""
        if self.rest is None:
            self.beat()
        else:
            self.hold()
            self.rest()

    def is_late(self, at: float) -> bool:
        return self.expires is not None and self.expires <= at


class _Guard:
    def __init__(self, pulse: Pulse, timeout_s: float) -> None:
        self.pulse = pulse
        self._timeout_s = timeout_s
        self.over = False

    async def within(self, tried: str, sandbox: str, call: Awaitable[T], deadline_s: float | None = None) -> T:
        if self.over:
            if isinstance(call, Coroutine):
                call.close()
            raise asyncio.CancelledError(f"{tried} after the end of the lane")
        limit = self._timeout_s if deadline_s is None else deadline_s
        self.pulse.tried = tried
        self.pulse.beat(limit)
        started = now_ns()
        try:
            async with asyncio.timeout(limit + GRACE_S):
                result = await call
            # A call that blocked the loop, or swallowed its cancellation, comes back as if nothing had been.
            if now_ns() - started <= (limit + GRACE_S) * NS_PER_S:
                return result
            said = "the adapter returned after the deadline all the same"
        except TimeoutError as error:
            said = str(error)
        except LoopBlocked:
            said = "the adapter blocked the event loop"
        finally:
            self.pulse.returned()
        raise OperationTimeout(
            tried,
            sandbox=sandbox,
            after_s=(now_ns() - started) / NS_PER_S,
            said=said,
            cure=f"the deadline was {limit:g} s; --sandbox-timeout sets it",
        )


class GuardedSandbox:
    """A provider's sandbox with our deadline around each call. The protocol's methods; ``deadline_s`` is optional."""

    def __init__(self, inner: Sandbox, guard: _Guard, timeout_s: float) -> None:
        self._inner = inner
        self._guard = guard
        self._timeout_s = timeout_s
        self.paused = False

    @property
    def ref(self) -> SandboxRef:
        return self._inner.ref

    @property
    def id(self) -> str:
        return self._inner.ref.id

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
        return {name: (span[0], span[1]) for name, span in self._inner.phases().items() if _is_phase(name, span)}

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
                await close()

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


class GuardedProvider:
    """A provider with our deadline around each call, and the list of what was made through it and still exists."""

    def __init__(self, inner: Provider, *, owner: Owner, spec: SandboxSpec, timeout_s: float, pulse: Pulse) -> None:
        self._inner = inner
        self._owner = owner
        self._guard = _Guard(pulse, timeout_s)
        self.timeout_s = timeout_s
        self.spec = spec
        self.live: dict[str, SandboxRef] = {}

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def capabilities(self) -> Capabilities:
        return self._inner.capabilities

    @property
    def unguarded(self) -> Provider:
        """The provider's own object, for what the protocol does not have."""
        return self._inner

    async def create(self, spec: SandboxSpec | None = None, *, deadline_s: float | None = None) -> GuardedSandbox:
        limit = self.timeout_s if deadline_s is None else deadline_s

        async def make() -> Sandbox:
            made = await self._inner.create(self.spec if spec is None else spec, owner=self._owner, deadline_s=limit)
            await self._keep(made.ref)
            return made

        made = await self._guard.within("create", "", make(), limit)
        return GuardedSandbox(made, self._guard, self.timeout_s)

    async def _keep(self, ref: SandboxRef) -> None:
        """Book what was made, before anything can go wrong with the call that made it."""
        if self._guard.over:
            # It comes after the end: nobody else knows of it.
            await self._inner.destroy(ref, deadline_s=self.timeout_s)
            raise asyncio.CancelledError(f"{ref.id} came after the end of the lane")
        self.live[ref.id] = ref

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
        if self.capabilities.one_shot and isinstance(one_shot, OneShot):

            async def run() -> tuple[ExecResult, SandboxRef]:
                result, ref = await one_shot.run_once(spec, argv, stdin=stdin, owner=self._owner, deadline_s=limit)
                await self._keep(ref)
                return result, ref

            return await self._guard.within(f"run_once {list(argv)!r}", "", run(), limit)
        sandbox = await self.create(spec, deadline_s=limit)
        return await sandbox.exec(argv, stdin=stdin, deadline_s=limit), sandbox.ref

    async def destroy(self, sandbox: GuardedSandbox | SandboxRef, *, deadline_s: float | None = None) -> None:
        limit = self.timeout_s if deadline_s is None else deadline_s
        ref = sandbox if isinstance(sandbox, SandboxRef) else sandbox.ref
        await self._guard.within("destroy", ref.id, self._inner.destroy(ref, deadline_s=limit), limit)
        self.live.pop(ref.id, None)

    async def owned(self, run_id: str | None = None) -> Sequence[SandboxRef]:
        return await self._guard.within("owned", "", self._inner.owned(run_id))

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
                guard = _Guard(self._guard.pulse, self.timeout_s)
                call = guard.within("destroy", ref.id, self._inner.destroy(ref, deadline_s=self.timeout_s))
                try:
                    await bounded("destroy", call, self.timeout_s + 2 * GRACE_S)
                except SandboxError as error:
                    return str(error)
                except Exception as error:
                    return f"destroy on {ref.id} raised {type(error).__name__}: {error}"
                self.live.pop(ref.id, None)
                return ""

        refs = list(self.live.values())
        reasons = await asyncio.gather(*map(destroy, refs))
        return [(ref, reason) for ref, reason in zip(refs, reasons, strict=True) if reason]


async def bounded(tried: str, call: Coroutine[Any, Any, T], limit_s: float) -> T:
    """Wait for a call from outside of it, so that one that swallows its cancellation can be left behind.

    ``OperationTimeout`` after ``limit_s`` seconds. Costs a task, so it is not for timed regions.
    """
    started = now_ns()
    task = asyncio.ensure_future(call)
    try:
        await asyncio.wait({task}, timeout=limit_s)
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=GRACE_S)
    finally:
        if not task.done():
            task.cancel()
            forget(task)
    said = "" if task.done() else "the adapter did not stop when it was cancelled"
    if task.done() and not task.cancelled():
        try:
            return task.result()
        except LoopBlocked:
            said = "the adapter blocked the event loop"
    raise OperationTimeout(
        tried,
        after_s=(now_ns() - started) / NS_PER_S,
        said=said,
        cure=f"it had {limit_s:.3g} s",
    )


def forget(task: asyncio.Task[Any]) -> None:
    """Leave a task behind that does not stop: neither the end of the loop nor a log waits for it or speaks of it."""
    asyncio._unregister_task(task)  # or closing the loop waits for it, forever perhaps
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    task.add_done_callback(_silence)


def _silence(task: asyncio.Task[Any]) -> None:
    """A task that ends after all must not print "exception was never retrieved"."""
    if not task.cancelled():
        task.exception()


def _is_phase(name: object, span: object) -> bool:
    if not (isinstance(name, str) and name.isprintable() and 0 < len(name) <= _LONGEST_NAME):
        return False
    if not (isinstance(span, tuple | list) and len(span) == 2 and all(type(at) is int for at in span)):
        return False
    return bool(0 <= span[0] <= span[1] < 1 << 63)


def describe(error: BaseException) -> str:
    """An error as one line for records: the project's own say it all, foreign ones get their type in front."""
    text = str(error) if isinstance(error, SandboxError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())[:2000].encode(errors="backslashreplace").decode()


def outcome(error: BaseException) -> str:
    """The outcome that a sample gets for an error."""
    if isinstance(error, SandboxError):
        return error.outcome
    return "timeout" if isinstance(error, TimeoutError | LoopBlocked) else "failed"
