"""One command in a sandbox of its own, as one act."""

from __future__ import annotations

import asyncio
import random
import time

from ..errors import CreateFailed, OperationTimeout, Unsupported
from .check import Trial, among, check, cut_short, expect, moments, raises, shown

__all__ = ["CHECKS"]

_UNREAL_IMAGE = "sandboxbench.invalid/no-such-image"
_DEADLINE_S = 1.0
_LATE_S = 10.0


@check("one_shot")
async def it_gives_output_and_exit_code(trial: Trial) -> None:
    """`run_once` gives the command's standard output and exit code 0."""
    result, _ref = await trial.provider.run_once(["echo", "one", "two  three"])
    expect(
        (result.exit_code, result.stdout, result.stderr) == (0, b"one two  three\n", b""),
        f"run_once of `echo one 'two  three'` gave exit code {result.exit_code}, standard output "
        f"{shown(result.stdout)} and standard error {shown(result.stderr)}",
    )


@check("one_shot")
async def output_and_errors_are_apart(trial: Trial) -> None:
    """Standard output and standard error of `run_once` are not mixed, and both are whole."""
    result, _ref = await trial.provider.run_once(["cat", "-", "not-there"], stdin=b"to standard output\n")
    expect(
        result.stdout == b"to standard output\n",
        f"`cat - not-there` was to copy its input to standard output; that is {shown(result.stdout)}",
    )
    said = f"`cat - not-there` names what it lacks on standard error; that is {shown(result.stderr)}"
    expect(b"not-there" in result.stderr, said)
    expect(result.exit_code == 1, f"`cat - not-there` returns 1; exit code {result.exit_code} came")


@check("one_shot")
async def input_arrives_and_ends(trial: Trial) -> None:
    """Standard input of `run_once` arrives whole and ends: none, every byte, 1 MiB."""
    for data in (b"", bytes(range(256)), random.Random(3).randbytes(2**20)):
        result, ref = await trial.provider.run_once(["cat"], stdin=data)
        said = f"run_once of `cat` with {len(data)} bytes of input gave {shown(result.stdout, 60)}"
        expect(result.exit_code == 0 and result.stdout == data, f"{said}, exit code {result.exit_code}")
        await trial.provider.destroy(ref)


@check("one_shot")
async def a_failure_of_the_command_is_a_result(trial: Trial) -> None:
    """A nonzero exit code is a result and no error; 127 is a command that is not there."""
    for argv, expected in ((["false"], 1), (["sandboxbench-not-there"], 127)):
        result, ref = await trial.provider.run_once(argv)
        said = f"run_once of `{argv[0]}` gave exit code {result.exit_code}; expected: {expected}"
        expect(result.exit_code == expected, said)
        await trial.provider.destroy(ref)


@check("one_shot", "shell")
async def a_signal_is_negative(trial: Trial) -> None:
    """A command that a signal ended has that signal's number, negative, as its exit code."""
    result, _ref = await trial.provider.run_once(["sh", "-c", "kill -9 $$"])
    said = f"run_once of a command that SIGKILL ended gave exit code {result.exit_code}; expected: -9"
    expect(result.exit_code == -9, said)


@check("one_shot")
async def a_run_sees_the_environment_of_the_spec(trial: Trial) -> None:
    """The command of `run_once` sees the variables of `spec.env`."""
    spec = trial.asking(env={"SANDBOXBENCH_GIVEN": "one = two"})
    result, _ref = await trial.provider.run_once(["printenv", "SANDBOXBENCH_GIVEN"], spec=spec)
    said = f"spec.env has SANDBOXBENCH_GIVEN='one = two'; printenv gave {shown(result.stdout)}"
    expect(result.stdout == b"one = two\n", said)


@check("one_shot", "shell")
async def each_run_is_a_sandbox_of_its_own(trial: Trial) -> None:
    """What one `run_once` wrote, the next does not see; their references have different ids."""
    ids = []
    for _ in range(2):
        result, ref = await trial.provider.run_once(["sh", "-c", "cat kept 2>/dev/null; echo kept >kept"])
        ids.append(ref.id)
        expect(not result.stdout, f"a file that one run_once wrote was read by the next: {shown(result.stdout)}")
        await trial.provider.destroy(ref)
    expect(ids[0] != ids[1], f"two runs gave the same id {ids[0]}")


@check("one_shot")
async def destroy_removes_what_a_run_left(trial: Trial) -> None:
    """`run_once` gives a reference; `destroy` of it removes what is left, and again is no error."""
    _result, ref = await trial.provider.run_once(["true"])
    named = ref.provider == trial.provider.name and bool(ref.id) and ref.id.isprintable()
    expect(named, f"run_once gave a reference of provider {ref.provider!r} with id {ref.id!r}")
    unlisted = set(await trial.owned()) - {ref.id}
    expect(not unlisted, f"after run_once of {ref.id}, owned(run) gave {sorted(unlisted)}")
    await trial.provider.destroy(ref)
    await trial.provider.destroy(ref)
    await trial.lists(f"after destroy of the run {ref.id}")


@check("one_shot", "labels")
async def another_process_can_remove_a_run(trial: Trial) -> None:
    """With labels, another instance destroys what `run_once` left, by its reference."""
    _result, ref = await trial.provider.run_once(["true"])
    another = await trial.another()
    await another.destroy(ref)
    await trial.lists("after another instance destroyed it")
    await trial.provider.destroy(ref)


@check("one_shot")
async def a_late_run_leaves_nothing(trial: Trial) -> None:
    """A command that outlasts the deadline raises ExecTimeout or OperationTimeout, and nothing is left of it."""
    with raises(f"run_once of `sleep 30` with a deadline of {_DEADLINE_S:g} s", OperationTimeout) as raised:
        await trial.provider.run_once(["sleep", "30"], deadline_s=_DEADLINE_S)
    most = _DEADLINE_S + trial.slack_s
    expect(
        raised.seconds <= most, f"run_once with a deadline of {_DEADLINE_S:g} s came back after {raised.seconds:.2f} s"
    )
    await trial.lists("after a run_once that outlasted its deadline")


@check("one_shot")
async def a_cancelled_run_leaves_nothing(trial: Trial) -> None:
    """A `run_once` that is cancelled, at whatever moment, leaves nothing."""
    started = time.monotonic()
    _result, ref = await trial.provider.run_once(["true"])
    lasts_s = time.monotonic() - started
    await trial.provider.destroy(ref)
    for moment in (*moments(lasts_s), lasts_s + 0.2):
        how = await cut_short("run_once", trial.provider.run_once(["sleep", "30"]), moment, trial.timeout_s)
        await trial.destroy_made()
        await trial.lists(f"after a run_once that was cancelled after {moment:.3f} s ({how})")
    await asyncio.sleep(min(lasts_s, _LATE_S))
    await trial.lists("some time after runs were cancelled")


@check("one_shot")
async def a_run_of_a_missing_image_is_said(trial: Trial) -> None:
    """An image that does not exist raises CreateFailed that names it, and nothing is left."""
    with raises(f"run_once with image {_UNREAL_IMAGE}", CreateFailed, Unsupported) as raised:
        await trial.provider.run_once(["true"], spec=trial.asking(image=_UNREAL_IMAGE))
    expect("no-such-image" in str(raised.error), f"run_once raised an error that does not name it: {raised.error}")
    await trial.lists("after a run_once that failed")


CHECKS = among(tuple(globals().values()))
