"""Destroying what dead owners left, and listing what exists. Knows no pytest.

Who is dead is decided with care, because what is destroyed may be somebody's. A process that is gone from this host is
dead when its ledger lies here, or when what it made lies here (a local sandbox carries its owner's label). An owner on
another host, or in another pid namespace, cannot be judged from here: what it made is left alone unless its run is
named.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from .clearing import Cleared, clear
from .errors import SandboxbenchError, UsageError
from .ledger import Book, Made, books, standing, taken
from .load.deadlines import Pulse, bounded, describe
from .load.guard import GuardedProvider
from .load.preflight import ask_provider
from .load.watchdog import Watchdog
from .model import Owner, SandboxRef, SandboxSpec
from .providers.protocol import Provider
from .providers.registry import Registry
from .records.redaction import HIDDEN

__all__ = ["Found", "Reaped", "Survey", "reap", "reap_ledgers", "survey"]

_LATE_S = 600.0
"""A hosted provider may finish a create this long after whoever asked is gone: its ledger is kept, to look again."""

_NOBODY = Owner("reap", "", 0, "")


@dataclass(frozen=True, slots=True)
class Found:
    """A sandbox that exists, and whose it is: the ``standing`` of its owner, ``unlabelled`` where it has none."""

    ref: SandboxRef
    owner: Owner | None
    standing: str


@dataclass(slots=True)
class Reaped:
    """What came of it. ``problems`` are one line each: what could not be looked at, or destroyed, and why."""

    destroyed: list[Found] = field(default_factory=list)
    left: list[tuple[SandboxRef, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    unknown: list[tuple[str, int, str]] = field(default_factory=list)
    """Creates of a provider without labels of which nobody knows what came: (provider, number, run)."""


class _Instances:
    """Providers, each made once, with our deadlines around them."""

    def __init__(self, registry: Registry, timeout_s: float) -> None:
        self._registry = registry
        self._timeout_s = timeout_s
        self._made: dict[tuple[str, str], Provider] = {}
        self.problems: dict[str, str] = {}
        self.watchdog = Watchdog()

    async def get(self, name: str, made: Made | None = None) -> GuardedProvider | None:
        """The instance of that name; with ``made`` as a ledger remembers it. ``problems[name]`` says why there is none.

        Remembered settings say where its folders lie, for instance. Secrets are not among them: those are today's.
        """
        registry, remembered = self._registry, ""
        try:
            if made is not None:
                options = {key: value for key, value in made.options.items() if HIDDEN not in str(value)}
                registry = registry.remembering(name, made.kind, options)
                remembered = json.dumps([made.kind, options], sort_keys=True, default=str)
            provider = self._made.get((name, remembered)) or await self._make(registry, name)
        except UsageError as error:
            self.problems[name] = str(error)
            return None
        if provider is None:
            return None
        self._made[name, remembered] = provider
        pulse = Pulse(self._timeout_s, self.watchdog.expect, self.watchdog.rest)
        self.watchdog.rest()
        return GuardedProvider(provider, owner=_NOBODY, spec=SandboxSpec(), timeout_s=self._timeout_s, pulse=pulse)

    async def _make(self, registry: Registry, name: str) -> Provider | None:
        answer, provider = await ask_provider(registry, name)
        if provider is not None and answer.ready:
            return provider
        if provider is not None:
            await _close(provider)
        self.problems[name] = f"{name} is not ready: {answer.reason}. {answer.cure}"
        return None

    async def close(self) -> None:
        for provider in self._made.values():
            await _close(provider)


async def _close(provider: Provider) -> None:
    with suppress(Exception):
        await bounded("aclose", provider.aclose(), 5)


@asynccontextmanager
async def _instances(registry: Registry, timeout_s: float) -> AsyncIterator[_Instances]:
    instances = _Instances(registry, timeout_s)
    with instances.watchdog.watching():
        try:
            yield instances
        finally:
            await instances.close()


async def reap(
    registry: Registry, names: Sequence[str], folder: Path, *, timeout_s: float = 30.0, run_id: str | None = None
) -> Reaped:
    """Destroy what dead owners left: by their ledgers, and by the labels of what providers ``names`` list.

    With ``run_id`` only that run's, and then also where its owner cannot be seen from here: who names it knows.
    """
    reaped = await reap_ledgers(registry, folder, timeout_s=timeout_s, run_id=run_id)
    async with _instances(registry, timeout_s) as instances:
        for name in names:
            provider = await instances.get(name)
            if provider is None:
                continue
            try:
                found = await _found_on(provider, run_id)
            except SandboxbenchError as error:
                reaped.problems.append(f"{name} could not be listed: {describe(error)}")
                continue
            for owner, refs in _by_owner(found, here_only=provider.capabilities.hosted, named=run_id is not None):
                _note(await clear(provider, owner, refs), owner, reaped)
    return reaped


def _by_owner(found: Iterable[Found], *, here_only: bool, named: bool) -> list[tuple[Owner, list[SandboxRef]]]:
    """Those to destroy by their labels alone.

    A hosted provider lists what any machine of the account made, and two machines may have one name: there a label
    proves nothing without a ledger, unless the run is named.
    """
    dead: dict[Owner, list[SandboxRef]] = {}
    for one in found:
        if one.owner is None:
            continue
        if (one.standing == "dead" and (named or not here_only)) or (one.standing == "elsewhere" and named):
            dead.setdefault(one.owner, []).append(one.ref)
    return list(dead.items())


async def _found_on(provider: GuardedProvider, run_id: str | None) -> list[Found]:
    found = []
    for ref in await provider.owned(run_id):
        owner = Owner.parse(ref.details.get("owner", ""))
        found.append(Found(ref, owner, "unlabelled" if owner is None else standing(owner)))
    return found


@dataclass(slots=True)
class Survey:
    """What exists: sandboxes, creates by runs that are over of which nobody knows what came, and who did not answer."""

    found: list[Found] = field(default_factory=list)
    unknown: list[tuple[str, int, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


async def survey(
    registry: Registry, names: Sequence[str], folder: Path, *, timeout_s: float = 30.0, run_id: str | None = None
) -> Survey:
    """Everything of this project that exists: what providers ``names`` list, and what ledgers lead to."""
    out = Survey()
    try:
        known = [book for book in books(folder) if run_id in (None, book.owner.run_id)]
    except OSError as error:
        known = []
        out.problems.append(f"the ledger cannot be read: {error}")
    seen: dict[tuple[str, str], Found] = {}
    async with _instances(registry, timeout_s) as instances:
        for book in known:
            for name, made in book.made.items():
                if not made.live and not made.unknown:
                    continue
                provider = await instances.get(name, made)
                if provider is not None and made.labels:
                    await _list(provider, book.owner.run_id, seen, out.problems)
                else:
                    if provider is None:
                        out.problems.append(instances.problems[name])
                    seen |= {(made.kind, id_): Found(ref, book.owner, book.standing) for id_, ref in made.live.items()}
                if made.unknown and book.standing == "dead" and not (provider is not None and made.labels):
                    out.unknown.append((name, made.unknown, book.owner.run_id))
        for name in names:
            provider = await instances.get(name)
            if provider is not None:
                await _list(provider, run_id, seen, out.problems)
    out.found = list(seen.values())
    return out


async def _list(
    provider: GuardedProvider, run_id: str | None, seen: dict[tuple[str, str], Found], problems: list[str]
) -> None:
    try:
        for one in await _found_on(provider, run_id):
            # Two instances of one kind list each other's.
            seen.setdefault((type(provider.unguarded).__name__, one.ref.id), one)
    except SandboxbenchError as error:
        problems.append(f"{provider.name} could not be listed: {describe(error)}")


async def reap_ledgers(
    registry: Registry, folder: Path, *, timeout_s: float = 30.0, run_id: str | None = None
) -> Reaped:
    """Destroy what the owners of these ledgers left, where they are dead; of one run, or of all.

    With a run that is named, an owner that cannot be seen from here counts as dead.
    """
    reaped = Reaped()
    try:
        found = [book for book in books(folder) if run_id in (None, book.owner.run_id)]
    except OSError as error:
        reaped.problems.append(f"the ledger cannot be read: {error}")
        return reaped
    dead = [book for book in found if book.standing == "dead" or (run_id and book.standing == "elsewhere")]
    if dead:
        async with _instances(registry, timeout_s) as instances:
            for book in dead:
                with suppress(FileNotFoundError), taken(book.path) as free:
                    if free and await _clear(book, instances, reaped):
                        book.path.unlink(missing_ok=True)
    return reaped


async def _clear(book: Book, instances: _Instances, reaped: Reaped) -> bool:
    """Destroy all that a ledger leads to. True when nothing of it can be left."""
    if book.spoilt:
        run = book.owner.run_id
        reaped.problems.append(
            f"the ledger of run {run} cannot be read: {book.path}; look where it may have made something, "
            f"then `sandboxbench reap --forget {run}`"
        )
    done = not book.spoilt
    for name, made in book.made.items():
        if not made.live and not made.unknown:
            continue
        provider = await instances.get(name, made)
        if provider is None:
            reaped.problems.append(f"what run {book.owner.run_id} left is not destroyed: {instances.problems[name]}")
            done = False
            continue
        clean = _note(await clear(provider, book.owner, made.live.values()), book.owner, reaped)
        if made.unknown and not made.labels:
            reaped.unknown.append((name, made.unknown, book.owner.run_id))
            clean = False
        if made.unknown and provider.capabilities.hosted and book.age_s < _LATE_S:
            clean = False
        done = done and clean
    return done


def _note(cleared: Cleared, owner: Owner, reaped: Reaped) -> bool:
    reaped.left += cleared.left
    reaped.destroyed += [Found(ref, owner, standing(owner)) for ref in cleared.destroyed]
    return cleared.is_clean
