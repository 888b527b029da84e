"""Limits, seen from inside: each check holds on our own providers, and each finds the fault that it is there for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pytest_sandboxbench.compliance import limits as checks
from pytest_sandboxbench.compliance.check import Check
from pytest_sandboxbench.errors import CreateFailed, SandboxGone, TransportLost
from pytest_sandboxbench.model import ExecResult, Owner, SandboxRef, SandboxSpec
from tests.compliance.broken import Broken, BrokenSandbox
from tests.compliance.proof import Proof, faults_in, is_found, is_left_out, passes


class AlwaysUnenforced(Broken):
    fails: ClassVar = {"what_is_not_asked_is_not_limited": r"no limit was asked for, and `unenforced` is \['disk'\]"}

    class sandboxes(BrokenSandbox):
        unenforced = frozenset({"disk"})


class LimitedByDefault(Broken):
    fails: ClassVar = {"what_is_not_asked_is_not_limited": r"no limit was asked for, and `enforced` is {'pids': '64'}"}

    class sandboxes(BrokenSandbox):
        @property
        def enforced(self) -> dict[str, str]:
            asked = [name for name in ("vcpus", "memory_mib", "pids") if getattr(self.spec, name) is not None]
            return {"pids": "64", **dict.fromkeys(asked, "as asked")}


class DeclaredAndUnenforced(Broken):
    fails: ClassVar = {
        "what_is_asked_is_set_or_said": r"capabilities.limits names \['pids'\], and asked for they are in"
    }

    class sandboxes(BrokenSandbox):
        @property
        def unenforced(self) -> frozenset[str]:
            return frozenset({"pids"} if self.spec.pids else ())


class NotReadBack(Broken):
    fails: ClassVar = {"what_is_asked_is_set_or_said": r"\['pids'\] were asked for, and are missing from `enforced`"}

    class sandboxes(BrokenSandbox):
        @property
        def enforced(self) -> dict[str, str]:
            return {"vcpus": "1", "memory_mib": "512"} if self.spec.pids else {}


class AllProcessors(Broken):
    base = "null"
    declares: ClassVar = {"limits": frozenset({"vcpus"})}

    def changed(self, spec: SandboxSpec) -> SandboxSpec:
        return replace(spec, vcpus=None)


class MoreThanItsShare(AllProcessors):
    """Whatever else runs on this host."""

    fails: ClassVar = {
        "processors_are_limited": r"with vcpus=0.25 four busy loops used 1.75 s of CPU time in 1.00 s; at most 0.4\d s"
    }

    class sandboxes(BrokenSandbox):
        async def exec(self, argv: Sequence[str], **more: Any) -> ExecResult:
            if not any("times" in word for word in argv):
                return await super().exec(argv, **more)
            return ExecResult(0, b"10.00 11.00\n0m0.010000s 0m0.020000s\n0m1.700000s 0m0.020000s\n", b"")


class LimitsNothing(Broken):
    fails: ClassVar = {
        "memory_is_limited": "with memory_mib=256 `dd` took 600 MiB and returned 0: the limit is not enforced",
        "processes_are_limited": "with pids=32 a shell started 64 processes at once: the limit is not enforced",
    }
    base = "null"
    declares: ClassVar = {"limits": frozenset({"memory_mib", "pids"})}

    def changed(self, spec: SandboxSpec) -> SandboxSpec:
        return replace(spec, memory_mib=None, pids=None)


class NothingFits(LimitsNothing):
    fails: ClassVar = {
        "memory_is_limited": "`dd .*` returned 1: b'Killed'",
        "processes_are_limited": "with pids=32 a shell could start no process at all: b'Killed'",
    }

    class sandboxes(BrokenSandbox):
        async def exec(self, argv: Sequence[str], **more: Any) -> ExecResult:
            return ExecResult(1, b"", b"Killed") if argv[0] == "sh" else await super().exec(argv, **more)


class AlwaysOnline(Broken):
    fails: ClassVar = {
        "without_network_the_host_is_not_reached": r"the guest connected to 127.0.0.1:\d+ on the host",
        "without_network_no_route_leads_out": r"with network=False the guest has routes over b'dummy0'",
    }
    base = "null"
    declares: ClassVar = {"network_off": True}

    class sandboxes(BrokenSandbox):
        async def exec(self, argv: Sequence[str], **more: Any) -> ExecResult:
            result = await super().exec(argv, **more)
            if argv[-1] != "/proc/net/route":
                return result
            # This host may have no route itself.
            return replace(result, stdout=b"Iface\tDestination\nlo\t0000007F\ndummy0\t00000000\n")


class SilentLifetime(Broken):
    fails: ClassVar = {"a_lifetime_ends_it_or_is_refused": "lifetime_s is refused .* `unenforced` does not list it"}

    async def create(self, spec: SandboxSpec, *, owner: Owner, deadline_s: float) -> BrokenSandbox:
        if spec.lifetime_s is not None and not spec.allow_unenforced:
            raise CreateFailed("create with lifetime_s", said="there is none")
        return await super().create(replace(spec, lifetime_s=None), owner=owner, deadline_s=deadline_s)


class Immortal(Broken):
    fails: ClassVar = {
        "a_lifetime_ends_it_or_is_refused": r"a command after 3\.\d s was to raise SandboxGone; it gave exit code 0"
    }

    def changed(self, spec: SandboxSpec) -> SandboxSpec:
        return replace(spec, lifetime_s=None)


class ShortLived(Broken):
    fails: ClassVar = {
        "a_lifetime_ends_it_or_is_refused": r"lifetime_s=1 a command raised SandboxGone after 0\.\d s already"
    }

    def changed(self, spec: SandboxSpec) -> SandboxSpec:
        return spec if spec.lifetime_s is None else replace(spec, lifetime_s=0.2)


class Undead(Broken):
    """It is not listed any more."""

    fails: ClassVar = {"a_lifetime_ends_it_or_is_refused": "was to raise SandboxGone; it gave exit code 0"}

    class sandboxes(BrokenSandbox):
        async def exec(self, argv: Sequence[str], **more: Any) -> ExecResult:
            return ExecResult(0, b"", b"")


class LostAtItsEnd(Broken):
    fails: ClassVar = {"a_lifetime_ends_it_or_is_refused": "was to raise SandboxGone; it gave TransportLost: exec lost"}

    class sandboxes(BrokenSandbox):
        async def exec(self, argv: Sequence[str], **more: Any) -> ExecResult:
            try:
                return await super().exec(argv, **more)
            except SandboxGone as error:
                raise TransportLost("exec", said="reset by peer") from error


class ListedUntilDestroyed(Broken):
    """What ended by itself has left something, which it says."""

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, folder)
        self.made: dict[str, SandboxRef] = {}

    async def create(self, spec: SandboxSpec, *, owner: Owner, deadline_s: float) -> BrokenSandbox:
        made = await super().create(spec, owner=owner, deadline_s=deadline_s)
        self.made[made.ref.id] = replace(made.ref, details={"owner": owner.label()})
        return made

    async def owned(self, run_id: str | None = None) -> Sequence[SandboxRef]:
        return [ref for ref in self.made.values() if run_id in (None, ref.details["owner"].partition("/")[0])]

    async def destroy(self, ref: SandboxRef, *, deadline_s: float) -> None:
        await super().destroy(ref, deadline_s=deadline_s)
        self.made.pop(ref.id, None)


class NeverRemoved(ListedUntilDestroyed):
    fails: ClassVar = {
        "a_lifetime_ends_it_or_is_refused": r"after the lifetime of .* was over and it was destroyed, owned\(run\) gave"
    }
    shared = False

    async def destroy(self, ref: SandboxRef, *, deadline_s: float) -> None:
        there = [one.id for one in await self.inner.owned()]
        await super().destroy(ref, deadline_s=deadline_s)
        if ref.id not in there:
            self.made[ref.id] = ref


FAULTS = faults_in(globals(), Broken)


class TestLimits(Proof):
    group: ClassVar = checks
    faults: ClassVar = FAULTS
    slow: ClassVar = {"processors_are_limited": "bubblewrap", "a_lifetime_ends_it_or_is_refused": "fake"}


def test_what_ended_by_itself_may_be_listed_until_it_is_destroyed(tmp_path: Path) -> None:
    passes(ListedUntilDestroyed, checks.a_lifetime_ends_it_or_is_refused, tmp_path)


class BareGuest(AlwaysOnline):
    """It has a shell and little else."""

    class sandboxes(BrokenSandbox):
        async def exec(self, argv: Sequence[str], **more: Any) -> ExecResult:
            lacks = argv[-1].startswith(("command -v", "/proc/net/route"))
            return ExecResult(1, b"", b"") if lacks else await super().exec(argv, **more)


class BusyHost(AllProcessors):
    """Others leave its guests little, limited or not."""

    class sandboxes(BrokenSandbox):
        async def exec(self, argv: Sequence[str], **more: Any) -> ExecResult:
            if not any("times" in word for word in argv):
                return await super().exec(argv, **more)
            return ExecResult(0, b"10.00 11.00\n0m0.010000s 0m0.020000s\n0m0.300000s 0m0.020000s\n", b"")


class OneProcessor(BusyHost):
    """Whole processors only, and one of them."""

    async def create(self, spec: SandboxSpec, *, owner: Owner, deadline_s: float) -> BrokenSandbox:
        if spec.vcpus not in (None, 1.0):
            raise CreateFailed("create with other than 1 vcpu", said="cannot be set")
        return await super().create(spec, owner=owner, deadline_s=deadline_s)


class Hosted(AlwaysOnline):
    declares: ClassVar = {"network_off": True, "hosted": True}


@pytest.mark.parametrize(
    ("provider", "check", "says"),
    [
        (BareGuest, checks.without_network_the_host_is_not_reached, "the guest has none of python3, nc, wget"),
        (BareGuest, checks.without_network_no_route_leads_out, "the guest has no /proc/net/route"),
        (Hosted, checks.without_network_no_route_leads_out, "may close the network outside of the guest"),
        (OneProcessor, checks.processors_are_limited, "gives no more than vcpus=1"),
        (BusyHost, checks.processors_are_limited, "too few processors, or too busy ones, to tell"),
    ],
)
def test_what_cannot_be_seen_is_left_out(provider: type[Broken], check: Check, says: str, tmp_path: Path) -> None:
    is_left_out(provider, check, says, tmp_path)


@pytest.mark.full
def test_a_guest_that_has_all_processors_is_found(tmp_path: Path) -> None:
    for turn in range(10):
        try:
            is_found(AllProcessors, checks.processors_are_limited, "the limit is not enforced", tmp_path / str(turn))
        except AssertionError:
            continue  # other processes of this host left it no more than its share
        return
    pytest.fail("four busy loops never got more than half a processor")
