"""The life of a sandbox that is paused: what it holds before, the two acts, and the proof of what came back."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping

from ..errors import ExecFailed, SandboxError, StateLost, Unsupported
from ..model import ExecResult
from .guard import GuardedSandbox
from .lanes import Lane
from .state import State, check, check_file, held, plant

__all__ = ["NOTHING", "pause", "tail"]

NOTHING = State()

_PLANT_ATTEMPTS = 200
_PLANT_POLL_S = 0.005


async def pause(lane: Lane, state: State = NOTHING) -> None:
    """One life of a lane in which its sandbox is paused and resumed, and proves afterwards what came back."""
    kinds = lane.provider.capabilities.pause
    if not kinds:
        raise Unsupported("pause", said=f"{lane.provider.name} cannot pause")
    lane.vary("kind", kinds[0])
    sandbox = await lane.sandbox()
    nonce = secrets.token_hex(16)
    pid = await _plant(sandbox, nonce)
    before = await _fill(sandbox, state)
    async with lane.timed("pause") as span:
        await sandbox.pause(kind=kinds[0])
        span.reported(sandbox.phases())
    async with lane.timed("resume_to_first_exec") as span:
        with span.phase("resume"):
            await sandbox.resume()
        span.reported(sandbox.phases())
        with span.phase("first_exec"):
            await lane.ready(sandbox)
    lost: SandboxError | None
    try:
        lost = await _lost(sandbox, kinds[0], pid, nonce) or await _changed(sandbox, kinds[0], state, before)
    except SandboxError as error:
        lost = error  # no answer is no proof
    if lost is not None:
        for operation in ("resume", "resume_to_first_exec"):
            lane.spoil(operation, lost)


async def _plant(sandbox: GuardedSandbox, nonce: str) -> int:
    """Start the process that holds the nonce, and see that it does: just after its start it may not have it yet."""
    planted = await sandbox.exec(plant(nonce))
    if planted.exit_code != 0 or not planted.stdout.strip().isdigit():
        raise ExecFailed("holding a nonce in memory", sandbox=sandbox.id, said=tail(planted))
    pid = int(planted.stdout)
    for attempt in range(_PLANT_ATTEMPTS):
        if attempt:
            await asyncio.sleep(_PLANT_POLL_S)
        planted = await sandbox.exec(check(pid))
        if held(planted.stdout, nonce):
            return pid
    raise ExecFailed("reading back a nonce held in memory", sandbox=sandbox.id, said=tail(planted))


async def _lost(sandbox: GuardedSandbox, kind: str, pid: int, nonce: str) -> StateLost | None:
    """What a resume should have brought back and did not: memory, or, where only the disk is kept, the file."""
    if kind == "filesystem":
        kept = await sandbox.exec(check_file())
        if kept.stdout == nonce.encode():
            return None
        return StateLost("resume", sandbox=sandbox.id, said=f"the file written before the pause: {tail(kept)}")
    kept = await sandbox.exec(check(pid))
    if held(kept.stdout, nonce):
        return None
    return StateLost(
        "resume",
        sandbox=sandbox.id,
        said=f"resume made a new boot: the process that held a nonce in memory is gone ({tail(kept)})",
        cure="a provider that keeps only the disk declares pause kind `filesystem`",
    )


async def _fill(sandbox: GuardedSandbox, state: State) -> Mapping[str, str]:
    """Let the sandbox hold what was asked for: the pid and sum of the process, the sum of the file."""
    found: dict[str, str] = {}
    if state.written_mib:
        found["file"] = await _printed(sandbox, state.write(), f"writing {state.written_mib} MiB")
        if found["file"].split()[-1:] != [str(state.written_mib << 20)]:
            raise ExecFailed(f"writing {state.written_mib} MiB", sandbox=sandbox.id, said=found["file"])
    if state.held_mib:
        tried = f"holding {state.held_mib} MiB"
        found["pid"], found["memory"] = (await _printed(sandbox, state.hold(), tried)).split()
        _sum, resident = (await _printed(sandbox, state.hold_again(found["pid"]), tried)).split()
        if int(resident) < state.held_mib:
            raise ExecFailed(tried, sandbox=sandbox.id, said=f"the process has {resident} MiB of it in memory")
    return found


async def _changed(sandbox: GuardedSandbox, kind: str, state: State, before: Mapping[str, str]) -> StateLost | None:
    """What is not as it was. Where only the disk is kept, nobody expects the memory."""
    if state.written_mib and (found := await _printed(sandbox, state.read(), "reading back")) != before["file"]:
        return StateLost("resume", sandbox=sandbox.id, said=f"the file of {state.written_mib} MiB: {found}")
    if state.held_mib and kind != "filesystem":
        found = (await _printed(sandbox, state.hold_again(before["pid"]), "reading back")).partition("\n")[0]
        if found != before["memory"]:
            return StateLost("resume", sandbox=sandbox.id, said=f"the {state.held_mib} MiB in memory are others")
    return None


async def _printed(sandbox: GuardedSandbox, argv: list[str], tried: str) -> str:
    result = await sandbox.exec(argv)
    if result.exit_code != 0:
        cure = "the guest needs python3, dd, cksum and the room for it"
        raise ExecFailed(tried, sandbox=sandbox.id, said=tail(result), cure=cure)
    return result.stdout.decode(errors="replace").strip()


def tail(result: ExecResult) -> str:
    """The end of what a command said, for a message."""
    text = (result.stderr or result.stdout).decode(errors="replace").strip()
    return text[-300:] or f"exit code {result.exit_code}"
