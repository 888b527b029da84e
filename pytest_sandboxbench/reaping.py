"""Destroying what dead owners left, and listing what exists. Knows no pytest.

Who is dead is decided with care, because what is destroyed may be somebody's. A process that is gone from this host is
dead when its ledger lies here, or when what it made lies here (a local sandbox carries its owner's label). An owner on
another host, or in another pid namespace, cannot be judged from here: what it made is left alone unless its run is
named.
"""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from .clearing import Cleared, clear
from .errors import UsageError
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
    proved: bool = True
    """False where a label alone says so, and the provider lists what other machines made as well."""


@dataclass(slots=True)
class Reaped:
    """What came of it. ``problems``: a run, or empty for all, and what kept its rest from being destroyed."""

    destroyed: list[Found] = field(default_factory=list)
    left: list[tuple[SandboxRef, str]] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)
    unknown: list[tuple[str, int, str]] = field(default_factory=list)
    """Creates of a provider without labels of which nobody knows what came: (provider, number, run)."""
    unproved: list[Found] = field(default_factory=list)
    """Left alone: the label names a dead process of this host, but two machines may have one name."""


class _Instances:
    """Providers, each made once, with our deadlines around them."""

    def __init__(self, registry: Registry, timeout_s: float) -> None:
        self._registry = registry
        self._timeout_s = timeout_s
        self._made: dict[tuple[str, str], Provider | None] = {}
        self.problems: dict[str, str] = {}
        self.silent: set[int] = set()
        """Providers that did not list what there is: each is waited for once."""
        self.lying: set[int] = set()
        """Providers that listed what they said was destroyed: they are not waited for again."""
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
            if (name, remembered) not in self._made:
                self._made[name, remembered] = await self._make(registry, name)
        except UsageError as error:
            self.problems[name] = str(error)
            return None
        provider = self._made[name, remembered]
        if provider is None:
            return None
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

    async def clear(self, provider: GuardedProvider, owner: Owner, refs: Iterable[SandboxRef]) -> Cleared:
        key = id(provider.unguarded)
        cleared = await clear(provider, owner, refs, patient=key not in self.lying)
        if not cleared.listed:
            self.silent.add(key)
        elif cleared.left:
            self.lying.add(key)
        return cleared

    async def close(self) -> None:
        for provider in self._made.values():
            if provider is not None:
                await _close(provider)


async def _close(provider: Provider) -> None:
    with suppress(Exception):
        await bounded("aclose", provider.aclose(), 5)


@asynccontextmanager
async def _instances(registry: Registry, timeout_s: float) -> AsyncIterator[_Instances]:
    instances = _Instances(registry, timeout_s)
    # What an adapter prints or warns of here is nobody's answer, and may hold its key.
    unheard = io.StringIO()
    with instances.watchdog.watching(), redirect_stdout(unheard), redirect_stderr(unheard):
        try:
            yield instances
        finally:
            await instances.close()


async def reap(
    registry: Registry, names: Sequence[str] | None, folder: Path, *, timeout_s: float = 30.0, run_id: str | None = None
) -> Reaped:
    """Destroy what dead owners left on these providers, or all: by their ledgers, and by the labels of what is listed.

    With ``run_id`` only that run's, and then also where its owner cannot be seen from here: who names it knows.
    """
    reaped = await reap_ledgers(registry, folder, timeout_s=timeout_s, run_id=run_id, names=names)
    alive = _alive(folder)
    async with _instances(registry, timeout_s) as instances:
        for name in registry.names if names is None else names:
            provider = await instances.get(name)
            if provider is None:
                continue
            try:
                found = await _found_on(provider, run_id, alive)
            except Exception as error:
                reaped.problems.append(("", f"{name} could not be listed: {describe(error)}"))
                continue
            dead: dict[Owner, list[SandboxRef]] = {}
            for one in found:
                if one.owner is None or one.standing == "alive" or (one.standing == "elsewhere" and run_id is None):
                    continue
                if one.proved or run_id is not None:
                    dead.setdefault(one.owner, []).append(one.ref)
                else:
                    reaped.unproved.append(one)
            known = {ref.id for ref, _reason in reaped.left}
            for owner, refs in dead.items():
                if not known.issuperset(ref.id for ref in refs):  # by their ledger they were tried already
                    _note(await instances.clear(provider, owner, refs), owner, reaped)
    return reaped


def _alive(folder: Path) -> frozenset[str]:
    """Labels of owners whose ledger says that they live, wherever they are."""
    try:
        return frozenset(book.owner.label() for book in books(folder) if book.standing == "alive")
    except OSError:
        return frozenset()


