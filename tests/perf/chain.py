"""The real way to a number, as in a run: provider, deadlines, lanes, blocks. And what it starts, word for word."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from pytest_sandboxbench.facts import process_start
from pytest_sandboxbench.load.block import Block, BlockPlan, BlockRunner, Left
from pytest_sandboxbench.load.operations import scenario_of
from pytest_sandboxbench.model import Owner, Sample, SandboxSpec
from pytest_sandboxbench.providers import one_process
from pytest_sandboxbench.providers.bubblewrap import BubblewrapProvider, factory
from pytest_sandboxbench.providers.guest_python import guest_uid
from pytest_sandboxbench.providers.one_process import Command

__all__ = ["Chain", "chain", "work_folders"]

_NAME = "bubblewrap"
_TIMEOUT_S = 60.0


@dataclass
class _Kept:
    """The observer of a block: keeps its samples."""

    samples: list[Sample] = field(default_factory=list)

    def turn(self, block: Block, samples: Sequence[Sample]) -> None:
        self.samples += samples

    def progress(self, block: Block, provider: str, done: int, planned: int) -> None:
        pass

    def leak(self, left: Left) -> None:
        raise RuntimeError(f"{left.ref.id} was left: {left.reason}")


class Chain:
    """One instance of the bubblewrap provider behind the measuring core."""

    def __init__(self, provider: BubblewrapProvider) -> None:
        self.provider = provider
        self._owner = Owner(
            f"perf-{secrets.token_hex(3)}", os.uname().nodename, os.getpid(), process_start(os.getpid())
        )
        self._kept = _Kept()
        self._runner = BlockRunner({_NAME: provider}, self._owner, {_NAME: SandboxSpec()}, self._kept)

    def watching(self) -> AbstractContextManager[None]:
        """One watchdog for all turns, as in a block of a run."""
        return self._runner.watchdog.watching()

    async def turn(self, level: int = 1) -> list[int]:
        """One turn of ``cold_run``: the latencies (ns) of its lanes, from their common release."""
        plan = BlockPlan(rounds=1, warmup=0, seed=0, timeout_s=_TIMEOUT_S)
        self._kept.samples.clear()
        await self._runner.run(Block(f"cold_run@{level}", scenario_of("cold_run"), level, (_NAME,), None, plan))
        for sample in self._kept.samples:
            if sample.outcome != "ok":
                raise RuntimeError(sample.error)
        return [sample.latency_ns for sample in self._kept.samples if sample.key.operation == "cold_run"]

    async def commands(self, level: int = 1) -> list[Command]:
        """What a turn hands to the kernel: a command line and an environment for each lane."""
        with _seen() as commands:
            await self.turn(level)
        return commands

    async def output(self, argv: Sequence[str]) -> tuple[bytes, Command]:
        """What a program prints in a new sandbox, and how it was started."""
        with _seen() as commands:
            result, ref = await self.provider.run_once(SandboxSpec(), argv, owner=self._owner, deadline_s=_TIMEOUT_S)
        await self.provider.destroy(ref, deadline_s=_TIMEOUT_S)
        return result.stdout + result.stderr, commands[0]


@contextlib.contextmanager
def _seen() -> Iterator[list[Command]]:
    commands: list[Command] = []
    start = one_process.start

    def keep(command: Command, **options: bool) -> object:
        commands.append(command)
        return start(command, **options)

    with mock.patch.object(one_process, "start", keep):
        yield commands


@contextlib.asynccontextmanager
async def chain() -> AsyncIterator[Chain]:
    provider = factory(_NAME, {})
    try:
        answer = await provider.preflight()
        if not answer.ready:
            raise SystemExit(f"bubblewrap cannot run here: {answer.reason}. {answer.cure}")
        made = Chain(provider)
        with made.watching():
            yield made
    finally:
        await provider.aclose()


@contextlib.contextmanager
def work_folders(commands: Sequence[Command]) -> Iterator[None]:
    """Make again the folders that these commands bind as /work; the provider removed its own after the run.

    Same paths, so the command lines are the same to the byte; named as the provider names them, for a reaper.
    """
    folders = [Path(command.argv[at - 1]) for command in commands for at in _work_binds(command.argv)]
    try:
        for folder in folders:
            folder.mkdir(mode=0o700)
            os.chown(folder, guest_uid(), guest_uid())
        yield
    finally:
        for folder in folders:
            folder.rmdir()


def _work_binds(argv: Sequence[str]) -> list[int]:
    return [at for at, word in enumerate(argv) if word == "/work" and argv[at - 2] == "--bind"]
