"""Running checks: each on a provider of its own making, each followed by a look for what it left."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Literal

from ..errors import ProviderMissing, SandboxbenchError
from ..ledger import this_process
from ..load.guard import GuardedProvider, Pulse, bounded, describe
from ..load.preflight import ask_provider
from ..load.watchdog import Watchdog
from ..model import Capabilities, Owner, SandboxRef
from ..providers.registry import Registry
from .check import Check, CheckFailed, NotInGuest, Trial

__all__ = ["Verdict", "capabilities_of", "run_check"]

_LOOKS = 10
_BETWEEN_LOOKS_S = 0.3


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a check ended: ``passed``, ``failed``, or ``left out`` because it does not apply; ``said`` is why."""

    check: Check
    outcome: Literal["passed", "failed", "left out"]
    said: str
    seconds: float


async def capabilities_of(registry: Registry, name: str) -> Capabilities:
    """What a provider declares for this host. ``ProviderMissing`` when it cannot run here."""
    answer, provider = await ask_provider(registry, name)
    if provider is None:
        raise ProviderMissing(name, answer.reason, answer.cure)
    capabilities = provider.capabilities
    await bounded("aclose", provider.aclose(), 5)
    if not answer.ready:
        raise ProviderMissing(name, answer.reason, answer.cure)
    return capabilities


async def run_check(registry: Registry, name: str, check: Check, timeout_s: float) -> Verdict:
    """Run one check on a new instance of a provider. ``ProviderMissing`` when it cannot run here.

    Whatever the check does, what it made is destroyed; what is left then fails it.
    """
    owner = this_process(f"check-{secrets.token_hex(4)}")
    started = time.monotonic()
    async with AsyncExitStack() as stack:
        watchdog = Watchdog()
        stack.enter_context(watchdog.watching())

        async def another() -> GuardedProvider:
            return await stack.enter_async_context(_provider(registry, name, owner, timeout_s, watchdog))

        provider = await another()
        lacks = check.lacks(provider.capabilities)
        if lacks:
            return Verdict(check, "left out", lacks, 0.0)
        said, outcome = "", "passed"
        trial = Trial(provider, owner.run_id, another)
        try:
            await check.run(trial)
        except NotInGuest as error:
            outcome, said = "left out", str(error)
        except CheckFailed as error:
            outcome, said = "failed", str(error)
        except Exception as error:
            outcome, said = "failed", describe(error)
        left = await _clear(trial)
        if left and outcome != "failed":
            outcome, said = "failed", left
        elif left:
            said = f"{said}; and {left}"
    return Verdict(check, outcome, said, time.monotonic() - started)  # type: ignore[arg-type]


@asynccontextmanager
async def _provider(
    registry: Registry, name: str, owner: Owner, timeout_s: float, watchdog: Watchdog
) -> AsyncIterator[GuardedProvider]:
    answer, provider = await ask_provider(registry, name)
    if provider is None:
        raise ProviderMissing(name, answer.reason, answer.cure)
    try:
        if not answer.ready:
            raise ProviderMissing(name, answer.reason, answer.cure)
        pulse = Pulse(timeout_s, watchdog.expect, watchdog.rest)
        watchdog.rest()
        yield GuardedProvider(provider, owner=owner, spec=registry.spec(name), timeout_s=timeout_s, pulse=pulse)
    finally:
        await bounded("aclose", provider.aclose(), timeout_s)


async def _clear(trial: Trial) -> str:
    """Destroy what a check made, then look: a list may lag behind for some seconds. Returns what is left."""
    failed = await trial.provider.destroy_all()
    if failed:
        return "; ".join(reason for _ref, reason in failed)
    fresh = await trial.another()
    left: Sequence[SandboxRef] = ()
    for look in range(_LOOKS):
        await asyncio.sleep(_BETWEEN_LOOKS_S if look else 0)
        try:
            left = await fresh.owned(trial.run_id)
        except SandboxbenchError as error:
            return f"what is left could not be listed: {describe(error)}"
        if not left:
            return ""
    ids = ", ".join(ref.id for ref in left)
    for ref in left:
        try:
            await fresh.destroy(ref)
        except SandboxbenchError as error:
            return f"left behind: {ids}, and not to be destroyed: {describe(error)}"
    return f"left behind: {ids}"
