"""Commands: each check passes on our own providers, and each finds the fault that it is there for."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from pytest_sandboxbench.compliance import exec as checks
from pytest_sandboxbench.errors import ExecFailed, ExecTimeout, Rejected, TransportLost
from pytest_sandboxbench.model import ExecResult
from pytest_sandboxbench.providers import proc
from pytest_sandboxbench.providers.local import run_command
from pytest_sandboxbench.providers.null_sandbox import NullSandbox
from tests.compliance.faulty import Call, FaultySandbox
from tests.compliance.proof import Proof, faults_in


class RaisesOnFailure(FaultySandbox):
    fails: ClassVar = {
        "an_exit_code_is_a_result": r"`false`: a result with exit code 1 was expected, an error came: exec .* failed",
        "every_exit_code_comes_back": "`exit 1`: a result with exit code 1 was expected",
        "no_such_command_is_127": "a result with exit code 127 was expected",
        "not_executable_is_126": "a result with exit code 126 was expected",
        "a_signal_is_told": r"exec .* failed: exit code -9",
        "env_overrides_for_one_command": r"exec .* failed: exit code 1",
        "files_stay_and_nothing_else": r"exec .* failed: exit code 1",
        "a_background_process_holds_nothing_up": r"exec .* failed: exit code 3",
    }

    async def run(self, call: Call) -> ExecResult:
        result = await super().run(call)
        if result.exit_code:
            raise ExecFailed(f"exec {call.argv}", said=f"exit code {result.exit_code}")
        return result


class SevenBits(FaultySandbox):
    fails: ClassVar = {"every_exit_code_comes_back": "`exit 255`: exit code 255 was expected, 127 came"}

    async def run(self, call: Call) -> ExecResult:
        result = await super().run(call)
        return replace(result, exit_code=min(result.exit_code, result.exit_code & 127))


class MissingRaises(FaultySandbox):
    fails: ClassVar = {"no_such_command_is_127": "not there, 'sandboxbench-no-such-command': a result .* not found"}

    async def run(self, call: Call) -> ExecResult:
        result = await super().run(call)
        if result.exit_code == 127 and result.stderr:
            raise ExecFailed("exec", said="executable file not found in $PATH")
        return result


class DeniedIs127(FaultySandbox):
    fails: ClassVar = {"not_executable_is_126": "a file of mode 644 as a command: exit code 126 was expected, 127 came"}

    async def run(self, call: Call) -> ExecResult:
        result = await super().run(call)
        return replace(result, exit_code=127) if b"denied" in result.stderr else result


class SignalIsOne(FaultySandbox):
    fails: ClassVar = {"a_signal_is_told": r"`kill -9 \$\$`: exit code -9 was expected \(or 137, .*\), 1 came"}

    async def run(self, call: Call) -> ExecResult:
        result = await super().run(call)
        return replace(result, exit_code=1) if result.exit_code < 0 else result


class StripsStdin(FaultySandbox):
    fails: ClassVar = {"stdin_arrives": r"`cat` of its stdin: expected b'one line\\n', got b'one line'"}

    async def run(self, call: Call) -> ExecResult:
        return await super().run(replace(call, stdin=call.stdin.rstrip(b"\n")))


class StdinStaysOpen(FaultySandbox):
    timeout_s: ClassVar = 1.0
    fails: ClassVar = {"empty_stdin_is_at_its_end": r"close or redirect its stdin\): exec .* passed its deadline"}

    async def run(self, call: Call) -> ExecResult:
        if call.argv == ["cat"] and not call.stdin:
            call = replace(call, argv=["sh", "-c", "sleep 61 | cat"])
        return await super().run(call)


class OneMibOfStdin(FaultySandbox):
    fails: ClassVar = {"eight_mib_of_stdin": r"`cat` of 8 MiB: expected 8\d{6} bytes, got 1048576; from byte 1048576"}

    async def run(self, call: Call) -> ExecResult:
        return await super().run(replace(call, stdin=call.stdin[: 1 << 20]))


class UnreadStdinIsLost(FaultySandbox):
    fails: ClassVar = {"stdin_need_not_be_read": "does not read its 8388608 bytes of stdin, raised: .*broken pipe"}

    async def run(self, call: Call) -> ExecResult:
        if call.argv == ["true"] and len(call.stdin) > 1 << 16:
            raise TransportLost("exec", said="broken pipe")
        return await super().run(call)


class Decodes(FaultySandbox):
    fails: ClassVar = {
        "every_byte_comes_through": r"every byte .*: expected 291 bytes, got 553; from byte 128 on b'\\x80.* came",
        "eight_mib_of_stdin": "",
        "much_on_both": "2 MiB on stdout",
        "sixty_four_mib_of_output": "",
    }

    async def run(self, call: Call) -> ExecResult:
        result = await super().run(call)
        return replace(result, stdout=result.stdout.decode(errors="replace").encode())


class Merges(FaultySandbox):
    fails: ClassVar = {
        "stdout_and_stderr_are_apart": r"stdout: expected b'out\\nout again\\n', got b'out\\nout again\\nerr\\n'",
        "much_on_both": "",
    }

    async def run(self, call: Call) -> ExecResult:
        result = await super().run(call)
        return replace(result, stdout=result.stdout + result.stderr, stderr=b"")


class OneOutputAfterTheOther(FaultySandbox):
    """As one that reads standard output to its end first: the command waits for ever in a write."""

    fails: ClassVar = {"much_on_both": r"exec .* passed its deadline"}

    async def run(self, call: Call) -> ExecResult:
        result = await super().run(call)
        if len(result.stderr) > 1 << 16:
            raise ExecTimeout(f"exec {call.argv}")
        return result


class KeepsTheEnd(FaultySandbox):
    fails: ClassVar = {
        "sixty_four_mib_of_output": r"64 MiB of output: expected 67109888 bytes, got 33554432; from byte 0"
    }

    async def run(self, call: Call) -> ExecResult:
        result = await super().run(call)
        return replace(result, stdout=result.stdout[-32 << 20 :])


class DropsEmptyArguments(FaultySandbox):
    fails: ClassVar = {
        "arguments_arrive_as_they_are": r"`echo` of its arguments: expected .*two  spaces  it.*, got .*two  spaces it",
        "each_argument_is_one": r"the argument '' arrived as b\"it's\"",
    }

    async def run(self, call: Call) -> ExecResult:
        return await super().run(replace(call, argv=[word for word in call.argv if word]))


class DropsDashes(FaultySandbox):
    fails: ClassVar = {"each_argument_is_one": "the argument '--' arrived as b'-'"}

    async def run(self, call: Call) -> ExecResult:
        return await super().run(replace(call, argv=[word for word in call.argv if word != "--"]))


class ValueErrors(FaultySandbox):
    fails: ClassVar = {
        "an_impossible_argument_is_a_typed_error": "NUL byte .* raised ValueError, which is no SandboxError: 'embedded"
    }

    async def run(self, call: Call) -> ExecResult:
        if any("\0" in word for word in call.argv):
            raise ValueError("embedded null byte")
        return await super().run(call)


class DropsEmptyVariables(FaultySandbox):
    fails: ClassVar = {"env_is_added": "`printenv` of a variable with the value '': exit code 0 was expected, 1 came"}

    async def run(self, call: Call) -> ExecResult:
        return await super().run(replace(call, env={name: value for name, value in call.env.items() if value}))


class KeepsVariables(FaultySandbox):
    fails: ClassVar = {
        "an_impossible_argument_is_a_typed_error": "`true` after a NUL byte in a variable: a result .* was expected",
        "env_overrides_for_one_command": r"with env=None: expected b'of the sandbox\\n', got b'of the command\\n'",
    }

    def __init__(self, inner: NullSandbox) -> None:
        super().__init__(inner)
        self.kept: dict[str, str] = {}

    async def run(self, call: Call) -> ExecResult:
        self.kept |= call.env
        return await super().run(replace(call, env=self.kept))


class ReplacesVariables(FaultySandbox):
    fails: ClassVar = {"env_keeps_the_rest": "PATH=.* was gone: env is added to the sandbox's own"}

    async def run(self, call: Call) -> ExecResult:
        given = [f"{name}={value}" for name, value in call.env.items()]
        return await super().run(replace(call, argv=["env", "-i", *given, *call.argv]) if given else call)


class InheritsVariables(FaultySandbox):
    fails: ClassVar = {"nothing_of_the_harness_is_seen": "of the harness's environment is in the command's"}

    async def run(self, call: Call) -> ExecResult:
        return await super().run(replace(call, env={**os.environ, **call.env}))


class ReadOnlyHome(FaultySandbox):
    fails: ClassVar = {
        "the_working_directory_can_be_written": "`mkdir` of a folder in /proc: exit code 0 was expected, 1 came",
        "cwd_is_where_it_runs": "`mkdir` of /proc/plain",
        "a_relative_cwd_is_below_the_default": "`mkdir below`",
        "not_executable_is_126": "",
        "much_on_both": "",
        "sixty_four_mib_of_output": "",
        "files_stay_and_nothing_else": "",
        "a_background_process_lives_on": "",
        "two_commands_at_once": "",
    }

    async def run(self, call: Call) -> ExecResult:
        return await super().run(replace(call, cwd=call.cwd or "/proc"))


class IgnoresCwd(FaultySandbox):
    fails: ClassVar = {
        "cwd_is_where_it_runs": r"`pwd` with cwd='/.*/plain': expected b'/.*/plain\\n', got b'/",
        "a_relative_cwd_is_below_the_default": "`pwd` with cwd='below': expected b'/.*/below.n', got b'/",
        "a_missing_cwd_runs_nothing": "a command with a cwd that is not there returned 0",
    }

    async def run(self, call: Call) -> ExecResult:
        return await super().run(replace(call, cwd=None))


def is_folder(path: str | None) -> bool:
    return path is not None and (path == "below" or Path(path).is_dir())


class JoinsToTheRoot(FaultySandbox):
    fails: ClassVar = {"a_relative_cwd_is_below_the_default": "`pwd` with cwd='below': exit code 0 was expected"}

    async def run(self, call: Call) -> ExecResult:
        absolute = None if call.cwd is None else str(Path("/") / call.cwd)
        return await super().run(replace(call, cwd=absolute))


class StartsAShell(FaultySandbox):
    fails: ClassVar = {"no_command_is_an_error": r"exec of \[\] raised nothing; ExecFailed was expected"}

    async def run(self, call: Call) -> ExecResult:
        return await super().run(replace(call, argv=call.argv or ["sh"]))


class FallsBack(FaultySandbox):
    fails: ClassVar = {"a_missing_cwd_runs_nothing": "a command with a cwd that is not there returned 0"}

    async def run(self, call: Call) -> ExecResult:
        return await super().run(replace(call, cwd=call.cwd if is_folder(call.cwd) else None))


class RunsAllTheSame(FaultySandbox):
    """`cd FOLDER; COMMAND`, without an `&&`, and the exit code of the `cd`."""

    fails: ClassVar = {"a_missing_cwd_runs_nothing": "is not there ran all the same, elsewhere"}

    async def run(self, call: Call) -> ExecResult:
        if call.cwd and not is_folder(call.cwd):
            return replace(await super().run(replace(call, cwd=None)), exit_code=1)
        return await super().run(call)


class FreshFolders(FaultySandbox):
    timeout_s: ClassVar = 1.0
    fails: ClassVar = {
        "files_stay_and_nothing_else": "`cat` of a file that the command before wrote .* exit code 0 was expected, 1",
        "cwd_is_where_it_runs": "`pwd` without a cwd, after a command with one: expected /",
        "a_relative_cwd_is_below_the_default": "`pwd` with cwd='below': exit code 0 was expected",
        "a_background_process_lives_on": "",
        "two_commands_at_once": "",
    }

    async def run(self, call: Call) -> ExecResult:
        return await super().run(replace(call, cwd=call.cwd or tempfile.mkdtemp(dir=self.ref.details["folder"])))


class KeepsExports(FaultySandbox):
    """As one shell that serves all commands."""

    fails: ClassVar = {"files_stay_and_nothing_else": "`printenv` of what the command before exported: exit code 1 was"}
    kept: Mapping[str, str] = {}

    async def run(self, call: Call) -> ExecResult:
        result = await super().run(replace(call, env={**self.kept, **call.env}))
        if "export SANDBOXBENCH_CHECK=1" in call.script:
            self.kept = {"SANDBOXBENCH_CHECK": "1"}
        return result


class WaitsForOutput(FaultySandbox):
    timeout_s: ClassVar = 1.0
    fails: ClassVar = {
        "a_background_process_holds_nothing_up": "had not returned after 1 s; wait for the command's exit, not for the"
    }

    async def run(self, call: Call) -> ExecResult:
        if "& exit" in call.script:
            call = replace(call, argv=["sh", "-c", '"$@" | cat', "sh", *call.argv])
        return await super().run(call)


class SweepsUp(FaultySandbox):
    fails: ClassVar = {"a_background_process_lives_on": r"left in the background: expected b'alive\\n', got b''"}

    async def run(self, call: Call) -> ExecResult:
        box = self.inner
        command = box._command(call.argv, call.stdin, call.cwd, call.env)
        assert command.env is not None
        result = await run_command(box._processes, command, "exec", self.ref.id, call.deadline_s, box._gone)
        proc.kill_labelled(proc.EXEC_LABEL, command.env[proc.EXEC_LABEL])
        return result


class OneAtATime(FaultySandbox):
    timeout_s: ClassVar = 1.0
    fails: ClassVar = {"two_commands_at_once": "of two commands that wait for each other, one did not end: exec"}

    def __init__(self, inner: NullSandbox) -> None:
        super().__init__(inner)
        self.lock = asyncio.Lock()

    async def run(self, call: Call) -> ExecResult:
        async with self.lock:
            return await super().run(call)


class FiftyCommands(FaultySandbox):
    fails: ClassVar = {"a_hundred_commands": r"command 50 of 100 raised: exec was rejected \(rate\)"}
    count = 0

    async def run(self, call: Call) -> ExecResult:
        self.count += 1
        if self.count > 50:
            raise Rejected("exec", "rate")
        return await super().run(call)


FAULTS = faults_in(globals(), FaultySandbox)


class TestExec(Proof):
    group: ClassVar = checks
    faults: ClassVar = FAULTS
    slow: ClassVar = {"two_commands_at_once": "bubblewrap"}
