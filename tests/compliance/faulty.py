"""Providers that break one promise each: the floor, with a fault in between.

A fault is a subclass of :class:`FaultySandbox` that says in ``fails`` which checks must find it, and what they say.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pytest_sandboxbench.compliance.check import Check
from pytest_sandboxbench.compliance.run import Verdict, run_check
from pytest_sandboxbench.model import ExecResult, Output, Owner, SandboxRef, SandboxSpec
from pytest_sandboxbench.providers import null, proc
from pytest_sandboxbench.providers.null import NullProvider
from pytest_sandboxbench.providers.null_sandbox import NullSandbox
from pytest_sandboxbench.providers.registry import Registry

__all__ = ["Call", "FaultyProvider", "FaultySandbox", "verdict", "with_fault"]


@dataclass(frozen=True, slots=True)
class Call:
    """A command as it is asked for."""

    argv: list[str]
    stdin: bytes
    cwd: str | None
    env: dict[str, str]
    deadline_s: float

    @property
    def script(self) -> str:
        """The text of a `sh -c`, else nothing."""
        return self.argv[2] if self.argv[:2] == ["sh", "-c"] else ""


class FaultySandbox:
    """Without an override it is the floor. ``run`` and ``pieces`` are for overriding.

    ``fails``      the checks, of the group that the fault is about, that fail: name -> pattern of what is said
    ``timeout_s``  the deadline of each call; short for faults that let one hang
    """

    fails: ClassVar[Mapping[str, str]] = {}
    timeout_s: ClassVar[float] = 5.0
    every: ClassVar[bool] = False
    path = "cold"
    unenforced: frozenset[str] = frozenset()

    @classmethod
    def found(cls, check: Check, _folder: Path) -> Verdict:
        return verdict(with_fault(cls), "faulty", check, cls.timeout_s)

    def __init__(self, inner: NullSandbox) -> None:
        self.inner = inner
        self.ref = inner.ref

    @classmethod
    async def create(
        cls, provider: NullProvider, spec: SandboxSpec, *, owner: Owner, deadline_s: float
    ) -> FaultySandbox:
        return cls(await provider.create(spec, owner=owner, deadline_s=deadline_s))

    async def run(self, call: Call) -> ExecResult:
        return await self.inner.exec(
            call.argv, stdin=call.stdin, cwd=call.cwd, env=call.env, deadline_s=call.deadline_s
        )

    async def pieces(self, call: Call) -> AsyncGenerator[Output, None]:
        stream: Any = self.inner.stream(
            call.argv, stdin=call.stdin, cwd=call.cwd, env=call.env, deadline_s=call.deadline_s
        )
        async with aclosing(stream):
            async for piece in stream:
                yield piece

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        deadline_s: float,
    ) -> ExecResult:
        return await self.run(Call(list(argv), stdin, cwd, dict(env or {}), deadline_s))

    def stream(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        deadline_s: float,
    ) -> AsyncIterator[Output]:
        return self.pieces(Call(list(argv), stdin, cwd, dict(env or {}), deadline_s))

    async def write_file(self, path: str, data: bytes, *, deadline_s: float) -> None:
        await self.inner.write_file(path, data, deadline_s=deadline_s)

    async def read_file(self, path: str, *, deadline_s: float) -> bytes:
        return await self.inner.read_file(path, deadline_s=deadline_s)


class FaultyProvider:
    """The floor, but for its sandboxes."""

    def __init__(self, name: str, fault: type[FaultySandbox]) -> None:
        self.name = name
        self.inner = null.factory(name, {})
        self.capabilities = self.inner.capabilities
        self.preflight = self.inner.preflight
        self.owned = self.inner.owned
        self.round_trip = self.inner.round_trip
        self.aclose = self.inner.aclose
        self._fault = fault

    async def create(self, spec: SandboxSpec, *, owner: Owner, deadline_s: float) -> FaultySandbox:
        return await self._fault.create(self.inner, spec, owner=owner, deadline_s=deadline_s)

    async def destroy(self, ref: SandboxRef, *, deadline_s: float) -> None:
        await self.inner.destroy(ref, deadline_s=deadline_s)
        # What a fault left alive outside of the process group is not what the test is about.
        await asyncio.to_thread(proc.kill_labelled, proc.SANDBOX_LABEL, ref.id)


def factory(name: str, options: Mapping[str, Any]) -> FaultyProvider:
    return FaultyProvider(name, options["fault"])


def with_fault(fault: type[FaultySandbox]) -> Registry:
    """A registry in which provider ``faulty`` has this fault."""
    registry = Registry(None)
    registry._targets["faulty"] = f"{__name__}:factory"
    registry._tables["faulty"] = {"kind": "faulty", "fault": fault}
    return registry


def verdict(registry: Registry, name: str, check: Check, timeout_s: float) -> Verdict:
    return asyncio.run(run_check(registry, name, check, timeout_s))
