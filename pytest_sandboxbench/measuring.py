"""One run in one process: providers made ready, blocks measured, records kept. Knows no pytest."""

from __future__ import annotations

import asyncio
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from . import __version__
from .clearing import Cleared, clear
from .clock import now_ns
from .ending import STOPS_S, to_its_end
from .facts import guest_command, host_facts, load_average, parse_guest, provider_facts
from .ledger import Ledger, folder_of_user, this_process
from .load.block import Block, BlockPlan, BlockRunner, Left
from .load.deadlines import Pulse, bounded, describe, stop
from .load.guard import GuardedProvider, GuardedSandbox
from .load.operations import OPERATIONS, Scenario
from .load.preflight import ask, ask_provider, secrets_of
from .load.watchdog import Watchdog
from .model import Preflight, Sample, SandboxRef, SandboxSpec
from .providers.protocol import Limited, Provider
from .providers.registry import Registry
from .reaping import Reaped, reap_ledgers
from .records.redaction import hide, hide_arguments, redact, redactor
from .records.schema import SCHEMA, encode, lines
from .records.spool import Spool, write_header

__all__ = ["FLOOR", "Measuring", "Settings", "ask"]

FLOOR = "null"

_LOCAL_ROUNDS = 60  # an upper bound for a 95th percentile needs 59
_HOSTED_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Settings:
    """What a person chose; None is the default, which may depend on the providers of a block."""

    rounds: int | None = None
    warmup: int | None = None
    seed: int | None = None
    timeout_s: float = 60.0
    max_time_s: float | None = None
    min_rounds: int = 1
    floor: str = "auto"
    quick: bool = False
    """One round, no warm-up, no floor: does it work at all?"""


