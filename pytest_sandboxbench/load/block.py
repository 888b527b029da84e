"""A block: one scenario at one level on all chosen providers and the floor, interleaved.

Turns of a block follow each other; in each turn one provider runs one round, with all lanes of the level, let go as the
load shape says.
In every round the providers' order is drawn anew from the seed, so that a drift of the host falls on all of them alike.
"""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from ..clock import NS_PER_S, now_ns
from ..errors import OperationTimeout, UsageError
from ..ledger import Ledger
from ..model import Owner, Sample, SandboxRef, SandboxSpec
from ..providers.protocol import Provider
from .admission import Admission
from .barrier import ALONE, Barrier
from .deadlines import GRACE_S, Pulse, forget
from .gate import Gate
from .guard import GuardedProvider, GuardedSandbox
from .lanes import Lane
from .lives import Lives
from .operations import Scenario
from .requests import Requests
from .shapes import Shape, parse_shape
from .watchdog import Watchdog

__all__ = ["Block", "BlockPlan", "BlockRunner", "Left", "Observer"]


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """How much is measured: counted exactly, warm-ups apart.

    ``max_time_s`` ends the block early once at least ``min_rounds`` rounds are complete. ``more`` are numbers of rounds
    at which it ends as well if what was measured until then is enough to judge, ascending, above ``rounds``.
    """

    rounds: int
    warmup: int
    seed: int
    timeout_s: float
    max_time_s: float | None = None
    min_rounds: int = 1
    more: tuple[int, ...] = ()

    @property
    def looks(self) -> tuple[int, ...]:
        """The numbers of rounds after which it may end."""
        return (self.rounds, *self.more)


@dataclass(frozen=True, slots=True)
class Block:
    """What is measured together. ``floor`` is the one of ``providers`` that stands for "no sandbox", if any.

    ``shape`` is the text of a :class:`Shape`, as it stands in the keys of the series.
    """

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


class Observer(Protocol):
    """Told what happens, between the timed regions."""

    def turn(self, block: Block, samples: Sequence[Sample]) -> None: ...

    def progress(self, block: Block, provider: str, done: int, planned: int) -> None: ...

    def leak(self, left: Left) -> None: ...


