"""How the tests of the measuring core run blocks, and what they look at afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from pytest_sandboxbench.load.block import Block, BlockPlan, BlockRunner, Left
from pytest_sandboxbench.load.lanes import Lane
from pytest_sandboxbench.load.operations import SCENARIOS, Scenario
from pytest_sandboxbench.model import Owner, Sample, SandboxSpec
from pytest_sandboxbench.providers.fake import FakeProvider, factory

OWNER = Owner("run-1", "here", 1, "0")
TIMEOUT_S = 0.3
GIVEN_UP_S = 3 * TIMEOUT_S
"""Far more than our grace after the deadline, far less than what a scripted ``hang`` or ``swallow`` takes."""


class Notes:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.turns: list[list[Sample]] = []
        self.leaks: list[Left] = []
        self.told: list[tuple[str, int, int]] = []

    def turn(self, block: Block, samples: Sequence[Sample]) -> None:
        self.turns.append(list(samples))
        self.samples += samples

    def progress(self, block: Block, provider: str, done: int, planned: int) -> None:
        self.told.append((provider, done, planned))

    def leak(self, left: Left) -> None:
        self.leaks.append(left)

    def of(self, operation: str, provider: str = "") -> list[Sample]:
        """Samples of one operation, warm-ups left out."""
        return [
            s
            for s in self.samples
            if s.key.operation == operation and not s.warmup and provider in ("", s.key.provider)
        ]

    def outcomes(self, operation: str) -> list[str]:
        return [s.outcome for s in self.of(operation)]

    def error(self, operation: str) -> str:
        return next(s.error for s in self.of(operation) if s.outcome != "ok")


def fake(name: str = "fake", **settings: Any) -> FakeProvider:
    return factory(name, settings)


def block(scenario: str | Scenario, *names: str, level: int = 1, shape: str = "burst", **plan: Any) -> Block:
    if isinstance(scenario, str):
        scenario = SCENARIOS[scenario]
    chosen = {"rounds": 1, "warmup": 0, "seed": 1, "timeout_s": TIMEOUT_S, **plan}
    return Block(f"{scenario.name}@{level}", scenario, level, names or ("fake",), None, BlockPlan(**chosen), shape)


async def run(what: Block, *providers: FakeProvider, notes: Notes | None = None, **runner: Any) -> Notes:
    notes = Notes() if notes is None else notes
    chosen: Mapping[str, FakeProvider] = {p.name: p for p in providers}
    specs = dict.fromkeys(chosen, SandboxSpec())
    await BlockRunner(chosen, OWNER, specs, notes, **runner).run(what)
    return notes


def measure(scenario: str | Scenario, level: int = 1, shape: str = "burst", **settings: Any) -> Notes:
    """One round of a scenario on a scripted provider with these settings."""
    return asyncio.run(run(block(scenario, level=level, shape=shape), fake(**settings)))


def life(live: Callable[[Lane], Awaitable[None]], *operations: str) -> Scenario:
    """A scenario of a test's own."""
    return Scenario("own", operations or ("act",), live)


def seconds(sample: Sample) -> float:
    return sample.latency_ns / 1e9
