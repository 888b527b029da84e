"""What a pause keeps: each check holds on our own providers, and each finds the fault that it is there for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pytest_sandboxbench.compliance import pause as checks
from pytest_sandboxbench.compliance.check import Check
from pytest_sandboxbench.errors import SandboxError, Unsupported
from pytest_sandboxbench.model import ExecResult, SandboxRef
from tests.compliance.broken import Broken, BrokenSandbox
from tests.compliance.proof import Proof, faults_in, is_left_out


class FreshBoot(Broken):
    fails: ClassVar = {"memory_is_kept": "resume made a new boot: .* a provider that keeps only the disk declares kind"}
    options: ClassVar = {"resume": ["fresh-boot"]}


class EmptyDisk(Broken):
    fails: ClassVar = {"files_are_kept": "No such file", "memory_is_kept": "after a filesystem pause the file that was"}
    options: ClassVar = {"resume": ["wiped"], "pause_kinds": ["filesystem"]}


class MuteAfterResume(Broken):
    fails: ClassVar = {
        "a_paused_sandbox_works_after_resume": "after a memory pause `echo memory` gave b''",
        "it_can_be_paused_again_and_again": "after 1 memory pauses `echo 0` gave b''",
        "memory_is_kept": "resume made a new boot",
    }

    class sandboxes(BrokenSandbox):
        resumed = False

        async def resume(self, *, deadline_s: float) -> None:
            await super().resume(deadline_s=deadline_s)
            self.resumed = True

        async def exec(self, argv: Sequence[str], **more: Any) -> ExecResult:
            result = await super().exec(argv, **more)
            return ExecResult(0, b"", b"") if self.resumed else result


class PausesNothing(Broken):
    """It says so, and refuses commands, but what runs inside runs on."""

    fails: ClassVar = {"what_is_paused_stands_still": r"over a stopped pause of 1.2 s, of which it ran .* stand still"}
    base = "null"

    class sandboxes(BrokenSandbox):
        paused = False

        def check(self) -> None:
            if self.paused:
                raise Unsupported("while paused", sandbox=self.ref.id)

        async def pause(self, *, kind: Any, deadline_s: float) -> None:
            if kind != "stopped":
                raise Unsupported("pause", sandbox=self.ref.id)
            self.paused = True

        async def resume(self, *, deadline_s: float) -> None:
            await self.inner.resume(deadline_s=deadline_s)
            self.paused = False

        async def exec(self, argv: Sequence[str], **more: Any) -> ExecResult:
            self.check()
            return await super().exec(argv, **more)

        async def stream(self, argv: Sequence[str], **more: Any) -> Any:
            self.check()
            async for piece in super().stream(argv, **more):
                yield piece

        async def write_file(self, path: str, data: bytes, *, deadline_s: float) -> None:
            self.check()
            await super().write_file(path, data, deadline_s=deadline_s)

        async def read_file(self, path: str, *, deadline_s: float) -> bytes:
            self.check()
            return await super().read_file(path, deadline_s=deadline_s)


class AnswersWhilePaused(Broken):
    fails: ClassVar = {"nothing_is_answered_while_paused": "exec during a memory pause raised nothing; Unsupported"}

    class sandboxes(BrokenSandbox):
        async def pause(self, *, kind: Any, deadline_s: float) -> None:
            if kind != "memory":
                await super().pause(kind=kind, deadline_s=deadline_s)


class TwiceIsAnError(Broken):
    fails: ClassVar = {"paused_twice_is_paused": "pause failed: 409"}

    class sandboxes(BrokenSandbox):
        paused = False

        async def pause(self, *, kind: Any, deadline_s: float) -> None:
            if self.paused:
                raise SandboxError("pause", said="409")
            await super().pause(kind=kind, deadline_s=deadline_s)
            self.paused = True

        async def resume(self, *, deadline_s: float) -> None:
            await super().resume(deadline_s=deadline_s)
            self.paused = False


class FourPauses(Broken):
    fails: ClassVar = {"it_can_be_paused_again_and_again": "pause failed: no room for a fifth checkpoint"}

    class sandboxes(BrokenSandbox):
        pauses = 0

        async def pause(self, *, kind: Any, deadline_s: float) -> None:
            await super().pause(kind=kind, deadline_s=deadline_s)
            self.pauses += 1
            if self.pauses > 4:
                await super().resume(deadline_s=deadline_s)
                raise SandboxError("pause", said="no room for a fifth checkpoint")


class ListsRunningOnly(Broken):
    fails: ClassVar = {"a_paused_sandbox_is_listed_and_destroyed": r"during a memory pause, owned\(run\) gave \[\]"}

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, folder)
        self.paused: set[str] = set()

    async def owned(self, run_id: str | None = None) -> Sequence[SandboxRef]:
        return [ref for ref in await super().owned(run_id) if ref.id not in self.paused]

    class sandboxes(BrokenSandbox):
        async def pause(self, *, kind: Any, deadline_s: float) -> None:
            await super().pause(kind=kind, deadline_s=deadline_s)
            self.provider.paused.add(self.ref.id)

        async def resume(self, *, deadline_s: float) -> None:
            await super().resume(deadline_s=deadline_s)
            self.provider.paused.discard(self.ref.id)


class LabelsInMemory(Broken):
    fails: ClassVar = {
        "another_process_can_destroy_what_is_paused": r"asked of another instance, owned\(run\) gave \[\]"
    }
    shared = False
    declares: ClassVar = {"labels": True}


class AnyKind(Broken):
    fails: ClassVar = {"a_kind_it_lacks_is_refused": "pause of kind frozen, which is not in .*, raised nothing"}

    class sandboxes(BrokenSandbox):
        async def pause(self, *, kind: Any, deadline_s: float) -> None:
            await super().pause(kind="memory", deadline_s=deadline_s)


class BreaksWhatRuns(Broken):
    fails: ClassVar = {
        "a_command_outlives_a_pause_or_says_so": "raised ConnectionResetError, which is none of errors.py"
    }

    class sandboxes(BrokenSandbox):
        pauses = 0

        async def pause(self, *, kind: Any, deadline_s: float) -> None:
            await super().pause(kind=kind, deadline_s=deadline_s)
            self.pauses += 1

        async def exec(self, argv: Sequence[str], **more: Any) -> ExecResult:
            before = self.pauses
            result = await super().exec(argv, **more)
            if self.pauses != before:
                raise ConnectionResetError("104")
            return result


class HangsAfterPause(BreaksWhatRuns):
    fails: ClassVar = {"a_command_outlives_a_pause_or_says_so": "`sleep 1` did not end within seconds of the resume"}

    class sandboxes(BreaksWhatRuns.sandboxes):
        async def exec(self, argv: Sequence[str], **more: Any) -> ExecResult:
            try:
                return await super().exec(argv, **more)
            except ConnectionResetError:
                await asyncio.sleep(3600)
                raise


class HalfPaused(Broken):
    fails: ClassVar = {"a_cancelled_pause_can_be_resumed": "resume failed: it is neither paused nor running"}
    options: ClassVar = {"pause": ["0.03"]}

    class sandboxes(BrokenSandbox):
        stuck = False

        async def pause(self, *, kind: Any, deadline_s: float) -> None:
            try:
                await super().pause(kind=kind, deadline_s=deadline_s)
            except asyncio.CancelledError:
                self.stuck = True
                raise

        async def resume(self, *, deadline_s: float) -> None:
            if self.stuck:
                raise SandboxError("resume", said="it is neither paused nor running")
            await super().resume(deadline_s=deadline_s)


FAULTS = faults_in(globals(), Broken)


class TestPause(Proof):
    group: ClassVar = checks
    faults: ClassVar = FAULTS
    slow: ClassVar = {"what_is_paused_stands_still": "null", "a_command_outlives_a_pause_or_says_so": "null"}


class NoShell(Broken):
    declares: ClassVar = {"pause": ("filesystem",)}
    options: ClassVar = {"pause_kinds": ["filesystem"]}

    class sandboxes(BrokenSandbox):
        async def exec(self, argv: Sequence[str], **more: Any) -> ExecResult:
            return ExecResult(127, b"", b"sh: not found") if argv[0] == "sh" else await super().exec(argv, **more)


class DiskOnly(Broken):
    base = "null"
    declares: ClassVar = {"pause": ("filesystem",)}


@pytest.mark.parametrize(
    ("provider", "check", "says"),
    [
        (NoShell, checks.memory_is_kept, "the guest has no sh"),
        (DiskOnly, checks.what_is_paused_stands_still, "keeps no processes over a pause"),
    ],
)
def test_what_cannot_be_seen_is_left_out(provider: type[Broken], check: Check, says: str, tmp_path: Path) -> None:
    is_left_out(provider, check, says, tmp_path)
