"""A lane: one requester living through one scenario, and the regions that are timed on its way."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ..clock import NS_PER_S, now_ns
from ..errors import ExecFailed, NotReady, SandboxError, UsageError
from ..model import Sample, SandboxRef, SandboxSpec, SeriesKey
from ..providers.queued import queueing
from ..records.generator import SPAWN_QUEUE
from ..records.schema import parse_key
from .admission import TurnedAway
from .deadlines import Pulse, describe, outcome
from .gate import Gate
from .guard import GuardedProvider, GuardedSandbox

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

__all__ = ["Lane", "Span", "run_true", "until_ready"]

_NOT_READY_POLL_S = 0.005


class Span:
    """One timed region under way. ``phase`` splits it; a phase that is an operation of its own becomes a sample too.

    It counts from ``due_ns``, when it should have begun.
    """

    def __init__(self, operation: str, variants: Mapping[str, str], due_ns: int, released_ns: int) -> None:
        self.operation = operation
        self.variants = variants
        self.due_ns = due_ns
        self.released_ns = released_ns
        self.started_ns = now_ns()
        self.phases: dict[str, tuple[int, int]] = {}
        self.own: set[str] = set()
        self.waits: dict[str, tuple[int, int]] = {}
        self.failed_phase = ""
        self._running: tuple[str, int] | None = None
        self.sandbox = ""
        self.path = "cold"
        self.spawns: list[tuple[int, int]] = []

    def reported(self, phases: Mapping[str, tuple[int, int]]) -> None:
        """Add phases that the provider reports. They never stand in for one of ours, nor become a sample.

        Those of an operation before this span are not its phases.
        """
        fitting = {name: (start, end) for name, (start, end) in phases.items() if start >= self.due_ns}
        self.phases.update({name: times for name, times in fitting.items() if name not in self.own})

    def waited(self, start_ns: int, end_ns: int) -> None:
        """Book a wait for room under our limits: phase ``queue``, and ``queue_2`` for another one in the same span."""
        self.waits[f"queue_{len(self.waits) + 1}" if self.waits else "queue"] = (start_ns, end_ns)

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        # The first phase starts with the span itself, so that the phases add up to the whole.
        self._running = (name, now_ns() if self.own else self.due_ns)
        self.own.add(name)
        try:
            yield
        except BaseException:
            self.end_phase(now_ns(), failed=True)
            raise
        else:
            self.end_phase(now_ns(), failed=False)

    def end_phase(self, ended: int, *, failed: bool) -> None:
        """End the phase under way, if there is one."""
        if self._running is not None:
            name, started = self._running
            self._running = None
            self.phases[name] = (started, ended)
            if failed:
                self.failed_phase = name


class Lane:
    """What a scenario sees: a provider, ways to make sandboxes, and ``timed`` regions.

    Everything made through it is destroyed at the end of its life, whatever happens.
    """

    def __init__(
        self,
        index: int,
        round_: int,
        turn: int,
        warmup: bool,
        provider: GuardedProvider,
        gate: Gate,
        pulse: Pulse,
        operations: tuple[str, ...],
        level: int,
        shape: str,
        variants: tuple[tuple[str, str], ...],
        before_timing: Callable[[GuardedSandbox], Awaitable[None]] | None,
    ) -> None:
        self.index = index
        self.round = round_
        self.turn = turn
        self.warmup = warmup
        self.provider = provider
        self.samples: list[Sample] = []
        self._gate = gate
        self.pulse = pulse
        self._operations = operations
        self._level = level
        self._shape = shape
        self._variants = variants
        self._before_timing = before_timing
        self._sandbox: GuardedSandbox | None = None
        self._open: Span | None = None
        self._over = False
        self._born = now_ns()
        self.crowded = provider.limits.max_live is not None and level > provider.limits.max_live
        """Not all lanes can have a sandbox at once: none may keep its own until the others have one."""
        provider.on_wait = self._waited

    # -- for scenarios

    async def create(self, spec: SandboxSpec | None = None) -> GuardedSandbox:
        """Make a sandbox, and no more: whether it answers is not asked."""
        self._sandbox = await self.provider.create(spec)
        if self._open is not None:
            self._open.sandbox = self._sandbox.id
            self._open.path = self._sandbox.path
        return self._sandbox

    async def ready(self, sandbox: GuardedSandbox) -> None:
        """The first command, ``true``, returns 0. Asked again while the sandbox says that it is not ready."""
        await until_ready(sandbox, self.pulse.timeout_s)

    async def true(self, sandbox: GuardedSandbox) -> None:
        """One ``true`` round trip; anything but exit code 0 is an error."""
        await run_true(sandbox)

    async def sandbox(self, spec: SandboxSpec | None = None) -> GuardedSandbox:
        """A sandbox that has answered a first command: warm, and outside any timed region."""
        sandbox = await self.create(spec)
        await self.ready(sandbox)
        return sandbox

    async def destroy(self, sandbox: GuardedSandbox | SandboxRef) -> None:
        await self.provider.destroy(sandbox)
        self._sandbox = None

    @contextlib.asynccontextmanager
    async def timed(
        self, operation: str, *, variants: Mapping[str, str] | None = None, together: bool = True
    ) -> AsyncIterator[Span]:
        """Time a region as one sample of ``operation``.

        With several lanes all of them are released together, as the load shape says, unless ``together`` is false: then
        the region follows the one before it at once. An exception in the region ends the life of the lane and is the
        sample's outcome.
        ``UsageError`` for names that cannot stand in a series key.
        """
        self._check(operation, variants or {})
        if self._before_timing is not None and self._sandbox is not None and not self._sandbox.paused:
            try:
                await self._before_timing(self._sandbox)
            except SandboxError as error:  # the sandbox is not what was asked for: nothing that was timed in it counts
                for sample in list(self.samples):
                    self.spoil(sample.key.operation, error)
                raise
        if together and not (self.crowded and self._sandbox is not None):
            self.pulse.hold()
            due, released = await self._gate.arrive(self.index)
            self.pulse.beat()
        else:
            due = released = now_ns()
        span = self._open = Span(operation, variants or {}, due, released)
        if self._sandbox is not None:
            span.sandbox, span.path = self._sandbox.id, self._sandbox.path
        try:
            with queueing() as span.spawns:
                yield span
        except BaseException as error:
            self._close(span, now_ns(), error)
            raise
        else:
            self._close(span, now_ns(), None)

    def vary(self, name: str, value: str) -> None:
        """Add a variant to every sample from here on, those of operations that are never reached included."""
        self._variants = (*self._variants, (name, value))

    def spoil(self, operation: str, error: Exception) -> None:
        """What was timed turned out not to be what its name says: the sample keeps its times and fails."""
        for i, sample in enumerate(self.samples):
            if sample.key.operation == operation and sample.outcome == "ok":
                self.samples[i] = replace(sample, outcome=outcome(error), error=describe(error))

    # -- for the block

    def give_up(self, error: BaseException) -> None:
        """The life ended with ``error``: every operation that was not reached fails with it, so that none is left out.

        Those were never started: their times are the life's, so that nothing ever reads as 0 ms. An error after the
        last region, a check of what came out for instance, fails the last sample.
        """
        if self._open is not None:
            self._close(self._open, now_ns(), error)
        over, self._over = self._over, True
        if over:
            return
        unreached = self._unreached()
        if not unreached and self.samples and all(s.outcome == "ok" for s in self.samples):
            last = self.samples[-1]
            self.samples[-1] = replace(last, outcome=outcome(error), error=describe(error))
        at = now_ns()
        for operation in unreached:
            key = self._key(operation, {})
            self.samples.append(self._sample(key, self._born, self._born, self._born, at, {}, error, None))

    def finish(self) -> None:
        """The life ended by itself; an operation that it was to time and did not fails."""
        unreached = self._unreached()
        if unreached:
            self.give_up(UsageError(f"the life of the lane ended without timing {', '.join(unreached)}"))
        self._over = True

    def stop(self) -> None:
        """The run is interrupted: what is under way is nobody's failure, and no sample."""
        self._open, self._over = None, True

    def _unreached(self) -> list[str]:
        reached = {s.key.operation for s in self.samples}
        return [operation for operation in self._operations if operation not in reached]

    def _waited(self, start_ns: int, end_ns: int) -> None:
        if self._open is not None:
            self._open.waited(start_ns, end_ns)

    def _check(self, operation: str, variants: Mapping[str, str]) -> None:
        if self._over:
            raise asyncio.CancelledError(f"{operation} after the end of the lane")
        key = self._key(operation, variants)
        try:
            fits = parse_key(str(key)) == key
        except ValueError:
            fits = False
        if not fits:
            raise UsageError(
                f"{str(key)!r} cannot name a series: an operation and its variants are made of letters, digits, "
                "'_', '-' and '+' (a variant's value may hold dots); for example exec or cold_run{program=node}"
            )

    def _close(self, span: Span, ended: int, error: BaseException | None) -> None:
        self._open = None
        span.end_phase(ended, failed=error is not None)
        spawns = span.spawns if self._level > 1 or self._shape != "burst" else []
        if SPAWN_QUEUE in span.phases:  # what the provider reports itself comes first
            spawns = [span.phases[SPAWN_QUEUE]]
        elif spawns:
            span.phases[SPAWN_QUEUE] = _summed(spawns, span.started_ns)
        if self._over:  # an abandoned call came back after all: its sample was written when it was given up
            return
        key = self._key(span.operation, span.variants)
        add = self.samples.append
        phases = span.phases | span.waits
        add(self._sample(key, span.due_ns, span.released_ns, span.started_ns, ended, phases, error, span))
        for name, (started, finished) in span.phases.items():
            if name in self._operations and name in span.own:
                key = self._key(name, span.variants)
                is_first = started == span.due_ns
                began, released = (span.started_ns, span.released_ns) if is_first else (started, started)
                cause = error if name == span.failed_phase else None
                inside = {wait: at for wait, at in span.waits.items() if started <= at[0] and at[1] <= finished}
                if of_phase := [at for at in spawns if started <= at[0] and at[1] <= finished]:
                    inside[SPAWN_QUEUE] = _summed(of_phase, began)
                add(self._sample(key, started, released, began, finished, inside, cause, span))

    def _key(self, operation: str, variants: Mapping[str, str]) -> SeriesKey:
        merged = tuple(sorted({**dict(self._variants), **variants}.items()))
        return SeriesKey(self.provider.name, operation, merged, "", self._level, self._shape)

    def _sample(
        self,
        key: SeriesKey,
        due: int,
        released: int,
        started: int,
        ended: int,
        phases: Mapping[str, tuple[int, int]],
        error: BaseException | None,
        span: Span | None,
    ) -> Sample:
        if isinstance(error, TurnedAway):
            phases = {**phases, "turned_away": error.waited}
        return Sample(
            key=key,
            round=self.round,
            lane=self.index,
            turn=self.turn,
            scheduled_ns=due,
            released_ns=released,
            started_ns=started,
            ended_ns=ended,
            outcome="ok" if error is None else outcome(error),
            path=span.path if span else "cold",
            sandbox=span.sandbox if span else "",
            warmup=self.warmup,
            phases=dict(phases),
            error="" if error is None else describe(error),
        )


