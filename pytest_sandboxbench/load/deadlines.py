"""Deadlines of ours around every call into a provider, whatever the adapter does.

Three lines of defence. A call that is still running at its deadline is cancelled. One that swallows the
cancellation is abandoned: in a block by the supervisor of its lane (``block.py``), elsewhere here. One that blocks the
event loop is interrupted by a signal (``watchdog.py``). What it raises becomes an error like others, whatever it is.
"""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any, TypeVar

from ..clock import NS_PER_S, now_ns
from ..errors import OperationTimeout, SandboxbenchError, SandboxError
from ..termination import interrupt
from .watchdog import LoopBlocked

__all__ = ["GRACE_S", "Guard", "Pulse", "bounded", "describe", "forget", "outcome", "stop", "tamed"]

GRACE_S = 0.1
"""How long after its deadline an adapter may take to report the time-out itself, in its better words."""

_STOPS_S = 1.0
"""How long an interrupted call gets to clean up, where nothing else is waited for."""

_PACKAGE = str(Path(__file__).resolve().parents[1])
_STDLIB = str(Path(asyncio.__file__).resolve().parents[1])

T = TypeVar("T")


class Pulse:
    """When a lane must next show a sign of life; the supervisor and the watchdog read it.

    ``expires`` counts in ``time.monotonic`` (the event loop's clock), or is None while the lane waits for others.
    ``tried`` is the call into the provider that is under way, if one is.
    """

    __slots__ = ("expires", "rest", "timeout_s", "tried", "watch")

    def __init__(
        self,
        timeout_s: float,
        watch: Callable[[float], None] | None = None,
        rest: Callable[[], None] | None = None,
    ) -> None:
        """``watch`` is told when the loop must be free; ``rest``, outside of blocks, that no call is under way."""
        self.timeout_s = timeout_s
        self.watch = watch
        self.rest = rest
        self.tried = ""
        self.expires: float | None = None
        self.beat()

    def beat(self, deadline_s: float | None = None) -> None:
        self.expires = time.monotonic() + (self.timeout_s if deadline_s is None else deadline_s) + 2 * GRACE_S
        if self.watch is not None:
            self.watch(self.expires)

    def hold(self) -> None:
        self.expires = None

    def returned(self) -> None:
        """A call into the provider is over."""
        self.tried = ""
        if self.rest is None:
            self.beat()
        else:
            self.hold()
            self.rest()

    def is_late(self, at: float) -> bool:
        return self.expires is not None and self.expires <= at


class Guard:
    """Our deadline around calls; after the end, which ``over`` says, none is begun."""

    def __init__(self, pulse: Pulse, timeout_s: float) -> None:
        self.pulse = pulse
        self._timeout_s = timeout_s
        self.over = False

    async def within(self, tried: str, sandbox: str, call: Awaitable[T], deadline_s: float | None = None) -> T:
        if self.over:
            if isinstance(call, Coroutine):
                call.close()
            raise asyncio.CancelledError(f"{tried} after the end of the lane")
        limit = self._timeout_s if deadline_s is None else deadline_s
        self.pulse.tried = tried
        self.pulse.beat(limit)
        started = now_ns()
        try:
            if self.pulse.rest is None:
                async with asyncio.timeout(limit + GRACE_S):
                    with tamed(tried, sandbox, awaits=True):
                        result = await call
            else:
                result = await _waited_for(tried, sandbox, call, limit + GRACE_S)
            # A call that blocked the loop, or swallowed its cancellation, comes back as if nothing had been.
            if now_ns() - started <= (limit + GRACE_S) * NS_PER_S:
                return result
            said = "the adapter returned after the deadline all the same"
        except TimeoutError as error:
            said = _text(error)
        except LoopBlocked:
            said = "the adapter blocked the event loop"
        finally:
            self.pulse.returned()
        raise OperationTimeout(
            tried,
            sandbox=sandbox,
            after_s=(now_ns() - started) / NS_PER_S,
            said=said,
            cure=f"the deadline was {limit:g} s; --sandbox-timeout sets it",
        )


class _Late(TimeoutError):
    """Our deadline is over; what the adapter did then."""


@contextmanager
def tamed(tried: str, sandbox: str = "", *, awaits: bool = False) -> Iterator[None]:
    """What no adapter should raise (``SystemExit``, ...) would end the event loop or the run: it becomes a failure.

    Where nothing is awaited, a cancellation is none of ours.
    """
    runs_in = _current_task()
    try:
        yield
    except (Exception, LoopBlocked):
        raise
    except KeyboardInterrupt:
        if runs_in is None:
            raise
        interrupt(sys._getframe())  # cancels what runs; the second time it raises
        raise asyncio.CancelledError(f"interrupted in {tried}") from None
    except BaseException as error:
        if awaits and isinstance(error, asyncio.CancelledError):
            raise
        if isinstance(error, GeneratorExit) and _current_task() is not runs_in:
            raise  # nobody raised it: the coroutine is being thrown away
        raise _of_adapter(tried, sandbox, describe(error)) from error


