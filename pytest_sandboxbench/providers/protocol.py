"""What a provider is: two protocols and three optional powers, all asynchronous.

Rules for an adapter. No retry and no sleep inside an operation; an SDK's own retries are off, or named in the
preflight facts. SDKs are imported in the factory or in ``preflight``, never at the top of the module. Errors
are those of :mod:`pytest_sandboxbench.errors`. ``deadline_s`` is how many seconds the call may take; the harness
enforces it too, by cancelling the call 0.1 s later: a cancelled call leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from ..model import (
    Capabilities,
    ExecResult,
    Output,
    Owner,
    PauseKind,
    Preflight,
    SandboxRef,
    SandboxSpec,
)

__all__ = ["Limited", "OneShot", "Pausable", "Provider", "ProviderFactory", "Sandbox", "Timings"]


class Sandbox(Protocol):
    """One live sandbox."""

    @property
    def ref(self) -> SandboxRef: ...

    @property
    def unenforced(self) -> frozenset[str]:
        """Limits that were asked for and could not be set (only with ``spec.allow_unenforced``)."""
        ...

    @property
    def path(self) -> str:
        """How the provider made it: ``cold``, ``pool`` or ``snapshot``."""
        ...

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        deadline_s: float,
    ) -> ExecResult:
        """Run ``argv`` (no shell) to its end.

        A nonzero exit is a result, not an error: 127 for a command that is not there, 126 for one that may not be
        executed, negative for a signal. The end is the command's exit, though what it left in the background lives on.
        ``env`` is added to the sandbox's own; ``cwd`` defaults to its working directory; a relative one is below that.

        Errors: ``ExecTimeout`` after ``deadline_s``, with everything the command started killed;
        ``SandboxGone``; ``TransportLost``; ``NotReady`` until the guest answers; ``Unsupported`` while paused;
        ``ExecFailed`` for what cannot be started at all, such as an argument with a NUL byte, or no command at all.
        """
        ...

    def stream(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        deadline_s: float,
    ) -> AsyncIterator[Output]:
        """As ``exec``, but output is yielded as it comes; the last item has stream ``exit``.

        Closing it early kills the command, as its deadline would.
        """
        ...

    async def write_file(self, path: str, data: bytes, *, deadline_s: float) -> None:
        """Write a whole file; its folder exists.

        Errors as ``exec`` (late is ``OperationTimeout``, of which ``ExecTimeout`` is one), and ``ExecFailed`` with the
        guest's reason.
        """
        ...

    async def read_file(self, path: str, *, deadline_s: float) -> bytes:
        """Read a whole file. Errors as ``write_file``."""
        ...


class Provider(Protocol):
    """One configured system that makes sandboxes. ``name`` is the instance's name in keys and tables."""

    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities:
        """Frozen data, true for this host; final after ``preflight``."""
        ...

    async def preflight(self) -> Preflight:
        """Can it run here? Under one second; makes no sandbox. Never raises for a missing SDK, key, or daemon.

        It may try out how sandboxes are made, as long as nothing of that stays.
        """
        ...

    async def create(self, spec: SandboxSpec, *, owner: Owner, deadline_s: float) -> Sandbox:
        """Make a sandbox that can be used at once, as far as the provider's own create promises that.

        Errors: ``Rejected`` for a limit, ``CreateFailed`` for anything else, ``OperationTimeout``.
        """
        ...

    async def owned(self, run_id: str | None = None) -> Sequence[SandboxRef]:
        """Sandboxes of this project that exist now (of one run, or of all), running and paused.

        A sandbox exists as long as something of it is there to be removed. One that ended by itself (its lifetime is
        over, its first process died) either goes as a whole, or is listed until it is destroyed; its commands raise
        ``SandboxGone`` in both cases.
        """
        ...

    async def destroy(self, ref: SandboxRef, *, deadline_s: float) -> None:
        """End a sandbox and remove what it left. Idempotent: gone is done. Works while paused.

        Errors: ``DestroyFailed``, ``OperationTimeout``; either when it stays at the deadline.
        """
        ...

    async def round_trip(self) -> None:
        """The cheapest call that reaches what a create would reach: the floor of every other operation."""
        ...

    async def aclose(self) -> None:
        """Free clients and threads. Does not destroy sandboxes."""
        ...


@runtime_checkable
class Pausable(Protocol):
    """A *sandbox* that can be paused."""

    async def pause(self, *, kind: PauseKind, deadline_s: float) -> None:
        """Returns when the provider says: paused. Already paused is done."""
        ...

    async def resume(self, *, deadline_s: float) -> None:
        """Returns when the provider says: running."""
        ...


@runtime_checkable
class OneShot(Protocol):
    """A *provider* that runs one command in a new sandbox in a single act."""

    async def run_once(
        self,
        spec: SandboxSpec,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        owner: Owner,
        deadline_s: float,
    ) -> tuple[ExecResult, SandboxRef]:
        """Create, run, collect output and exit code. What is left is removed by ``destroy(ref)``."""
        ...


@runtime_checkable
class Timings(Protocol):
    """A *sandbox* whose provider reports phases of its own making, on the client's monotonic clock."""

    def phases(self) -> Mapping[str, tuple[int, int]]:
        """Name -> (start_ns, end_ns) of the operation that just ended."""
        ...


@runtime_checkable
class Limited(Protocol):
    """A *sandbox* whose limits can be read back from whoever enforces them, such as its cgroup."""

    @property
    def enforced(self) -> Mapping[str, str]:
        """``vcpus``, ``memory_mib``, ``pids`` -> the value in force; only those that are limited."""
        ...


class ProviderFactory(Protocol):
    """What an entry point of group ``sandboxbench.providers`` names.

    ``options`` are the instance's settings from ``pyproject.toml`` and ``--sandbox-option``; a factory raises
    ``UsageError`` for a key or value that it does not know, naming those that it does.
    """

    def __call__(self, name: str, options: Mapping[str, Any]) -> Provider: ...
