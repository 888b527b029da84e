"""What is late is ended, and everything that it started with it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from typing import Any

from ..errors import CreateFailed, ExecTimeout, NotReady, OperationTimeout, Rejected, SandboxError
from ..load.deadlines import bounded, describe
from ..load.guard import GuardedSandbox
from ..model import ExecResult, Output
from .check import CheckFailed, Trial, among, check, expect, expect_same, raises, running
from .marks import Mark
from .material import ASKS, LEAVES

__all__ = ["CHECKS"]

_EARLY_S = 0.02
"""How much before its deadline a call may be over: clocks have steps."""
_SHORT_S = 0.5
_BETWEEN_TRIES_S = 0.02

_TREE = "sleep 61 & (sleep 62 & sleep 63) & (trap '' HUP; sleep 64 &) & sleep 65 & wait"
_DEAF = "trap '' TERM HUP INT QUIT; (while :; do sleep 1; done) & while :; do sleep 1; done"
_SESSION = "setsid sleep 61 & setsid sh -c 'sleep 62 & sleep 63' & wait"
_MIB = 1 << 20


async def _timed_out(
    trial: Trial,
    call: Coroutine[Any, Any, object],
    what: str,
    deadline_s: float,
) -> None:
    """``ExecTimeout`` between the deadline and a little later; our own deadline, which might hide it, is no part."""
    latest_s = deadline_s + trial.slack_s
    with raises(f"{what} with a deadline of {deadline_s:g} s", ExecTimeout) as raised:
        await bounded(what, call, latest_s + trial.timeout_s)
    expect(
        raised.seconds >= deadline_s - _EARLY_S,
        f"{what} with a deadline of {deadline_s:g} s raised ExecTimeout after {raised.seconds:.2f} s already",
    )
    expect(
        raised.seconds <= latest_s,
        f"{what} with a deadline of {deadline_s:g} s raised ExecTimeout after {raised.seconds:.2f} s; "
        f"{latest_s:g} s is the latest",
    )


async def _exec(sandbox: GuardedSandbox, argv: Sequence[str], deadline_s: float, **more: Any) -> None:
    result = await sandbox.unguarded.exec(argv, deadline_s=deadline_s, **more)
    raise CheckFailed(
        f"{list(argv)} with a deadline of {deadline_s:g} s returned {result.exit_code} instead of ending there"
    )


async def _stream(
    sandbox: GuardedSandbox, argv: Sequence[str], deadline_s: float, env: Mapping[str, str] | None = None
) -> None:
    async with _closing(sandbox.unguarded.stream(argv, env=env, deadline_s=deadline_s)) as pieces:
        async for piece in pieces:
            expect(
                piece.stream != "exit",
                f"the stream of {list(argv)} with a deadline of {deadline_s:g} s ended with exit {piece.exit_code}",
            )


@contextlib.asynccontextmanager
async def _closing(pieces: AsyncIterator[Output]) -> AsyncIterator[AsyncIterator[Output]]:
    try:
        yield pieces
    finally:
        close = getattr(pieces, "aclose", None)
        if close is not None:
            await close()


async def _works(sandbox: GuardedSandbox, after: str) -> None:
    try:
        result = await sandbox.exec(["echo", "works"])
    except SandboxError as error:
        raise CheckFailed(f"{after} the sandbox no longer works: {error}") from error
    expect_same(f"`echo` {after}", result.stdout, b"works\n")


async def _killed(trial: Trial, script: str, what: str, *programs: str) -> None:
    sandbox = await trial.sandbox()
    for program in programs:
        await trial.has(sandbox, program)
    mark = await Mark.of(trial, sandbox)
    call = _exec(sandbox, mark.argv(script), _SHORT_S, env=mark.env)
    await _timed_out(trial, call, what, _SHORT_S)
    await mark.expect_none(f"after the deadline of {what}")
    await _works(sandbox, f"after the deadline of {what}")


@check("exec")
async def a_hanging_command_ends_at_its_deadline(trial: Trial) -> None:
    """A command that is still running at its deadline raises ExecTimeout then, and the sandbox works on."""
    sandbox = await trial.sandbox()
    for deadline_s in (_SHORT_S, 1.0):
        await _timed_out(trial, _exec(sandbox, ["sleep", "60"], deadline_s), "`sleep 60`", deadline_s)
        await _works(sandbox, f"after `sleep 60` ran into a deadline of {deadline_s:g} s")


@check("exec")
async def unread_stdin_holds_no_deadline_up(trial: Trial) -> None:
    """A command that does not read its 8 MiB of standard input ends at its deadline all the same."""
    sandbox = await trial.sandbox()
    call = _exec(sandbox, ["sleep", "60"], _SHORT_S, stdin=b"x" * 8 * _MIB)
    await _timed_out(trial, call, "`sleep 60` with 8 MiB of stdin", _SHORT_S)
    await _works(sandbox, "after `sleep 60` with 8 MiB of stdin ran into its deadline")


@check("exec")
async def a_deadline_that_is_almost_over(trial: Trial) -> None:
    """With a deadline of a millisecond or none at all a command gives its result or ExecTimeout."""
    sandbox = await trial.sandbox()
    for deadline_s in (0.001, 0.0):
        try:
            await bounded("exec", _result(sandbox, deadline_s), trial.slack_s + trial.timeout_s)
        except ExecTimeout:
            pass
        except Exception as error:
            raise CheckFailed(
                f"`true` with a deadline of {deadline_s:g} s raised {type(error).__name__}, not ExecTimeout: "
                f"{describe(error)}"
            ) from error
    await _works(sandbox, "after commands with almost no time")


async def _result(sandbox: GuardedSandbox, deadline_s: float) -> None:
    await sandbox.unguarded.exec(["true"], deadline_s=deadline_s)


@check("exec", "shell")
async def the_whole_tree_is_killed(trial: Trial) -> None:
    """At its deadline a command is killed with all its children and theirs, also those whose parent ended."""
    await _killed(trial, _TREE, "a command with children and orphans")


@check("exec", "shell")
async def sessions_of_their_own_are_killed(trial: Trial) -> None:
    """At the deadline of a command, what it started with `setsid` is killed as well."""
    await _killed(trial, _SESSION, "a command that starts sessions", "setsid")


@check("exec", "shell")
async def ignoring_signals_does_not_help(trial: Trial) -> None:
    """A command that ignores SIGTERM, SIGHUP and SIGINT is killed at its deadline, its children too."""
    await _killed(trial, _DEAF, "a command that ignores SIGTERM")


@check("exec", "shell")
async def a_stopped_command_is_killed(trial: Trial) -> None:
    """A command that stopped itself (SIGSTOP) is killed at its deadline."""
    await _killed(trial, "sleep 61 & kill -STOP $$; sleep 62", "a command that stopped itself")


@check("exec", "shell")
async def others_are_spared(trial: Trial) -> None:
    """The deadline of one command kills nothing of another: one that runs beside it, and one left in the background."""
    sandbox = await trial.sandbox()
    await trial.sh(sandbox, LEAVES)
    async with running(sandbox.exec(["sh", "-c", "sleep 1; echo whole"])) as beside:
        await _timed_out(trial, _exec(sandbox, ["sleep", "60"], _SHORT_S), "`sleep 60` beside another", _SHORT_S)
        result = await beside
    expect_same("a command beside one that ran into its deadline", result.stdout, b"whole\n")
    result = await sandbox.exec(["sh", "-c", ASKS])
    expect_same(
        "a process that an earlier command left in the background, after the deadline", result.stdout, b"alive\n"
    )


@check("stream")
async def a_stream_ends_at_its_deadline(trial: Trial) -> None:
    """A stream whose command is still running at its deadline raises ExecTimeout then, and the sandbox works on."""
    sandbox = await trial.sandbox()
    await _timed_out(trial, _stream(sandbox, ["sleep", "60"], _SHORT_S), "the stream of `sleep 60`", _SHORT_S)
    if trial.can.exec:
        await _works(sandbox, "after a stream ran into its deadline")


@check("stream", "exec", "shell")
async def a_late_stream_is_killed(trial: Trial) -> None:
    """At the deadline of a stream its command is killed with all its children, though it never ceases to write."""
    sandbox = await trial.sandbox()
    for what, script in (("silent", _TREE), ("writing", "sleep 61 & while echo y; do :; done")):
        mark = await Mark.of(trial, sandbox)
        call = _stream(sandbox, mark.argv(script), _SHORT_S, mark.env)
        await _timed_out(trial, call, f"the stream of a {what} command", _SHORT_S)
        await mark.expect_none(f"after the deadline of the stream of a {what} command")


def _bare(trial: Trial, sandbox: GuardedSandbox, mark: Mark) -> Coroutine[Any, Any, ExecResult]:
    """A command without the harness's own guard: that would hide what the adapter makes of a cancellation."""
    return sandbox.unguarded.exec(mark.argv(_TREE), env=mark.env, deadline_s=trial.timeout_s)


