"""One local process from its start to its end, in the thread that waits for it.

The end of a command is the exit of its process (seen on a pidfd), never the end of its output: ``sh -c "sleep 60 &
exit 0"`` leaves the pipe open. What lies in the pipes at that moment is still read.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal

if sys.platform != "win32":
    import fcntl
    import termios

__all__ = ["MAX_OUTPUT", "Command", "Ended", "Sink", "Started", "Wake", "kill_group", "start", "supervise", "wait_for"]

Why = Literal["exit", "deadline", "cancelled", "output"]
Sink = Callable[[str, bytes], bool]

MAX_OUTPUT = 256 * 2**20
"""Bytes of one output stream that are kept; a command that writes more is killed, before it fills the memory."""
REAP_S = 0.5
"""How long what was killed may take to end before the started process itself is killed too."""

_CHUNK = 1 << 16
_WIDE = 1 << 20
_SIGKILL = getattr(signal, "SIGKILL", signal.SIGTERM)


def kill_group(pid: int) -> None:
    """Kill the process group that ``pid`` leads: what a command of its own session started, unless it left."""
    if sys.platform == "win32":
        os.kill(pid, _SIGKILL)
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, _SIGKILL)


@dataclass(frozen=True, slots=True)
class Command:
    """What to start. Without ``process_group`` it leads a session of its own: Ctrl-C at the terminal spares it.

    ``kill(pid)`` ends what it started, at the deadline or when the caller is cancelled; ``on_start(pid)`` and
    ``on_end(pid)`` bracket its life (after ``on_end`` the pid is free). All three run in the pool's thread.
    ``bulk``: it moves much data, so its pipes are made wide. Not always, because a user may have only so much of
    them, and past that every new pipe is a narrow one. ``around`` surrounds the start, in the starting thread.
    """

    argv: Sequence[str]
    stdin: bytes = b""
    env: Mapping[str, str] | None = None
    cwd: str | None = None
    process_group: int | None = None
    pass_fds: tuple[int, ...] = ()
    kill: Callable[[int], object] = kill_group
    on_start: Callable[[int], object] | None = None
    on_end: Callable[[int], object] | None = None
    bulk: bool = False
    around: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended, and why: by itself (``exit``), or killed by us; ``output`` is more than MAX_OUTPUT."""

    exit_code: int
    stdout: bytes = b""
    stderr: bytes = b""
    why: Why = "exit"


class Wake:
    """Wakes a thread that waits in ``poll``: for a cancellation, or because a reader made room."""

    def __init__(self) -> None:
        self.cancelled = False
        if sys.platform == "linux":
            self._read = self._write = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        else:
            self._read, self._write = os.pipe()

    def fileno(self) -> int:
        return self._read

    def cancel(self) -> None:
        self.cancelled = True
        self.wake()

    def wake(self) -> None:
        os.write(self._write, (1).to_bytes(8, sys.byteorder))

    def clear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._read, 8)

    def close(self) -> None:
        os.close(self._read)
        if self._write != self._read:
            os.close(self._write)


def start(command: Command, *, pipe_stdin: bool | None = None) -> subprocess.Popen[bytes]:
    """Start one process with pipes, by vfork: nothing here asks ``Popen`` for more than vfork can do."""
    if pipe_stdin is None:
        pipe_stdin = bool(command.stdin)
    child: subprocess.Popen[bytes] | None = None
    try:
        with command.around():
            child = _popen(command, pipe_stdin)
            if command.on_start is not None:
                command.on_start(child.pid)
    except BaseException:
        # Also when only the way out of `around` failed: nobody else knows of the child.
        if child is not None:
            _abandon(command, child)
        raise
    if command.bulk and sys.platform == "linux":
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _WIDE)
    return child


@dataclass(frozen=True, slots=True)
class Started:
    """A running command whose pipes somebody else reads and writes, and closes."""

    command: Command
    child: subprocess.Popen[bytes]

    @classmethod
    def of(cls, command: Command, *, stdin: bool) -> Started:
        return cls(command, start(command, pipe_stdin=stdin))

    def reap(self) -> int:
        """Its exit code, negative for a signal. Blocks until it has ended."""
        code = self.child.wait()
        if self.command.on_end is not None:
            self.command.on_end(self.child.pid)
        return code

    def kill(self) -> int:
        """End everything that it started, and reap it."""
        self.command.kill(self.child.pid)
        self.child.kill()
        return self.reap()


def _popen(command: Command, pipe_stdin: bool) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(command.argv),
            stdin=subprocess.PIPE if pipe_stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=command.cwd,
            env=None if command.env is None else dict(command.env),
            pass_fds=command.pass_fds,
            start_new_session=command.process_group is None and sys.platform != "win32",
            process_group=command.process_group,
        )
    except ValueError as error:
        # A NUL byte, or what has no bytes at all: said as the kernel would, had it been asked.
        raise OSError(errno.EINVAL, str(error)) from error


def _abandon(command: Command, child: subprocess.Popen[bytes]) -> None:
    command.kill(child.pid)
    child.kill()
    child.wait()
    _release(command, child)


def _release(command: Command, child: subprocess.Popen[bytes]) -> None:
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()
    if command.on_end is not None:
        command.on_end(child.pid)


