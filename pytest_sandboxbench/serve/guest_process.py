"""A command in a guest, as envd runs it: it goes on when its client has gone, and ends when its output is closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

from ..errors import SandboxError
from ..providers.bubblewrap_sandbox import BubblewrapSandbox
from ..providers.one_process import Started

__all__ = ["GuestProcess", "NoSuchFolder"]

# It changes to the folder, tells its pid on standard error, and becomes the command. Nothing is told where there is no
# such folder: the first line is then empty.
_ENTER = 'cd -- "$0" 2>/dev/null || { echo >&2; exit 126; }; echo "$$" >&2; exec "$@"'
_CHUNK = 1 << 16
_AHEAD = 1 << 22
"""How many bytes of output wait for a client that reads slowly."""


class NoSuchFolder(Exception):
    """The working directory is not there."""


class GuestProcess:
    """``pid`` is the guest's. ``events`` yields (stream, bytes), and ends when all output is closed."""

    def __init__(self, sandbox: BubblewrapSandbox, started: Started, argv: Sequence[str], cwd: str) -> None:
        self.pid = 0
        self.argv = tuple(argv)
        self.cwd = cwd
        self.exit_code: int | None = None
        self.timed_out = False
        self.ended = asyncio.Event()
        self._sandbox = sandbox
        self._started = started
        self._events: asyncio.Queue[tuple[str, bytes] | None] = asyncio.Queue()
        self._waiting = 0
        self._room = asyncio.Event()
        self._room.set()
        self._abandoned = False
        self._stdin: asyncio.StreamWriter | None = None
        self._task: asyncio.Task[None] | None = None
        self._reads: list[asyncio.Task[None]] = []
        self._clock: asyncio.TimerHandle | None = None
        self._killing: asyncio.Future[None] | None = None

    @classmethod
    async def start(
        cls,
        sandbox: BubblewrapSandbox,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        stdin: bool,
        timeout_s: float | None,
    ) -> GuestProcess:
        """``NoSuchFolder``; ``SandboxError`` where nothing can be started."""
        started = await sandbox.start(["/bin/sh", "-c", _ENTER, cwd, *argv], env=env, stdin=stdin)
        self = cls(sandbox, started, argv, cwd)
        try:
            loop = asyncio.get_running_loop()
            pipes = {"stdout": asyncio.StreamReader(limit=_CHUNK), "stderr": asyncio.StreamReader(limit=_CHUNK)}
            for name, reader in pipes.items():
                protocol_of = partial(asyncio.StreamReaderProtocol, reader)
                await loop.connect_read_pipe(protocol_of, getattr(started.child, name))
            if started.child.stdin is not None:
                transport, protocol = await loop.connect_write_pipe(
                    asyncio.streams.FlowControlMixin, started.child.stdin
                )
                self._stdin = asyncio.StreamWriter(transport, protocol, None, loop)
            first = (await pipes["stderr"].readline()).strip()
        except BaseException:
            await asyncio.to_thread(started.kill)
            raise
        if not first.isdigit():
            await asyncio.to_thread(started.kill)
            raise NoSuchFolder(cwd)
        self.pid = int(first)
        self._task = asyncio.create_task(self._run(pipes))
        if timeout_s is not None:
            self._clock = loop.call_later(timeout_s, self._expire)
        return self

    async def _run(self, pipes: Mapping[str, asyncio.StreamReader]) -> None:
        self._reads = [asyncio.create_task(self._read(name, reader)) for name, reader in pipes.items()]
        await asyncio.wait(self._reads)
        self.exit_code = await asyncio.to_thread(self._started.reap)
        if self._clock is not None:
            self._clock.cancel()
        self.close_stdin()
        self.ended.set()
        self._events.put_nowait(None)

    async def _read(self, name: str, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(_CHUNK):
            if self._abandoned:
                continue
            self._waiting += len(data)
            self._events.put_nowait((name, data))
            if self._waiting > _AHEAD:
                self._room.clear()
                await self._room.wait()

    def _expire(self) -> None:
        """The time is over that its client gave it: the process is killed, and its output is waited for no more."""
        self.timed_out = True
        self._killing = asyncio.ensure_future(self._kill())

    async def _kill(self) -> None:
        await self.signal("KILL")
        for read in self._reads:
            read.cancel()

    async def events(self) -> AsyncIterator[tuple[str, bytes]]:
        """To be read once. When the reader leaves, the command goes on, and what it says is thrown away."""
        try:
            while (event := await self._events.get()) is not None:
                self._waiting -= len(event[1])
                if self._waiting <= _AHEAD:
                    self._room.set()
                yield event
        finally:
            self._abandoned = True
            self._room.set()

    async def write(self, data: bytes) -> None:
        """``BrokenPipeError`` where it reads no more, or has no standard input."""
        if self._stdin is None or self.ended.is_set():
            raise BrokenPipeError("stdin is closed")
        self._stdin.write(data)
        drained, ended = asyncio.ensure_future(self._stdin.drain()), asyncio.ensure_future(self.ended.wait())
        try:
            await asyncio.wait((drained, ended), return_when=asyncio.FIRST_COMPLETED)
            if drained.done():
                drained.result()
        finally:
            for waiting in (drained, ended):
                waiting.cancel()

    def close_stdin(self) -> None:
        if self._stdin is not None:
            with suppress(OSError):
                self._stdin.close()
            self._stdin = None

    async def signal(self, name: str) -> None:
        """Of this one process, as envd does; what it started is left alone."""
        with suppress(SandboxError, OSError):
            await self._sandbox.exec(["/bin/sh", "-c", f'kill -{name} "$0"', str(self.pid)], deadline_s=10)
