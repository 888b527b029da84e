"""One run in one process: providers made ready, blocks measured, records kept. Knows no pytest."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from .clearing import Cleared, clear
from .clock import NS_PER_S, now_ns
from .ending import STOPS_S, to_its_end
from .facts import guest_command, parse_guest, provider_facts
from .guests import Unlike
from .ledger import Ledger, folder_of_user, this_process
from .load.admission import Admission
from .load.barrier import ALONE, Aborted, Barrier
from .load.block import Block, BlockPlan, BlockRunner, Left
from .load.deadlines import Pulse, bounded, describe, stop
from .load.desk import Desk, LocalDesk, Slots
from .load.guard import GuardedProvider, GuardedSandbox
from .load.operations import Scenario
from .load.preflight import ask, ask_provider, secrets_of
from .load.watchdog import Watchdog
from .model import Preflight, Sample, SandboxRef, SandboxSpec
from .providers.limits import Limits
from .providers.protocol import Limited, Provider
from .providers.registry import Registry
from .reaping import Reaped, reap_ledgers
from .records.redaction import hide, redactor
from .records.schema import encode, lines
from .records.spool import Spool
from .run_header import RunHeader
from .run_settings import Settings

__all__ = ["FLOOR", "Measuring", "Settings", "ask"]

FLOOR = "null"


class Told(Protocol):
    """Gets what is measured as it happens, where another process has to show it."""

    def rows(self, text: bytes) -> None: ...

    def header(self, text: bytes) -> None: ...


class Measuring:
    """Runs blocks and keeps everything that a report needs in ``header`` and in the spooled samples."""

    def __init__(
        self,
        registry: Registry,
        settings: Settings,
        *,
        run_id: str,
        folder: Path,
        spool_name: str = "samples.jsonl",
        origin_ns: int | None = None,
        progress: Callable[[str, str, int, int], None] | None = None,
        told: Told | None = None,
        desk: Desk | None = None,
    ) -> None:
        """``origin_ns`` is the run's, where it has several processes; ``told`` gets what somebody else has to show.

        ``desk`` keeps our limits over all processes; without one this process is the only one.
        """
        self._registry = registry
        self._settings = settings
        self._progress = progress
        self._told = told
        self._providers: dict[str, Provider] = {}
        self._specs: dict[str, SandboxSpec] = {}
        self._preflights: dict[str, Preflight] = {}
        self._spool = Spool(folder, spool_name)
        self._origin = now_ns() if origin_ns is None else origin_ns
        self._block_lines: list[bytes] = []
        self._looked: set[str] = set()
        self._unlike = Unlike()
        self._worked: set[str] = set()
        self._secrets = secrets_of(registry)
        self.told = partial(hide, known=self._secrets)
        self._watchdog = Watchdog()
        self._limits: dict[str, Limits] = {}
        most = settings.max_sandboxes
        desk = desk or LocalDesk(Slots(self._limits, int(settings.timeout_s * NS_PER_S), most))
        self.admission = Admission(desk, self._limits, settings.timeout_s, most)
        self._seed = secrets.randbits(32) if settings.seed is None else settings.seed
        self._task: asyncio.Task[Any] | None = None  # measures a block at this moment
        self.run_id = run_id
        self.folder = folder
        self.left: list[Left] = []
        self.problem = ""
        self.owner = this_process(run_id)
        self.ledger = Ledger(folder_of_user(), self.owner, redactor(self._secrets))
        self.header = RunHeader(
            folder,
            run_id,
            origin_ns=self._origin,
            seed=self._seed,
            secrets=self._secrets,
            told=None if told is None else told.header,
        )

    # -- providers

    async def preflight(self, name: str) -> Preflight:
        """Whether a provider can run, asked once. A second is all it gets."""
        known = self._preflights.get(name)
        if known is None:
            known = self._preflights[name] = await self._ask(name)
        return known

    async def _ask(self, name: str) -> Preflight:
        answer, provider = await ask_provider(self._registry, name)
        if provider is None:
            return answer
        self._specs[name] = self._registry.spec(name)
        self._providers[name] = provider
        if limits := self._registry.limits(name):
            self._limits[name] = limits
        if answer.ready:
            self.ledger.can(name, self._registry.kind(name), self._registry.options(name), provider.capabilities)
            kind, options = self._registry.kind(name), self._registry.options(name)
            said = provider_facts(kind, options, provider.capabilities, answer)
            self.header.provider(name, {**said, "limiter": limits.facts()} if limits else said)
        return answer

    def provider(self, name: str) -> Provider:
        """A provider whose preflight said ready."""
        return self._providers[name]

    def guarded(self, name: str) -> GuardedProvider:
        """The same with our deadlines around it, for fixtures outside of blocks."""
        timeout_s = self._settings.timeout_s
        return GuardedProvider(
            self._providers[name],
            owner=self.owner,
            spec=self._specs[name],
            timeout_s=timeout_s,
            pulse=Pulse(timeout_s, self._watchdog.expect, self._watchdog.rest),
            ledger=self.ledger,
            admission=self.admission,
        )

    def watching(self) -> AbstractContextManager[None]:
        """Interrupts a call through :meth:`guarded` that blocks the event loop."""
        self._watchdog.rest()
        return self._watchdog.watching()

    # -- blocks

    async def plan(
        self,
        block_id: str,
        scenario: Scenario,
        level: int,
        names: Sequence[str],
        *,
        samples: int | None = None,
        warmup: int | None = None,
        variants: tuple[tuple[str, str], ...] = (),
        shape: str = "burst",
    ) -> Block:
        """Which providers take part, and how often. Those that are missing or lack a capability are left out."""
        able = [name for name in names if (await self.preflight(name)).ready and not self.lacks(name, scenario)]
        hosted = any(self.provider(name).capabilities.hosted for name in able)
        floor = await self._floor(able, scenario)
        settings = self._settings
        plan = BlockPlan(
            rounds=settings.rounds_of(shape, level, samples, hosted=hosted),
            warmup=settings.warmups_of(warmup),
            seed=self._seed,
            timeout_s=settings.timeout_s,
            max_time_s=settings.max_time_s,
            min_rounds=settings.min_rounds,
        )
        everyone = tuple(able) if floor is None or floor in able else (*able, floor)
        return Block(block_id, scenario, level, everyone, floor, plan, shape, variants)

    def lacks(self, name: str, scenario: Scenario) -> str:
        return scenario.lacks(self._providers[name].capabilities)

    async def _floor(self, names: Sequence[str], scenario: Scenario) -> str | None:
        """The bare process stands beside local systems; beside a hosted or scripted one it would say nothing."""
        kinds = [(name, self.provider(name).capabilities) for name in names if name != FLOOR]
        local = [name for name, can in kinds if not can.hosted and can.isolation != "scripted"]
        wanted = self._settings.floor
        if self._settings.quick or not local or wanted == "none" or (scenario.own and wanted != "all"):
            return None
        if not (await self.preflight(FLOOR)).ready or self.lacks(FLOOR, scenario):
            return None
        return FLOOR

    @property
    def last_block(self) -> bytes:
        """The samples of the block that ran last, whole or not, as JSON lines; they are on disk by then."""
        return b"".join(self._block_lines)

    async def follow(self, block: Block, plan: Mapping[str, Any]) -> Block:
        """The same block as the process plans it that leads. ``Aborted`` where this one cannot take part."""
        for name in plan["providers"]:
            answer = await self.preflight(name)
            lacking = answer.reason if not answer.ready else self.lacks(name, block.scenario)
            if lacking:
                raise Aborted(f"{name} is not ready in every worker: {self.told(lacking)}")
        amount = replace(block.plan, rounds=plan["rounds"], warmup=plan["warmup"], more=tuple(plan["more"]))
        return replace(block, providers=tuple(plan["providers"]), floor=plan["floor"], plan=amount)

    def most_rounds(self, block: Block) -> int:
        """How many rounds a block may take whose budgets are not decided by those that were planned."""
        hosted = any(self.provider(name).capabilities.hosted for name in block.providers)
        return self._settings.most(block.plan.rounds, hosted=hosted)

    async def run(
        self,
        block: Block,
        asked: Mapping[str, Sequence[str]] | None = None,
        barrier: Barrier = ALONE,
        enough: Callable[[bytes], bool] = lambda _others: True,
    ) -> None:
        """Measure a block. Interrupted, ``last_block`` holds what was measured until then.

        ``Aborted`` when one of those behind the barrier can go on no more.

        ``asked`` names, by provider, the operations that a person selected: the report shows those, and their floor.
        A block always measures all operations of its scenario.
        """
        self.header.leads = barrier.rank == 0
        self.header.begin(block, asked, barrier.size)
        self._block_lines = []
        runner = BlockRunner(
            {name: self._providers[name] for name in block.providers},
            self.owner,
            {name: self._specs[name] for name in block.providers},
            self,
            self._look if self.header.leads else None,
            self._watchdog,
            self.ledger,
            barrier,
            self.admission,
            enough,
        )
        complete, why = False, ""
        self._task = asyncio.current_task()
        try:
            await runner.run(block)
            complete = True
            if self.header.leads:
                await self._look_apart(block)
            await self._find_late(block)
        except Aborted as error:
            why = str(error)
            raise
        finally:
            self._task = None
            self.header.end(complete=complete, why=why)

    # -- observing a block

    def turn(self, block: Block, samples: Sequence[Sample]) -> None:
        self._worked.update(sample.key.provider for sample in samples if sample.outcome == "ok")
        text = lines(encode(sample, self._origin, self._secrets) for sample in samples)
        self._spool.append(text)
        self._block_lines.append(text)
        if samples:
            self.header.turn_ends(samples[0].key.provider)
        if self._told is not None and text:
            self._told.rows(text)

    def progress(self, block: Block, provider: str, done: int, planned: int) -> None:
        self.header.turn_begins()
        if self._progress is not None:
            self._progress(block.id, provider, done, planned)

    def leak(self, left: Left) -> None:
        self.left.append(Left(left.ref, self.told(left.reason)))

    async def _look(self, name: str, sandbox: GuardedSandbox) -> None:
        """Facts from inside the first live sandbox of a provider; never inside a timed region."""
        if name in self._looked:
            self._unlike.check(name)
            return
        self._looked.add(name)
        try:
            result = await sandbox.exec(guest_command())
            inner = sandbox.unguarded
            enforced = {str(k): str(v) for k, v in inner.enforced.items()} if isinstance(inner, Limited) else {}
        except Exception:
            return  # facts are missing then; what is measured tells of its own failures
        facts: Mapping[str, str] = parse_guest(result.stdout)
        self.header.guest(name, facts)
        self.header.limits(name, enforced, sorted(sandbox.unenforced))
        self._unlike.compare(name, self._specs[name], facts, {*enforced, *sandbox.unenforced})

    async def _look_apart(self, block: Block) -> None:
        """A block whose sandboxes run one command only shows no guest from inside: a local one is made for it."""
        for name in block.providers:
            can = self._providers[name].capabilities
            if name in self._looked or name not in self._worked or can.hosted or can.isolation == "scripted":
                continue
            provider = self.guarded(name)
            try:
                await self._look(name, await provider.create())
            except Exception:
                pass  # what is measured tells of it
            for ref, reason in await provider.destroy_all():
                self.leak(Left(ref, reason))

    async def _find_late(self, block: Block) -> None:
        """A create that timed out on our side may have made something all the same: it would count against a quota."""
        for name in block.providers:
            if self.ledger.unknown[name]:
                with self._watchdog.watching():
                    await self._clear(name)

    # -- the end

    async def reap(self) -> Reaped:
        """Destroy what earlier runs of this user left, where their processes are dead."""
        timeout_s = min(10.0, self._settings.timeout_s)  # nobody shall wait long for the rest of an earlier run
        return await reap_ledgers(self._registry, folder_of_user(), timeout_s=timeout_s)

    async def aclose(self, *, interrupts: int = 0) -> None:
        """Destroy what this run still owns, close the clients, finish the records: after two interrupts only this.

        The first interrupt does not keep it from its end, one that comes after another does.
        """
        try:
            if interrupts < 2:
                await to_its_end(self._close_all(), interrupted=interrupts > 0)
            elif self._task is not None:
                await stop(self._task, STOPS_S)
        finally:
            self.finish()

    async def _close_all(self) -> None:
        if self._task is not None:  # an exception went through the event loop, and left it in the middle
            await stop(self._task, self._settings.timeout_s + STOPS_S)
        with self._watchdog.watching():
            for name, provider in self._providers.items():
                if name in self._preflights and self._preflights[name].ready:
                    await self._close(name, provider)
            self._watchdog.rest()

    def finish(self) -> None:
        """Finish the records and the ledger, once."""
        self.header.finish()
        self._spool.close()
        self.ledger.close()
        self.problem = self._spool.problem or self.header.problem or self.problem or self.ledger.problem

    async def _close(self, name: str, provider: Provider) -> None:
        # What a block could not destroy is tried once more: only what is left in the end is a leak.
        again = [left.ref for left in self.left if left.ref.provider == name and left.ref.id != "?"]
        self.left = [left for left in self.left if left.ref.provider != name]
        known = {ref.id: ref for ref in again} | {ref.id: ref for (n, _), ref in self.ledger.live.items() if n == name}
        cleared = await self._clear(name, known.values(), late=self.ledger.unknown[name])
        can = provider.capabilities
        if cleared.is_clean and can.labels and not can.hosted:
            self.ledger.over(name, self.ledger.unknown[name])
        try:
            self._watchdog.expect(time.monotonic() + self._settings.timeout_s)
            await bounded("aclose", provider.aclose(), self._settings.timeout_s)
        except Exception as error:
            self.problem = self.problem or hide(f"{name} did not close: {describe(error)}", self._secrets)

    async def _clear(self, name: str, known: Iterable[SandboxRef] = (), *, late: int = 0) -> Cleared:
        """Destroy what is known and what the provider lists as ours; without ``known``, of that what is nobody's."""
        known = list(known)
        # Two instances of one kind list each other's.
        booked = {id_ for _name, id_ in self.ledger.live}
        live = booked - {ref.id for ref in known}
        cleared = await clear(self.guarded(name), self.owner, known, spare=live, late=late)
        for ref, reason in cleared.left:
            self.leak(Left(ref, reason))
            if ref.id != "?":
                self.ledger.still(ref)
        for ref in cleared.destroyed:
            if ref.id not in booked:
                self.ledger.made(ref)
                self.ledger.gone(ref)
        self.ledger.settle()
        if cleared.is_clean:
            self.admission.cleared(name)
        return cleared