def supervise(command: Command, wake: Wake, deadline: float) -> Ended:
    """Run a command to its end and keep its output. ``deadline`` is a time of the monotonic clock.

    A binary that is not there is exit code 127, one that may not be run 126. ``OSError`` when the host cannot start a
    process at all (no more files, processes, memory).
    """
    output = {"stdout": bytearray(), "stderr": bytearray()}

    def keep(stream: str, data: bytes) -> bool:
        output[stream] += data
        return len(output[stream]) <= MAX_OUTPUT

    code, why = wait_for(command, keep, lambda: True, wake, deadline)
    return Ended(code, bytes(output["stdout"]), bytes(output["stderr"]), why)


def wait_for(command: Command, sink: Sink, room: Callable[[], bool], wake: Wake, deadline: float) -> tuple[int, Why]:
    """Start the command, wait for its end or for a reason to kill it, reap it. ``sink`` says no to end it.

    While there is no ``room``, its output stays in its pipes.
    """
    if wake.cancelled:
        return -_SIGKILL, "cancelled"
    try:
        child = start(command)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.ENOEXEC):
            raise
        # What a shell says: 127 for a command that is not there, 126 for one (or a folder) that cannot be used.
        missing = isinstance(error, FileNotFoundError) and error.filename != command.cwd
        sink("stderr", f"{error.filename}: {os.strerror(error.errno or 0)}\n".encode())
        return (127 if missing else 126), "exit"
    try:
        watch = _watch if sys.platform == "linux" else _communicate
        why = watch(child, command.stdin, sink, room, wake, deadline)
        if why == "exit":
            return child.wait(), why
        command.kill(child.pid)
        for _ in range(2):
            with contextlib.suppress(subprocess.TimeoutExpired):
                return child.wait(REAP_S), why
            child.kill()
        # In a frozen cgroup even SIGKILL waits: it is reaped when that is thawed.
        threading.Thread(target=child.wait, daemon=True).start()
        return -_SIGKILL, why
    except BaseException:
        command.kill(child.pid)
        child.kill()
        child.wait()
        raise
    finally:
        _release(command, child)


def _watch(
    child: subprocess.Popen[bytes],
    stdin: bytes,
    sink: Sink,
    room: Callable[[], bool],
    wake: Wake,
    deadline: float,
) -> Why:
    assert sys.platform == "linux"
    assert child.stdout is not None
    assert child.stderr is not None
    names = {child.stdout.fileno(): "stdout", child.stderr.fileno(): "stderr"}
    rest = memoryview(stdin)
    poll = select.poll()
    poll.register(wake, select.POLLIN)
    for fd in names:
        os.set_blocking(fd, False)
        poll.register(fd, select.POLLIN)
    if child.stdin is not None:
        os.set_blocking(child.stdin.fileno(), False)
        poll.register(child.stdin, select.POLLOUT)
    reading = True
    pidfd = os.pidfd_open(child.pid)
    try:
        poll.register(pidfd, select.POLLIN)
        while True:
            if room() is not reading:
                reading = not reading
                for fd in names:
                    # Not an empty mask: the end of the pipe would be reported over and over.
                    poll.register(fd, select.POLLIN) if reading else poll.unregister(fd)
            left = deadline - time.monotonic()
            events = dict(poll.poll(left * 1000)) if left > 0 else {}
            if wake.cancelled:
                return "cancelled"
            if left <= 0:
                return "deadline"
            if pidfd in events:
                kept = [_drain(fd, name, sink) for fd, name in names.items()]
                return "exit" if all(kept) else "output"
            if wake.fileno() in events:
                wake.clear()
            for fd in events.keys() & names.keys():
                data = os.read(fd, _CHUNK)
                if not data:
                    poll.unregister(fd)
                    del names[fd]
                elif not sink(names[fd], data):
                    return "output"
            if child.stdin is not None and not child.stdin.closed and child.stdin.fileno() in events:
                rest = _feed(child.stdin.fileno(), rest)
                if not rest:
                    poll.unregister(child.stdin)
                    child.stdin.close()
    finally:
        os.close(pidfd)


def _feed(fd: int, rest: memoryview) -> memoryview:
    """What is left to write. A reader that went away is no error: it did not want the rest."""
    try:
        return rest[os.write(fd, rest[: 1 << 20]) :]
    except BrokenPipeError:
        return rest[:0]


def _drain(fd: int, name: str, sink: Sink) -> bool:
    """Read what was in the pipe when the process exited, and no more: a child of it may go on writing for ever."""
    assert sys.platform != "win32"
    left = int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), sys.byteorder)
    while left > 0:
        try:
            data = os.read(fd, min(left, _CHUNK))
        except BlockingIOError:
            break
        if not data:
            break
        left -= len(data)
        if not sink(name, data):
            return False
    return True


def _communicate(
    child: subprocess.Popen[bytes],
    stdin: bytes,
    sink: Sink,
    room: Callable[[], bool],
    wake: Wake,
    deadline: float,
) -> Why:
    """Where there is no pidfd: the end is the end of the output, and a cancellation is seen in steps of 50 ms."""
    data: bytes | None = stdin or None
    while True:
        left = deadline - time.monotonic()
        try:
            out, err = child.communicate(data, timeout=max(0.0, min(left, 0.05)))
        except subprocess.TimeoutExpired:
            data = None
            if wake.cancelled:
                return "cancelled"
            if left <= 0:
                return "deadline"
        else:
            return "exit" if all([sink("stdout", out), sink("stderr", err)]) else "output"
