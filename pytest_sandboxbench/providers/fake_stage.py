"""Where scripts are played: whose turn it is, what was called when, and how it ended."""

from __future__ import annotations

import asyncio
import builtins
import json
import math
import os
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from ..clock import NS_PER_S
from ..errors import (
    CreateFailed,
    DestroyFailed,
    ExecFailed,
    ExecTimeout,
    OperationTimeout,
    Rejected,
    SandboxError,
    SandboxGone,
    TransportLost,
)
from .fake_clock import loop_ns
from .fake_script import Step
from .fake_settings import Plan
from .fake_state import State, Turnstile

__all__ = ["Call", "Stage", "hang"]

_ERRORS: Mapping[str, type[SandboxError]] = {
    "create": CreateFailed,
    "run_once": CreateFailed,
    "exec": ExecFailed,
    "stream": ExecFailed,
    "write_file": ExecFailed,
    "read_file": ExecFailed,
    "destroy": DestroyFailed,
    "round_trip": TransportLost,
    "owned": TransportLost,
}


@dataclass(slots=True)
class Call:
    """One call of an operation, as it goes into the log."""

    operation: str
    sandbox: str
    start_ns: int
    tried: str = ""
    cure: str = ""
    outcome: str = "ok"
    error: str = ""

    def about(self, said: str, cure: str | None = None) -> dict[str, Any]:
        """The arguments of a :class:`SandboxError` about this call, after ``tried``."""
        after_s = (loop_ns() - self.start_ns) / NS_PER_S
        return {"sandbox": self.sandbox, "after_s": after_s, "said": said, "cure": self.cure if cure is None else cure}

    def failed(self, said: str) -> SandboxError:
        """The typed error of this operation."""
        return _ERRORS.get(self.operation, SandboxError)(self.tried, **self.about(said))


class Stage:
    """Plays the scripts of one instance and keeps the log of its calls."""

    def __init__(self, instance: str, plan: Plan) -> None:
        self.instance = instance
        self.state = State(instance, plan.state_dir)
        self.calls: Counter[str] = Counter()
        self.log: list[tuple[str, str, int, int]] = []
        self._plan = plan
        self._gate = Turnstile(self.state, plan.settings.lock_width)

    @contextmanager
    def call(self, operation: str, sandbox: str = "", tried: str = "") -> Iterator[Call]:
        """Book one call, from here to the end of the block, with its outcome."""
        self.calls[operation] += 1
        key = "exec" if operation == "stream" else operation
        cure = f"scripted: --sandbox-option {self.instance}.{key}=SECONDS changes it"
        call = Call(operation, sandbox, loop_ns(), tried or operation, cure)
        try:
            yield call
        except (asyncio.CancelledError, GeneratorExit):
            call.outcome = "cancelled"
            raise
        except SandboxError as error:
            call.outcome, call.error = error.outcome, type(error).__name__
            raise
        except BaseException as error:
            call.outcome, call.error = "crashed", type(error).__name__
            raise
        finally:
            self._book(call, loop_ns())

    def _book(self, call: Call, end_ns: int) -> None:
        self.log.append((call.operation, call.sandbox, call.start_ns, end_ns))
        if self._plan.log_file is None:
            return
        record = {
            "op": call.operation,
            "sandbox": call.sandbox,
            "start_ns": call.start_ns,
            "end_ns": end_ns,
            "outcome": call.outcome,
            "error": call.error,
            "provider": self.instance,
            "pid": os.getpid(),
        }
        # One write of one line: lines of several processes do not mix.
        to = os.open(self._plan.log_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.write(to, json.dumps(record).encode() + b"\n")
        finally:
            os.close(to)

    async def perform(self, call: Call, script: str = "") -> tuple[Step, dict[str, tuple[int, int]]]:
        """Wait for the gate where there is one, pass through the phases, play the script's next step.

        ``script`` is the operation whose script it is, where that is not the call's own. Returns the step, for words
        that change a sandbox are the caller's to act on, and the phases: name -> (start_ns, end_ns).
        """
        name = script or call.operation
        named = self._plan.phases.get(name, ())
        phases: dict[str, tuple[int, int]] = {}
        start_ns = loop_ns()
        async with self._turn(name):
            if named and name in self._plan.locked:
                phases["lock_wait"] = (start_ns, loop_ns())
            for phase, seconds in named:
                full_name = f"{name}.{phase}"
                start_ns = loop_ns()
                async with self._turn(full_name):
                    turn = self._next(full_name) if self._plan.settings.jitter else 0
                    await asyncio.sleep(self._spread(seconds, full_name, turn))
                phases[phase] = (start_ns, loop_ns())
            return await self._play(call, name), phases

    def _turn(self, name: str) -> AbstractAsyncContextManager[None]:
        return self._gate.turn() if name in self._plan.locked else nullcontext()

    async def _play(self, call: Call, name: str) -> Step:
        script = self._plan.scripts[name]
        # Which call it is matters to most scripts not at all, and costs a shared state a write.
        turn = self._next(name) if len(script.turns) > 1 or self._plan.settings.jitter else 0
        step = script.at(turn)
        await asyncio.sleep(self._spread(step.after_s, name, turn))
        said = step.text or f"scripted {step.word}"
        match step.word:
            case "hang":
                await hang()
            case "swallow":
                await _swallow(step.seconds)
            case "block":
                time.sleep(step.seconds)  # noqa: ASYNC251 -- blocking the loop is the point
            case "raise":
                raise getattr(builtins, step.text or "RuntimeError")(f"scripted bug of {self.instance} in {name}")
            case "error":
                raise call.failed(said)
            case "lost":
                raise TransportLost(call.tried, **call.about(said))
            case "timeout":
                timeout = ExecTimeout if call.operation in ("exec", "stream") else OperationTimeout
                raise timeout(call.tried, **call.about(said))
            case "reject":
                limit: Any = step.text
                raise Rejected(call.tried, limit, **call.about(f"scripted {limit} limit"))
            case "gone" if call.operation != "destroy":
                with self.state.table() as table:
                    table.live.pop(call.sandbox, None)
                raise SandboxGone(call.tried, **call.about(said))
        return step

    def _next(self, name: str) -> int:
        with self.state.table() as table:
            turn = table.served.get(name, 0)
            table.served[name] = turn + 1
        return turn

    def _spread(self, seconds: float, name: str, turn: int) -> float:
        """Seconds times a lognormal factor of median 1, the same for the same seed, name and turn."""
        sigma = self._plan.settings.jitter
        if not sigma or not seconds:
            return seconds
        return seconds * math.exp(random.Random(f"{self._plan.settings.seed}/{name}/{turn}").gauss(0.0, sigma))


async def hang() -> None:
    """Never return."""
    await asyncio.get_running_loop().create_future()


async def _swallow(seconds: float) -> None:
    ends_ns = loop_ns() + int(seconds * NS_PER_S)
    while (left_ns := ends_ns - loop_ns()) > 0:
        try:
            await asyncio.sleep(left_ns / NS_PER_S)
        except asyncio.CancelledError:
            pass
