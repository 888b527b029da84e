"""Many at once: each check holds on our own providers, and each finds the fault that it is there for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

from pytest_sandboxbench.compliance import at_once as checks
from pytest_sandboxbench.errors import DestroyFailed, Rejected
from pytest_sandboxbench.model import ExecResult, Owner, SandboxRef, SandboxSpec
from tests.compliance.broken import Broken, BrokenSandbox
from tests.compliance.proof import Proof, faults_in


class LastCommandWins(Broken):
    fails: ClassVar = {"each_sandbox_gives_its_own_answer": r"`echo .*`, at once with 15 others, gave b'broken-"}
    argv: Sequence[str] = ()

    class sandboxes(BrokenSandbox):
        async def exec(self, argv: Sequence[str], **more: Any) -> ExecResult:
            if argv[0] == "echo":
                self.provider.argv = argv
                await asyncio.sleep(0.01)
                argv = self.provider.argv
            return await super().exec(argv, **more)


class OneNameForAll(Broken):
    fails: ClassVar = {"each_sandbox_gives_its_own_answer": "16 creates at once gave 1 different ids"}
    # Every destroy ends all of them.

    async def create(self, spec: SandboxSpec, *, owner: Owner, deadline_s: float) -> BrokenSandbox:
        made = await super().create(spec, owner=owner, deadline_s=deadline_s)
        made.ref = SandboxRef(self.name, "the-box", made.ref.details)
        return made

    async def destroy(self, ref: SandboxRef, *, deadline_s: float) -> None:
        for one in await self.inner.owned():
            if ref.id in ("the-box", one.id):
                await super().destroy(one, deadline_s=deadline_s)


class LastFileWins(Broken):
    fails: ClassVar = {"each_sandbox_has_its_own_file": "wrote its id 1000 times and read b'broken-"}
    data = b""

    class sandboxes(BrokenSandbox):
        async def write_file(self, path: str, data: bytes, *, deadline_s: float) -> None:
            self.provider.data = data
            await asyncio.sleep(0.01)
            await super().write_file(path, self.provider.data, deadline_s=deadline_s)


class EightDestroys(Broken):
    fails: ClassVar = {
        "all_are_destroyed_at_once": "destroy on .* failed: too many requests",
        "each_sandbox_gives_its_own_answer": "destroy on .* failed: too many requests",
        "each_sandbox_has_its_own_file": "destroy on .* failed: too many requests",
        "each_run_gives_its_own_answer": "destroy on .* failed: too many requests",
    }
    running = 0

    async def destroy(self, ref: SandboxRef, *, deadline_s: float) -> None:
        self.running += 1
        try:
            await asyncio.sleep(0.01)
            if self.running > 8:
                raise DestroyFailed("destroy", sandbox=ref.id, said="too many requests")
            await super().destroy(ref, deadline_s=deadline_s)
        finally:
            self.running -= 1


class TenCommands(Broken):
    fails: ClassVar = {"many_commands_run_in_one_sandbox": r"exec was rejected \(rate\)"}

    class sandboxes(BrokenSandbox):
        running = 0

        async def exec(self, argv: Sequence[str], **more: Any) -> ExecResult:
            if self.running == 10:
                raise Rejected("exec", "rate")
            self.running += 1
            try:
                await asyncio.sleep(0.01)
                return await super().exec(argv, **more)
            finally:
                self.running -= 1


class OneByOne(Broken):
    fails: ClassVar = {"commands_do_not_wait_for_each_other": "`echo` was answered only after the `sleep 1`"}

    class sandboxes(BrokenSandbox):
        def __init__(self, *inner: Any) -> None:
            super().__init__(*inner)
            self.lock = asyncio.Lock()

        async def exec(self, argv: Sequence[str], **more: Any) -> ExecResult:
            async with self.lock:
                return await super().exec(argv, **more)


class LastRunWins(Broken):
    fails: ClassVar = {"each_run_gives_its_own_answer": r"run_once of `echo 0` \(broken-[^ ]+\) gave b'15"}
    argv: Sequence[str] = ()

    async def run_once(
        self, spec: SandboxSpec, argv: Sequence[str], *, stdin: bytes = b"", owner: Owner, deadline_s: float
    ) -> tuple[ExecResult, SandboxRef]:
        self.argv = argv
        await asyncio.sleep(0.01)
        return await super().run_once(spec, self.argv, stdin=stdin, owner=owner, deadline_s=deadline_s)


class NoLimitAfterAll(Broken):
    fails: ClassVar = {
        "more_than_may_exist_are_rejected": "create with 2 sandboxes there, .*, raised nothing; Rejected"
    }
    declares: ClassVar = {"max_live": 2}


class NeverAgain(Broken):
    fails: ClassVar = {"more_than_may_exist_are_rejected": r"create was rejected \(quota\): once full, always full"}
    options: ClassVar = {"max_live": 2}
    full = False

    async def create(self, spec: SandboxSpec, *, owner: Owner, deadline_s: float) -> BrokenSandbox:
        if self.full:
            raise Rejected("create", "quota", said="once full, always full")
        try:
            return await super().create(spec, owner=owner, deadline_s=deadline_s)
        except Rejected:
            self.full = True
            raise


FAULTS = faults_in(globals(), Broken)


class TestAtOnce(Proof):
    group: ClassVar = checks
    faults: ClassVar = FAULTS
