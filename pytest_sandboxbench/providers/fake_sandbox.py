"""One scripted sandbox."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping, Sequence

from ..clock import NS_PER_S
from ..errors import ExecFailed, ExecTimeout, NotReady, SandboxGone, Unsupported
from ..model import ExecResult, Output, PauseKind, SandboxRef
from .fake_clock import loop_ns
from .fake_guest import Guest
from .fake_script import Step
from .fake_settings import Plan
from .fake_stage import Call, Stage, hang

__all__ = ["FakeSandbox", "PausableFakeSandbox"]


class FakeSandbox:
    """What ``create`` gives where ``pause_kinds=none``."""

    def __init__(
        self,
        stage: Stage,
        plan: Plan,
        ref: SandboxRef,
        guest: Guest,
        *,
        path: str,
        unenforced: frozenset[str],
        phases: Mapping[str, tuple[int, int]],
    ) -> None:
        self._stage = stage
        self._plan = plan
        self._ref = ref
        self._guest = guest
        self._path = path
        self._unenforced = unenforced
        self._phases = phases
        self._paused: PauseKind | None = None
        self._ready_ns = 0.0
        self._start_boot()

    @property
    def ref(self) -> SandboxRef:
        return self._ref

    @property
    def unenforced(self) -> frozenset[str]:
        return self._unenforced

    @property
    def path(self) -> str:
        return self._path

    def phases(self) -> Mapping[str, tuple[int, int]]:
        return self._phases

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        deadline_s: float,
    ) -> ExecResult:
        with self._stage.call("exec", self._ref.id, f"exec {list(argv)!r}") as call:
            step = await self._perform(call)
            return await self._run(call, step, argv, stdin, cwd, env or {}, deadline_s)

    async def stream(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        deadline_s: float,
    ) -> AsyncIterator[Output]:
        with self._stage.call("stream", self._ref.id, f"stream {list(argv)!r}") as call:
            step = await self._perform(call, "exec")
            result = await self._run(call, step, argv, stdin, cwd, env or {}, deadline_s)
            for line in result.stdout.splitlines(keepends=True):
                yield Output("stdout", line)
                await asyncio.sleep(self._plan.settings.stream_gap)
            if result.stderr:
                yield Output("stderr", result.stderr)
            yield Output("exit", exit_code=result.exit_code)

    async def write_file(self, path: str, data: bytes, *, deadline_s: float) -> None:
        with self._stage.call("write_file", self._ref.id, f"write_file {path}") as call:
            await self._perform(call)
            self._check_path(call, path)
            self._guest.files[path] = bytes(data)

    async def read_file(self, path: str, *, deadline_s: float) -> bytes:
        with self._stage.call("read_file", self._ref.id, f"read_file {path}") as call:
            await self._perform(call)
            self._check_path(call, path)
            data = self._guest.read(path)
            if data is None:
                raise ExecFailed(call.tried, **call.about("No such file or directory", "write it first"))
            return data

    async def run_first(
        self, call: Call, step: Step | None, argv: Sequence[str], stdin: bytes, deadline_s: float
    ) -> ExecResult:
        """The command of a one-shot run, once the guest is ready; without a ``step`` that of ``exec`` is played."""
        if math.isinf(self._ready_ns):
            await hang()
        await asyncio.sleep(max(0.0, self._ready_ns - loop_ns()) / NS_PER_S)
        if step is None:
            step, _ = await self._stage.perform(call, "exec")
        return await self._run(call, step, argv, stdin, None, {}, deadline_s)

    async def _perform(self, call: Call, script: str = "") -> Step:
        """Play an operation inside a running guest, which must still be there afterwards."""
        self._check_there(call)
        if self._paused is not None:
            raise Unsupported(call.tried, **call.about(f"the sandbox is paused ({self._paused})", "resume it first"))
        if loop_ns() < self._ready_ns:
            left = "the script never lets it" if math.isinf(self._ready_ns) else "try again until the deadline"
            raise NotReady(call.tried, **call.about("connection refused", left))
        step, self._phases = await self._stage.perform(call, script)
        self._check_there(call)
        return step

    def _check_path(self, call: Call, path: str) -> None:
        if "\0" in path:
            raise ExecFailed(call.tried, **call.about("a path holds no NUL byte", "leave it out"))

    def _check_there(self, call: Call) -> None:
        with self._stage.state.table() as table:
            there = self._ref.id in table.live
        if not there:
            raise SandboxGone(call.tried, **call.about("no such sandbox", "it was destroyed, or its lifetime is over"))

    async def _run(
        self,
        call: Call,
        step: Step,
        argv: Sequence[str],
        stdin: bytes,
        cwd: str | None,
        env: Mapping[str, str],
        deadline_s: float,
    ) -> ExecResult:
        if step.word == "exit":
            return ExecResult(int(step.text), b"", b"")
        if not argv:
            raise ExecFailed(call.tried, **call.about("argv is empty", "name a command"))
        ran = self._guest.run(argv, stdin, cwd, env)
        left_s = deadline_s - (loop_ns() - call.start_ns) / NS_PER_S
        if ran.lasts_s > left_s:
            await asyncio.sleep(max(0.0, left_s))
            self._check_there(call)
            cure = f"the deadline was {deadline_s:g} s; the command was killed"
            raise ExecTimeout(call.tried, **call.about("still running", cure))
        await asyncio.sleep(ran.lasts_s)
        self._check_there(call)
        return ran.result

    def _start_boot(self) -> None:
        self._ready_ns = loop_ns() + self._plan.ready_after_s * NS_PER_S


class PausableFakeSandbox(FakeSandbox):
    """What ``create`` gives where there are pause kinds."""

    async def pause(self, *, kind: PauseKind, deadline_s: float) -> None:
        with self._stage.call("pause", self._ref.id, f"pause ({kind})") as call:
            self._check_there(call)
            if kind not in self._plan.capabilities.pause:
                can = ", ".join(self._plan.capabilities.pause)
                cure = f"add it to the setting {self._stage.instance}.pause_kinds"
                raise Unsupported(call.tried, **call.about(f"it can: {can}", cure))
            _, self._phases = await self._stage.perform(call)
            self._check_there(call)
            if self._paused is None:
                self._paused = kind

    async def resume(self, *, deadline_s: float) -> None:
        with self._stage.call("resume", self._ref.id) as call:
            self._check_there(call)
            step, self._phases = await self._stage.perform(call)
            self._check_there(call)
            paused, self._paused = self._paused, None
            if paused == "filesystem" or (paused and step.word in ("fresh-boot", "wiped")):
                self._guest.boot(wipe=step.word == "wiped")
                self._start_boot()
