"""Running one act in a fresh bubblewrap sandbox, for the tests of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from pytest_sandboxbench.model import ExecResult, Owner, SandboxSpec
from pytest_sandboxbench.providers import bubblewrap
from pytest_sandboxbench.providers.bubblewrap import BubblewrapProvider
from pytest_sandboxbench.providers.bubblewrap_sandbox import BubblewrapSandbox

T = TypeVar("T")
D = 20.0


def within(
    owner: Owner,
    act: Callable[[BubblewrapProvider, BubblewrapSandbox], Awaitable[T]],
    spec: SandboxSpec | None = None,
    **options: Any,
) -> T:
    """``act`` with a sandbox, which is destroyed afterwards whatever happens."""

    async def main() -> T:
        provider = bubblewrap.factory("bubblewrap", options)
        try:
            sandbox = await provider.create(spec or SandboxSpec(), owner=owner, deadline_s=D)
            try:
                return await act(provider, sandbox)
            finally:
                await provider.destroy(sandbox.ref, deadline_s=D)
        finally:
            await provider.aclose()

    return asyncio.run(main())


def run(owner: Owner, *argv: str, spec: SandboxSpec | None = None, **options: Any) -> ExecResult:
    return within(owner, lambda provider, sandbox: sandbox.exec(argv, deadline_s=D), spec, **options)


def shell(owner: Owner, script: str, **options: Any) -> str:
    """What the script says, on both streams."""
    result = run(owner, "sh", "-c", f"exec 2>&1; {script}", **options)
    return result.stdout.decode(errors="replace")


async def started(sandbox: BubblewrapSandbox) -> set[int]:
    """Its entered commands, as soon as there is one whose program runs."""
    for _ in range(1000):
        if any(sandbox._members() - {sandbox._holder.pid} for _ in sandbox._running):
            break
        await asyncio.sleep(0.002)
    return set(sandbox._running)
