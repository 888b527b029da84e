"""Commands: what goes in, what comes out, how they end."""

from __future__ import annotations

import asyncio
import os
import posixpath
import secrets
import time

from ..errors import ExecFailed, OperationTimeout, SandboxError
from ..load.guard import GuardedSandbox
from ..model import ExecResult, SandboxSpec
from .check import CheckFailed, Trial, among, check, expect, expect_same, raises, shown
from .material import ASKS, EVERY_BYTE, LEAVES, NAP, SIXTY_FOUR_MIB, pattern, plenty

__all__ = ["CHECKS"]

_MIB = 1 << 20
_WORDS = ("two  spaces", "", "it's", '"quoted"', "$HOME", "`id`", "a;b|c&d", "*", "~", "#no", "new\nline", "ünï→🦀", "")


async def lines_of(sandbox: GuardedSandbox, *argv: str) -> str:
    """Standard output, without its last line end, of a command that must return 0."""
    result = await sandbox.exec(argv)
    expect(result.exit_code == 0, f"{list(argv)} returned {result.exit_code}: {shown(result.stderr)}")
    return result.stdout.decode(errors="surrogateescape").removesuffix("\n")


def ended(result: ExecResult, code: int, what: str) -> None:
    expect(
        result.exit_code == code,
        f"{what}: exit code {code} was expected, {result.exit_code} came, with {shown(result.stderr)} on stderr",
    )


async def result_of(sandbox: GuardedSandbox, argv: list[str], what: str, code: int) -> None:
    try:
        result = await sandbox.exec(argv)
    except SandboxError as error:
        raise CheckFailed(f"{what}: a result with exit code {code} was expected, an error came: {error}") from error
    ended(result, code, what)


@check("exec")
async def an_exit_code_is_a_result(trial: Trial) -> None:
    """An exit code other than 0 is a result, not an error: `false` gives 1."""
    sandbox = await trial.sandbox()
    await result_of(sandbox, ["true"], "`true`", 0)
    await result_of(sandbox, ["false"], "`false`", 1)


@check("exec", "shell")
async def every_exit_code_comes_back(trial: Trial) -> None:
    """Exit codes come back as they are: 0, 1, 2, 42, 126, 127, 255."""
    sandbox = await trial.sandbox()
    for code in (0, 1, 2, 42, 126, 127, 255):
        await result_of(sandbox, ["sh", "-c", f"exit {code}"], f"`exit {code}`", code)


@check("exec")
async def no_such_command_is_127(trial: Trial) -> None:
    """A command that is not there is a result with exit code 127, not an error."""
    sandbox = await trial.sandbox()
    for name in ("sandboxbench-no-such-command", "/no/such/folder/sandboxbench-command"):
        await result_of(sandbox, [name, "argument"], f"a command that is not there, {name!r}", 127)


@check("exec", "shell")
async def not_executable_is_126(trial: Trial) -> None:
    """A file that may not be executed is a result with exit code 126, not an error."""
    sandbox = await trial.sandbox()
    made = await trial.sh(sandbox, 'echo true >plain && chmod 644 plain && echo "$(pwd)/plain"')
    await result_of(sandbox, [made.decode().strip()], "a file of mode 644 as a command", 126)


@check("exec", "shell")
async def a_signal_is_told(trial: Trial) -> None:
    """A command that a signal killed returns minus its number, or 128 more than it where no more can be known."""
    sandbox = await trial.sandbox()
    for number in (9, 15):
        result = await sandbox.exec(["sh", "-c", f"kill -{number} $$; exit 99"])
        expect(
            result.exit_code in (-number, 128 + number),
            f"`kill -{number} $$`: exit code {-number} was expected (or {128 + number}, as a shell says it), "
            f"{result.exit_code} came",
        )


@check("exec")
async def stdin_arrives(trial: Trial) -> None:
    """Standard input reaches the command, and then ends."""
    sandbox = await trial.sandbox()
    for data in (b"x", b"one line\n", b"no line end\n\nhere"):
        result = await sandbox.exec(["cat"], stdin=data)
        ended(result, 0, f"`cat` with {data!r} as stdin")
        expect_same("`cat` of its stdin", result.stdout, data)


@check("exec")
async def empty_stdin_is_at_its_end(trial: Trial) -> None:
    """Without standard input a command that reads it finds its end at once."""
    sandbox = await trial.sandbox()
    try:
        result = await sandbox.exec(["cat"], deadline_s=min(10.0, trial.timeout_s))
    except SandboxError as error:
        raise CheckFailed(
            f"`cat` without stdin was to return at once (close or redirect its stdin): {error}"
        ) from error
    ended(result, 0, "`cat` without stdin")
    expect_same("`cat` without stdin", result.stdout, b"")