@check("exec", "shell")
async def cancelling_kills(trial: Trial) -> None:
    """A cancelled call ends within a moment, and nothing of its command lives on."""
    sandbox = await trial.sandbox()
    mark = await Mark.of(trial, sandbox)
    async with running(_bare(trial, sandbox, mark)) as task:
        await mark.wait_for(6)
        await _cancel(trial, task, "a running command")
    await mark.expect_none("after a running command was cancelled")
    await _works(sandbox, "after a running command was cancelled")


@check("stream", "exec", "shell")
async def cancelling_a_stream_kills(trial: Trial) -> None:
    """A task that is cancelled while it reads a stream ends within a moment, and nothing of the command lives on."""
    sandbox = await trial.sandbox()
    mark = await Mark.of(trial, sandbox)
    async with running(_stream(sandbox, mark.argv(_TREE), trial.timeout_s, mark.env)) as task:
        await mark.wait_for(6)
        await _cancel(trial, task, "a stream")
    await mark.expect_none("after the reader of a stream was cancelled")


@check("exec", "shell")
async def cancelling_at_any_moment_kills(trial: Trial) -> None:
    """However early a call is cancelled, its command does not come to life after that."""
    sandbox = await trial.sandbox()
    mark = await Mark.of(trial, sandbox)
    for after_s in (0.0, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064):
        async with running(_bare(trial, sandbox, mark)) as task:
            await asyncio.sleep(after_s)
            await _cancel(trial, task, f"a command of {after_s * 1e3:g} ms")
    await asyncio.sleep(trial.slack_s / 5)  # what was on its way has time to arrive
    await mark.expect_none("after commands were cancelled as they began")
    await _works(sandbox, "after commands were cancelled as they began")


