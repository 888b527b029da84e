"""A block: one scenario at one level on all chosen providers and the floor, interleaved.

Turns of a block follow each other; in each turn one provider runs one round, with all lanes of the level at once.
In every round the providers' order is drawn anew from the seed, so that a drift of the host falls on all of them alike.
"""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ..clock import NS_PER_S, now_ns
from ..errors import OperationTimeout
from ..ledger import Ledger
from ..model import Owner, Sample, SandboxRef, SandboxSpec
from ..providers.protocol import Provider
from .barrier import ALONE, Aborted, Barrier
from .deadlines import GRACE_S, Pulse, forget
from .guard import GuardedProvider, GuardedSandbox
from .lanes import Gate, Lane
from .operations import Scenario
from .watchdog import LoopBlocked, Watchdog

__all__ = ["Block", "BlockPlan", "BlockRunner", "Left", "Observer"]


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """How much is measured: counted exactly, warm-ups apart.

    ``max_time_s`` ends the block early once at least ``min_rounds`` rounds are complete.
    """

    rounds: int
    warmup: int
    seed: int
    timeout_s: float
    max_time_s: float | None = None
    min_rounds: int = 1


@dataclass(frozen=True, slots=True)
class Block:
    """What is measured together. ``floor`` is the one of ``providers`` that stands for "no sandbox", if any."""

    id: str
    scenario: Scenario
    level: int
    providers: tuple[str, ...]
    floor: str | None
    plan: BlockPlan
    shape: str = "burst"
    variants: tuple[tuple[str, str], ...] = ()

    @property
    def key_variants(self) -> tuple[tuple[str, str], ...]:
        """What is in the key of every series of the block."""
        return (*self.scenario.variants, *self.variants)


@dataclass(frozen=True, slots=True)
class Left:
    """A sandbox that could not be destroyed."""

    ref: SandboxRef
    reason: str


@dataclass(frozen=True, slots=True)
class _Life:
    lane: Lane
    pulse: Pulse
    task: asyncio.Task[None]


class Observer(Protocol):
    """Told what happens, between the timed regions."""

    def turn(self, block: Block, samples: Sequence[Sample]) -> None: ...

    def progress(self, block: Block, provider: str, done: int, planned: int) -> None: ...

    def leak(self, left: Left) -> None: ...


