"""Starting local processes at full speed from asyncio: one pool thread a process, as many threads as lanes.

Why threads: a child started from the event loop, or through a pool smaller than the number of lanes, queues behind
the others, and that queue ends up in the numbers. Why ``subprocess.Popen`` without ``preexec_fn`` or a user: CPython
then uses vfork, whose cost does not grow with the memory of the harness.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ..clock import now_ns
from ..model import Output
from .one_process import Command, Ended, Wake, supervise, wait_for
from .queued import was_queued

__all__ = ["MAX_THREADS", "Processes"]

T = TypeVar("T")

MAX_THREADS = 512
STREAM_WINDOW = 8 * 2**20
"""Bytes that may wait for the reader of a stream; beyond that the command is held back by its full pipe."""

_PR_SET_NO_NEW_PRIVS = 38
_SYS_SETGROUPS = {"x86_64": 116, "aarch64": 159}


class Processes:
    """A launcher. ``no_new_privs``, ``clear_groups``: what every process it starts has given up, at no cost.

    Both are attributes of a thread that its children inherit, so they are set once on each thread of the pool.
    """

    def __init__(self, name: str = "sandboxbench", *, no_new_privs: bool = False, clear_groups: bool = False) -> None:
        self._no_new_privs = no_new_privs
        self._clear_groups = clear_groups
        self._pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix=name, initializer=self._prepare_thread)

    def _prepare_thread(self) -> None:
        if sys.platform != "linux":
            return
        libc = ctypes.CDLL(None, use_errno=True)
        if self._no_new_privs:
            libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if self._clear_groups and (number := _SYS_SETGROUPS.get(os.uname().machine)):
            # The raw call: libc's setgroups() would change every thread of the harness.
            libc.syscall(number, 0, None)

    def close(self) -> None:
        self._pool.shutdown(wait=False)

    async def call(self, work: Callable[[Wake], T], *, undo: Callable[[T], object] | None = None) -> T:
        """Run ``work`` in a thread of the pool. When the caller is cancelled, ``work`` sees ``wake.cancelled``.

        The cancellation is passed on only after ``work`` ended, so that nothing is left behind; where it had
        succeeded by then, ``undo`` gets its result.
        """
        wake = Wake()
        loop = asyncio.get_running_loop()
        asked, began = now_ns(), 0

        def begin(wake: Wake) -> T:
            nonlocal began
            began = now_ns()
            return work(wake)

        try:
            future = loop.run_in_executor(self._pool, begin, wake)
        except BaseException:
            wake.close()
            raise
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            wake.cancel()
            await _settled(future)
            if not future.cancelled() and future.exception() is None and undo is not None:
                await _settled(loop.run_in_executor(self._pool, undo, future.result()))
            raise
        finally:
            wake.close()
            if began:
                was_queued(asked, began)

    async def run(self, command: Command, *, deadline_s: float) -> Ended:
        """Run a command to its end. A binary that is not there is exit code 127, one that may not be run 126.

        ``OSError`` when the host cannot start a process at all (no more files, processes, memory).
        """
        deadline = time.monotonic() + deadline_s
        return await self.call(lambda wake: supervise(command, wake, deadline))

    async def stream(self, command: Command, *, deadline_s: float) -> AsyncGenerator[Output | Ended, None]:
        """As :meth:`run`, but output comes as it is written; the last item is :class:`Ended`, without output.

        Closing the generator early kills the command.
        """
        deadline = time.monotonic() + deadline_s
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[Output | None] = asyncio.Queue()
        waiting = 0
        wakes: list[Wake] = []

        def put(stream: str, data: bytes) -> bool:
            nonlocal waiting
            waiting += len(data)
            item = Output("stdout" if stream == "stdout" else "stderr", data)
            loop.call_soon_threadsafe(queue.put_nowait, item)
            return True

        def work(wake: Wake) -> Ended:
            wakes.append(wake)
            code, why = wait_for(command, put, lambda: waiting < STREAM_WINDOW, wake, deadline)
            return Ended(code, why=why)

        task = asyncio.ensure_future(self.call(work))
        # Of the task and not of the work, which may never start: then too the reader has to be told.
        task.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (item := await queue.get()) is not None:
                waiting -= len(item.data)
                if not task.done() and waiting < STREAM_WINDOW:
                    wakes[0].wake()
                yield item
            yield await task
        finally:
            task.cancel()
            await _settled(task)
            if not task.cancelled():
                task.exception()


async def _settled(future: asyncio.Future[T]) -> None:
    """Wait until ``future`` is done, through further cancellations of the waiting task: the thread is quick."""
    while not future.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([future])