async def _cancel(trial: Trial, task: asyncio.Future[Any], what: str) -> None:
    started = time.monotonic()
    task.cancel()
    await asyncio.wait({task}, timeout=trial.slack_s + trial.timeout_s)
    took_s = time.monotonic() - started
    expect(task.done(), f"{what} was cancelled, and {took_s:.1f} s later its call had not ended")
    if not task.cancelled() and (error := task.exception()) is not None:
        raise CheckFailed(f"{what} was cancelled and raised {type(error).__name__}: {describe(error)}") from error
    expect(
        task.cancelled(), f"{what} was cancelled, and its call returned as if it had not been: pass CancelledError on"
    )
    expect(took_s <= trial.slack_s, f"{what} was cancelled, and its call ended {took_s:.2f} s later")


@check()
async def a_create_without_time_leaves_nothing(trial: Trial) -> None:
    """A create with hardly any time gives a sandbox or a typed error, and after the error nothing is left of it."""
    for deadline_s in (0.001, 0.3) if trial.can.hosted else (0.0, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032):
        what = f"create with a deadline of {deadline_s:g} s"
        try:
            sandbox = await trial.provider.create(deadline_s=deadline_s)
        except (OperationTimeout, CreateFailed, Rejected):
            await _none_listed(trial, what)
        except Exception as error:
            names = "OperationTimeout, CreateFailed or Rejected"
            raise CheckFailed(f"{what} raised {type(error).__name__}, not {names}: {describe(error)}") from error
        else:
            await trial.provider.destroy(sandbox)


async def _none_listed(trial: Trial, what: str) -> None:
    ends = time.monotonic() + 2 * trial.slack_s
    while left := await trial.owned():
        expect(
            time.monotonic() < ends, f"{what} failed, and {', '.join(left)} is left: end what a late create has made"
        )
        await asyncio.sleep(_BETWEEN_TRIES_S)


@check("exec")
async def commands_work_or_are_not_ready(trial: Trial) -> None:
    """From create on a command works or raises NotReady; before the deadline it works, and from then on always."""
    sandbox = await trial.provider.create()
    ends = time.monotonic() + trial.timeout_s
    tries = 0
    while True:
        tries += 1
        try:
            result = await sandbox.exec(["true"])
        except NotReady as error:
            expect(bool(error.said.strip()), f"NotReady does not say what the provider answered: {error}")
            expect(
                time.monotonic() < ends,
                f"after {tries} tries in {trial.timeout_s:g} s the sandbox is not ready; the last answer: {error.said}",
            )
            await asyncio.sleep(_BETWEEN_TRIES_S)
        except Exception as error:
            raise CheckFailed(
                f"try {tries} of a command after create raised {type(error).__name__}; a sandbox that does not answer "
                f"yet is NotReady: {describe(error)}"
            ) from error
        else:
            expect(result.exit_code == 0, f"try {tries} of `true` after create returned {result.exit_code}")
            break
    for number in range(5):
        try:
            await sandbox.exec(["true"])
        except SandboxError as error:
            raise CheckFailed(f"it worked, and {number + 1} commands later it did not: {error}") from error


CHECKS = among(tuple(globals().values()))
