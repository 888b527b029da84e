"""The operations: what each one times, in words, and the scenarios that time them.

A scenario is the life of a lane: what is made before, what is timed, in which order. One life gives samples of
several operations (a sandbox that starts also has a create and a first command), always the same ones, whichever
of them a person selected: so a number never depends on ``-k``.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from types import MappingProxyType
from typing import Literal

from ..errors import ExecFailed, StateLost, UsageError
from ..model import Capabilities, ExecResult, SandboxRef
from ..records.schema import key_text
from .lanes import Lane
from .pausing import pause, tail
from .state import State

__all__ = [
    "FILE_BYTES",
    "OPERATIONS",
    "SCENARIOS",
    "Operation",
    "Scenario",
    "command_scenario",
    "scenario_of",
    "shown_operations",
]

FILE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Operation:
    """A named span. ``start`` and ``end`` say where the clock is read; ``before`` is the state of the sandbox."""

    name: str
    start: str
    end: str
    before: str = "no sandbox"


_OPERATIONS = (
    Operation("startup", "before create", "the first command, `true`, returned 0"),
    Operation("create", "before create", "create returned"),
    Operation("first_exec", "create returned", "the first command, `true`, returned 0", "just created"),
    Operation("exec", "before the command", "`true` returned 0", "one command has run"),
    Operation("write_file", "before the write", "1 MiB written", "one command has run"),
    Operation("read_file", "before the read", "1 MiB read", "1 MiB written just before"),
    Operation("pause", "before the call", "the provider says: paused", "one idle process holds a nonce in memory"),
    Operation("resume", "before the call", "the provider says: running", "paused just before, nothing else held"),
    Operation(
        "resume_to_first_exec",
        "before the resume",
        "the first command after it, `true`, returned 0",
        "paused just before, nothing else held",
    ),
    Operation("destroy", "before the call", "the provider says: gone", "one command has run"),
    Operation("round_trip", "before the call", "the cheapest call to the provider returned", "nothing"),
    Operation(
        "cold_run",
        "before the sandbox is asked for",
        "the output of the command is read and its exit code known",
    ),
    Operation(
        "cold_run_total",
        "before the sandbox is asked for",
        "the sandbox is removed as well",
    ),
)

OPERATIONS: Mapping[str, Operation] = MappingProxyType({op.name: op for op in _OPERATIONS})


@dataclass(frozen=True, slots=True)
class Scenario:
    """A life of a lane and the operations that it times. ``needs`` names a capability without which it cannot run.

    ``variants`` are part of the key of all its series; ``sandboxes`` is how many one life makes. ``own`` is somebody's
    own act: it runs in sandboxes, and on the bare host only where that was asked for.
    """

    name: str
    operations: tuple[str, ...]
    live: Callable[[Lane], Awaitable[None]]
    needs: Literal["", "exec", "files", "pause"] = ""
    variants: tuple[tuple[str, str], ...] = ()
    own: bool = False
    sandboxes: int = 1

    def holding(self, state: State) -> Scenario:
        """The same where a sandbox holds this before it is paused; itself where it pauses none."""
        if self.name != "pause" or not state:
            return self
        return replace(self, live=partial(pause, state=state), variants=(*self.variants, *state.variants))

    def lacks(self, capabilities: Capabilities) -> str:
        """Why a provider with these capabilities cannot run it; empty when it can."""
        if self.needs == "pause" and not capabilities.pause:
            return "cannot pause"
        if self.needs == "files" and not capabilities.files:
            return "has no files API"
        if self.needs == "exec" and not capabilities.exec:
            return "runs one command per sandbox only"
        return ""


async def _start(lane: Lane) -> None:
    async with lane.timed("startup") as span:
        with span.phase("create"):
            sandbox = await lane.create()
        span.reported(sandbox.phases())
        with span.phase("first_exec"):
            await lane.ready(sandbox)
    async with lane.timed("destroy"):
        await lane.destroy(sandbox)


async def _exec(lane: Lane) -> None:
    sandbox = await lane.sandbox()
    async with lane.timed("exec"):
        await lane.true(sandbox)


@cache
def _noise() -> bytes:
    """1 MiB that does not compress; made once, because making it takes as long as writing it."""
    return secrets.token_bytes(FILE_BYTES)


async def _files(lane: Lane) -> None:
    sandbox = await lane.sandbox()
    fresh = secrets.token_bytes(32)
    data = fresh + _noise()[len(fresh) :]
    async with lane.timed("write_file"):
        await sandbox.write_file("sandboxbench.bin", data)
    async with lane.timed("read_file"):
        back = await sandbox.read_file("sandboxbench.bin")
    if back != data:
        error = StateLost("read_file", sandbox=sandbox.id, said=f"{len(back)} bytes came back, not those written")
        lane.spoil("read_file", error)


async def _round_trip(lane: Lane) -> None:
    async with lane.timed("round_trip"):
        await lane.provider.round_trip()


async def _cold_run(lane: Lane) -> None:
    await _run_cold(lane, ["python3", "-c", "print(1)"], b"1")


async def _cold_run_unseen(lane: Lane) -> None:
    # A product of two random numbers: nobody can have warmed up this program, or cached its answer.
    a, b = secrets.randbits(24), secrets.randbits(24)
    await _run_cold(lane, ["python3", "-c", f"print({a}*{b})"], str(a * b).encode())


async def _run_cold(lane: Lane, argv: list[str], expected: bytes | None) -> None:
    """``cold_run`` lies inside ``cold_run_total``: one sandbox gives both."""
    result: ExecResult | None = None
    ref: SandboxRef | None = None
    async with lane.timed("cold_run_total") as span:
        with span.phase("cold_run"):
            result, ref = await lane.provider.run_once(argv)
            span.sandbox = ref.id
            if result.exit_code != 0 or (expected is not None and result.stdout.strip() != expected):
                raise ExecFailed(
                    f"run_once {argv!r} (exit code {result.exit_code})",
                    sandbox=ref.id,
                    said=tail(result) or "no output",
                    cure="the command must exist in the sandbox, print what was expected and return 0",
                )
        with span.phase("remove"):
            await lane.destroy(ref)


_SCENARIOS = (
    Scenario("start", ("startup", "create", "first_exec", "destroy"), _start, "exec"),
    Scenario("exec", ("exec",), _exec, "exec"),
    Scenario("files", ("write_file", "read_file"), _files, "files"),
    Scenario("pause", ("pause", "resume", "resume_to_first_exec"), pause, "pause"),
    Scenario("round_trip", ("round_trip",), _round_trip, sandboxes=0),
    Scenario("cold_run", ("cold_run", "cold_run_total"), _cold_run),
    Scenario("cold_run_unseen", ("cold_run", "cold_run_total"), _cold_run_unseen, variants=(("program", "unseen"),)),
)

SCENARIOS: Mapping[str, Scenario] = MappingProxyType({s.name: s for s in _SCENARIOS})


def command_scenario(argv: list[str]) -> Scenario:
    """A cold run of a command of the user's own: series ``cold_run{command=...}``; any output, exit code 0."""

    async def live(lane: Lane) -> None:
        await _run_cold(lane, argv, None)

    variants = (("command", key_text(shlex.join(argv))),)
    return Scenario("command", ("cold_run", "cold_run_total"), live, variants=variants, own=True)


def shown_operations(name: str) -> tuple[str, ...]:
    """What a bench of that name shows: the operation, or the scenario's first; nothing for somebody's own name."""
    if name in OPERATIONS:
        return (name,)
    return SCENARIOS[name].operations[:1] if name in SCENARIOS else ()


def scenario_of(operation: str) -> Scenario:
    """The scenario that times a built-in operation; ``UsageError`` names those there are."""
    for scenario in _SCENARIOS:
        if operation in (scenario.name, *scenario.operations):
            return scenario
    raise UsageError(f"no operation {operation!r}; there are: {', '.join(OPERATIONS)}")
