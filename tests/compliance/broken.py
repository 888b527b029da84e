"""Providers that break one promise each: the floor or the scripted one, with a fault in between.

A fault is a subclass of :class:`Broken` that says in ``fails`` which checks must find it, and what they say.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pytest_sandboxbench.compliance import run
from pytest_sandboxbench.compliance.check import Check
from pytest_sandboxbench.compliance.run import Verdict, run_check
from pytest_sandboxbench.model import Capabilities, ExecResult, Output, Owner, Preflight, SandboxRef, SandboxSpec
from pytest_sandboxbench.providers import fake, null
from pytest_sandboxbench.providers.registry import Registry

__all__ = ["Broken", "BrokenSandbox"]

TIMEOUT_S = 3.0
"""The deadline of each call where a fault is looked for."""


class BrokenSandbox:
    """Without an override it is the sandbox below."""

    path = "cold"

    def __init__(self, inner: Any, provider: Any, spec: SandboxSpec) -> None:
        self.inner = inner
        self.provider = provider
        self.spec = spec
        self.ref: SandboxRef = inner.ref

    @property
    def unenforced(self) -> frozenset[str]:
        unenforced: frozenset[str] = self.inner.unenforced
        return unenforced

    async def exec(self, argv: Sequence[str], **more: Any) -> ExecResult:
        result: ExecResult = await self.inner.exec(argv, **more)
        return result

    async def stream(self, argv: Sequence[str], **more: Any) -> AsyncIterator[Output]:
        async for piece in self.inner.stream(argv, **more):
            yield piece

    async def write_file(self, path: str, data: bytes, *, deadline_s: float) -> None:
        await self.inner.write_file(path, data, deadline_s=deadline_s)

    async def read_file(self, path: str, *, deadline_s: float) -> bytes:
        data: bytes = await self.inner.read_file(path, deadline_s=deadline_s)
        return data

    async def pause(self, *, kind: Any, deadline_s: float) -> None:
        await self.inner.pause(kind=kind, deadline_s=deadline_s)

    async def resume(self, *, deadline_s: float) -> None:
        await self.inner.resume(deadline_s=deadline_s)


class Broken:
    """Without an override it is the provider below, ``base``, made with ``options``.

    ``fails``     the checks, of the group that the fault is about, that fail: name -> pattern of what is said
    ``declares``  capabilities that are other than those of the provider below
    ``shared``    whether instances of the scripted provider share their sandboxes, and so have labels
    """

    fails: ClassVar[Mapping[str, str]] = {}
    base: ClassVar[str] = "fake"
    options: ClassVar[Mapping[str, Any]] = {}
    shared: ClassVar[bool] = True
    every: ClassVar[bool] = False
    declares: ClassVar[Mapping[str, Any]] = {}
    sandboxes: ClassVar[type[BrokenSandbox]] = BrokenSandbox

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        shared = {"state_dir": str(folder)} if self.base == "fake" and self.shared else {}
        factory: Any = fake.factory if self.base == "fake" else null.factory
        self.inner: Any = factory(name, {**self.options, **shared})

    @classmethod
    def found(cls, check: Check, folder: Path) -> Verdict:
        registry = Registry(None)
        registry._targets["broken"] = f"{__name__}:factory"
        registry._tables["broken"] = {"kind": "broken", "fault": cls, "folder": folder / check.name}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run, "_BETWEEN_LOOKS_S", 0.01)
            return asyncio.run(run_check(registry, "broken", check, TIMEOUT_S))

    @property
    def capabilities(self) -> Capabilities:
        capabilities: Capabilities = self.inner.capabilities
        return replace(capabilities, **self.declares)

    async def preflight(self) -> Preflight:
        answer: Preflight = await self.inner.preflight()
        return answer

    async def create(self, spec: SandboxSpec, *, owner: Owner, deadline_s: float) -> BrokenSandbox:
        inner = await self.inner.create(self.changed(spec), owner=owner, deadline_s=deadline_s)
        return self.sandboxes(inner, self, spec)

    def changed(self, spec: SandboxSpec) -> SandboxSpec:
        """What it makes of what it is asked for."""
        return spec

    async def owned(self, run_id: str | None = None) -> Sequence[SandboxRef]:
        refs: Sequence[SandboxRef] = await self.inner.owned(run_id)
        return refs

    async def destroy(self, ref: SandboxRef, *, deadline_s: float) -> None:
        await self.inner.destroy(ref, deadline_s=deadline_s)

    async def round_trip(self) -> None:
        await self.inner.round_trip()

    async def aclose(self) -> None:
        await self.inner.aclose()

    async def run_once(
        self, spec: SandboxSpec, argv: Sequence[str], *, stdin: bytes = b"", owner: Owner, deadline_s: float
    ) -> tuple[ExecResult, SandboxRef]:
        ran: tuple[ExecResult, SandboxRef] = await self.inner.run_once(
            self.changed(spec), argv, stdin=stdin, owner=owner, deadline_s=deadline_s
        )
        return ran


def factory(name: str, options: Mapping[str, Any]) -> Broken:
    fault: type[Broken] = options["fault"]
    return fault(name, options["folder"])
