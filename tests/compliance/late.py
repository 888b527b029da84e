"""Faults about deadlines: what is late goes on, or more is ended than what is late."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import ClassVar

from pytest_sandboxbench.errors import ExecTimeout, NotReady, OperationTimeout, SandboxGone, TransportLost
from pytest_sandboxbench.load.deadlines import forget
from pytest_sandboxbench.model import ExecResult, Output, Owner, SandboxSpec
from pytest_sandboxbench.providers import proc
from pytest_sandboxbench.providers.local import run_command, stream_command
from pytest_sandboxbench.providers.null import NullProvider
from pytest_sandboxbench.providers.null_sandbox import NullSandbox
from pytest_sandboxbench.providers.one_process import Command
from tests.compliance.faulty import Call, FaultySandbox
from tests.compliance.proof import faults_in

__all__ = ["FAULTS", "CrashesAtFirst", "FailsAtFirst", "ReturnsAtFirst", "SaysNothing"]


class IgnoresDeadline(FaultySandbox):
    fails: ClassVar = {
        "a_hanging_command_ends_at_its_deadline": r"0.5 s raised ExecTimeout after 1.\d+ s; 1 s is the latest",
        "unread_stdin_holds_no_deadline_up": "1 s is the latest",
        "the_whole_tree_is_killed": "1 s is the latest",
        "sessions_of_their_own_are_killed": "1 s is the latest",
        "ignoring_signals_does_not_help": "1 s is the latest",
        "a_stopped_command_is_killed": "1 s is the latest",
        "others_are_spared": "1 s is the latest",
    }

    async def run(self, call: Call) -> ExecResult:
        return await super().run(replace(call, deadline_s=call.deadline_s + 0.7))


class TooEarly(FaultySandbox):
    fails: ClassVar = {
        "a_hanging_command_ends_at_its_deadline": r"a deadline of 0.5 s raised ExecTimeout after 0.3\d s already",
        **dict.fromkeys(["unread_stdin_holds_no_deadline_up", "the_whole_tree_is_killed"], "already"),
        **dict.fromkeys(["sessions_of_their_own_are_killed", "ignoring_signals_does_not_help"], "already"),
        **dict.fromkeys(["a_stopped_command_is_killed", "others_are_spared"], "already"),
    }

    async def run(self, call: Call) -> ExecResult:
        return await super().run(replace(call, deadline_s=call.deadline_s * 0.6))


class Returns(FaultySandbox):
    """As one that says 124, as `timeout` does."""

    fails: ClassVar = {
        "a_hanging_command_ends_at_its_deadline": r"\['sleep', '60'\] with a deadline of 0.5 s returned 124 instead",
        **dict.fromkeys(["unread_stdin_holds_no_deadline_up", "the_whole_tree_is_killed"], "returned 124"),
        **dict.fromkeys(["sessions_of_their_own_are_killed", "ignoring_signals_does_not_help"], "returned 124"),
        **dict.fromkeys(["a_stopped_command_is_killed", "others_are_spared"], "returned 124"),
    }

    async def run(self, call: Call) -> ExecResult:
        try:
            return await super().run(call)
        except ExecTimeout:
            return ExecResult(124, b"", b"")


class BreaksTheSandbox(FaultySandbox):
    fails: ClassVar = {
        "a_hanging_command_ends_at_its_deadline": "after `sleep 60` ran into a deadline .* the sandbox no longer works",
        "unread_stdin_holds_no_deadline_up": "no longer works",
        **dict.fromkeys(["the_whole_tree_is_killed", "sessions_of_their_own_are_killed"], "found the sandbox gone"),
        **dict.fromkeys(["ignoring_signals_does_not_help", "a_stopped_command_is_killed"], "found the sandbox gone"),
        "others_are_spared": "found the sandbox gone",
        "a_deadline_that_is_almost_over": "raised SandboxGone, not ExecTimeout|no longer works",
    }
    broken = False

    async def run(self, call: Call) -> ExecResult:
        if self.broken:
            raise SandboxGone("exec", sandbox=self.ref.id)
        try:
            return await super().run(call)
        except ExecTimeout:
            self.broken = True
            raise


class StuckInAWrite(FaultySandbox):
    fails: ClassVar = {"unread_stdin_holds_no_deadline_up": r"with 8 MiB of stdin with a deadline .* after 1.\d+ s"}

    async def run(self, call: Call) -> ExecResult:
        late_s = 1.0 if len(call.stdin) > 1 << 16 else 0.0
        return await super().run(replace(call, deadline_s=call.deadline_s + late_s))


class NoTimeIsAnError(FaultySandbox):
    fails: ClassVar = {
        "a_deadline_that_is_almost_over": "`true` with a deadline of 0 s raised ValueError, not ExecTimeout: .*positive"
    }

    async def run(self, call: Call) -> ExecResult:
        if call.deadline_s <= 0:
            raise ValueError("timeout must be positive")
        return await super().run(call)


class KillsBy(FaultySandbox):
    """Its commands, streamed or not, are killed in another way."""

    def kill(self, command: Command) -> Callable[[int], object]:
        raise NotImplementedError

    def command(self, call: Call) -> Command:
        command = self.inner._command(call.argv, call.stdin, call.cwd, call.env)
        return replace(command, kill=self.kill(command))

    async def run(self, call: Call) -> ExecResult:
        box = self.inner
        return await run_command(box._processes, self.command(call), "exec", self.ref.id, call.deadline_s, box._gone)


def labelled(command: Command) -> set[int]:
    assert command.env is not None
    return set(proc.labelled(proc.EXEC_LABEL, command.env[proc.EXEC_LABEL]))


def kill_all(find: Callable[[], set[int]], number: int = signal.SIGKILL, most_s: float = 60.0) -> None:
    """Until a look finds none: what is being killed may start others meanwhile."""
    ends = time.monotonic() + most_s
    while (found := find()) and time.monotonic() < ends:
        proc.send(found, number)
        time.sleep(0.001)


class KillsTheChildOnly(KillsBy):
    fails: ClassVar = {
        "the_whole_tree_is_killed": r"after the deadline of .*, \d of its processes live on in the sandbox: .*sleep 61",
        "sessions_of_their_own_are_killed": "live on in the sandbox",
        "ignoring_signals_does_not_help": "live on in the sandbox",
        "a_stopped_command_is_killed": "live on in the sandbox",
        "cancelling_kills": "after a running command was cancelled, .* live on in the sandbox",
        "cancelling_at_any_moment_kills": "live on in the sandbox",
    }

    def kill(self, command: Command) -> Callable[[int], object]:
        return lambda pid: os.kill(pid, signal.SIGKILL)


class KillsItsDescendants(KillsBy):
    """Those that it finds from parent to child; an orphan is nobody's."""

    fails: ClassVar = {
        "the_whole_tree_is_killed": "1 of its processes live on in the sandbox: .*: sleep 64 ",
        "cancelling_kills": "1 of its processes live on in the sandbox: .*: sleep 64 ",
        "cancelling_at_any_moment_kills": "sleep 64",
    }

    def kill(self, command: Command) -> Callable[[int], object]:
        def kill(pid: int) -> None:
            proc.send(proc.descendants([pid]) | {pid}, signal.SIGKILL)

        return kill


