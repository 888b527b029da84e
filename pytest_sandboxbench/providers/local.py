"""What the two local systems have in common: the holder of a sandbox, the guest's environment, results as errors."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import select
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..errors import ExecFailed, ExecTimeout, SandboxError, SandboxGone
from ..model import ExecResult, Output
from . import proc
from .guest_python import GuestPython
from .one_process import MAX_OUTPUT, Command, Ended, Wake, start
from .processes import Processes
from .work_folders import WorkFolders

__all__ = [
    "LIFETIME",
    "LIMITS",
    "PATH",
    "Holder",
    "HolderFailed",
    "base_env",
    "by_hand",
    "exec_token",
    "info_file",
    "limit_details",
    "no_processes",
    "run_command",
    "run_floor",
    "start_holder",
    "stream_command",
    "to_result",
]

PATH = "/usr/local/bin:/usr/bin:/bin"
LIMITS = ("vcpus", "memory_mib", "pids")
"""Fields of a spec that limit what a sandbox may use."""
LIFETIME = "lifetime_s"
"""What no local system enforces: a sandbox lives until it is destroyed or its harness ends."""
_counter = itertools.count(1)


class HolderFailed(Exception):
    """The holder did not come up. ``why``: ``exit``, ``deadline`` or ``cancelled``; ``said`` is its stderr."""

    def __init__(self, why: str, said: str = "") -> None:
        self.why = why
        self.said = said
        super().__init__(why, said)


@dataclass(slots=True)
class Holder:
    """The process that keeps a sandbox alive: ``cat`` on a pipe that ends with the harness.

    ``process`` is what we started, ``pid`` the sandbox's first process and ``started`` its start time.
    """

    process: subprocess.Popen[bytes]
    pid: int
    started: str

    def alive(self) -> bool:
        """Does not reap: while it is not reaped, its pid and its process group are nobody else's."""
        if self.process.returncode is not None:
            return False
        if sys.platform != "linux":
            return True
        try:
            return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:
            # Reaped by the kernel, in a harness that ignores SIGCHLD, or by somebody else's waitpid(-1).
            return False

    def release(self, timeout_s: float) -> bool:
        """Close its pipe and reap it; False when it does not end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        if sys.platform == "linux" and self.process.returncode is None:
            # Not Popen.wait(timeout): that sleeps in growing steps, and a destroy is measured.
            with contextlib.suppress(ProcessLookupError):
                _wait_on_pidfd(self.process.pid, timeout_s)
            timeout_s = 0
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True


def _wait_on_pidfd(pid: int, timeout_s: float) -> None:
    assert sys.platform == "linux"
    pidfd = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        poll.poll(max(0.0, timeout_s) * 1000)
    finally:
        os.close(pidfd)


@contextlib.contextmanager
def info_file() -> Iterator[int]:
    """A file without a name for bwrap's ``--info-fd``.

    Not a pipe: bwrap writes to it before it releases the sandbox's first process. Were the harness killed before that,
    the pipe would have no reader, bwrap would die of the write, and the process would wait for it for ever.
    """
    if sys.platform == "linux" and hasattr(os, "memfd_create"):
        fd = os.memfd_create("info")
        try:
            yield fd
        finally:
            os.close(fd)
    else:
        # A Python built for an old libc.
        with tempfile.TemporaryFile(buffering=0) as file:
            yield file.fileno()


def start_holder(command: Command, wake: Wake, deadline: float, *, info_fd: int | None = None) -> Holder:
    """Start ``cat`` (or what ends in it) and wait until it echoes one byte: only then everything before it is done.

    ``info_fd`` is an :func:`info_file` that the command has as bwrap's ``--info-fd``. ``HolderFailed`` when it does
    not come up, with nothing left behind.
    """
    process = start(command, pipe_stdin=True)
    return _wait_until_up(process, command, wake, deadline, info_fd)


def _wait_until_up(
    process: subprocess.Popen[bytes], command: Command, wake: Wake, deadline: float, info_fd: int | None
) -> Holder:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        why = _await_echo(process, wake, deadline)
        if why == "ready":
            pid = process.pid if info_fd is None else _child_pid(info_fd)
            started = proc.start_time(pid) or ""
            process.stdout.close()
            process.stderr.close()
            return Holder(process, pid, started)
    except BaseException:
        _discard(process, command.kill)
        raise
    if why == "exit":
        os.set_blocking(process.stderr.fileno(), False)
        said = process.stderr.read(65536) or b""
        code = process.wait()
        _discard(process, command.kill)
        raise HolderFailed("exit", said.decode(errors="replace").strip() or f"it exited with {code} and said nothing")
    _discard(process, command.kill)
    raise HolderFailed(why)


def _await_echo(process: subprocess.Popen[bytes], wake: Wake, deadline: float) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        os.write(process.stdin.fileno(), b"\n")
    except BrokenPipeError:
        return "exit"
    poll = select.poll()
    poll.register(process.stdout, select.POLLIN)
    poll.register(wake, select.POLLIN)
    while not wake.cancelled:
        left = deadline - time.monotonic()
        if left <= 0:
            return "deadline"
        if process.stdout.fileno() in dict(poll.poll(left * 1000)):
            return "ready" if os.read(process.stdout.fileno(), 1) else "exit"
    return "cancelled"


def _child_pid(info_fd: int) -> int:
    """The first process of a sandbox, from bwrap's JSON: it was all written before that process ran."""
    try:
        return int(json.loads(os.pread(info_fd, 4096, 0))["child-pid"])
    except (ValueError, KeyError, TypeError):
        raise HolderFailed("exit", "it echoed, but wrote no child-pid to its --info-fd") from None


