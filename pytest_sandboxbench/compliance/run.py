"""Running checks: each on a provider of its own making, each followed by a look for what it left."""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Literal

from ..errors import ProviderMissing, UsageError
from ..ledger import Ledger, folder_of_user, this_process
from ..load.deadlines import Pulse, bounded, describe
from ..load.guard import GuardedProvider
from ..load.preflight import ask_provider, secrets_of
from ..load.watchdog import Watchdog
from ..model import Capabilities, Owner, SandboxRef
from ..providers.protocol import Provider
from ..providers.registry import Registry
from ..records.redaction import hide, redactor
from .check import Check, CheckFailed, NotInGuest, Trial, brief, expect

__all__ = ["STILL_LISTED", "Outcome", "Verdict", "run_check"]

Outcome = Literal["passed", "failed", "left out"]

STILL_LISTED = "destroy of a sandbox returned, and owned still lists it"
"""How what a check failed with ends, but for the ids, where ``destroy`` does nothing."""

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

    @property
    def still_listed(self) -> bool:
        return self.outcome == "failed" and STILL_LISTED in self.said


async def run_check(registry: Registry, name: str, check: Check, timeout_s: float, *, patient: bool = True) -> Verdict:
    """Run one check on a new instance of a provider. ``ProviderMissing`` when it cannot run here.

    A list may lag behind. Not ``patient``, because an earlier verdict was ``still_listed``, no check waits for it.

    Whatever the check does, what it made is destroyed, also when it is cancelled; what is left then fails it.
    """
    started = time.monotonic()
    try:
        outcome, said = await _run_check(registry, name, check, timeout_s, patient)
    except (ProviderMissing, UsageError):
        raise
    except Exception as error:  # from around the check: a second instance, aclose
        outcome, said = "failed", describe(error)
    return Verdict(check, outcome, brief(hide(said, secrets_of(registry))), time.monotonic() - started)


async def _run_check(
    registry: Registry, name: str, check: Check, timeout_s: float, patient: bool
) -> tuple[Outcome, str]:
    owner = this_process(f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-check-{secrets.token_hex(3)}")
    async with AsyncExitStack() as stack:
        watchdog = Watchdog()
        stack.enter_context(watchdog.watching())
        instances = _Instances(registry, name, owner, timeout_s, watchdog, stack, patient)
        provider = await instances.another()
        lacks = check.lacks(provider.capabilities)
        if lacks:
            return "left out", lacks
        trial = Trial(provider, owner, instances, patient=patient)
        try:
            outcome, said = await _tried(check, trial)
            left = await instances.clear()
        except BaseException:
            await instances.clear()
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


class _Instances:
    """The instances of the provider that one check uses, the first of them its own."""

    def __init__(
        self,
        registry: Registry,
        name: str,
        owner: Owner,
        timeout_s: float,
        watchdog: Watchdog,
        stack: AsyncExitStack,
        patient: bool,
    ) -> None:
        self._registry = registry
        self._name = name
        self._owner = owner
        self._timeout_s = timeout_s
        self._watchdog = watchdog
        self._stack = stack
        self._looks = _LOOKS if patient else 1
        self._made: list[tuple[GuardedProvider, str]] = []
        self._closed: list[Provider] = []
        self._ledgers: dict[str, Ledger] = {}
        self._hosted = False

    @property
    def name(self) -> str:
        return self._name

    async def another(self) -> GuardedProvider:
        answer, provider = await ask_provider(self._registry, self._name)
        if provider is None:
            raise ProviderMissing(self._name, answer.reason, answer.cure)
        self._stack.push_async_callback(self._close, provider)
        if not answer.ready:
            raise ProviderMissing(self._name, answer.reason, answer.cure)
        kind = type(provider.capabilities)
        wanted = f"{Capabilities.__module__}.{Capabilities.__name__}"
        expect(issubclass(kind, Capabilities), f"capabilities is of type {kind.__name__}, not {wanted}")
        self._watchdog.rest()
        return self._guarded(provider, self._owner)

    def other_run(self, provider: GuardedProvider, run_id: str) -> GuardedProvider:
        return self._guarded(provider.unguarded, replace(self._owner, run_id=run_id))

    async def close(self, provider: GuardedProvider) -> None:
        await self._close(provider.unguarded)

    async def _close(self, provider: Provider) -> None:
        if not any(provider is closed for closed in self._closed):
            self._closed.append(provider)
            await bounded("aclose", provider.aclose(), self._timeout_s)

    def _guarded(self, provider: Provider, owner: Owner) -> GuardedProvider:
        pulse = Pulse(self._timeout_s, self._watchdog.expect, self._watchdog.rest)
        self._watchdog.rest()
        spec = self._registry.spec(self._name)
        ledger = self._ledger(owner, provider.capabilities)
        made = GuardedProvider(provider, owner=owner, spec=spec, timeout_s=self._timeout_s, pulse=pulse, ledger=ledger)
        self._made.append((made, owner.run_id))
        return made

    def _ledger(self, owner: Owner, can: Capabilities) -> Ledger:
        """What a kill in the middle of a check leaves is found like that of any run."""
        self._hosted = self._hosted or can.hosted
        ledger = self._ledgers.get(owner.run_id)
        if ledger is None:
            ledger = Ledger(folder_of_user(), owner, redactor(secrets_of(self._registry)))
            ledger.can(self._name, self._registry.kind(self._name), self._registry.options(self._name), can)
            self._ledgers[owner.run_id] = ledger
        return ledger

    async def clear(self) -> str:
        """Destroy what the check made, then look. Returns what is left."""
        left = "it was not looked for"
        try:
            left = await self._clear()
        finally:
            for ledger in self._ledgers.values():
                # A hosted provider may finish a create later than anybody looks here.
                ledger.close(all_gone=not left and not (self._hosted and any(ledger.unknown.values())))
        return left

    async def _clear(self) -> str:
        """Destroy what the check made, then look: a list may lag behind for some seconds. Returns what is left."""
        made, self._made = self._made, []
        if not made:
            return ""
        open_ = [one for one, _run in made if not any(one.unguarded is closed for closed in self._closed)]
        failed = [reason for one in open_ for _ref, reason in await one.destroy_all()]
        if failed:
            return "; ".join(failed)
        # Without labels another instance would see nothing.
        first = made[0][0]
        look = await self.another() if first.capabilities.labels else self._guarded(first.unguarded, self._owner)
        runs = sorted({run for _one, run in made})
        labels = {replace(self._owner, run_id=run).label() for run in runs}

        async def listed() -> list[SandboxRef]:
            left: list[SandboxRef] = []
            for turn in range(self._looks):
                await asyncio.sleep(_BETWEEN_LOOKS_S if turn else 0)
                found = [ref for run in runs for ref in await look.owned(run)]
                # One that names no owner may be anybody's.
                left = [ref for ref in found if ref.details.get("owner") in labels]
                if not left:
                    break
            return left

        try:
            left = await listed()
        except Exception as error:
            return f"what is left could not be listed: {describe(error)}"
        if not left:
            return ""
        ids = ", ".join(ref.id for ref in left)
        for ref in left:
            try:
                await look.destroy(ref)
            except Exception as error:
                return f"left behind: {ids}, and not to be destroyed: {describe(error)}"
        try:
            still = await listed()
        except Exception:
            still = []  # it was left behind, whatever this says
        return f"{STILL_LISTED}: {', '.join(ref.id for ref in still)}" if still else f"left behind: {ids}"
