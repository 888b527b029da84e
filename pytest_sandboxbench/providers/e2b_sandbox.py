"""One E2B sandbox: commands by the agent inside, files by its HTTP API, pauses by the control plane.

The agent runs a command line with a login shell, tells its end when its *output* is closed, and kills nothing but that
shell. What the protocol promises beyond that is done in the command line (``command_line``) and the guest (``_KILL``).
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import secrets
import shlex
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from signal import Signals
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import ExecFailed, ExecTimeout, OperationTimeout, SandboxError, Unsupported
from ..model import ExecResult, Output, PauseKind, SandboxRef
from .e2b_errors import translated

if TYPE_CHECKING:
    from e2b import AsyncSandbox

    from .e2b import E2BProvider

__all__ = ["E2BSandbox", "command_line"]

T = TypeVar("T")

_TOKEN = "SANDBOXBENCH_COMMAND"
_CLEANUP_S = 30.0
_CLOSES_S = 0.05
"""How long the end of a command waits for the end of its output."""
_PATIENCE_S = 0.08
"""How long a caller that is late waits for what it started to be killed; it goes on after that."""

# All that has the token in its environment, again and again until twice nothing is found: in the middle of its start a
# program has no environment yet.
_KILL = """n=0; while [ $n -lt 2 ]; do n=$((n + 1))
for p in $(grep -slF "$1" /proc/[0-9]*/environ); do n=0; p=${p#/proc/}; kill -9 "${p%/environ}" 2>/dev/null; done
[ $n -eq 0 ] || sleep 0.01; done"""


def command_line(argv: Sequence[str], mark: str) -> str:
    """The command line of ``argv``: after the command both outputs get a mark, and standard error its exit code.

    So its end is known when it exits, and not when the last of what it left in the background closes its output. What
    the shell itself says of a command that a signal ended goes nowhere. The mark is put together only when it is
    printed: a guest may well print the command lines of its processes.
    """
    run = f"(exec -- {shlex.join(argv)}) 2>&3 3>&-"
    half, rest = mark[:8], mark[8:]
    return f"{{ {run}; s=$?; }} 3>&2 2>/dev/null; printf %s%s {half} {rest}; printf '%s%s%s\\n' {half} {rest} $s >&2"


@dataclass(slots=True)
class _Cut:
    """An output up to its mark. What may be the beginning of a mark is kept back."""

    mark: bytes
    held: bytes = b""
    after: bytes | None = None

    def take(self, data: bytes) -> bytes:
        if self.after is not None:
            self.after += data
            return b""
        data = self.held + data
        before, found, after = data.partition(self.mark)
        if found:
            self.held, self.after = b"", after
            return before
        keep = next((n for n in range(min(len(self.mark) - 1, len(data)), 0, -1) if self.mark.startswith(data[-n:])), 0)
        self.held = data[len(data) - keep :]
        return data[: len(data) - keep]


@dataclass(slots=True)
class _Reading:
    """What comes of a running command: pieces of output in a queue, and None when it has ended."""

    mark: bytes
    pieces: asyncio.Queue[Output | None] = field(default_factory=asyncio.Queue)
    cuts: dict[str, _Cut] = field(default_factory=dict)
    exit_code: int | None = None

    def __post_init__(self) -> None:
        self.cuts = {"stdout": _Cut(self.mark), "stderr": _Cut(self.mark)}

    def take(self, stream: str, text: str) -> None:
        data = self.cuts[stream].take(text.encode("utf-8", "surrogateescape"))
        if data:
            self.pieces.put_nowait(Output("stdout" if stream == "stdout" else "stderr", data))
        told = self.cuts["stderr"].after
        if self.exit_code is None and told is not None and b"\n" in told and self.cuts["stdout"].after is not None:
            self.end(_code(int(told.partition(b"\n")[0])))

    async def next(self, ends: float) -> Output | None:
        """The next piece; ``TimeoutError`` at an instant of the loop's clock."""
        async with asyncio.timeout_at(ends):
            return await self.pieces.get()

    def end(self, code: int) -> None:
        if self.exit_code is None:
            for stream, cut in self.cuts.items():
                if cut.after is None and cut.held:
                    self.pieces.put_nowait(Output("stdout" if stream == "stdout" else "stderr", cut.held))
            self.exit_code = code
            self.pieces.put_nowait(None)


def _code(said: int) -> int:
    """A shell says 128 + N of a command that signal N ended. One that exits with such a number looks the same."""
    return 128 - said if said - 128 in set(Signals) else said


class E2BSandbox:
    path = "cold"

    def __init__(
        self,
        provider: E2BProvider,
        sdk: AsyncSandbox,
        ref: SandboxRef,
        unenforced: frozenset[str],
        lifetime_s: float | None,
    ) -> None:
        self.ref = ref
        self.unenforced = unenforced
        self._provider = provider
        self._sdk = sdk
        self._lifetime_s = lifetime_s
        self._paused = False
        self._tasks: set[asyncio.Future[Any]] = set()

    # -- commands

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        deadline_s: float,
    ) -> ExecResult:
        output = {"stdout": bytearray(), "stderr": bytearray()}
        code = 0
        tried = f"exec {list(argv)}"
        async with contextlib.aclosing(self._run(tried, argv, stdin, cwd, env, deadline_s)) as pieces:
            async for piece in pieces:
                if piece.stream == "exit":
                    code = piece.exit_code or 0
                else:
                    output[piece.stream] += piece.data
        return ExecResult(code, bytes(output["stdout"]), bytes(output["stderr"]))

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
        async with contextlib.aclosing(self._run(tried, argv, stdin, cwd, env, deadline_s)) as pieces:
            async for piece in pieces:
                yield piece

    async def _run(
        self,
        tried: str,
        argv: Sequence[str],
        stdin: bytes,
        cwd: str | None,
        env: Mapping[str, str] | None,
        deadline_s: float,
    ) -> AsyncGenerator[Output, None]:
        self._check(tried)
        if not argv or any("\0" in text for text in (*argv, cwd or "", *(env or {}).values())):
            raise ExecFailed(tried, sandbox=self.ref.id, said="a NUL byte, or no command at all")
        begin = time.monotonic()
        token, mark = secrets.token_hex(16), f"-{secrets.token_hex(12)}-"
        reading = _Reading(mark.encode())
        ended = False
        act = self._follow(argv, stdin, cwd, {**(env or {}), _TOKEN: token}, mark, reading, deadline_s)
        task = self._kept(act)
        task.add_done_callback(lambda _: reading.pieces.put_nowait(None))
        try:
            # Each wait has its own timeout: one around a `yield` would cancel whoever reads, in the middle of anything.
            ends = asyncio.get_running_loop().time() + deadline_s
            while (piece := await reading.next(ends)) is not None:
                yield piece
            # Where the output is closed by now, as it is but for what runs on in the background, the span ends with
            # the stream, as it does for whoever uses the SDK.
            await asyncio.wait({task}, timeout=_CLOSES_S)
            if reading.exit_code is None:
                task.result()
                raise ExecFailed(tried, sandbox=self.ref.id, said="the agent told no end of the command")
            ended = True
        except TimeoutError:
            raise ExecTimeout(tried, sandbox=self.ref.id, after_s=deadline_s) from None
        except (SandboxError, asyncio.CancelledError, GeneratorExit):
            raise
        except Exception as error:
            ended = task.done()
            after_s = time.monotonic() - begin
            raise translated(error, tried, ExecFailed, sandbox=self.ref.id, after_s=after_s) from error
        finally:
            if not ended:
                await self._kill(token, task)
        yield Output("exit", exit_code=reading.exit_code)

    async def _follow(
        self,
        argv: Sequence[str],
        stdin: bytes,
        cwd: str | None,
        env: Mapping[str, str],
        mark: str,
        reading: _Reading,
        deadline_s: float,
    ) -> None:
        """Start the command, feed it, and read until its output is closed, which may be long after its end."""
        handle = await self._sdk.commands.run(
            command_line(argv, mark),
            background=True,
            envs=dict(env),
            cwd=cwd,
            on_stdout=lambda text: reading.take("stdout", text),
            on_stderr=lambda text: reading.take("stderr", text),
            stdin=bool(stdin),
            timeout=deadline_s + _CLEANUP_S,
            request_timeout=deadline_s + _CLEANUP_S,
        )
        # The SDK gives text, and puts U+FFFD for what is none. It reads nothing before this task waits.
        handle._stdout_decoder.errors = handle._stderr_decoder.errors = "surrogateescape"
        feeding = asyncio.ensure_future(_feed(handle, stdin)) if stdin else None
        try:
            await handle.wait()
            reading.end(0)
        except Exception as error:
            if type(error).__name__ != "CommandExitException":
                raise
            reading.end(_of_agent(error))
        finally:
            if feeding is not None:
                feeding.cancel()

    def _kept(self, act: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(act)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()

    async def _kill(self, token: str, task: asyncio.Task[None]) -> None:
        """End what a command started. The caller is late, or leaves: it waits a moment, the rest goes on without it."""

        async def kill() -> None:
            line = shlex.join(["sh", "-c", _KILL, "sh", f"{_TOKEN}={token}"])
            with contextlib.suppress(Exception):
                await self._sdk.commands.run(line, timeout=_CLEANUP_S, request_timeout=_CLEANUP_S)
            task.cancel()

        await asyncio.wait({self._kept(kill())}, timeout=_PATIENCE_S)

    def _check(self, tried: str) -> None:
        if self._paused:
            raise Unsupported(f"{tried} while paused", sandbox=self.ref.id, cure="resume it first")

    # -- files

    async def write_file(self, path: str, data: bytes, *, deadline_s: float) -> None:
        await self._file(f"write_file {path}", self._sdk.files.write(path, data, **_within(deadline_s)), deadline_s)

    async def read_file(self, path: str, *, deadline_s: float) -> bytes:
        call = self._sdk.files.read(path, format="bytes", **_within(deadline_s))
        return bytes(await self._file(f"read_file {path}", call, deadline_s))

    async def _file(self, tried: str, call: Coroutine[Any, Any, T], deadline_s: float) -> T:
        try:
            self._check(tried)
        except Unsupported:
            call.close()
            raise
        return await self._bounded(tried, call, ExecFailed, deadline_s)

    async def _bounded(self, tried: str, call: Awaitable[T], kind: type[SandboxError], deadline_s: float) -> T:
        begin = time.monotonic()
        try:
            async with asyncio.timeout(deadline_s):
                return await call
        except TimeoutError:
            raise OperationTimeout(tried, sandbox=self.ref.id, after_s=deadline_s) from None
        except Exception as error:
            after_s = time.monotonic() - begin
            raise translated(error, tried, kind, sandbox=self.ref.id, after_s=after_s) from error

    # -- pauses

    async def pause(self, *, kind: PauseKind, deadline_s: float) -> None:
        if kind not in ("memory", "filesystem"):
            raise Unsupported(f"pause of kind {kind}", sandbox=self.ref.id, cure="it keeps memory, or the filesystem")
        # `keep_memory` is understood by all versions; newer ones have another word for it, and warn of nothing.
        memory: dict[str, Any] = {} if kind == "memory" else {"keep_memory": False}
        call = self._provider.sdk.pause(self.ref.id, **memory, **self._provider.options(deadline_s + _CLEANUP_S))
        await self._bounded("pause", call, SandboxError, deadline_s)
        self._paused = True

    async def resume(self, *, deadline_s: float) -> None:
        lifetime: dict[str, Any] = {} if self._lifetime_s is None else {"timeout": max(1, math.ceil(self._lifetime_s))}
        options = self._provider.options(deadline_s + _CLEANUP_S)
        call = self._provider.sdk.connect(self.ref.id, **lifetime, **options)
        self._sdk = await self._bounded("resume", call, SandboxError, deadline_s)
        self._paused = False


def _within(deadline_s: float) -> dict[str, Any]:
    return {"request_timeout": deadline_s + _CLEANUP_S}


async def _feed(handle: Any, data: bytes) -> None:
    """A command that reads no more is no error, nor one that has ended."""
    size = 1 << 20
    try:
        for at in range(0, len(data), size):
            await handle.send_stdin(data[at : at + size])
        await handle.close_stdin()
    except Exception:
        pass


def _of_agent(error: Exception) -> int:
    """Where the shell itself was ended, the agent tells: -1, and ``signal: killed``."""
    code: int = getattr(error, "exit_code", -1)
    text = str(getattr(error, "error", "") or "")
    if code >= 0 or not text.startswith("signal: "):
        return code
    from signal import strsignal

    name = text.removeprefix("signal: ").partition(" (")[0].lower()
    return next((-number for number in Signals if (strsignal(number) or "").lower() == name), code)