@check("exec")
async def eight_mib_of_stdin(trial: Trial) -> None:
    """8 MiB of standard input go through `cat` and come back, the same."""
    sandbox = await trial.sandbox()
    data = pattern() * 129
    result = await sandbox.exec(["cat"], stdin=data, deadline_s=plenty(trial))
    ended(result, 0, "`cat` with 8 MiB as stdin")
    expect_same("`cat` of 8 MiB", result.stdout, data)


@check("exec")
async def stdin_need_not_be_read(trial: Trial) -> None:
    """A command that does not read its standard input ends as it would without."""
    sandbox = await trial.sandbox()
    for size in (1, 8 * _MIB):
        try:
            result = await sandbox.exec(["true"], stdin=b"x" * size)
        except SandboxError as error:
            raise CheckFailed(f"`true`, which does not read its {size} bytes of stdin, raised: {error}") from error
        ended(result, 0, f"`true` with {size} bytes of stdin that it does not read")


@check("exec")
async def every_byte_comes_through(trial: Trial) -> None:
    """All 256 byte values pass unchanged, in and out: nothing decodes, no terminal is in between."""
    sandbox = await trial.sandbox()
    result = await sandbox.exec(["cat"], stdin=EVERY_BYTE)
    expect_same("every byte through `cat`", result.stdout, EVERY_BYTE)


@check("exec", "shell")
async def stdout_and_stderr_are_apart(trial: Trial) -> None:
    """Standard output and standard error come back apart."""
    sandbox = await trial.sandbox()
    result = await sandbox.exec(["sh", "-c", "echo out; echo err >&2; echo out again"])
    expect_same("stdout", result.stdout, b"out\nout again\n")
    expect_same("stderr", result.stderr, b"err\n")


@check("exec", "shell")
async def much_on_both(trial: Trial) -> None:
    """2 MiB on standard output and on standard error, in turns, are read without blocking the command."""
    sandbox = await trial.sandbox()
    script = "cat >both; i=0; while [ $i -lt 32 ]; do cat both >&2; cat both; i=$((i+1)); done"
    data = pattern()
    result = await sandbox.exec(["sh", "-c", script], stdin=data, deadline_s=plenty(trial))
    ended(result, 0, f"`{script}`")
    expect_same("2 MiB on stdout", result.stdout, data * 32)
    expect_same("2 MiB on stderr", result.stderr, data * 32)


@check("exec", "shell")
async def sixty_four_mib_of_output(trial: Trial) -> None:
    """64 MiB of output come back, to the byte."""
    sandbox = await trial.sandbox()
    result = await sandbox.exec(["sh", "-c", SIXTY_FOUR_MIB], stdin=pattern(), deadline_s=plenty(trial))
    ended(result, 0, "a command that writes 64 MiB")
    expect_same("64 MiB of output", result.stdout, pattern() * 1024)


@check("exec")
async def arguments_arrive_as_they_are(trial: Trial) -> None:
    """Arguments arrive untouched, with no shell in between: blanks, quotes, `$`, line ends, empty ones."""
    sandbox = await trial.sandbox()
    result = await sandbox.exec(["echo", *_WORDS])
    ended(result, 0, "`echo` with arguments of all kinds")
    expect_same("`echo` of its arguments", result.stdout, " ".join(_WORDS).encode() + b"\n")


@check("exec", "shell")
async def each_argument_is_one(trial: Trial) -> None:
    """Each argument is one, with every character a shell knows, backslashes and leading dashes too."""
    sandbox = await trial.sandbox()
    words = (*_WORDS, "-n", "--", "-", "\\", "\\n", "a\\ b", "!!", "%s", "{a,b}", "[a]", "tab\t", " ", "\n", "=", "é")
    result = await sandbox.exec(["sh", "-c", 'for a do printf "%s\\000" "$a"; done', "-sh", *words])
    ended(result, 0, "a shell that prints its arguments")
    came = result.stdout.split(b"\0")[:-1]
    for wanted, got in zip(words, came, strict=False):
        expect(got == wanted.encode(), f"the argument {wanted!r} arrived as {shown(got)}")
    expect(len(came) == len(words), f"{len(words)} arguments were given, {len(came)} arrived: {shown(result.stdout)}")


@check("exec")
async def an_impossible_argument_is_a_typed_error(trial: Trial) -> None:
    """What no kernel takes (a NUL byte, an argument of 4 MiB) is a result or an error of ours, and harms nothing."""
    sandbox = await trial.sandbox()
    for what, word, env in (
        ("a NUL byte in an argument", "a\0b", {}),
        ("a NUL byte in a variable", "word", {"SANDBOXBENCH_CHECK": "a\0b"}),
        ("an argument of 4 MiB", "x" * 4 * _MIB, {}),
    ):
        try:
            await sandbox.exec(["echo", word], env=env)
        except SandboxError:
            pass
        except Exception as error:
            kind = type(error).__name__
            raise CheckFailed(f"{what} raised {kind}, which is no SandboxError: {shown(str(error))}") from error
        await result_of(sandbox, ["true"], f"`true` after {what}", 0)