async def _found_on(provider: GuardedProvider, run_id: str | None, alive: Collection[str]) -> list[Found]:
    found = []
    proved = not provider.capabilities.hosted
    for ref in await provider.owned(run_id):
        label = ref.details.get("owner", "")
        owner = Owner.parse(label)
        if owner is None:
            found.append(Found(ref, None, "unlabelled", proved))
        elif run_id in (None, owner.run_id):
            found.append(Found(ref, owner, "alive" if label in alive else standing(owner), proved))
    return found


@dataclass(slots=True)
class Survey:
    """What exists: sandboxes, creates by runs that are over of which nobody knows what came, and who did not answer."""

    found: list[Found] = field(default_factory=list)
    unknown: list[tuple[str, int, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


async def survey(
    registry: Registry, names: Sequence[str] | None, folder: Path, *, timeout_s: float = 30.0, run_id: str | None = None
) -> Survey:
    """Everything of this project that exists on these providers, or all: what they list, and what ledgers lead to."""
    out = Survey()
    try:
        known = [book for book in books(folder) if run_id in (None, book.owner.run_id)]
    except OSError as error:
        known = []
        out.problems.append(f"the ledger cannot be read: {error}")
    seen: dict[tuple[str, str], Found] = {}
    alive = _alive(folder)
    async with _instances(registry, timeout_s) as instances:
        for book in known:
            if book.spoilt:
                out.problems.append(f"the ledger of run {book.owner.run_id} cannot be read: {book.path}")
            for name, made in book.made.items():
                if (names is not None and name not in names) or (not made.live and not made.unknown):
                    continue
                provider = await instances.get(name, made)
                if provider is None:
                    out.problems.append(instances.problems[name])
                elif made.labels and id(provider.unguarded) not in instances.silent:
                    found = await _listing(provider, book.owner.run_id, alive, out.problems)
                    if found is None:
                        instances.silent.add(id(provider.unguarded))
                    # Two instances of one kind list each other's.
                    seen |= {(made.kind, one.ref.id): replace(one, proved=True) for one in found or ()}
                if provider is None or not made.labels:
                    seen |= {(made.kind, id_): Found(ref, book.owner, book.standing) for id_, ref in made.live.items()}
                if made.unknown and book.standing == "dead" and not (provider is not None and made.labels):
                    out.unknown.append((name, made.unknown, book.owner.run_id))
        for name in registry.names if names is None else names:
            provider = await instances.get(name)
            if provider is not None:
                for one in await _listing(provider, run_id, alive, out.problems) or ():
                    seen.setdefault((registry.kind(name), one.ref.id), one)
    out.found = list(seen.values())
    return out


async def _listing(
    provider: GuardedProvider, run_id: str | None, alive: Collection[str], problems: list[str]
) -> list[Found] | None:
    try:
        return await _found_on(provider, run_id, alive)
    except Exception as error:
        problems.append(f"{provider.name} could not be listed: {describe(error)}")
        return None


async def reap_ledgers(
    registry: Registry,
    folder: Path,
    *,
    timeout_s: float = 30.0,
    run_id: str | None = None,
    names: Collection[str] | None = None,
) -> Reaped:
    """Destroy what the owners of these ledgers left, where they are dead; of one run or all, on some providers or all.

    With a run that is named, an owner that cannot be seen from here counts as dead.
    """
    reaped = Reaped()
    try:
        found = [book for book in books(folder) if run_id in (None, book.owner.run_id)]
    except OSError as error:
        reaped.problems.append(("", f"the ledger cannot be read: {error}"))
        return reaped
    dead = [book for book in found if book.standing == "dead" or (run_id and book.standing == "elsewhere")]
    if dead:
        async with _instances(registry, timeout_s) as instances:
            for book in dead:
                try:
                    with taken(book.path) as free:
                        if free and await _clear(book, instances, reaped, names):
                            book.path.unlink(missing_ok=True)
                except FileNotFoundError:
                    pass  # somebody else was quicker
                except Exception as error:
                    reaped.problems.append((book.owner.run_id, describe(error)))
    return reaped


async def _clear(book: Book, instances: _Instances, reaped: Reaped, names: Collection[str] | None) -> bool:
    """Destroy all that a ledger leads to. True when nothing of it can be left."""
    if book.spoilt:
        run = book.owner.run_id
        problem = f"its ledger {book.path} cannot be read; look where it may have made something"
        reaped.problems.append((run, f"{problem}, then `sandboxbench reap --forget {run}`"))
    done = not book.spoilt
    for name, made in book.made.items():
        if not made.live and not made.unknown:
            continue
        if names is not None and name not in names:
            done = False
            continue
        provider = await instances.get(name, made)
        if provider is not None and id(provider.unguarded) in instances.silent:
            done = False
            continue
        if provider is None:
            reaped.problems.append((book.owner.run_id, instances.problems[name]))
            done = False
            continue
        cleared = await instances.clear(provider, book.owner, made.live.values())
        clean = _note(cleared, book.owner, reaped)
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
