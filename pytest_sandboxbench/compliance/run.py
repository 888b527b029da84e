"""Running checks: each on a provider of its own making, each followed by a look for what it left."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Literal

from ..errors import ProviderMissing, SandboxbenchError, UsageError
from ..ledger import this_process
from ..load.deadlines import Pulse, bounded, describe
from ..load.guard import GuardedProvider
from ..load.preflight import ask_provider, secrets_of
from ..load.watchdog import Watchdog
from ..model import Capabilities, Owner, SandboxRef
from ..providers.registry import Registry
from ..records.redaction import hide
from .check import Check, CheckFailed, NotInGuest, Trial

__all__ = ["Outcome", "Verdict", "capabilities_of", "run_check"]

Outcome = Literal["passed", "failed", "left out"]

_LOOKS = 10
_BETWEEN_LOOKS_S = 0.3
_MOST_CALLS = 10
"""A check may take as long as so many calls that run into their deadline."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a check ended: ``passed``, ``failed``, or ``left out`` because it does not apply; ``said`` is why.

    ``said`` holds words of the provider and its guest: no secrets, but not made harmless for a terminal.
    """

    check: Check
    outcome: Outcome
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

    Whatever the check does, what it made is destroyed, also when it is cancelled; what is left then fails it.
    """
    started = time.monotonic()
    try:
        outcome, said = await _run_check(registry, name, check, timeout_s)
    except (ProviderMissing, UsageError):
        raise
    except Exception as error:  # from around the check: a second instance, aclose
        outcome, said = "failed", describe(error)
    return Verdict(check, outcome, hide(said, secrets_of(registry)), time.monotonic() - started)


async def _run_check(registry: Registry, name: str, check: Check, timeout_s: float) -> tuple[Outcome, str]:
    owner = this_process(f"check-{secrets.token_hex(4)}")
    async with AsyncExitStack() as stack:
        watchdog = Watchdog()
        stack.enter_context(watchdog.watching())

        async def another() -> GuardedProvider:
            return await stack.enter_async_context(_provider(registry, name, owner, timeout_s, watchdog))

        provider = await another()
        lacks = check.lacks(provider.capabilities)
        if lacks:
            return "left out", lacks
        trial = Trial(provider, owner.run_id, another)
        try:
            outcome, said = await _tried(check, trial)
            left = await _clear(trial)
        except BaseException:
            await _clear(trial)
            raise
        if left:
            return "failed", f"{said}; and {left}" if outcome == "failed" else left
    return outcome, said


async def _tried(check: Check, trial: Trial) -> tuple[Outcome, str]:
    try:
        # From outside: an adapter that swallows its cancellation is left behind.
        await bounded(str(check), _promise(check, trial), _MOST_CALLS * trial.timeout_s)
    except NotInGuest as error:
        return "left out", str(error)
    except CheckFailed as error:
        return "failed", str(error)
    except Exception as error:
        return "failed", describe(error)
    return "passed", ""


async def _promise(check: Check, trial: Trial) -> None:
    await check.run(trial)


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
