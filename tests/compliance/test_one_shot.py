"""One-shot runs: each check holds on our own providers, and each finds the fault that it is there for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from pytest_sandboxbench.compliance import one_shot as checks
from pytest_sandboxbench.compliance.check import Check
from pytest_sandboxbench.errors import DestroyFailed, ExecFailed
from pytest_sandboxbench.model import ExecResult, Owner, SandboxRef, SandboxSpec
from tests.compliance.broken import Broken
from tests.compliance.proof import Proof, faults_in, passes

Ran = tuple[ExecResult, SandboxRef]


class JoinsArguments(Broken):
    fails: ClassVar = {"it_gives_output_and_exit_code": "gave exit code 0, standard output b'one two three"}

    async def run_once(
        self, spec: SandboxSpec, argv: Sequence[str], *, stdin: bytes = b"", owner: Owner, deadline_s: float
    ) -> Ran:
        words = " ".join(argv).split()
        return await super().run_once(spec, words, stdin=stdin, owner=owner, deadline_s=deadline_s)


class Result(Broken):
    """What a fault makes of the result."""

    async def run_once(
        self, spec: SandboxSpec, argv: Sequence[str], *, stdin: bytes = b"", owner: Owner, deadline_s: float
    ) -> Ran:
        result, ref = await super().run_once(spec, argv, stdin=stdin, owner=owner, deadline_s=deadline_s)
        return self.made_of(result), ref

    def made_of(self, result: ExecResult) -> ExecResult:
        return result


class OneOutput(Result):
    fails: ClassVar = {"output_and_errors_are_apart": "was to copy its input to standard output; that is .*not-there"}

    def made_of(self, result: ExecResult) -> ExecResult:
        return replace(result, stdout=result.stdout + result.stderr, stderr=b"")


class ShortInput(Broken):
    fails: ClassVar = {
        "input_arrives_and_ends": r"run_once of `cat` with 1048576 bytes of input gave .*\(65536 in all\)"
    }

    async def run_once(
        self, spec: SandboxSpec, argv: Sequence[str], *, stdin: bytes = b"", owner: Owner, deadline_s: float
    ) -> Ran:
        return await super().run_once(spec, argv, stdin=stdin[:65536], owner=owner, deadline_s=deadline_s)


class FailureRaises(Result):
    fails: ClassVar = {
        "a_failure_of_the_command_is_a_result": "run_once failed: exit code 1",
        "output_and_errors_are_apart": "run_once failed: exit code 1",
    }

    def made_of(self, result: ExecResult) -> ExecResult:
        if result.exit_code:
            raise ExecFailed("run_once", said=f"exit code {result.exit_code}")
        return result


class AsAShellSays(Result):
    fails: ClassVar = {"a_signal_is_negative": "SIGKILL ended gave exit code 137; expected: -9"}
    base = "null"

    def made_of(self, result: ExecResult) -> ExecResult:
        return replace(result, exit_code=128 - result.exit_code) if result.exit_code < 0 else result


class NoEnvironment(Broken):
    fails: ClassVar = {"a_run_sees_the_environment_of_the_spec": "printenv gave b''"}

    def changed(self, spec: SandboxSpec) -> SandboxSpec:
        return replace(spec, env={})


class AnyImage(Broken):
    fails: ClassVar = {"a_run_of_a_missing_image_is_said": "run_once with image .* raised nothing; CreateFailed"}

    def changed(self, spec: SandboxSpec) -> SandboxSpec:
        return replace(spec, image=None)


class OneName(Broken):
    fails: ClassVar = {"each_run_is_a_sandbox_of_its_own": "two runs gave the same id once"}
    base = "null"
    declares: ClassVar = {"labels": False}
    last = ""

    async def run_once(
        self, spec: SandboxSpec, argv: Sequence[str], *, stdin: bytes = b"", owner: Owner, deadline_s: float
    ) -> Ran:
        result, ref = await super().run_once(spec, argv, stdin=stdin, owner=owner, deadline_s=deadline_s)
        self.last = ref.id
        return result, replace(ref, id="once")

    async def owned(self, run_id: str | None = None) -> Sequence[SandboxRef]:
        return [replace(ref, id="once") if ref.id == self.last else ref for ref in await super().owned(run_id)]

    async def destroy(self, ref: SandboxRef, *, deadline_s: float) -> None:
        await super().destroy(replace(ref, id=self.last) if ref.id == "once" else ref, deadline_s=deadline_s)


class OneFolder(Broken):
    fails: ClassVar = {
        "each_run_is_a_sandbox_of_its_own": "a file that one run_once wrote was read by the next: b'kept"
    }
    base = "null"

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, folder)
        folder.mkdir(exist_ok=True)
        self.folder = folder

    async def run_once(
        self, spec: SandboxSpec, argv: Sequence[str], *, stdin: bytes = b"", owner: Owner, deadline_s: float
    ) -> Ran:
        inside = ["sh", "-c", 'cd "$0" && exec "$@"', str(self.folder), *argv]
        return await super().run_once(spec, inside, stdin=stdin, owner=owner, deadline_s=deadline_s)


class GoneIsAnError(Broken):
    fails: ClassVar = {
        "destroy_removes_what_a_run_left": "destroy on .* failed: 404",
        "another_process_can_remove_a_run": "destroy on .* failed: 404",
    }

    async def destroy(self, ref: SandboxRef, *, deadline_s: float) -> None:
        if ref.id not in [one.id for one in await self.inner.owned()]:
            raise DestroyFailed("destroy", sandbox=ref.id, said="404")
        await super().destroy(ref, deadline_s=deadline_s)


class SecondSandbox(Broken):
    fails: ClassVar = {
        "destroy_removes_what_a_run_left": r"after run_once of .*, owned\(run\) gave \['broken-",
        "another_process_can_remove_a_run": r"after another instance destroyed it, owned\(run\) gave \['broken-",
        "a_cancelled_run_leaves_nothing": r"owned\(run\) gave \['broken-",
    }

    async def run_once(
        self, spec: SandboxSpec, argv: Sequence[str], *, stdin: bytes = b"", owner: Owner, deadline_s: float
    ) -> Ran:
        if argv == ["true"] and spec.image is None:
            await self.inner.create(SandboxSpec(), owner=owner, deadline_s=1)
        return await super().run_once(spec, argv, stdin=stdin, owner=owner, deadline_s=deadline_s)


class LabelsInMemory(Broken):
    fails: ClassVar = {
        "another_process_can_remove_a_run": r"after another instance destroyed it, owned\(run\) gave \['"
    }
    shared = False
    declares: ClassVar = {"labels": True}


class CutShortStays(Broken):
    fails: ClassVar = {
        "a_late_run_leaves_nothing": r"after a run_once that outlasted its deadline, owned\(run\) gave \['broken-",
        "a_cancelled_run_leaves_nothing": r"after a run_once that was cancelled after .*, owned\(run\) gave \['broken-",
    }

    async def run_once(
        self, spec: SandboxSpec, argv: Sequence[str], *, stdin: bytes = b"", owner: Owner, deadline_s: float
    ) -> Ran:
        try:
            return await super().run_once(spec, argv, stdin=stdin, owner=owner, deadline_s=deadline_s + 10)
        except asyncio.CancelledError:
            await self.inner.create(SandboxSpec(), owner=owner, deadline_s=1)
            raise


FAULTS = faults_in(globals(), Broken)


class TestOneShot(Proof):
    group: ClassVar = checks
    faults: ClassVar = FAULTS
    slow: ClassVar = {"a_late_run_leaves_nothing": "null"}


class OneShotOnly(Broken):
    """No sandbox of it runs a second command."""

    declares: ClassVar = {"exec": False, "stream": False, "files": False, "pause": ()}
    base = "null"


@pytest.mark.parametrize("check", checks.CHECKS, ids=str)
def test_it_holds_without_exec(check: Check, tmp_path: Path) -> None:
    assert "exec" not in check.needs
    passes(OneShotOnly, check, tmp_path)
