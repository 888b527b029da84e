"""Providers that break one promise each: the floor or the scripted one, with a fault in between.

A fault is a subclass of :class:`Broken` that says in ``fails`` which checks must find it, and what they say.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

from pytest_sandboxbench.compliance import run
from pytest_sandboxbench.compliance.check import Check
from pytest_sandboxbench.compliance.run import Verdict, run_check
from pytest_sandboxbench.errors import ProviderMissing
from pytest_sandboxbench.model import Capabilities, ExecResult, Output, Owner, Preflight, SandboxRef, SandboxSpec
from pytest_sandboxbench.providers import fake, null
from pytest_sandboxbench.providers.registry import Registry

__all__ = [
    "Broken",
    "BrokenSandbox",
    "breaks_nothing_else",
    "checks_on_our_own",
    "faults_and_checks",
    "faults_in",
    "holds_on_our_own",
    "is_found",
    "is_left_out",
    "passes",
    "without_a_fault",
]

TIMEOUT_S = 3.0
"""The deadline of each call where a fault is looked for."""

_OWN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "fake": ("fake", {}),
    "fake-shared": ("fake", {"state_dir": "", "max_live": 4, "pause_kinds": ["frozen", "stopped", "filesystem"]}),
    "fake-one": ("fake", {"max_live": 1, "limits": ["none"], "one_shot": "false"}),
    "null": ("null", {}),
    "bubblewrap": ("bubblewrap", {}),
}

# Why a check may be left out on our own providers; of bubblewrap also what the host's cgroups cannot.
_LEFT_OUT = {
    "fake": "has no shell|has no labels|enforces every limit|declares no max_live",
    "fake-shared": "has no shell|enforces every limit",
    "fake-one": "has no shell|has no labels|has no one-shot run|does not limit|enforces no limit|holds 1 at once",
    "null": "does not limit|enforces no limit|cannot switch the network off|declares no max_live",
    "bubblewrap": "enforces every limit|declares no max_live|does not limit|enforces no limit",
}


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
    declares: ClassVar[Mapping[str, Any]] = {}
    sandboxes: ClassVar[type[BrokenSandbox]] = BrokenSandbox

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        shared = {"state_dir": str(folder)} if self.base == "fake" and self.shared else {}
        factory: Any = fake.factory if self.base == "fake" else null.factory
        self.inner: Any = factory(name, {**self.options, **shared})

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


def _found(fault: type[Broken], check: Check, folder: Path) -> Verdict:
    registry = Registry(None)
    registry._targets["broken"] = f"{__name__}:factory"
    registry._tables["broken"] = {"kind": "broken", "fault": fault, "folder": folder / check.name}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "_BETWEEN_LOOKS_S", 0.01)
        return asyncio.run(run_check(registry, "broken", check, TIMEOUT_S))


def faults_in(module: Mapping[str, object]) -> list[type[Broken]]:
    """The faults that a test module defines: its ``globals()``."""
    return [one for one in module.values() if isinstance(one, type) and issubclass(one, Broken) and one.fails]


def faults_and_checks(faults: Iterable[type[Broken]], group: ModuleType) -> list[Any]:
    """Parameters ``fault, check, says``: each check with each fault that it must find.

    The first fault of a check proves that it can fail; the further ones are for the full tier.
    """
    checks = {check.name: check for check in group.CHECKS}
    found, proved = [], set()
    for fault in faults:
        for name, says in fault.fails.items():
            marks = [pytest.mark.full] if name in proved else []
            proved.add(name)
            found.append(pytest.param(fault, checks[name], says, marks=marks, id=f"{fault.__name__}-{name}"))
    return found


def without_a_fault(faults: Iterable[type[Broken]], group: ModuleType) -> set[str]:
    """Checks of which no fault shows that they can fail."""
    return {check.name for check in group.CHECKS} - {name for fault in faults for name in fault.fails}


def is_found(fault: type[Broken], check: Check, says: str, folder: Path) -> None:
    """The check fails for the fault, and says what matters."""
    found = _found(fault, check, folder)
    assert found.outcome == "failed"
    assert re.search(says, found.said), found.said


def passes(provider: type[Broken], check: Check, folder: Path) -> None:
    found = _found(provider, check, folder)
    assert (found.outcome, found.said) == ("passed", "")


def is_left_out(provider: type[Broken], check: Check, says: str, folder: Path) -> None:
    found = _found(provider, check, folder)
    assert found.outcome == "left out", found.said
    assert re.search(says, found.said), found.said


def breaks_nothing_else(fault: type[Broken], group: ModuleType, folder: Path) -> None:
    found = [_found(fault, check, folder) for check in group.CHECKS if check.name not in fault.fails]
    assert {str(one.check): one.said for one in found if one.outcome == "failed"} == {}


def checks_on_our_own(group: ModuleType, *, slow: Mapping[str, str] = {}) -> list[Any]:
    """Parameters ``provider, check``. Of what takes a second the fast tier has one only: check -> provider."""
    return [
        pytest.param(
            provider,
            check,
            marks=[pytest.mark.full] if slow.get(check.name, provider) != provider else [],
            id=f"{provider}-{check.name}",
        )
        for provider in _OWN
        for check in group.CHECKS
    ]


def holds_on_our_own(provider: str, check: Check, folder: Path) -> None:
    """It passes, or is left out for what the provider declares."""
    name, options = _OWN[provider]
    if "state_dir" in options:
        options = {**options, "state_dir": str(folder)}
    registry = Registry(None)
    registry._tables[name] = {"kind": name, **options}
    try:
        found = asyncio.run(run_check(registry, name, check, 20.0))
    except ProviderMissing as error:
        assert name == "bubblewrap"
        pytest.skip(str(error))
    if found.outcome == "left out":
        assert re.search(_LEFT_OUT[provider], found.said)
    else:
        assert (found.outcome, found.said) == ("passed", "")
