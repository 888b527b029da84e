"""From create to destroy: each check holds on our own providers, and each finds the fault that it is there for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from pytest_sandboxbench.compliance import lifecycle as checks
from pytest_sandboxbench.errors import CreateFailed, DestroyFailed, ExecFailed, SandboxGone, TransportLost
from pytest_sandboxbench.ledger import this_process
from pytest_sandboxbench.model import Capabilities, ExecResult, Owner, Preflight, SandboxRef, SandboxSpec
from tests.compliance import strange
from tests.compliance.broken import Broken, BrokenSandbox
from tests.compliance.proof import Proof, faults_in


class ReadyOnce(Broken):
    fails: ClassVar = {"preflight_answers_within_a_second": "the first preflight said it was not ready: asked before"}
    asked = 0

    async def preflight(self) -> Preflight:
        self.asked += 1
        return await super().preflight() if self.asked == 1 else Preflight(False, "asked before", "ask once")


class SlowPreflight(Broken):
    fails: ClassVar = {"preflight_answers_within_a_second": r"preflight took 1\.[2-9]\d s and 1\.[2-9]\d s; it has 1 s"}
    asked = 0

    async def preflight(self) -> Preflight:
        self.asked += 1
        await asyncio.sleep(1.2 if self.asked > 1 else 0)
        return await super().preflight()


class PreflightLeaves(Broken):
    fails: ClassVar = {"preflight_makes_nothing": "preflight left sandbox broken-[^ ]+ of 'preflight/"}

    async def preflight(self) -> Preflight:
        await self.inner.create(SandboxSpec(), owner=this_process("preflight"), deadline_s=1)
        return await super().preflight()


class FindsOutLater(Broken):
    fails: ClassVar = {"capabilities_are_final": r"capabilities changed .* while a sandbox existed .*max_live=9"}
    made = 0

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, max_live=9) if self.made else super().capabilities

    async def create(self, spec: SandboxSpec, *, owner: Owner, deadline_s: float) -> BrokenSandbox:
        self.made += 1
        return await super().create(spec, owner=owner, deadline_s=deadline_s)


class NoRoundTrip(Broken):
    fails: ClassVar = {"a_round_trip_works": "round_trip lost its connection"}
    options: ClassVar = {"round_trip": ["error"]}


class NumberAsDetail(Broken):
    every: ClassVar = True  # what is no list of references is refused by whoever looks for what is left
    fails: ClassVar = {"a_reference_can_be_written_down": r"owned failed: it returned .*'pid': 5"}

    async def owned(self, run_id: str | None = None) -> Sequence[SandboxRef]:
        more: dict[str, Any] = {"pid": 5}
        return [replace(ref, details={**ref.details, **more}) for ref in await super().owned(run_id)]


class NobodysSandboxes(Broken):
    fails: ClassVar = {"a_listed_sandbox_names_its_owner": r"details\['owner'\] = None; expected: '.*check-"}

    async def owned(self, run_id: str | None = None) -> Sequence[SandboxRef]:
        return [replace(ref, details={}) for ref in await super().owned(run_id)]


class EverybodysSandboxes(Broken):
    fails: ClassVar = {"a_run_lists_its_own_only": r"with a sandbox of this run and one of another, owned\(run\) gave"}

    async def owned(self, run_id: str | None = None) -> Sequence[SandboxRef]:
        return await super().owned(None)


class ListsNothing(Broken):
    fails: ClassVar = {
        "a_sandbox_is_listed_until_it_is_destroyed": r"after one create .*, owned\(run\) gave \[\]; expected: \['",
        "a_reference_can_be_written_down": r"after one create .* gave \[\]",
        "a_listed_sandbox_names_its_owner": r"after one create .* gave \[\]",
        "a_run_lists_its_own_only": r"owned\(run\) gave \[\]",
        "another_process_can_destroy_it": r"asked of another instance after a create, owned\(run\) gave \[\]",
        "closing_destroys_nothing": r"after the instance that made it was closed, owned\(run\) gave \[\]",
        "destroying_what_never_was_is_done": r"owned\(run\) gave \[\]",
    }

    async def owned(self, run_id: str | None = None) -> Sequence[SandboxRef]:
        return []


class Numbered(Broken):
    """The lowest number that is free: after a destroy it is given again."""

    fails: ClassVar = {"no_id_is_given_twice": "three sandboxes got the ids box-1, box-1, box-2"}
    declares: ClassVar = {"labels": False, "one_shot": False}

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, folder)
        self.names: dict[str, str] = {}

    async def create(self, spec: SandboxSpec, *, owner: Owner, deadline_s: float) -> BrokenSandbox:
        made = await super().create(spec, owner=owner, deadline_s=deadline_s)
        number = next(n for n in range(1, 99) if f"box-{n}" not in self.names)
        self.names[f"box-{number}"] = made.ref.id
        made.ref = replace(made.ref, id=f"box-{number}")
        return made

    async def destroy(self, ref: SandboxRef, *, deadline_s: float) -> None:
        await super().destroy(replace(ref, id=self.names.pop(ref.id, "gone")), deadline_s=deadline_s)

    async def owned(self, run_id: str | None = None) -> Sequence[SandboxRef]:
        named = {inner: name for name, inner in self.names.items()}
        return [replace(ref, id=named.get(ref.id, ref.id)) for ref in await super().owned(run_id)]


class LabelsInMemory(Broken):
    fails: ClassVar = {
        "another_process_can_destroy_it": r"asked of another instance after a create, owned\(run\) gave \[\]",
        "closing_destroys_nothing": r"after the instance that made it was closed, owned\(run\) gave \[\]",
    }
    shared = False
    declares: ClassVar = {"labels": True}


class ClosingDestroys(Broken):
    fails: ClassVar = {
        "closing_destroys_nothing": r"after the instance .* was closed, owned\(run\) gave \[\]; expected"
    }

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, folder)
        self.refs: list[SandboxRef] = []

    async def create(self, spec: SandboxSpec, *, owner: Owner, deadline_s: float) -> BrokenSandbox:
        made = await super().create(spec, owner=owner, deadline_s=deadline_s)
        self.refs.append(made.ref)
        return made

    async def aclose(self) -> None:
        for ref in self.refs:
            await self.destroy(ref, deadline_s=1)
        await super().aclose()


class GoneIsAnError(Broken):
    fails: ClassVar = {
        "destroy_is_idempotent": "destroy on .* failed: 404",
        "destroying_what_never_was_is_done": "destroy on .* failed: 404",
        "another_process_can_destroy_it": "destroy on .* failed: 404",
    }

    async def destroy(self, ref: SandboxRef, *, deadline_s: float) -> None:
        if ref.id not in [one.id for one in await self.inner.owned()]:
            raise DestroyFailed("destroy", sandbox=ref.id, said="404")
        await super().destroy(ref, deadline_s=deadline_s)


class LostNotGone(Broken):
    fails: ClassVar = {
        "a_destroyed_sandbox_is_gone": "exec after destroy raised TransportLost, not SandboxGone: exec lost",
        "another_process_can_destroy_it": "raised TransportLost, not SandboxGone",
    }

    class sandboxes(BrokenSandbox):
        async def exec(self, argv: Sequence[str], **more: Any) -> ExecResult:
            try:
                return await super().exec(argv, **more)
            except SandboxGone as error:
                raise TransportLost("exec", said="reset by peer") from error


class RunsOn(Broken):
    fails: ClassVar = {"destroy_ends_what_runs": "`sleep 1` returned 0 though its sandbox was destroyed"}

    class sandboxes(BrokenSandbox):
        async def exec(self, argv: Sequence[str], **more: Any) -> ExecResult:
            try:
                return await super().exec(argv, **more)
            except SandboxGone:
                if argv[0] != "sleep":
                    raise
                return ExecResult(0, b"", b"")


class OneDisk(Broken):
    fails: ClassVar = {"two_sandboxes_are_apart": "read_file in .* of a file that is in .* only raised nothing"}

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, folder)
        self.files: dict[str, bytes] = {}

    class sandboxes(BrokenSandbox):
        async def write_file(self, path: str, data: bytes, *, deadline_s: float) -> None:
            await super().write_file(path, data, deadline_s=deadline_s)
            self.provider.files[path] = data

        async def read_file(self, path: str, *, deadline_s: float) -> bytes:
            try:
                return await super().read_file(path, deadline_s=deadline_s)
            except ExecFailed:
                return bytes(self.provider.files[path])


class NoEnvironment(Broken):
    fails: ClassVar = {"the_environment_of_the_spec_is_there": "`printenv SANDBOXBENCH_GIVEN` returned 1: b''"}

    def changed(self, spec: SandboxSpec) -> SandboxSpec:
        return replace(spec, env={})


class AnyImage(Broken):
    fails: ClassVar = {"a_missing_image_is_said": "create with image .* raised nothing; CreateFailed or Unsupported"}

    def changed(self, spec: SandboxSpec) -> SandboxSpec:
        return replace(spec, image=None)


class NamelessImage(Broken):
    fails: ClassVar = {"a_missing_image_is_said": "raised an error that does not name it: create failed: 400"}

    async def create(self, spec: SandboxSpec, *, owner: Owner, deadline_s: float) -> BrokenSandbox:
        if spec.image is not None:
            raise CreateFailed("create", said="400")
        return await super().create(spec, owner=owner, deadline_s=deadline_s)


class IgnoresLimits(Broken):
    fails: ClassVar = {
        "a_limit_it_cannot_set_is_refused": "create with vcpus, which is not in capabilities.limits, raised nothing"
    }
    declares: ClassVar = {"limits": frozenset()}

    def changed(self, spec: SandboxSpec) -> SandboxSpec:
        return replace(spec, vcpus=None, memory_mib=None, pids=None)


class SaysNothingOfLimits(IgnoresLimits):
    fails: ClassVar = {"a_limit_it_cannot_set_is_refused": r"with allow_unenforced `unenforced` is \[\]"}

    async def create(self, spec: SandboxSpec, *, owner: Owner, deadline_s: float) -> BrokenSandbox:
        if not spec.allow_unenforced and (spec.vcpus or spec.memory_mib or spec.pids):
            raise CreateFailed("create with vcpus, memory_mib or pids", said="cannot be set")
        return await super().create(spec, owner=owner, deadline_s=deadline_s)


class CreatesAllTheSame(Broken):
    fails: ClassVar = {
        "a_cancelled_create_leaves_nothing": r"cancelled after .* s \(it raised CancelledError\), owned\(run\) "
        r"gave \['broken-"
    }
    options: ClassVar = {"create": ["0.03"]}

    async def create(self, spec: SandboxSpec, *, owner: Owner, deadline_s: float) -> BrokenSandbox:
        return await asyncio.shield(super().create(spec, owner=owner, deadline_s=deadline_s))


class ShortTimesAreWrong(Broken):
    fails: ClassVar = {
        "a_create_out_of_time_leaves_nothing": "raised CreateFailed, not OperationTimeout: create failed"
    }

    async def create(self, spec: SandboxSpec, *, owner: Owner, deadline_s: float) -> BrokenSandbox:
        if deadline_s < 1:
            raise CreateFailed("create", said="timeout must be a whole number of seconds")
        return await super().create(spec, owner=owner, deadline_s=deadline_s)


FAULTS = [*faults_in(globals(), Broken), *faults_in(vars(strange), Broken)]


class TestLifecycle(Proof):
    group: ClassVar = checks
    faults: ClassVar = FAULTS
    slow: ClassVar = {"destroy_ends_what_runs": "null"}