def session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


class KillsItsSession(KillsBy):
    fails: ClassVar = {"sessions_of_their_own_are_killed": r"live on in the sandbox: .*sleep 61"}

    def kill(self, command: Command) -> Callable[[int], object]:
        def kill(pid: int) -> None:
            own = os.getsid(pid)
            kill_all(lambda: {found for found in labelled(command) if session(found) == own})

        return kill


class AsksToTerminate(KillsBy):
    fails: ClassVar = {
        "ignoring_signals_does_not_help": "",
        "a_stopped_command_is_killed": "",
    }

    def kill(self, command: Command) -> Callable[[int], object]:
        return lambda pid: kill_all(lambda: labelled(command), signal.SIGTERM, 0.5)


class SparesTheStopped(KillsBy):
    fails: ClassVar = {"a_stopped_command_is_killed": "a command that stopped itself with a deadline of 0.5 s raised"}

    def kill(self, command: Command) -> Callable[[int], object]:
        return lambda pid: kill_all(lambda: {found for found in labelled(command) if proc.state(found) != "T"})


class KillsAll(KillsBy):
    """All commands of the sandbox."""

    fails: ClassVar = {"others_are_spared": "a command beside one that ran into its deadline: expected b'whole"}

    def kill(self, command: Command) -> Callable[[int], object]:
        def kill(_pid: int) -> None:
            kill_all(lambda: set(proc.labelled(proc.SANDBOX_LABEL, self.ref.id)) - {self.inner._holder.pid})

        return kill


class KillsTheBackground(KillsBy):
    """All orphans of the sandbox, and what the command started."""

    fails: ClassVar = {"others_are_spared": r"an earlier command left .*after the deadline: expected b'alive\\n', got"}

    def kill(self, command: Command) -> Callable[[int], object]:
        def kill(_pid: int) -> None:
            running = self.inner._running
            others = proc.descendants(running) | running | {self.inner._holder.pid}
            proc.send(set(proc.labelled(proc.SANDBOX_LABEL, self.ref.id)) - others, signal.SIGKILL)
            kill_all(lambda: labelled(command))

        return kill


class StreamIgnoresDeadline(FaultySandbox):
    fails: ClassVar = {
        "a_stream_ends_at_its_deadline": r"the stream of `sleep 60` with .* raised ExecTimeout after 1.\d+ s; 1 s is",
        "a_late_stream_is_killed": "1 s is the latest",
    }

    async def pieces(self, call: Call) -> AsyncGenerator[Output, None]:
        async with aclosing(super().pieces(replace(call, deadline_s=call.deadline_s + 0.7))) as pieces:
            async for piece in pieces:
                yield piece


class StreamEnds(FaultySandbox):
    """As if the command had exited."""

    fails: ClassVar = {
        "a_stream_ends_at_its_deadline": r"the stream of \['sleep', '60'\] .* ended with exit -9",
        "a_late_stream_is_killed": "ended with exit -9",
    }

    async def pieces(self, call: Call) -> AsyncGenerator[Output, None]:
        try:
            async with aclosing(super().pieces(call)) as pieces:
                async for piece in pieces:
                    yield piece
        except ExecTimeout:
            yield Output("exit", exit_code=-9)


