"""What a pause keeps."""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import get_args

from ..errors import SandboxError, SandboxGone, Unsupported
from ..load import state
from ..load.guard import GuardedSandbox
from ..load.lanes import until_ready
from ..model import PauseKind
from .check import NotInGuest, Trial, among, check, cut_short, expect, moments, raises, shown

__all__ = ["CHECKS"]

_HELD_S = 1.2
_STEP_S = 0.1
_ROUNDS = 5
_STARTED = 50
"""Looks for what was just started."""

# In the background, so that the command ends; some `sleep` know whole seconds only.
_COUNT = """
(i=0; while :; do i=$((i+1)); echo "$i" >counting; mv counting counter; sleep 0.1 || sleep 1; done) \
</dev/null >/dev/null 2>&1 &
echo started
"""


async def _resume(trial: Trial, sandbox: GuardedSandbox) -> None:
    await sandbox.resume()
    await until_ready(sandbox, trial.timeout_s)


@check("pause", "exec")
async def a_paused_sandbox_works_after_resume(trial: Trial) -> None:
    """Each kind of pause that is declared returns, and so does the resume; then commands are answered again."""
    for kind in trial.can.pause:
        sandbox = await trial.sandbox()
        await sandbox.pause(kind=kind)
        await _resume(trial, sandbox)
        result = await sandbox.exec(["echo", kind])
        expect(result.stdout == f"{kind}\n".encode(), f"after a {kind} pause `echo {kind}` gave {shown(result.stdout)}")
        await trial.provider.destroy(sandbox)


@check("pause", "exec")
async def memory_is_kept(trial: Trial) -> None:
    """After resume the very processes go on that were paused; only `filesystem` may make a new boot of it."""
    for kind in trial.can.pause:
        sandbox = await trial.sandbox()
        nonce = secrets.token_hex(16)
        planted = await sandbox.exec(state.plant(nonce))
        if planted.exit_code in (126, 127):
            raise NotInGuest("the guest has no sh")
        pid = await _held(sandbox, planted.stdout, nonce)
        await sandbox.pause(kind=kind)
        await _resume(trial, sandbox)
        kept = await sandbox.exec(state.check(pid))
        expect(
            kind == "filesystem" or state.held(kept.stdout, nonce),
            f"resume made a new boot: the process that held a nonce in memory is gone after a pause of kind {kind} "
            f"({shown(kept.stderr or kept.stdout)}); a provider that keeps only the disk declares kind filesystem",
        )
        disk = await sandbox.exec(state.check_file())
        expect(
            disk.stdout == nonce.encode(),
            f"after a {kind} pause the file that was written before it holds {shown(disk.stdout or disk.stderr)}, "
            f"not {nonce!r}",
        )
        await trial.provider.destroy(sandbox)


async def _held(sandbox: GuardedSandbox, pid: bytes, nonce: str) -> int:
    """The process that holds the nonce; just after its start it may not have it yet."""
    expect(pid.strip().isdigit(), f"a command that prints the pid of a background process gave {shown(pid)}")
    for _ in range(_STARTED):
        found = await sandbox.exec(state.check(int(pid)))
        if state.held(found.stdout, nonce):
            return int(pid)
        await asyncio.sleep(0.02)
    expect(
        False, f"a process that a command left in the background is gone at once, or has no /proc/{int(pid)}/environ"
    )
    return 0


@check("pause", "files")
async def files_are_kept(trial: Trial) -> None:
    """A file that was written before a pause of any kind is there after the resume."""
    for kind in trial.can.pause:
        sandbox = await trial.sandbox()
        data = secrets.token_bytes(100_000)
        await sandbox.write_file("kept", data)
        await sandbox.pause(kind=kind)
        await sandbox.resume()
        if trial.can.exec:
            await until_ready(sandbox, trial.timeout_s)
        found = await sandbox.read_file("kept")
        expect(found == data, f"after a {kind} pause a file of {len(data)} bytes was read as {shown(found, 60)}")
        await trial.provider.destroy(sandbox)


@check("pause", "exec", "shell")
async def what_is_paused_stands_still(trial: Trial) -> None:
    """What counts in the background does not count during a pause, and goes on after it."""
    kinds = [kind for kind in trial.can.pause if kind != "filesystem"]
    if not kinds:
        raise NotInGuest("keeps no processes over a pause")
    for kind in kinds:
        sandbox = await trial.sandbox()
        await trial.sh(sandbox, _COUNT)
        await _counted_beyond(trial, sandbox, 2, "it was started")
        asked = time.monotonic()
        before = await _count(trial, sandbox)
        await sandbox.pause(kind=kind)
        paused = time.monotonic()
        await asyncio.sleep(_HELD_S)
        resumed = time.monotonic()
        await _resume(trial, sandbox)
        after = await _count(trial, sandbox)
        ran_s = (paused - asked) + (time.monotonic() - resumed)
        most = 3 + ran_s / _STEP_S
        expect(
            after - before <= most,
            f"a process that counts each {_STEP_S:g} s went from {before} to {after} over a {kind} pause of "
            f"{_HELD_S:g} s, of which it ran {ran_s:.2f} s: it did not stand still",
        )
        await _counted_beyond(trial, sandbox, after, f"the resume from a {kind} pause")
        await trial.provider.destroy(sandbox)


async def _count(trial: Trial, sandbox: GuardedSandbox) -> int:
    found = (await trial.sh(sandbox, "cat counter 2>/dev/null || echo 0")).strip()
    return int(found) if found.isdigit() else 0


