"""One bubblewrap sandbox: a holder in namespaces of its own, entered by ``nsenter`` for each command."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

from ..errors import ExecFailed, OperationTimeout, SandboxError, SandboxGone, Unsupported
from ..model import ExecResult, Output, PauseKind, SandboxRef
from . import proc
from .bubblewrap_command import CommandLines
from .cgroups import Freezer, Limits, remove_group
from .local import Holder, exec_token, no_processes, run_command, stream_command
from .one_process import REAP_S, Command, Ended, Started, Wake, supervise
from .processes import Processes
from .work_folders import WorkFolders

__all__ = ["BubblewrapSandbox"]

_VFORK_S = 0.01
"""How long a pause waits for a vfork to come to its end by itself."""


class BubblewrapSandbox:
    path = "cold"

    def __init__(
        self,
        ref: SandboxRef,
        processes: Processes,
        lines: CommandLines,
        folders: WorkFolders,
        holder: Holder,
        env: Mapping[str, str],
        *,
        network: bool,
        limits: Limits,
        freezer: Freezer | None,
        unenforced: frozenset[str],
    ) -> None:
        self.ref = ref
        self.unenforced = unenforced
        self._processes = processes
        self._lines = lines
        self._folders = folders
        self._holder = holder
        self._env = env
        self._network = network
        self._limits = limits
        self._freezer = freezer
        self._running: set[int] = set()
        self._starting = threading.Lock()
        self._paused: PauseKind | None = None
        self._phases: dict[str, tuple[int, int]] = {}
        self._ended = False

    @property
    def enforced(self) -> Mapping[str, str]:
        return self._limits.enforced()

    def _alive(self) -> bool:
        return not self._ended and self._holder.alive() and proc.lives(self._holder.pid, self._holder.started)

    def _gone(self, ended: Ended) -> bool:
        return ended.exit_code != 0 and not self._alive()

    def _check_there(self, tried: str) -> None:
        if not self._alive():
            raise SandboxGone(tried, sandbox=self.ref.id, cure="create a new one")

    def _check(self, tried: str) -> None:
        self._check_there(tried)
        if self._paused is not None:
            raise Unsupported(f"{tried} while paused", sandbox=self.ref.id, cure="resume it first")

    def _command(
        self,
        tried: str,
        argv: Sequence[str],
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        *,
        bulk: bool = False,
    ) -> Command:
        self._check(tried)
        if not argv:  # without a command nsenter would start a shell
            raise ExecFailed(tried, sandbox=self.ref.id, said="argv is empty: there is no command")
        token = exec_token(self.ref.id)
        return Command(
            self._lines.enter(self._holder.pid, argv, cwd=cwd, network=self._network, joins=self._limits.joins),
            stdin,
            {**self._env, **(env or {}), proc.EXEC_LABEL: token},
            kill=lambda pid: _kill(token, pid),
            on_start=self._running.add,
            on_end=self._running.discard,
            bulk=bulk,
            around=lambda: self._start_of(tried),
        )

    @contextlib.contextmanager
    def _start_of(self, tried: str) -> Iterator[None]:
        """A start and a pause exclude each other: a thread that stands in the freezer's group must not be frozen."""
        with self._starting:
            self._check(tried)
            with self._freezer.born_inside() if self._freezer is not None else contextlib.nullcontext():
                yield

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        deadline_s: float,
    ) -> ExecResult:
        tried = f"exec {list(argv)}"
        return await self._run(tried, self._command(tried, argv, stdin, cwd, env), deadline_s)

    async def _run(self, tried: str, command: Command, deadline_s: float) -> ExecResult:
        return await run_command(self._processes, command, tried, self.ref.id, deadline_s, self._gone)

    def try_out(self, wake: Wake, deadline: float) -> None:
        """Enter it and freeze it, for a preflight. ``SandboxError`` if nothing enters, ``OSError`` for the freezer."""
        tried = "exec ['true']"
        ended = supervise(self._command(tried, ["true"]), wake, deadline)
        if (ended.exit_code, ended.why) != (0, "exit"):
            raise SandboxError(tried, said=ended.stderr.decode(errors="replace") or ended.why)
        if self._freezer is not None:
            self._freezer.gather(self._members)
            frozen = self._freezer.freeze(self._members, lambda: wake.cancelled, min(deadline, time.monotonic() + 1))
            self._freezer.thaw()
            if not frozen:
                raise OSError(f"{self._freezer.group} did not freeze")

    async def stream(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        deadline_s: float,
    ) -> AsyncIterator[Output]:
        tried = f"stream {list(argv)}"
        command = self._command(tried, argv, stdin, cwd, env)
        items = stream_command(self._processes, command, tried, self.ref.id, deadline_s, self._gone)
        async with contextlib.aclosing(items):
            async for item in items:
                yield item

    async def start(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: bool = False) -> Started:
        """Start a command whose pipes are the caller's, who reads them and reaps it. Errors as ``exec``."""
        tried = f"start {list(argv)}"
        command = self._command(tried, argv, env=env)
        try:
            return await self._processes.call(lambda wake: Started.of(command, stdin=stdin), undo=Started.kill)
        except OSError as error:
            raise no_processes(error, tried, ExecFailed, self.ref.id) from error

    async def write_file(self, path: str, data: bytes, *, deadline_s: float) -> None:
        """Inside, as the guest: a link that the guest made leads where it leads for the guest, never on the host."""
        tried = f"write_file {path}"
        command = self._command(tried, ["/bin/sh", "-c", 'exec cat > "$0"', path], data, bulk=True)
        self._succeeded(tried, await self._run(tried, command, deadline_s))

    async def read_file(self, path: str, *, deadline_s: float) -> bytes:
        tried = f"read_file {path}"
        command = self._command(tried, ["cat", "--", "./-" if path == "-" else path], bulk=True)
        return self._succeeded(tried, await self._run(tried, command, deadline_s)).stdout

    def _succeeded(self, tried: str, result: ExecResult) -> ExecResult:
        if result.exit_code != 0:
            said = result.stderr.decode(errors="replace") or f"exit code {result.exit_code}"
            raise ExecFailed(tried, sandbox=self.ref.id, said=said)
        return result

    def _members(self) -> set[int]:
        """Every process inside, and those that are just about to enter: their children would escape a freeze."""
        running = set(self._running)
        entering = {pid for pid in running if not proc.children(pid)}
        found = proc.descendants({self._holder.pid, *running}) | {self._holder.pid}
        return {pid for pid in found | entering if proc.state(pid) not in ("Z", "X", "")}

    async def pause(self, *, kind: PauseKind, deadline_s: float) -> None:
        freezer = self._freezer
        if kind not in ("frozen", "stopped") or (kind == "frozen" and freezer is None):
            cure = "this host lets us stop processes only" if kind == "frozen" else "it can be frozen or stopped"
            raise Unsupported(f"pause of kind {kind}", sandbox=self.ref.id, cure=cure)
        self._check_there("pause")
        if self._paused == kind:
            return
        self._check("pause")
        deadline = time.monotonic() + deadline_s
        done = False
        try:
            done = await self._processes.call(lambda wake: self._pause(kind, wake, deadline))
        except OSError as error:
            raise SandboxError("pause", sandbox=self.ref.id, said=str(error)) from error
        finally:
            if not done:
                await self._processes.call(lambda wake: self._continue(kind))
                self._paused = None
        if not done:
            raise OperationTimeout("pause", sandbox=self.ref.id, after_s=deadline_s, said="something kept running")

    def _pause(self, kind: PauseKind, wake: Wake, deadline: float) -> bool:
        begin = time.monotonic_ns()
        with self._starting:
            self._paused = kind
        if kind == "stopped" or self._freezer is None:
            return self._stop(wake, deadline)
        self._freezer.gather(self._members)
        joined = time.monotonic_ns()
        done = self._freezer.freeze(self._members, lambda: wake.cancelled, deadline)
        self._phases = {"join": (begin, joined), "freeze": (joined, time.monotonic_ns())}
        return done

    def phases(self) -> Mapping[str, tuple[int, int]]:
        """Of a pause by freezer: ``join``, only with v2 more than nothing, and ``freeze``."""
        phases, self._phases = self._phases, {}
        return phases

    def _stop(self, wake: Wake, deadline: float) -> bool:
        """Stop all inside, and wait until each nsenter has copied the stop of its child.

        None is stopped from here: one that had seen its child's stop before would stop once more after the resume,
        and nobody would wake it. One without a child yet is waited for until it has one.

        A child that is itself in the middle of a vfork does not stop before the program of its own child runs, so that
        nsenter would see no stop: such a grandchild is let go on for a moment.
        """
        seen: set[int] = set()
        patience = time.monotonic() + _VFORK_S
        while not wake.cancelled:
            running = set(self._running)
            inside = self._members() - running
            # D: in the kernel, for example until a child of its vfork runs; it stops before it does anything else.
            states = {pid: proc.state(pid) for pid in inside}
            awake = {pid for pid, state in states.items() if state not in ("T", "D", "Z", "X", "")}
            stopped = not awake
            if stopped and inside <= seen and all(proc.state(pid) in ("T", "Z", "X", "") for pid in running):
                return True
            # Those seen before as well: an nsenter that was just resumed passes the SIGCONT on to its child, late.
            proc.send((inside - seen) | awake, signal.SIGSTOP)
            seen = inside
            now = time.monotonic()
            if now > deadline:
                return False
            if now > patience:
                patience = now + _VFORK_S
                held = {child for pid, state in states.items() if state == "D" for child in proc.children(pid)}
                proc.send(held, signal.SIGCONT)
                seen = seen - held
            time.sleep(0.0001)
        return False

    def _continue(self, kind: PauseKind) -> None:
        if kind == "frozen":
            if self._freezer is not None:
                self._freezer.thaw()
            return
        running = set(self._running)
        # The inside first: an nsenter that wakes while its child is still stopped stops again.
        proc.send(self._members() - running, signal.SIGCONT)
        proc.send(running, signal.SIGCONT)

    async def resume(self, *, deadline_s: float) -> None:
        if not self._alive():
            raise SandboxGone("resume", sandbox=self.ref.id, cure="create a new one")
        kind = self._paused
        if kind is not None:
            await self._processes.call(lambda wake: self._continue(kind))
            self._paused = None

    def end(self, timeout_s: float) -> None:
        """Thaw, kill, reap, remove. ``OSError`` when something stays. For a thread of the pool; again is harmless."""
        self._ended = True
        if self._paused is not None:
            # What is frozen does not die of a SIGKILL before it is thawed.
            self._continue(self._paused)
        holder = self._holder
        if holder.process.returncode is None:
            if proc.start_time(holder.pid) == holder.started:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(holder.pid, signal.SIGKILL)
            if not holder.release(timeout_s):
                raise OSError(f"process {holder.pid} did not end within {timeout_s} s of SIGKILL")
        for group in {*self._limits.groups, *([self._freezer.group] if self._freezer is not None else [])}:
            remove_group(group)
        self._folders.remove(self.ref.id)


def _kill(token: str, pid: int) -> None:
    """All of a command but nsenter, which is ``pid``.

    That ends when what it started has ended, and then nothing is left for the host's first process to reap, for which
    a destroy would have to wait. So it is waited for: it may not have started anything yet. A command that had stopped
    had stopped it as well.
    """
    deadline = time.monotonic() + REAP_S
    while True:
        proc.kill_labelled(proc.EXEC_LABEL, token, below=pid, spare=pid)
        proc.send([pid], signal.SIGCONT)
        if proc.state(pid) in ("Z", "X", "") or time.monotonic() > deadline:
            return
        time.sleep(0.0005)