@check("exec")
async def no_command_is_an_error(trial: Trial) -> None:
    """An empty `argv` raises ExecFailed, and starts nothing in its place."""
    sandbox = await trial.sandbox()
    with raises("exec of []", ExecFailed):
        await sandbox.exec([])
    await result_of(sandbox, ["true"], "`true` after exec of []", 0)


@check("exec")
async def env_is_added(trial: Trial) -> None:
    """Variables given with a command reach it as they are: blanks, quotes, line ends, other scripts, empty."""
    sandbox = await trial.sandbox()
    for value in ("plain", "two  words", 'it\'s "$HOME" `id` \\n', "a=b=c", "new\nline", "ünï→🦀", "", " "):
        result = await sandbox.exec(["printenv", "SANDBOXBENCH_CHECK"], env={"SANDBOXBENCH_CHECK": value})
        ended(result, 0, f"`printenv` of a variable with the value {value!r}")
        expect_same("`printenv` of a variable", result.stdout, value.encode() + b"\n")
    result = await sandbox.exec(["printenv", "A_B", "A_C"], env={"A_B": "1", "A_C": "2"})
    expect_same("`printenv` of two variables", result.stdout, b"1\n2\n")


@check("exec")
async def env_overrides_for_one_command(trial: Trial) -> None:
    """Variables of the sandbox are those of each command, but for those that one command is given."""
    sandbox = await trial.sandbox(SandboxSpec(env={"SANDBOXBENCH_CHECK": "of the sandbox"}))
    for given, wanted in ((None, "of the sandbox"), ("of the command", "of the command"), (None, "of the sandbox")):
        env = None if given is None else {"SANDBOXBENCH_CHECK": given, "SANDBOXBENCH_OTHER": given}
        result = await sandbox.exec(["printenv", "SANDBOXBENCH_CHECK"], env=env)
        expect_same(f"a variable of the sandbox, with env={env}", result.stdout, wanted.encode() + b"\n")
    result = await sandbox.exec(["printenv", "SANDBOXBENCH_OTHER"])
    ended(result, 1, "`printenv` of a variable that another command was given")


@check("exec")
async def env_keeps_the_rest(trial: Trial) -> None:
    """A command that is given variables still has those of the sandbox: it finds its programs."""
    sandbox = await trial.sandbox()
    before = await lines_of(sandbox, "printenv")
    result = await sandbox.exec(["printenv"], env={"SANDBOXBENCH_CHECK": "1"})
    ended(result, 0, "`printenv` with a variable more")
    path = next((line for line in before.splitlines() if line.startswith("PATH=")), "")
    expect(
        path.encode() in result.stdout,
        f"with env={{'SANDBOXBENCH_CHECK': '1'}}, {path} was gone: env is added to the sandbox's own",
    )


@check("exec")
async def nothing_of_the_harness_is_seen(trial: Trial) -> None:
    """A command does not see the environment of the harness, with its keys."""
    name, secret = "SANDBOXBENCH_CHECK_OF_HARNESS", secrets.token_hex(8)
    os.environ[name] = secret
    try:
        sandbox = await trial.sandbox()
        seen = await lines_of(sandbox, "printenv")
    finally:
        del os.environ[name]
    expect(secret not in seen, f"{name} of the harness's environment is in the command's: start it with one of its own")


@check("exec")
async def the_working_directory_can_be_written(trial: Trial) -> None:
    """The working directory that a command gets by default can be written."""
    sandbox = await trial.sandbox()
    where = await lines_of(sandbox, "pwd")
    await result_of(sandbox, ["mkdir", "sandboxbench-made"], f"`mkdir` of a folder in {where}", 0)


@check("exec")
async def cwd_is_where_it_runs(trial: Trial) -> None:
    """A command runs in the folder that it is given; the next one is back in the default."""
    sandbox = await trial.sandbox()
    home = await lines_of(sandbox, "pwd")
    for name in ("plain", 'it\'s $HOME, "two" words', "-ünï"):
        folder = posixpath.join(home, name)
        ended(await sandbox.exec(["mkdir", folder]), 0, f"`mkdir` of {folder}")
        result = await sandbox.exec(["pwd"], cwd=folder)
        ended(result, 0, f"`pwd` with cwd={folder!r}")
        expect_same(f"`pwd` with cwd={folder!r}", result.stdout, folder.encode() + b"\n")
        again = await lines_of(sandbox, "pwd")
        expect(again == home, f"`pwd` without a cwd, after a command with one: expected {home}, got {again}")


