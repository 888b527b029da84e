"""Deadlines of ours around every call into a provider, whatever the adapter does.

Three lines of defence. A call that is still running at its deadline is cancelled. One that swallows the
cancellation is abandoned by the supervisor of its lane (``block.py``). One that blocks the event loop is
interrupted by a signal (``watchdog.py``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from ..clock import NS_PER_S, now_ns
from ..errors import OperationTimeout, SandboxError, Unsupported
from ..model import Capabilities, ExecResult, Output, Owner, PauseKind, SandboxRef, SandboxSpec
from ..providers.protocol import OneShot, Pausable, Provider, Sandbox, Timings
from .watchdog import LoopBlocked

__all__ = ["GRACE_S", "GuardedProvider", "GuardedSandbox", "Pulse"]

GRACE_S = 0.1
"""How long after its deadline an adapter may take to report the time-out itself, in its better words."""

T = TypeVar("T")


class Pulse:
    """When a lane must next show a sign of life; the supervisor and the watchdog read it.

    ``expires`` is in the seconds of ``time.monotonic`` (the event loop's clock), or None while the lane waits for others.
    """

    __slots__ = ("expires", "timeout_s", "watch")

    def __init__(self, timeout_s: float, watch: Callable[[float], None] | None = None) -> None:
        self.timeout_s = timeout_s
        self.watch = watch
        self.expires: float | None = None
        self.beat()

    def beat(self, deadline_s: float | None = None) -> None:
        self.expires = time.monotonic() + (self.timeout_s if deadline_s is None else deadline_s) + 2 * GRACE_S
        if self.watch is not None:
            self.watch(self.expires)

    def hold(self) -> None:
        self.expires = None

    def is_late(self, at: float) -> bool:
        return self.expires is not None and self.expires <= at


class _Guard:
    def __init__(self, pulse: Pulse, timeout_s: float) -> None:
        self._pulse = pulse
        self._timeout_s = timeout_s

    async def within(self, tried: str, sandbox: str, call: Awaitable[T], deadline_s: float | None = None) -> T:
        limit = self._timeout_s if deadline_s is None else deadline_s
        self._pulse.beat(limit)
        started = now_ns()
        try:
            async with asyncio.timeout(limit + GRACE_S):
                return await call
        except (TimeoutError, LoopBlocked) as error:
            blocked = isinstance(error, LoopBlocked)
            raise OperationTimeout(
                tried,
                sandbox=sandbox,
                after_s=(now_ns() - started) / NS_PER_S,
                said="the adapter blocked the event loop" if blocked else str(error),
                cure=f"the deadline was {limit:g} s; --sandbox-timeout sets it",
            ) from None
        finally:
            self._pulse.beat()


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
        """Phases that the provider itself reports for the operation that just ended; empty where it reports none."""
        return self._inner.phases() if isinstance(self._inner, Timings) else {}

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
        while True:
            try:
                left = max(0.0, ends - time.monotonic())
                piece = await self._guard.within(f"stream {list(argv)!r}", self.id, anext(pieces), left)
            except StopAsyncIteration:
                return
            yield piece

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
        call = self._inner.create(self.spec if spec is None else spec, owner=self._owner, deadline_s=limit)
        made = await self._guard.within("create", "", call, limit)
        self.live[made.ref.id] = made.ref
        return GuardedSandbox(made, self._guard, self.timeout_s)

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
        if self.capabilities.one_shot and isinstance(self._inner, OneShot):
            call = self._inner.run_once(spec, argv, stdin=stdin, owner=self._owner, deadline_s=limit)
            result, ref = await self._guard.within(f"run_once {list(argv)!r}", "", call, limit)
            self.live[ref.id] = ref
            return result, ref
        sandbox = await self.create(spec, deadline_s=limit)
        return await sandbox.exec(argv, stdin=stdin, deadline_s=limit), sandbox.ref

    async def destroy(self, sandbox: GuardedSandbox | SandboxRef, *, deadline_s: float | None = None) -> None:
        limit = self.timeout_s if deadline_s is None else deadline_s
        ref = sandbox if isinstance(sandbox, SandboxRef) else sandbox.ref
        await self._guard.within("destroy", ref.id, self._inner.destroy(ref, deadline_s=limit), limit)
        self.live.pop(ref.id, None)

    async def round_trip(self) -> None:
        await self._guard.within("round_trip", "", self._inner.round_trip())

    async def destroy_all(self) -> list[tuple[SandboxRef, str]]:
        """Destroy what is still there; returns what could not be, with the reason. No provider's fault is raised."""
        left: list[tuple[SandboxRef, str]] = []
        for ref in list(self.live.values()):
            try:
                await self.destroy(ref)
            except SandboxError as error:
                left.append((ref, str(error)))
            except Exception as error:
                left.append((ref, f"destroy on {ref.id} raised {type(error).__name__}: {error}"))
        return left


def describe(error: BaseException) -> str:
    """An error as one line for records: the project's own say it all, foreign ones get their type in front."""
    text = str(error) if isinstance(error, SandboxError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())[:2000]


def outcome(error: BaseException) -> str:
    """The outcome that a sample gets for an error."""
    if isinstance(error, SandboxError):
        return error.outcome
    return "timeout" if isinstance(error, TimeoutError | LoopBlocked | asyncio.CancelledError) else "failed"