class StreamKillsTheChildOnly(FaultySandbox):
    fails: ClassVar = {
        "a_late_stream_is_killed": "after the deadline of the stream of a silent command, .* live on in the sandbox",
        "cancelling_a_stream_kills": "after the reader of a stream was cancelled, .* live on in the sandbox",
    }

    async def pieces(self, call: Call) -> AsyncGenerator[Output, None]:
        box = self.inner
        command = box._command(call.argv, call.stdin, call.cwd, call.env)
        command = replace(command, kill=lambda pid: os.kill(pid, signal.SIGKILL))
        stream = stream_command(box._processes, command, "stream", self.ref.id, call.deadline_s, box._gone)
        async with aclosing(stream):
            async for piece in stream:
                yield piece


class LeavesWhatIsCancelled(FaultySandbox):
    """The call ends, the command does not."""

    fails: ClassVar = {
        "cancelling_kills": r"after a running command was cancelled, \d of its processes live on",
        "cancelling_at_any_moment_kills": "after commands were cancelled as they began, .* live on",
    }
    window_s: ClassVar = 1e9

    async def run(self, call: Call) -> ExecResult:
        task = asyncio.ensure_future(super().run(call))
        try:
            await asyncio.wait({task}, timeout=self.window_s)
        except asyncio.CancelledError:
            forget(task)
            raise
        return await task


class LeavesWhatBegins(LeavesWhatIsCancelled):
    """As one that has asked the provider for it, and does not wait for the answer to kill it."""

    fails: ClassVar = {"cancelling_at_any_moment_kills": "after commands were cancelled as they began, .* live on"}
    window_s: ClassVar = 0.003


class SwallowsTheCancellation(FaultySandbox):
    fails: ClassVar = {
        "cancelling_kills": "its call returned as if it had not been: pass CancelledError on",
        "cancelling_at_any_moment_kills": "",
    }

    async def run(self, call: Call) -> ExecResult:
        try:
            return await super().run(call)
        except asyncio.CancelledError:
            return ExecResult(-9, b"", b"")


class WrapsTheCancellation(FaultySandbox):
    fails: ClassVar = {
        "cancelling_kills": "a running command was cancelled and raised TransportLost: exec lost its .*: closed",
        "cancelling_at_any_moment_kills": "",
    }

    async def run(self, call: Call) -> ExecResult:
        try:
            return await super().run(call)
        except asyncio.CancelledError:
            raise TransportLost("exec", said="closed") from None


class NoTimeToCreateIsAnError(FaultySandbox):
    fails: ClassVar = {
        "a_create_without_time_leaves_nothing": "raised ValueError, not OperationTimeout, CreateFailed or Rejected: "
    }

    @classmethod
    async def create(
        cls, provider: NullProvider, spec: SandboxSpec, *, owner: Owner, deadline_s: float
    ) -> FaultySandbox:
        if deadline_s < 0.1:
            raise ValueError("timeout must be positive")
        return await super().create(provider, spec, owner=owner, deadline_s=deadline_s)


class LeavesLateCreates(FaultySandbox):
    fails: ClassVar = {
        "a_create_without_time_leaves_nothing": r"create with a deadline of 0 s failed, and \w+ is left: end what a"
    }

    @classmethod
    async def create(
        cls, provider: NullProvider, spec: SandboxSpec, *, owner: Owner, deadline_s: float
    ) -> FaultySandbox:
        made = await super().create(provider, spec, owner=owner, deadline_s=20)
        if deadline_s < 0.1:
            raise OperationTimeout("create")
        return made


class NotReadyAgain(FaultySandbox):
    fails: ClassVar = {"commands_work_or_are_not_ready": "it worked, and 3 commands later it did not: .* not ready"}
    count = 0

    async def run(self, call: Call) -> ExecResult:
        self.count += 1
        if call.argv == ["true"] and self.count == 4:
            raise NotReady("exec", said="connection refused")
        return await super().run(call)


class FailsAtFirst(FaultySandbox):
    """What the guest says before it is up, as it comes: no sandbox can be used like that, whatever the check."""

    error: ClassVar[Exception] = TransportLost("exec", said="connection refused")

    def __init__(self, inner: NullSandbox) -> None:
        super().__init__(inner)
        self.tries = 0

    async def run(self, call: Call) -> ExecResult:
        self.tries += 1
        if self.tries < 4:
            raise self.error
        return await super().run(call)


class CrashesAtFirst(FailsAtFirst):
    error: ClassVar[Exception] = ConnectionRefusedError("connection refused")


class SaysNothing(FailsAtFirst):
    error: ClassVar[Exception] = NotReady("exec")


class ReturnsAtFirst(FailsAtFirst):
    async def run(self, call: Call) -> ExecResult:
        return ExecResult(1, b"", b"not yet")


FAULTS = faults_in(globals(), FaultySandbox)