@check("exec")
async def a_relative_cwd_is_below_the_default(trial: Trial) -> None:
    """A relative working directory is one below the default one, as with files."""
    sandbox = await trial.sandbox()
    home = await lines_of(sandbox, "pwd")
    ended(await sandbox.exec(["mkdir", "below"]), 0, "`mkdir below`")
    result = await sandbox.exec(["pwd"], cwd="below")
    ended(result, 0, "`pwd` with cwd='below'")
    expect_same("`pwd` with cwd='below'", result.stdout, posixpath.join(home, "below").encode() + b"\n")


@check("exec", "shell")
async def a_missing_cwd_runs_nothing(trial: Trial) -> None:
    """A working directory that is not there is an error, or an exit code that is not 0, and nothing runs."""
    sandbox = await trial.sandbox()
    try:
        result = await sandbox.exec(["sh", "-c", "echo ran"], cwd="/no/such/folder")
    except SandboxError:
        pass
    else:
        expect(result.exit_code != 0, "a command with a cwd that is not there returned 0")
        expect(b"ran\n" not in result.stdout, "a command with a cwd that is not there ran all the same, elsewhere")
    await result_of(sandbox, ["true"], "`true` after a command with a cwd that is not there", 0)


@check("exec", "shell")
async def files_stay_and_nothing_else(trial: Trial) -> None:
    """What one command wrote the next one reads; its variables and its `cd` end with it."""
    sandbox = await trial.sandbox()
    await trial.sh(sandbox, "echo written >kept; export SANDBOXBENCH_CHECK=1; mkdir -p below; cd below")
    result = await sandbox.exec(["cat", "kept"])
    ended(result, 0, "`cat` of a file that the command before wrote in the same working directory")
    expect_same("a file that the command before wrote", result.stdout, b"written\n")
    ended(await sandbox.exec(["printenv", "SANDBOXBENCH_CHECK"]), 1, "`printenv` of what the command before exported")


@check("exec", "shell")
async def a_background_process_holds_nothing_up(trial: Trial) -> None:
    """A command is over when it exits, though what it left in the background holds its output open."""
    sandbox = await trial.sandbox()
    deadline_s = min(10.0, trial.timeout_s)
    try:
        result = await sandbox.exec(["sh", "-c", "echo started; sleep 61 & exit 3"], deadline_s=deadline_s)
    except OperationTimeout as error:
        raise CheckFailed(
            f"`sleep 61 & exit 3` had not returned after {deadline_s:g} s; wait for the command's exit, "
            f"not for the end of its output: {error}"
        ) from error
    ended(result, 3, "`sleep 61 & exit 3`")
    expect_same("what it wrote before it exited", result.stdout, b"started\n")


@check("exec", "shell")
async def a_background_process_lives_on(trial: Trial) -> None:
    """What a command left in the background lives on after it, until the sandbox ends."""
    sandbox = await trial.sandbox()
    await trial.sh(sandbox, LEAVES)
    result = await sandbox.exec(["sh", "-c", ASKS])
    expect_same("a process that the command before left in the background", result.stdout, b"alive\n")


@check("exec", "shell")
async def two_commands_at_once(trial: Trial) -> None:
    """Two commands run in one sandbox at the same time, each with its own output."""
    sandbox = await trial.sandbox()
    script = f'echo "$1"; : >"$1"; until [ -e "$2" ]; do {NAP}; done; echo "$1 saw $2"'
    deadline_s = min(15.0, trial.timeout_s)
    pair = [sandbox.exec(["sh", "-c", script, "sh", *names], deadline_s=deadline_s) for names in ("ab", "ba")]
    one, other = await asyncio.gather(*pair, return_exceptions=True)
    for result, wanted in ((one, b"a\na saw b\n"), (other, b"b\nb saw a\n")):
        if isinstance(result, SandboxError):
            raise CheckFailed(f"of two commands that wait for each other, one did not end: {result}") from result
        if isinstance(result, BaseException):
            raise result
        expect_same("one of two commands at once", result.stdout, wanted)


@check("exec")
async def a_hundred_commands(trial: Trial) -> None:
    """A hundred commands, one after another, each with its own answer."""
    sandbox = await trial.sandbox()
    ends = time.monotonic() + 5 * trial.timeout_s
    for number in range(100):
        try:
            result = await sandbox.exec(["echo", str(number)])
        except SandboxError as error:
            raise CheckFailed(f"command {number + 1} of 100 raised: {error}") from error
        expect_same(f"command {number + 1} of 100", result.stdout, f"{number}\n".encode())
        expect(time.monotonic() < ends, f"{number + 1} of 100 commands took more than {5 * trial.timeout_s:g} s")


CHECKS = among(tuple(globals().values()))
