"""Limits by what they do: a memory hog dies, a bomb is stopped, half a CPU is half a CPU."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

import pytest

from pytest_sandboxbench.errors import CreateFailed
from pytest_sandboxbench.model import ExecResult, Owner, SandboxSpec
from pytest_sandboxbench.providers import bubblewrap, null, proc, protocol
from pytest_sandboxbench.providers.bubblewrap import BubblewrapProvider
from pytest_sandboxbench.providers.bubblewrap_sandbox import BubblewrapSandbox

from .bubblewrap_runs import D, run, within

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap needs Linux"),
    pytest.mark.usefixtures("bubblewrap_ready"),
]

HOG = "b = bytearray()\nwhile len(b) < 512 << 20: b += b'x' * (1 << 20)\nprint(len(b) >> 20)"
BOMB = "n=0; while [ $n -lt 50 ]; do sleep 5 & n=$((n+1)); done; echo all"
BUSY = """
import time
from typing import Any
end, begin = time.monotonic() + 1, time.process_time()
while time.monotonic() < end:
    pass
print(time.process_time() - begin)
"""


def needs(limit: str) -> None:
    if limit not in bubblewrap.factory("bubblewrap", {}).capabilities.limits:
        pytest.skip(f"{limit} cannot be set on this host")


def test_a_memory_hog_dies_and_its_sandbox_does_not(owner: Owner) -> None:
    needs("memory_mib")

    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        assert (await sandbox.exec(["python3", "-c", HOG], deadline_s=D)).exit_code == -9
        small = HOG.replace("512", "16")
        assert (await sandbox.exec(["python3", "-c", small], deadline_s=D)).stdout == b"16\n"
        assert not sandbox.unenforced

    within(owner, act, SandboxSpec(memory_mib=64))


def test_a_bomb_is_stopped(owner: Owner) -> None:
    needs("pids")

    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> ExecResult:
        result = await sandbox.exec(["sh", "-c", BOMB], deadline_s=D)
        assert len(proc.labelled(proc.SANDBOX_LABEL, sandbox.ref.id)) <= 16
        return result

    result = within(owner, act, SandboxSpec(pids=16))
    assert result.exit_code != 0
    assert b"all" not in result.stdout
    assert b"fork" in result.stderr.lower()


def test_half_a_cpu_is_half_a_cpu(owner: Owner) -> None:
    needs("vcpus")
    used = float(run(owner, "python3", "-c", BUSY, spec=SandboxSpec(vcpus=0.5)).stdout)
    assert 0.1 < used < 0.65


def test_the_limits_hold_in_a_one_shot(owner: Owner) -> None:
    needs("memory_mib")

    async def main() -> ExecResult:
        provider = bubblewrap.factory("bubblewrap", {})
        spec = SandboxSpec(memory_mib=64, pids=32 if "pids" in provider.capabilities.limits else None)
        result, ref = await provider.run_once(spec, ["python3", "-c", HOG], owner=owner, deadline_s=D)
        await provider.destroy(ref, deadline_s=D)
        await provider.aclose()
        return result

    assert asyncio.run(main()).exit_code == -9


def test_limited_and_frozen(owner: Owner) -> None:
    needs("memory_mib")
    if "frozen" not in bubblewrap.factory("b", {}).capabilities.pause:
        pytest.skip("no freezer on this host")

    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        running = asyncio.create_task(sandbox.exec(["sh", "-c", "sleep 0.1; echo done"], deadline_s=D))
        await asyncio.sleep(0.05)
        await sandbox.pause(kind="frozen", deadline_s=D)
        await asyncio.sleep(0.2)
        assert not running.done()
        await sandbox.resume(deadline_s=D)
        assert (await running).stdout == b"done\n"
        await sandbox.pause(kind="frozen", deadline_s=D)

    within(owner, act, SandboxSpec(memory_mib=64))


def test_a_limit_that_cannot_be_set_is_an_error_with_a_cure_or_said(owner: Owner) -> None:
    with pytest.raises(CreateFailed, match=r"memory_mib cannot be set.*allow_unenforced"):
        run(owner, "true", spec=SandboxSpec(memory_mib=64), cgroup="off")
    spec = SandboxSpec(memory_mib=64, vcpus=1, allow_unenforced=True)

    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> frozenset[str]:
        return sandbox.unenforced

    assert within(owner, act, spec, cgroup="off") == {"memory_mib", "vcpus"}


def test_a_limited_sandbox_destroyed_by_another_process_leaves_no_cgroup(owner: Owner) -> None:
    needs("pids")

    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        other = bubblewrap.factory("other", {"cgroup": "off"})
        (ref,) = await other.owned(owner.run_id)
        start = time.monotonic()
        await other.destroy(ref, deadline_s=D)
        assert time.monotonic() - start < 1.5

    within(owner, act, SandboxSpec(pids=32))


def test_limits_are_read_back_from_where_they_are_enforced(owner: Owner) -> None:
    asked = {"memory_mib": 64, "pids": 32, "vcpus": 0.5}
    have = bubblewrap.factory("bubblewrap", {}).capabilities.limits
    spec = SandboxSpec(**{name: amount for name, amount in asked.items() if name in have})  # type: ignore[arg-type]
    expected = {name: str(amount) for name, amount in asked.items() if name in have}

    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        assert isinstance(sandbox, protocol.Limited)
        assert sandbox.enforced == expected
        said = sandbox.ref.details.get("enforced", "")
        assert said == " ".join(f"{name}={value}" for name, value in expected.items())
        result, ref = await provider.run_once(spec, ["true"], owner=owner, deadline_s=D)
        await provider.destroy(ref, deadline_s=D)
        assert (result.exit_code, ref.details.get("enforced", "")) == (0, said)
        bare = await provider.create(SandboxSpec(), owner=owner, deadline_s=D)
        await provider.destroy(bare.ref, deadline_s=D)
        assert (bare.enforced, "enforced" in bare.ref.details) == ({}, False)

    within(owner, act, spec)


@pytest.mark.parametrize(("name", "options"), [("bubblewrap", {"cgroup": "off"}), ("null", {})])
def test_what_is_not_enforced_is_refused_or_said(owner: Owner, name: str, options: dict[str, str]) -> None:
    async def main() -> None:
        provider: Any = {"bubblewrap": bubblewrap, "null": null}[name].factory(name, options)
        for spec in (SandboxSpec(lifetime_s=5), SandboxSpec(pids=5)):
            field = "lifetime_s" if spec.lifetime_s else "pids"
            for act in (
                provider.create(spec, owner=owner, deadline_s=D),
                provider.run_once(spec, ["true"], owner=owner, deadline_s=D),
            ):
                with pytest.raises(CreateFailed, match=rf"{field}.*allow_unenforced"):
                    await act
        spec = SandboxSpec(lifetime_s=5, pids=5, allow_unenforced=True)
        sandbox = await provider.create(spec, owner=owner, deadline_s=D)
        _, ref = await provider.run_once(spec, ["true"], owner=owner, deadline_s=D)
        for made in (sandbox.ref, ref):
            await provider.destroy(made, deadline_s=D)
            assert made.details["unenforced"] == "lifetime_s,pids"
        assert sandbox.unenforced == {"lifetime_s", "pids"}
        await provider.aclose()

    asyncio.run(main())
