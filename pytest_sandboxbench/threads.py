"""The event loop's threads, for adapters that call a blocking SDK: none of them is waited for at the end.

asyncio's own pool joins its threads when the loop closes, and the interpreter does it once more at exit: a call that
hangs in one of them would keep the run for ever, long after its deadline.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

__all__ = ["DaemonThreads", "run", "use_daemons"]

P = ParamSpec("P")
T = TypeVar("T")

_NAME = "sandboxbench-call"


class _Call:
    __slots__ = ("args", "function", "future", "kwargs")

    def __init__(
        self, future: Future[Any], function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.future = future
        self.function = function
        self.args = args
        self.kwargs = kwargs


class DaemonThreads(ThreadPoolExecutor):
    """As many threads as there are calls at once: no call waits for another one, and an idle thread is used again."""

    def __init__(self) -> None:
        super().__init__(max_workers=1, thread_name_prefix=_NAME)  # a loop takes nothing else; nothing of it is used
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._over = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        call = _Call(future, fn, args, kwargs)
        with self._lock:
            if self._over:
                raise RuntimeError("cannot schedule new futures after shutdown")
            more = not self._idle
            self._idle -= not more
        if more:
            threading.Thread(target=self._work, name=_NAME, daemon=True).start()
        self._calls.put(call)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Waits for nothing. Idle threads end; one that is in a call ends after it, or with the process."""
        with self._lock:
            self._over = True
            while self._idle:
                self._idle -= 1
                self._calls.put(None)

    def _work(self) -> None:
        more = True
        while more and (call := self._calls.get()) is not None:
            more = self._serve(call)
            del call  # while it is idle it keeps nothing alive

    def _serve(self, call: _Call) -> bool:
        """Whether there may be more."""
        if not call.future.set_running_or_notify_cancel():
            return self._is_idle()
        try:
            result = call.function(*call.args, **call.kwargs)
        except BaseException as error:
            more = self._is_idle()
            call.future.set_exception(error)
        else:
            more = self._is_idle()  # before the caller knows: its next call, which comes at once, needs no other thread
            call.future.set_result(result)
        return more

    def _is_idle(self) -> bool:
        with self._lock:
            self._idle += not self._over
            return not self._over


def use_daemons(loop: asyncio.AbstractEventLoop) -> None:
    """For ``asyncio.to_thread`` on this loop, unless somebody gave it a pool of their own."""
    own = getattr(loop, "_default_executor", None)
    if own is None or (type(own) is ThreadPoolExecutor and own._thread_name_prefix == "asyncio"):
        loop.set_default_executor(DaemonThreads())


def run(main: Coroutine[Any, Any, T], *, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None) -> T:
    """``asyncio.run``, at whose end no thread is waited for."""
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        use_daemons(runner.get_loop())
        return runner.run(main)
