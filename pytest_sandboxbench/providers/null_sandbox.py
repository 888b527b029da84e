"""A sandbox of the floor: commands in a process group, files in a folder."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TypeVar

from ..errors import ExecFailed, OperationTimeout, SandboxGone, Unsupported
from ..model import ExecResult, Output, PauseKind, SandboxRef
from . import proc
from .local import Holder, exec_token, run_command, stream_command
from .one_process import Command, Ended, Wake
from .processes import Processes
from .work_folders import WorkFolders

__all__ = ["NullSandbox"]

T = TypeVar("T")


class NullSandbox:
    path = "cold"

    def __init__(
        self,
        ref: SandboxRef,
        processes: Processes,
        folders: WorkFolders,
        holder: Holder,
        env: Mapping[str, str],
        unenforced: frozenset[str],
    ) -> None:
        self.ref = ref
        self.unenforced = unenforced
        self._processes = processes
        self._folders = folders
        self._folder = Path(ref.details["folder"])
        self._holder = holder
        self._env = env
        self._running: set[int] = set()
        self._starting = threading.Lock()
        self._paused = False
        self._ended = False

    def _command(self, argv: Sequence[str], stdin: bytes, cwd: str | None, env: Mapping[str, str] | None) -> Command:
        tried = f"exec {list(argv)}"
        self._check(tried)
        if not argv:
            raise ExecFailed(tried, sandbox=self.ref.id, said="argv is empty: there is no command")
        token = exec_token(self.ref.id)
        return Command(
            argv,
            stdin,
            {**self._env, **(env or {}), proc.EXEC_LABEL: token},
            str(self._host_path(cwd or ".")),
            process_group=self._holder.pid,
            kill=lambda pid: proc.kill_labelled(proc.EXEC_LABEL, token, below=pid),
            on_start=self._running.add,
            on_end=self._running.discard,
            around=lambda: self._start_of(tried),
        )

    @contextlib.contextmanager
    def _start_of(self, tried: str) -> Iterator[None]:
        """A start and a pause exclude each other: a child stopped before it is a program would stop us with it."""
        with self._starting:
            self._check(tried)
            yield

    def _check_there(self, tried: str) -> None:
        if self._ended or not self._holder.alive():
            raise SandboxGone(tried, sandbox=self.ref.id, cure="create a new one")

    def _check(self, tried: str) -> None:
        self._check_there(tried)
        if self._paused:
            raise Unsupported(f"{tried} while paused", sandbox=self.ref.id, cure="resume it first")

    def _host_path(self, path: str) -> Path:
        parts = PurePosixPath(path).parts
        if parts[:2] == ("/", "work") or parts[:2] == ("/", "tmp"):
            return self._folder.joinpath(*parts[2:])
        return self._folder / path

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        deadline_s: float,
    ) -> ExecResult:
        command = self._command(argv, stdin, cwd, env)
        tried = f"exec {list(argv)}"
        return await run_command(self._processes, command, tried, self.ref.id, deadline_s, self._gone)

    def _gone(self, ended: Ended) -> bool:
        return ended.exit_code != 0 and (self._ended or not self._holder.alive())

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
        command = self._command(argv, stdin, cwd, env)
        items = stream_command(self._processes, command, tried, self.ref.id, deadline_s, self._gone)
        async with contextlib.aclosing(items):
            async for item in items:
                yield item

    async def write_file(self, path: str, data: bytes, *, deadline_s: float) -> None:
        await self._file(f"write_file {path}", lambda: _write(self._host_path(path), data))

    async def read_file(self, path: str, *, deadline_s: float) -> bytes:
        return await self._file(f"read_file {path}", lambda: _read(self._host_path(path)))

    async def _file(self, tried: str, act: Callable[[], T]) -> T:
        self._check(tried)
        try:
            return await self._processes.call(lambda wake: act())
        except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
            raise ExecFailed(tried, sandbox=self.ref.id, said=str(error)) from error

    async def pause(self, *, kind: PauseKind, deadline_s: float) -> None:
        if kind != "stopped":
            cure = "a bare process can only be stopped"
            raise Unsupported(f"pause of kind {kind}", sandbox=self.ref.id, cure=cure)
        self._check_there("pause")
        if self._paused:
            return
        deadline = time.monotonic() + deadline_s
        try:
            stopped = await self._processes.call(lambda wake: self._stop(wake, deadline))
        except BaseException:
            self._continue()
            raise
        if not stopped:
            self._continue()
            raise OperationTimeout("pause", sandbox=self.ref.id, after_s=deadline_s, said="a process did not stop")

    def _stop(self, wake: Wake, deadline: float) -> bool:
        with self._starting:
            self._paused = True
            os.killpg(self._holder.pid, signal.SIGSTOP)
        known = {self._holder.pid, *self._running}
        while not wake.cancelled:
            # D: in the kernel, for example until a child of its vfork runs; it stops before it does anything else.
            if all(proc.state(pid) in ("T", "D", "Z", "X", "") for pid in known | proc.descendants(known)):
                return True
            if time.monotonic() > deadline:
                break
            time.sleep(0.0002)
        return False

    def _continue(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._holder.pid, signal.SIGCONT)
        self._paused = False

    async def resume(self, *, deadline_s: float) -> None:
        if self._ended or not self._holder.alive():
            raise SandboxGone("resume", sandbox=self.ref.id, cure="create a new one")
        if self._paused:
            await self._processes.call(lambda wake: self._continue())

    def end(self, timeout_s: float) -> None:
        """Kill, reap, remove. ``OSError`` when something stays. For the pool's thread."""
        # A command whose start is under way would join the group behind the kill, and live on.
        with self._starting:
            self._ended = True
            if self._holder.process.returncode is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._holder.pid, signal.SIGKILL)
        if self._holder.process.returncode is None:
            if not self._holder.release(timeout_s):
                raise OSError(f"process {self._holder.pid} did not end within {timeout_s} s of SIGKILL")
            if not proc.wait_group_gone(self._holder.pid, timeout_s):
                raise OSError(f"process group {self._holder.pid} did not end within {timeout_s} s of SIGKILL")
        self._folders.remove_folder(self._folder)


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def _read(path: Path) -> bytes:
    """Not blocked for ever by a named pipe that a guest put there."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(f"{path} is not a regular file")
        return file.read()