@dataclass
class BlockRunner:
    """Runs blocks on providers that are ready. ``before_timing`` may look into the first live sandbox of a provider.

    With others behind the ``barrier`` it drives its share of the lanes; all draw the same order of providers.
    """

    providers: Mapping[str, Provider]
    owner: Owner
    specs: Mapping[str, SandboxSpec]
    observer: Observer
    before_timing: Callable[[str, GuardedSandbox], Awaitable[None]] | None = None
    watchdog: Watchdog = field(default_factory=Watchdog)
    ledger: Ledger | None = None
    barrier: Barrier = ALONE

    async def run(self, block: Block) -> None:
        """Measure a block. ``Aborted`` when another process can go on no more; then the rounds until there count."""
        draw = random.Random(f"{block.plan.seed}/{block.id}")
        planned = len(block.providers) * (block.plan.warmup + block.plan.rounds)
        started, turn = now_ns(), 0
        try:
            with self.watchdog.watching():
                for number in range(-block.plan.warmup, block.plan.rounds):
                    order = list(block.providers)
                    draw.shuffle(order)
                    over = False
                    for name in order:
                        self.observer.progress(block, name, turn, planned)
                        over = await self._turn(block, name, number, turn, started)
                        turn += 1
                    if over:
                        break
        finally:
            self.observer.progress(block, "", planned, planned)

    @staticmethod
    def _is_over(plan: BlockPlan, number: int, started: int) -> bool:
        if plan.max_time_s is None or number < plan.min_rounds:
            return False
        return (now_ns() - started) / NS_PER_S >= plan.max_time_s

    async def _turn(self, block: Block, name: str, number: int, turn: int, began: int) -> bool:
        """One round of one provider: all lanes together, then everything destroyed, nothing of it timed unless named.

        Interrupted or not, what was made is destroyed and what was measured is handed on. Whether the time is over.
        """
        indices = range(self.barrier.rank, block.level, self.barrier.size)
        gate = Gate(indices, self.barrier)
        booked = self._book(name, len(indices))
        lives: list[_Life] = []
        collecting = gc.isenabled()
        gc.disable()
        try:
            for index in indices:
                lane, pulse = self._lane(block, name, number, turn, index, gate, booked)
                lives.append(_Life(lane, pulse, asyncio.create_task(self._live(block.scenario, lane, gate))))
            await self._supervise(lives, gate, block.plan.timeout_s)
            # Nothing is destroyed while the lanes of others are still timed.
            return await self.barrier.done(self._is_over(block.plan, number + 1, began))
        finally:
            if collecting:
                gc.enable()
            try:
                await self._end(lives)
            finally:
                self.watchdog.rest()
                self.observer.turn(block, [sample for life in lives for sample in life.lane.samples])

    async def _end(self, lives: Sequence[_Life]) -> None:
        running = [life for life in lives if not life.task.done()]
        for life in running:
            life.lane.stop()
            life.task.cancel()
        if running:
            await asyncio.wait([life.task for life in running], timeout=GRACE_S)
        for left in await asyncio.gather(*(life.lane.provider.destroy_all() for life in lives)):
            for ref, reason in left:
                self.observer.leak(Left(ref, reason))
        for life in running:
            if not life.task.done():
                forget(life.task)
        for life in lives:
            life.lane.provider.unbook()
        if self.ledger is not None:
            self.ledger.settle()

    def _book(self, name: str, level: int) -> int:
        """One create a lane, written down before the lanes are released: no write falls into what is timed."""
        if self.ledger is None:
            return 0
        try:
            self.ledger.making(name, level)
        except OSError:
            return 0  # each create says so itself
        return 1

    def _lane(
        self, block: Block, name: str, number: int, turn: int, index: int, gate: Gate, booked: int
    ) -> tuple[Lane, Pulse]:
        pulse = Pulse(block.plan.timeout_s, self.watchdog.expect)
        provider = GuardedProvider(
            self.providers[name],
            owner=self.owner,
            spec=self.specs[name],
            timeout_s=block.plan.timeout_s,
            pulse=pulse,
            ledger=self.ledger,
            booked=booked,
        )
        look = self.before_timing
        lane = Lane(
            index=index,
            round_=number,
            turn=turn,
            warmup=number < 0,
            provider=provider,
            gate=gate,
            pulse=pulse,
            operations=block.scenario.operations,
            level=block.level,
            shape=block.shape,
            variants=block.key_variants,
            before_timing=None if look is None else lambda sandbox: look(name, sandbox),
        )
        return lane, pulse

    @staticmethod
    async def _live(scenario: Scenario, lane: Lane, gate: Gate) -> None:
        try:
            await scenario.live(lane)
        except Aborted:
            lane.stop()
        except (Exception, LoopBlocked) as error:
            lane.give_up(error)
        else:
            lane.finish()
        finally:
            gate.leave(lane.index)

    async def _supervise(self, lives: Sequence[_Life], gate: Gate, timeout_s: float) -> None:
        """Wait for all lanes; one that shows no sign of life past its deadline is cancelled, then abandoned."""
        loop = asyncio.get_running_loop()
        pending = {life.task: life for life in lives}
        while pending:
            ends = [life.pulse.expires for life in pending.values() if life.pulse.expires is not None]
            wait_s = max(0.0, min(ends) - loop.time()) if ends else timeout_s
            if self.barrier.beat_s is not None:
                wait_s = min(wait_s, self.barrier.beat_s)
            done, _ = await asyncio.wait(pending, timeout=wait_s)
            self.barrier.alive()
            for task in done:
                life = pending.pop(task)
                if task.cancelled():
                    life.lane.give_up(asyncio.CancelledError("the adapter cancelled the operation by itself"))
                elif (error := task.exception()) is not None:
                    raise error
            late = [life for life in pending.values() if life.pulse.is_late(loop.time())]
            if late:
                await self._abandon(late, gate, timeout_s)
                for life in late:
                    del pending[life.task]

    async def _abandon(self, late: Sequence[_Life], gate: Gate, timeout_s: float) -> None:
        for life in late:
            # A call into the provider was cancelled before, at its own deadline.
            tried = life.pulse.tried
            life.lane.give_up(
                OperationTimeout(
                    tried or "the operation",
                    after_s=timeout_s,
                    said="the adapter did not stop when it was cancelled" if tried else "",
                    cure=f"the deadline was {timeout_s:g} s; --sandbox-timeout sets it",
                )
            )
            life.task.cancel()
        self.watchdog.expect(asyncio.get_running_loop().time() + timeout_s)
        await asyncio.wait([life.task for life in late], timeout=GRACE_S)
        for life in late:
            gate.leave(life.lane.index)