async def _counted_beyond(trial: Trial, sandbox: GuardedSandbox, least: int, since: str) -> None:
    until = time.monotonic() + 3 + trial.slack_s
    while (count := await _count(trial, sandbox)) <= least:
        expect(time.monotonic() < until, f"a process that counts in the background stands at {count} since {since}")
        await asyncio.sleep(0.02)


@check("pause", "exec")
async def nothing_is_answered_while_paused(trial: Trial) -> None:
    """While it is paused, commands, streams and files raise Unsupported; afterwards they work."""
    for kind in trial.can.pause:
        sandbox = await trial.sandbox()
        await sandbox.pause(kind=kind)
        with raises(f"exec during a {kind} pause", Unsupported):
            await sandbox.exec(["true"])
        if trial.can.stream:
            with raises(f"stream during a {kind} pause", Unsupported):
                async for _ in sandbox.stream(["true"]):
                    pass
        if trial.can.files:
            with raises(f"write_file during a {kind} pause", Unsupported):
                await sandbox.write_file("late", b"x")
            with raises(f"read_file during a {kind} pause", Unsupported):
                await sandbox.read_file("late")
        await _resume(trial, sandbox)
        await trial.provider.destroy(sandbox)


@check("pause", "exec")
async def paused_twice_is_paused(trial: Trial) -> None:
    """Pausing what is paused, and resuming what runs, is done and no error."""
    for kind in trial.can.pause:
        sandbox = await trial.sandbox()
        await sandbox.resume()
        await sandbox.pause(kind=kind)
        await sandbox.pause(kind=kind)
        await _resume(trial, sandbox)
        await _resume(trial, sandbox)
        await trial.provider.destroy(sandbox)


@check("pause", "exec")
async def it_can_be_paused_again_and_again(trial: Trial) -> None:
    """Five rounds of pause and resume, a command in each."""
    for kind in trial.can.pause:
        sandbox = await trial.sandbox()
        for turn in range(_ROUNDS):
            await sandbox.pause(kind=kind)
            await _resume(trial, sandbox)
            result = await sandbox.exec(["echo", str(turn)])
            said = f"after {turn + 1} {kind} pauses `echo {turn}` gave {shown(result.stdout)}"
            expect(result.stdout == f"{turn}\n".encode(), said)
        await trial.provider.destroy(sandbox)


@check("pause")
async def a_paused_sandbox_is_listed_and_destroyed(trial: Trial) -> None:
    """`owned` lists what is paused, and `destroy` works on it."""
    for kind in trial.can.pause:
        sandbox = await trial.sandbox()
        await sandbox.pause(kind=kind)
        await trial.lists(f"during a {kind} pause", sandbox.id)
        await trial.provider.destroy(sandbox)
        await trial.lists(f"after destroy during a {kind} pause")
        with raises("resume after destroy", SandboxGone):
            await sandbox.resume()


@check("pause", "labels")
async def another_process_can_destroy_what_is_paused(trial: Trial) -> None:
    """With labels, another instance lists and destroys what is paused."""
    another = await trial.another()
    for kind in trial.can.pause:
        sandbox = await trial.sandbox()
        await sandbox.pause(kind=kind)
        await trial.lists(f"during a {kind} pause, asked of another instance", sandbox.id, provider=another)
        for ref in await another.owned(trial.run_id):
            await another.destroy(ref)
        await trial.lists(f"after another instance destroyed it during a {kind} pause")
        await trial.provider.destroy(sandbox)


@check()
async def a_kind_it_lacks_is_refused(trial: Trial) -> None:
    """A kind of pause that is not declared raises Unsupported, and the sandbox runs on."""
    lacking: list[PauseKind] = [kind for kind in get_args(PauseKind) if kind not in trial.can.pause]
    if not lacking:
        raise NotInGuest("declares every kind of pause")
    sandbox = await trial.sandbox()
    for kind in lacking:
        with raises(f"pause of kind {kind}, which is not in capabilities.pause,", Unsupported):
            await sandbox.pause(kind=kind)
        if trial.can.exec:
            await until_ready(sandbox, trial.timeout_s)


@check("pause", "exec")
async def a_command_outlives_a_pause_or_says_so(trial: Trial) -> None:
    """A command that runs over a pause and a resume ends: with its result, or with a typed error."""
    for kind in trial.can.pause:
        sandbox = await trial.sandbox()
        command = asyncio.ensure_future(sandbox.exec(["sleep", "1"], deadline_s=60))
        try:
            await asyncio.sleep(0.3)
            await sandbox.pause(kind=kind)
            await asyncio.sleep(0.2)
            await _resume(trial, sandbox)
            await asyncio.wait({command}, timeout=4 + 4 * trial.slack_s)
            expect(command.done(), f"`sleep 1` did not end within seconds of the resume from a {kind} pause")
        finally:
            command.cancel()
            (ended,) = await asyncio.gather(command, return_exceptions=True)
        if isinstance(ended, Exception):
            said = f"`sleep 1` over a {kind} pause raised {type(ended).__name__}, which is none of errors.py: {ended}"
            expect(isinstance(ended, SandboxError), said)
        await trial.provider.destroy(sandbox)


@check("pause", "exec")
async def a_cancelled_pause_can_be_resumed(trial: Trial) -> None:
    """After a pause that was cancelled, at whatever moment, a resume gives a sandbox that answers."""
    for kind in trial.can.pause:
        sandbox = await trial.sandbox()
        started = time.monotonic()
        await sandbox.pause(kind=kind)
        lasts_s = time.monotonic() - started
        await _resume(trial, sandbox)
        for moment in moments(lasts_s):
            await cut_short(f"pause of kind {kind}", sandbox.pause(kind=kind), moment, trial.timeout_s)
            await _resume(trial, sandbox)
        await trial.provider.destroy(sandbox)


CHECKS = among(tuple(globals().values()))
