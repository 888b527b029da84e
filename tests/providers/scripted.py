"""How the tests of the scripted provider call it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from pytest_sandboxbench.errors import (
    SandboxError,
)
from pytest_sandboxbench.model import ExecResult, Owner, SandboxSpec
from pytest_sandboxbench.providers.fake import FakeProvider, OneShotFakeProvider, factory
from pytest_sandboxbench.providers.fake_clock import loop_ns, run_virtual
from pytest_sandboxbench.providers.fake_sandbox import FakeSandbox, PausableFakeSandbox

OWNER = Owner("run-1", "here", 1, "0")
TRUE = ["true"]

Test = Callable[[], Coroutine[Any, Any, None]]


def fake(**options: Any) -> FakeProvider:
    return factory("fake", options)


async def create(provider: FakeProvider, **spec: Any) -> FakeSandbox:
    return await provider.create(SandboxSpec(**spec), owner=OWNER, deadline_s=60)


async def pausable(provider: FakeProvider) -> PausableFakeSandbox:
    sandbox = await create(provider)
    assert isinstance(sandbox, PausableFakeSandbox)
    return sandbox


async def run(sandbox: FakeSandbox, *argv: str, stdin: bytes = b"", **more: Any) -> ExecResult:
    return await sandbox.exec(argv, stdin=stdin, **{"deadline_s": 60, **more})


async def call(provider: FakeProvider, operation: str) -> Any:
    """Call one operation on what it needs; what it needs is made by operations that are not under test."""
    match operation:
        case "create":
            return await create(provider)
        case "round_trip":
            return await provider.round_trip()
        case "preflight":
            return await provider.preflight()
        case "owned":
            return await provider.owned()
        case "aclose":
            return await provider.aclose()
        case "run_once":
            assert isinstance(provider, OneShotFakeProvider)
            return await provider.run_once(SandboxSpec(), TRUE, owner=OWNER, deadline_s=60)
    sandbox = await pausable(provider)
    match operation:
        case "exec":
            return await run(sandbox, "true")
        case "write_file":
            return await sandbox.write_file("/a", b"", deadline_s=60)
        case "read_file":
            return await sandbox.read_file("/proc/sys/kernel/random/boot_id", deadline_s=60)
        case "pause":
            return await sandbox.pause(kind="memory", deadline_s=60)
        case "resume":
            return await sandbox.resume(deadline_s=60)
        case "destroy":
            return await provider.destroy(sandbox.ref, deadline_s=60)
    raise AssertionError(operation)


async def seconds(awaitable: Awaitable[Any]) -> float:
    start_ns = loop_ns()
    await awaitable
    return (loop_ns() - start_ns) / 1e9


async def failure(awaitable: Awaitable[Any]) -> SandboxError:
    with pytest.raises(SandboxError) as caught:
        await awaitable
    return caught.value


def on_virtual_clock(test: Test) -> Callable[[], None]:
    def wrapped() -> None:
        run_virtual(test())

    wrapped.__name__ = test.__name__
    wrapped.__doc__ = test.__doc__
    return wrapped