def _of_adapter(tried: str, sandbox: str, said: str) -> SandboxError:
    return SandboxError(tried, sandbox=sandbox, said=said, cure="an adapter must not do that: report it to its author")


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


async def _waited_for(tried: str, sandbox: str, call: Awaitable[T], limit_s: float) -> T:
    """Wait for a call from outside of it. ``_Late`` after ``limit_s`` seconds, whether it stops then or not."""

    async def run() -> T:
        with tamed(tried, sandbox, awaits=True):
            return await call

    task = asyncio.ensure_future(run())
    late = False
    try:
        await asyncio.wait({task}, timeout=limit_s)
        if not task.done():
            late = True
            task.cancel()
            await asyncio.wait({task}, timeout=GRACE_S)
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task}, timeout=_STOPS_S)
        raise
    finally:
        if not task.done():
            task.cancel()
            forget(task)
        elif not task.cancelled():
            task.exception()  # it was asked for, whatever becomes of it
    if not task.done():
        raise _Late("the adapter did not stop when it was cancelled")
    if not task.cancelled():
        return task.result()
    if late:
        raise _Late
    raise _of_adapter(tried, sandbox, "the adapter cancelled the operation by itself")


async def bounded(tried: str, call: Coroutine[Any, Any, T], limit_s: float) -> T:
    """Wait for a call from outside of it, so that one that swallows its cancellation can be left behind.

    ``OperationTimeout`` after ``limit_s`` seconds. Costs a task, so it is not for timed regions.
    """
    started = now_ns()
    try:
        return await _waited_for(tried, "", call, limit_s)
    except _Late as error:
        said = str(error)
    except LoopBlocked:
        said = "the adapter blocked the event loop"
    raise OperationTimeout(
        tried,
        after_s=(now_ns() - started) / NS_PER_S,
        said=said,
        cure=f"it had {limit_s:.3g} s",
    )


async def stop(task: asyncio.Task[Any], limit_s: float) -> None:
    """Cancel a task, and leave it behind if it does not end. Nobody is told of its error."""
    task.cancel()
    try:
        await asyncio.wait({task}, timeout=limit_s)
    finally:
        if not task.done():
            forget(task)
        elif not task.cancelled():
            task.exception()


def forget(task: asyncio.Task[Any]) -> None:
    """Leave a task behind that does not stop: neither the end of the loop nor a log waits for it or speaks of it."""
    asyncio._unregister_task(task)  # or closing the loop waits for it, forever perhaps
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    task.add_done_callback(_silence)


def _silence(task: asyncio.Task[Any]) -> None:
    """A task that ends when nobody waits for it any more must not print "exception was never retrieved"."""
    if not task.cancelled():
        task.exception()


def describe(error: BaseException) -> str:
    """An error as one line for records: the project's own say it all, foreign ones get their type and place."""
    if isinstance(error, SandboxbenchError):
        text = _text(error)
    else:
        text = f"{type(error).__name__}: {_text(error)[:1800]}{_hint(error)}{_place(error)}"
    return " ".join(text.split())[:2000].encode(errors="backslashreplace").decode()


def _hint(error: BaseException) -> str:
    """What Python says of an adapter's method that is awaited and is no coroutine, in 3.11 and in later ones."""
    told = isinstance(error, TypeError) and _text(error).endswith(("used in 'await' expression", "can't be awaited"))
    return "; is it `async def`?" if told else ""


def _place(error: BaseException) -> str:
    """How far it had come in the file of somebody's adapter or bench that we called: not in an SDK below it."""
    called, line = "", 0
    for frame, at in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if called in ("", file) and not _is_ours_or_pythons(file):
            called, line = file, at
    return f" ({PurePath(called).name}, line {line})" if called else ""


def _is_ours_or_pythons(file: str) -> bool:
    if file.startswith((_PACKAGE, "<")):
        return True
    return file.startswith(_STDLIB) and not {"site-packages", "dist-packages"} & {*PurePath(file).parts}


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as second:
        return f"(it cannot be printed: {type(second).__name__})"


def outcome(error: BaseException) -> str:
    """The outcome that a sample gets for an error."""
    if isinstance(error, SandboxError):
        return error.outcome
    return "timeout" if isinstance(error, TimeoutError | LoopBlocked) else "failed"