@dataclass
class BlockRunner:
    """Runs blocks on providers that are ready. ``before_timing`` may look into the first live sandbox of a provider.

    With others behind the ``barrier`` it drives its share of the lanes; all draw the same order of providers.
    ``enough`` says whether more rounds would tell nothing new; it gets the others' samples, as JSON lines.
    """

    providers: Mapping[str, Provider]
    owner: Owner
    specs: Mapping[str, SandboxSpec]
    observer: Observer
    before_timing: Callable[[str, GuardedSandbox], Awaitable[None]] | None = None
    watchdog: Watchdog = field(default_factory=Watchdog)
    ledger: Ledger | None = None
    barrier: Barrier = ALONE
    admission: Admission | None = None
    enough: Callable[[bytes], bool] = lambda _others: True

    async def run(self, block: Block) -> None:
        """Measure a block. ``Aborted`` when another process can go on no more; then the rounds until there count.

        ``UsageError`` for a shape that cannot be had at this level.
        """
        shape = parse_shape(block.shape)
        if lacking := shape.lacks(block.level):
            raise UsageError(lacking)
        draw = random.Random(f"{block.plan.seed}/{block.id}")
        warmup, started, turn = block.plan.warmup, now_ns(), 0
        planned = 0
        try:
            with self.watchdog.watching():
                for number in range(-warmup, block.plan.looks[-1]):
                    if number in block.plan.looks and await self.barrier.enough(self.enough):
                        break
                    upto = next(rounds for rounds in block.plan.looks if rounds > number)
                    planned = len(block.providers) * (warmup + upto)
                    order = list(block.providers)
                    draw.shuffle(order)
                    over = False
                    for name in order:
                        self.observer.progress(block, name, turn, planned)
                        over = await self._turn(block, shape, name, number, turn, started)
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

    async def _turn(self, block: Block, shape: Shape, name: str, number: int, turn: int, began: int) -> bool:
        """One round of one provider: all lanes, then everything destroyed, nothing of it timed unless named.

        Interrupted or not, what was made is destroyed and what was measured is handed on. Whether the time is over.
        """
        indices = range(self.barrier.rank, block.level, self.barrier.size)
        gate = Gate(indices, self.barrier, shape)
        requests = Requests(shape, block.level, indices, partial(self._book, name), partial(self._unbook, name))
        lanes: list[Lives] = []
        collecting = gc.isenabled()
        gc.disable()
        try:
            for index in indices:
                begin = partial(self._lane, block, name, number, turn, index, gate, requests)
                lanes.append(Lives(block.scenario, gate, requests, index, begin))
            await self._supervise(lanes, gate, block.plan.timeout_s)
            # Nothing is destroyed while the lanes of others are still timed.
            return await self.barrier.done(self._is_over(block.plan, number + 1, began))
        finally:
            gate.close()
            if collecting:
                gc.enable()
            try:
                await self._end(lanes, requests)
            finally:
                self.watchdog.rest()
                self.observer.turn(block, [sample for lives in lanes for sample in lives.samples])

    async def _end(self, lanes: Sequence[Lives], requests: Requests) -> None:
        requests.close()
        running = [lives for lives in lanes if not lives.task.done()]
        for lives in running:
            lives.lane.stop()
            lives.stop()
        if running:
            await asyncio.wait([lives.task for lives in running], timeout=GRACE_S)
        await asyncio.gather(*(lives.end() for lives in lanes))
        for lives in lanes:
            for ref, reason in lives.left:
                self.observer.leak(Left(ref, reason))
        for lives in running:
            if not lives.task.done():
                forget(lives.task)
        if self.ledger is not None:
            self.ledger.settle()

    def _book(self, name: str, number: int) -> bool:
        """So many creates, written down before the lanes are released: no write falls into what is timed."""
        if self.ledger is None:
            return False
        try:
            self.ledger.making(name, number)
        except OSError:
            return False  # each create says so itself
        return True

    def _unbook(self, name: str, number: int) -> None:
        if self.ledger is not None:
            self.ledger.over(name, number)

    def _lane(
        self, block: Block, name: str, number: int, turn: int, index: int, gate: Gate, requests: Requests
    ) -> Lane:
        pulse = Pulse(block.plan.timeout_s, self.watchdog.expect)
        provider = GuardedProvider(
            self.providers[name],
            owner=self.owner,
            spec=self.specs[name],
            timeout_s=block.plan.timeout_s,
            pulse=pulse,
            ledger=self.ledger,
            booked=requests.begin(),
            admission=self.admission,
        )
        look = self.before_timing
        return Lane(
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

    async def _supervise(self, lanes: Sequence[Lives], gate: Gate, timeout_s: float) -> None:
        """Wait for all lanes; one that shows no sign of life past its deadline is cancelled, then abandoned."""
        loop = asyncio.get_running_loop()
        pending = {lives.task: lives for lives in lanes}
        while pending:
            ends = [expires for lives in pending.values() if (expires := lives.expires) is not None]
            wait_s = max(0.0, min(ends) - loop.time()) if ends else timeout_s
            # Not at every lane's end: the others are still timed.
            done, _ = await asyncio.wait(pending, timeout=wait_s, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                lives = pending.pop(task)
                if task.cancelled():
                    lives.lane.give_up(asyncio.CancelledError("the adapter cancelled the operation by itself"))
                elif (error := task.exception()) is not None:
                    raise error
            late = [lives for lives in pending.values() if lives.is_late(loop.time())]
            if late:
                await self._abandon(late, gate, timeout_s)
                for lives in late:
                    del pending[lives.task]

    async def _abandon(self, late: Sequence[Lives], gate: Gate, timeout_s: float) -> None:
        """A lane whose call does not even stop when it is cancelled makes no more requests: it may still be busy."""
        for lives in late:
            # A call into the provider was cancelled before, at its own deadline.
            tried = lives.lane.pulse.tried
            lives.lane.give_up(
                OperationTimeout(
                    tried or "the operation",
                    after_s=timeout_s,
                    said="the adapter did not stop when it was cancelled" if tried else "",
                    cure=f"the deadline was {timeout_s:g} s; --sandbox-timeout sets it",
                )
            )
            lives.stop()
        self.watchdog.expect(asyncio.get_running_loop().time() + timeout_s)
        await asyncio.wait([lives.task for lives in late], timeout=GRACE_S)
        for lives in late:
            gate.leave(lives.index)
