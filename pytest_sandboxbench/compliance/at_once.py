"""Many sandboxes at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from ..errors import OperationTimeout, Rejected
from ..load.guard import GuardedSandbox
from .check import NotInGuest, Trial, among, check, expect, raises, running, shown

__all__ = ["CHECKS"]

_MANY = 16
_FULL_S = 1.0

T = TypeVar("T")


async def _all(calls: Sequence[Awaitable[T]]) -> list[T]:
    """All results; the first error only when every call has ended."""
    ended = await asyncio.gather(*calls, return_exceptions=True)
    done: list[T] = []
    for one in ended:
        if isinstance(one, BaseException):
            raise one
        done.append(one)
    return done


def _many(trial: Trial) -> int:
    return min(_MANY, trial.can.max_live or _MANY)


async def _created(trial: Trial, count: int) -> list[GuardedSandbox]:
    """So many sandboxes, created at once; fewer where the provider says that a limit is reached."""

    async def create() -> GuardedSandbox | None:
        try:
            return await trial.sandbox()
        except Rejected:
            return None

    made = [sandbox for sandbox in await _all([create() for _ in range(count)]) if sandbox is not None]
    expect(bool(made), f"of {count} creates at once every one was rejected")
    return made


@check("exec")
async def each_sandbox_gives_its_own_answer(trial: Trial) -> None:
    """16 creates at once, or as many as may exist, give as many sandboxes; each answers its own command."""
    sandboxes = await _created(trial, _many(trial))
    ids = [sandbox.id for sandbox in sandboxes]
    expect(len(set(ids)) == len(ids), f"{len(ids)} creates at once gave {len(set(ids))} different ids: {sorted(ids)}")
    await trial.lists(f"after {len(ids)} creates at once", *ids)
    answers = await _all([sandbox.exec(["echo", sandbox.id]) for sandbox in sandboxes])
    for sandbox, answer in zip(sandboxes, answers, strict=True):
        said = f"`echo {sandbox.id}`, at once with {len(ids) - 1} others, gave {shown(answer.stdout)}"
        expect(answer.exit_code == 0 and answer.stdout == f"{sandbox.id}\n".encode(), said)


@check("files")
async def each_sandbox_has_its_own_file(trial: Trial) -> None:
    """16 sandboxes write and read a file of the same name at once, each its own."""
    sandboxes = await _created(trial, _many(trial))
    data = [sandbox.id.encode() * 1000 for sandbox in sandboxes]
    await _all([sandbox.write_file("same-name", mine) for sandbox, mine in zip(sandboxes, data, strict=True)])
    found = await _all([sandbox.read_file("same-name") for sandbox in sandboxes])
    for sandbox, mine, came in zip(sandboxes, data, found, strict=True):
        expect(came == mine, f"{sandbox.id} wrote its id {1000} times and read {shown(came, 60)}")


@check()
async def all_are_destroyed_at_once(trial: Trial) -> None:
    """16 destroys at once leave nothing."""
    sandboxes = await _created(trial, _many(trial))
    await _all([trial.provider.destroy(sandbox) for sandbox in sandboxes])
    await trial.lists(f"after {len(sandboxes)} destroys at once")


@check("exec")
async def many_commands_run_in_one_sandbox(trial: Trial) -> None:
    """16 commands at once in one sandbox each get their own input and give their own output."""
    sandbox = await trial.sandbox()
    inputs = [f"{number} ".encode() * 2000 for number in range(_MANY)]
    for data, result in zip(inputs, await _all([sandbox.exec(["cat"], stdin=data) for data in inputs]), strict=True):
        said = (
            f"`cat` of {len(data)} bytes, one of {_MANY} at once, gave {len(result.stdout)}: {shown(result.stdout, 60)}"
        )
        expect(result.exit_code == 0 and result.stdout == data, said)


@check("exec")
async def commands_do_not_wait_for_each_other(trial: Trial) -> None:
    """A command that takes long does not hold up another one in the same sandbox."""
    sandbox = await trial.sandbox()
    lasts_s = 5 if trial.can.hosted else 1
    async with running(sandbox.exec(["sleep", str(lasts_s)])) as long:
        await asyncio.sleep(0.1)
        result = await sandbox.exec(["echo", "meanwhile"])
        expect(not long.done(), f"`echo` was answered only after the `sleep {lasts_s}` that ran before it")
        expect(result.stdout == b"meanwhile\n", f"`echo meanwhile` gave {shown(result.stdout)}")


@check("one_shot")
async def each_run_gives_its_own_answer(trial: Trial) -> None:
    """16 one-shot runs at once, or as many as may exist, each give their own output."""

    async def run(number: int) -> tuple[int, bytes, str] | None:
        try:
            result, ref = await trial.provider.run_once(["echo", str(number)])
        except Rejected:
            return None
        return number, result.stdout, ref.id

    ran = [one for one in await _all([run(number) for number in range(_many(trial))]) if one is not None]
    expect(bool(ran), "of several runs at once every one was rejected")
    for number, stdout, id_ in ran:
        expect(stdout == f"{number}\n".encode(), f"run_once of `echo {number}` ({id_}) gave {shown(stdout)}")
    expect(len({id_ for *_, id_ in ran}) == len(ran), f"{len(ran)} runs at once gave the ids {[i for *_, i in ran]}")


@check()
async def more_than_may_exist_are_rejected(trial: Trial) -> None:
    """Where `max_live` is declared, one create more is rejected (or waits), and works once there is room again."""
    most = trial.can.max_live
    if most is None or not 0 < most <= _MANY:
        raise NotInGuest(f"declares no max_live from 1 to {_MANY}")
    sandboxes = [await trial.sandbox() for _ in range(most)]
    with raises(f"create with {most} sandboxes there, which is max_live,", Rejected, OperationTimeout):
        await trial.provider.create(deadline_s=_FULL_S)
    await trial.lists("after a create beyond max_live", *(sandbox.id for sandbox in sandboxes))
    await trial.provider.destroy(sandboxes[0])
    await trial.sandbox()


CHECKS = among(tuple(globals().values()))