def _discard(process: subprocess.Popen[bytes], kill: Callable[[int], object]) -> None:
    kill(process.pid)
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        assert pipe is not None
        pipe.close()


def base_env(python: GuestPython | None, python_folder: str | None, *, home: str, tmp: str) -> dict[str, str]:
    """The environment that every guest process starts from: nothing of the harness's own."""
    folder = python_folder or (python.folder if python is not None else "")
    path = f"{folder}:{PATH}" if folder else PATH
    return {"HOME": home, "PATH": path, "LANG": "C.UTF-8", "TMPDIR": tmp, "USER": "sandbox", "LOGNAME": "sandbox"}


def exec_token(sandbox: str) -> str:
    """A label of one command, by which what it started is found however often that forked."""
    return f"{sandbox}.{next(_counter)}"


def limit_details(enforced: Mapping[str, str], unenforced: Collection[str]) -> dict[str, str]:
    """For the details of a reference: ``enforced`` as ``memory_mib=256 pids=64``, ``unenforced`` as ``vcpus,pids``."""
    details: dict[str, str] = {}
    if enforced:
        details["enforced"] = " ".join(f"{name}={value}" for name, value in enforced.items())
    if unenforced:
        details["unenforced"] = ",".join(sorted(unenforced))
    return details


def to_result(ended: Ended, tried: str, sandbox: str, after_s: float, *, gone: bool) -> ExecResult:
    """``ExecTimeout``, ``SandboxGone`` or ``ExecFailed`` unless the command came to an end of its own."""
    error = failure(ended, tried, sandbox, after_s, gone=gone)
    if error is not None:
        raise error
    return ExecResult(ended.exit_code, ended.stdout, ended.stderr)


def failure(ended: Ended, tried: str, sandbox: str, after_s: float, *, gone: bool) -> SandboxError | None:
    if ended.why == "deadline":
        return ExecTimeout(
            tried,
            sandbox=sandbox,
            after_s=after_s,
            said=ended.stderr[-500:].decode(errors="replace"),
            cure="everything that the command started was killed; give it a longer deadline",
        )
    if ended.why == "output":
        cure = "write it to a file in the sandbox and read that"
        return ExecFailed(tried, sandbox=sandbox, after_s=after_s, said=f"more than {MAX_OUTPUT} bytes", cure=cure)
    if gone:
        said = ended.stderr[-500:].decode(errors="replace")
        return SandboxGone(tried, sandbox=sandbox, after_s=after_s, said=said, cure="create a new one")
    return None


def no_processes(error: OSError, tried: str, kind: type[SandboxError], sandbox: str = "") -> SandboxError:
    """The host could not start a process: which of its limits, and what to do."""
    cure = {
        "EMFILE": "raise the limit of open files: ulimit -n 65536",
        "ENFILE": "the host has no more open files: sysctl fs.file-max",
        "EAGAIN": "raise the limit of processes: ulimit -u, or the pids limit of the harness's cgroup",
        "ENOMEM": "the host has no memory left: lower the concurrency",
    }.get(errno.errorcode.get(error.errno or 0, ""), "")
    return kind(tried, sandbox=sandbox, said=str(error), cure=cure)


async def run_floor(processes: Processes, argv: Sequence[str], env: Mapping[str, str]) -> None:
    """A round trip: one process that has to succeed."""
    begin = time.monotonic()
    try:
        ended = await processes.run(Command(argv, env=env), deadline_s=60)
    except OSError as error:
        raise no_processes(error, "round_trip", ExecFailed) from error
    result = to_result(ended, "round_trip", "", time.monotonic() - begin, gone=False)
    if result.exit_code != 0:
        said = result.stderr.decode(errors="replace").strip() or f"it exited with {result.exit_code} and said nothing"
        raise ExecFailed("round_trip", after_s=time.monotonic() - begin, said=f"{argv[0]}: {said}")


def by_hand(folders: WorkFolders, sandbox: str) -> str:
    """What is left of a sandbox that could not be destroyed, as the commands that remove it."""
    pids = proc.labelled(proc.SANDBOX_LABEL, sandbox)
    left = [f"kill -9 {' '.join(map(str, pids))}"] if pids else []
    left += [
        f"rm -rf {shlex.quote(str(folders.path(label, found)))}" for label, found in folders.found() if found == sandbox
    ]
    return "; ".join(left)


async def run_command(
    processes: Processes, command: Command, tried: str, sandbox: str, deadline_s: float, gone: Callable[[Ended], bool]
) -> ExecResult:
    begin = time.monotonic()
    try:
        ended = await processes.run(command, deadline_s=deadline_s)
    except OSError as error:
        raise no_processes(error, tried, ExecFailed, sandbox) from error
    return to_result(ended, tried, sandbox, time.monotonic() - begin, gone=gone(ended))


async def stream_command(
    processes: Processes, command: Command, tried: str, sandbox: str, deadline_s: float, gone: Callable[[Ended], bool]
) -> AsyncGenerator[Output, None]:
    """The protocol's stream from a launcher's: the end becomes an item with the exit code, or an error."""
    begin = time.monotonic()
    # Closing a generator does not close the one that it reads from.
    async with contextlib.aclosing(processes.stream(command, deadline_s=deadline_s)) as pieces:
        try:
            async for piece in pieces:
                if isinstance(piece, Output):
                    yield piece
                    continue
                error = failure(piece, tried, sandbox, time.monotonic() - begin, gone=gone(piece))
                if error is not None:
                    raise error
                yield Output("exit", exit_code=piece.exit_code)
        except OSError as error:
            raise no_processes(error, tried, ExecFailed, sandbox) from error