def _asked(block: Block, asked: Mapping[str, Sequence[str]] | None) -> dict[str, list[str]]:
    everything = block.scenario.operations
    if asked is None:
        return {name: list(everything) for name in block.providers}
    shown = {name: [op for op in everything if op in asked.get(name, ())] for name in block.providers}
    if block.floor is not None:
        shown[block.floor] = [op for op in everything if any(op in operations for operations in shown.values())]
    return shown


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
        progress: Callable[[str, str, int, int], None] | None = None,
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._progress = progress
        self._providers: dict[str, Provider] = {}
        self._specs: dict[str, SandboxSpec] = {}
        self._preflights: dict[str, Preflight] = {}
        self._spool = Spool(folder, spool_name)
        self._origin = now_ns()
        self._block_lines: list[bytes] = []
        self._looked: set[str] = set()
        self._worked: set[str] = set()
        self._secrets = secrets_of(registry)
        self.told = partial(hide, known=self._secrets)
        self._watchdog = Watchdog()
        self._seed = secrets.randbits(32) if settings.seed is None else settings.seed
        self._task: asyncio.Task[Any] | None = None  # measures a block at this moment
        self.run_id = run_id
        self.folder = folder
        self.left: list[Left] = []
        self.problem = ""
        self.owner = this_process(run_id)
        self.ledger = Ledger(folder_of_user(), self.owner, redactor(self._secrets))
        self.header: dict[str, Any] = {
            "schema": SCHEMA,
            "version": __version__,
            "run_id": run_id,
            "folder": str(folder),
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "origin_monotonic_ns": self._origin,
            "seed": self._seed,
            "command": hide_arguments(sys.argv),
            "host": host_facts(),
            "providers": {},
            "guests": {},
            "limits": {},
            "operations": {},
            "blocks": [],
            "complete": False,
        }

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
        if answer.ready:
            self.ledger.can(name, self._registry.kind(name), self._registry.options(name), provider.capabilities)
            kind, options = self._registry.kind(name), self._registry.options(name)
            said = provider_facts(kind, options, provider.capabilities, answer)
            self.header["providers"][name] = redact(said, self._secrets)
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
        rounds = settings.rounds or samples or (_HOSTED_ROUNDS if hosted else _LOCAL_ROUNDS)
        warmups = settings.warmup if settings.warmup is not None else 1 if warmup is None else warmup
        plan = BlockPlan(
            rounds=1 if settings.quick else max(rounds, settings.min_rounds),
            warmup=0 if settings.quick else warmups,
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

    async def run(self, block: Block, asked: Mapping[str, Sequence[str]] | None = None) -> None:
        """Measure a block. Interrupted, ``last_block`` holds what was measured until then.

        ``asked`` names, by provider, the operations that a person selected: the report shows those, and their floor.
        A block always measures all operations of its scenario.
        """
        self._define(block.scenario.operations)
        record: dict[str, Any] = {
            "id": block.id,
            "scenario": block.scenario.name,
            "level": block.level,
            "shape": block.shape,
            "variants": dict(block.key_variants),
            "providers": list(block.providers),
            "floor": block.floor,
            "operations": list(block.scenario.operations),
            "asked": _asked(block, asked),
            "rounds": block.plan.rounds,
            "warmup": block.plan.warmup,
            "complete": False,
            "load_average": load_average(),
        }
        self.header["blocks"].append(record)
        self._write_header()
        self._block_lines = []
        runner = BlockRunner(
            {name: self._providers[name] for name in block.providers},
            self.owner,
            {name: self._specs[name] for name in block.providers},
            self,
            self._look,
            self._watchdog,
            self.ledger,
        )
        started = time.monotonic()
        self._task = asyncio.current_task()
        try:
            await runner.run(block)
            record["complete"] = True
            await self._look_apart(block)
            await self._find_late(block)
        finally:
            self._task = None
            record["wall_s"] = round(time.monotonic() - started, 3)
            self._write_header()

    def _define(self, operations: Sequence[str]) -> None:
        """Spans of the operations measured so far, in the order of their definition: tables keep it."""
        wanted = {*self.header["operations"], *operations}
        self.header["operations"] = {
            name: {"start": op.start, "end": op.end, "before": op.before}
            for name, op in OPERATIONS.items()
            if name in wanted
        }

    # -- observing a block

    def turn(self, block: Block, samples: Sequence[Sample]) -> None:
        self._worked.update(sample.key.provider for sample in samples if sample.outcome == "ok")
        text = lines(encode(sample, self._origin, self._secrets) for sample in samples)
        self._spool.append(text)
        self._block_lines.append(text)

    def progress(self, block: Block, provider: str, done: int, planned: int) -> None:
        if self._progress is not None:
            self._progress(block.id, provider, done, planned)

    def leak(self, left: Left) -> None:
        self.left.append(Left(left.ref, self.told(left.reason)))

    async def _look(self, name: str, sandbox: GuardedSandbox) -> None:
        """Facts from inside the first live sandbox of a provider; never inside a timed region."""
        if name in self._looked:
            return
        self._looked.add(name)
        try:
            result = await sandbox.exec(guest_command())
            inner = sandbox.unguarded
            enforced = {str(k): str(v) for k, v in inner.enforced.items()} if isinstance(inner, Limited) else {}
        except Exception:
            return  # facts are missing then; what is measured tells of its own failures
        facts: Mapping[str, str] = parse_guest(result.stdout)
        if facts:
            self.header["guests"][name] = redact(facts, self._secrets)
        if enforced or sandbox.unenforced:
            limits = {"enforced": enforced, "unenforced": sorted(sandbox.unenforced)}
            self.header["limits"][name] = redact(limits, self._secrets)

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
        if "finished" in self.header:
            return
        self.header["complete"] = all(block["complete"] for block in self.header["blocks"])
        self.header["finished"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        if self.header["blocks"]:
            self._write_header()
        self._spool.close()
        self.ledger.close()
        self.problem = self._spool.problem or self.problem or self.ledger.problem

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
        return cleared

    def _write_header(self) -> None:
        self.problem = write_header(self.folder, redact(self.header, self._secrets)) or self.problem