def _summed(waits: Sequence[tuple[int, int]], began_ns: int) -> tuple[int, int]:
    """Waits of several calls, one after another, as one phase: how long all of them took."""
    return began_ns, began_ns + sum(end - start for start, end in waits)


async def run_true(sandbox: GuardedSandbox) -> None:
    """One ``true`` round trip. ``ExecFailed`` for anything but exit code 0."""
    result = await sandbox.exec(["true"])
    if result.exit_code != 0:
        raise ExecFailed(
            f"exec ['true'] (exit code {result.exit_code})",
            sandbox=sandbox.id,
            said=result.stderr.decode(errors="replace"),
        )


async def until_ready(sandbox: GuardedSandbox, timeout_s: float) -> None:
    """Run ``true`` until it returns 0, again each 5 ms while the sandbox says ``NotReady``.

    ``NotReady`` with the number of attempts and the last answer when ``timeout_s`` is over.
    """
    started = now_ns()
    attempts = 0
    while True:
        attempts += 1
        try:
            await run_true(sandbox)
        except NotReady as error:
            after_s = (now_ns() - started) / NS_PER_S
            if after_s + _NOT_READY_POLL_S > timeout_s:
                raise NotReady(
                    f"first command (attempt {attempts})",
                    sandbox=sandbox.id,
                    after_s=after_s,
                    said=error.said or str(error),
                    cure=f"the deadline was {timeout_s:g} s; --sandbox-timeout sets it",
                ) from None
            await asyncio.sleep(_NOT_READY_POLL_S)
        else:
            return
