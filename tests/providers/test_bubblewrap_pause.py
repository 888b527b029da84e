"""bubblewrap: paused, resumed, destroyed while paused, and left behind by a harness that was killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_sandboxbench.errors import (
    ExecTimeout,
    SandboxGone,
    Unsupported,
)
from pytest_sandboxbench.model import ExecResult, Owner, PauseKind
from pytest_sandboxbench.providers import bubblewrap, proc
from pytest_sandboxbench.providers.bubblewrap import BubblewrapProvider
from pytest_sandboxbench.providers.bubblewrap_sandbox import BubblewrapSandbox

from .bubblewrap_runs import D, started, within

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap needs Linux"),
    pytest.mark.usefixtures("bubblewrap_ready"),
]

KINDS: list[tuple[PauseKind, str]] = [("frozen", "v1"), ("frozen", "v2"), ("stopped", "off")]


def kinds_here() -> list[Any]:
    """The ways to pause that work on this host; the others are skipped by name."""
    found = []
    for kind, cgroup in KINDS if sys.platform == "linux" else []:
        works = kind in bubblewrap.factory("bubblewrap", {"cgroup": cgroup}).capabilities.pause
        marks = [] if works else [pytest.mark.skip(reason=f"no writable freezer of cgroup {cgroup}")]
        found.append(pytest.param(kind, cgroup, marks=marks, id=f"{kind}-{cgroup}"))
    return found


def counter(sandbox: BubblewrapSandbox) -> int:
    """How often a guest that counts did so, seen on the host: the guest may be paused."""
    return Path(sandbox.ref.details["folder"], "n").stat().st_size


@pytest.mark.parametrize(("kind", "cgroup"), kinds_here())
def test_a_pause_stops_everything_and_a_resume_keeps_it(owner: Owner, kind: PauseKind, cgroup: str) -> None:
    script = "import time\nwhile True: open('n', 'a').write('x'); time.sleep(0.002)"

    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        await sandbox.exec(["sh", "-c", f'python3 -c "{script}" > /dev/null & sleep 0.1'], deadline_s=D)
        running = asyncio.create_task(sandbox.exec(["sh", "-c", "sleep 0.3; echo done"], deadline_s=D))
        await started(sandbox)
        await sandbox.pause(kind=kind, deadline_s=D)
        await sandbox.pause(kind=kind, deadline_s=D)
        before = counter(sandbox)
        start = time.monotonic()
        for act in (sandbox.exec(["true"], deadline_s=D), sandbox.read_file("n", deadline_s=D)):
            with pytest.raises(Unsupported, match="resume it first"):
                await act
        assert time.monotonic() - start < 0.3
        await asyncio.sleep(0.5)
        assert counter(sandbox) == before, "something ran on"
        assert not running.done()
        await sandbox.resume(deadline_s=D)
        await sandbox.resume(deadline_s=D)
        assert (await running).stdout == b"done\n"
        await asyncio.sleep(0.1)
        assert counter(sandbox) > before, "it does not run on"

    within(owner, act, cgroup=cgroup)


@pytest.mark.parametrize(("kind", "cgroup"), kinds_here())
def test_paused_and_resumed_over_and_over_beside_commands(owner: Owner, kind: PauseKind, cgroup: str) -> None:
    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        for _ in range(8):
            running = [asyncio.create_task(sandbox.exec(["true"], deadline_s=D)) for _ in range(3)]
            await asyncio.sleep(0.001)
            await sandbox.pause(kind=kind, deadline_s=D)
            await sandbox.resume(deadline_s=D)
            for result in await asyncio.gather(*running, return_exceptions=True):
                # One that had not started when the pause began is refused; none hangs.
                assert isinstance(result, Unsupported) or (isinstance(result, ExecResult) and result.exit_code == 0)

    within(owner, act, cgroup=cgroup)


@pytest.mark.parametrize(("kind", "cgroup"), kinds_here())
@pytest.mark.parametrize("busy", [False, True])
def test_destroyed_while_paused(owner: Owner, kind: PauseKind, cgroup: str, busy: bool, left_behind: list[int]) -> None:
    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        running = asyncio.create_task(sandbox.exec(["sh", "-c", "while :; do :; done"], deadline_s=D)) if busy else None
        if busy:
            await started(sandbox)
        await sandbox.pause(kind=kind, deadline_s=D)
        left_behind.extend(sandbox._members())
        start = time.monotonic()
        await provider.destroy(sandbox.ref, deadline_s=D)
        assert time.monotonic() - start < 0.7
        await provider.destroy(sandbox.ref, deadline_s=D)
        if running is not None:
            with pytest.raises(SandboxGone):
                await running
        again = sandbox.pause(kind=kind, deadline_s=D)
        for act in (sandbox.exec(["true"], deadline_s=D), sandbox.resume(deadline_s=D), again):
            with pytest.raises(SandboxGone):
                await act

    within(owner, act, cgroup=cgroup)


@pytest.mark.parametrize(("kind", "cgroup"), kinds_here())
def test_a_deadline_that_passes_while_paused(owner: Owner, kind: PauseKind, cgroup: str) -> None:
    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        running = asyncio.create_task(sandbox.exec(["sleep", "60"], deadline_s=0.5))
        await started(sandbox)
        await sandbox.pause(kind=kind, deadline_s=D)
        start = time.monotonic()
        with pytest.raises(ExecTimeout):
            await running
        assert time.monotonic() - start < 4
        await sandbox.resume(deadline_s=D)
        assert (await sandbox.exec(["true"], deadline_s=D)).exit_code == 0

    within(owner, act, cgroup=cgroup)


def test_a_kind_of_pause_that_it_does_not_have(owner: Owner) -> None:
    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        kinds: list[PauseKind] = ["memory", "filesystem", "frozen"]
        for kind in kinds:
            with pytest.raises(Unsupported, match=f"pause of kind {kind}"):
                await sandbox.pause(kind=kind, deadline_s=D)

    within(owner, act, cgroup="off")


def test_pauses_by_signal_beside_a_shell_that_starts_programs(owner: Owner) -> None:
    """A shell in the middle of a vfork does not stop by itself, and an nsenter passes a SIGCONT on, late."""

    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        for delay_ms in range(12):
            running = asyncio.create_task(sandbox.exec(["sh", "-c", "while true; do /bin/true; done"], deadline_s=D))
            await started(sandbox)
            await asyncio.sleep(delay_ms / 1000)
            for _ in range(2):
                start = time.monotonic()
                await sandbox.pause(kind="stopped", deadline_s=D)
                assert time.monotonic() - start < 2
                await sandbox.resume(deadline_s=D)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

    within(owner, act, cgroup="off")


def test_owned_and_destroy_from_another_instance(owner: Owner, left_behind: list[int]) -> None:
    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        other = bubblewrap.factory("other", {})
        (ref,) = await other.owned(owner.run_id)
        assert (ref.id, ref.details["pid"]) == (sandbox.ref.id, sandbox.ref.details["pid"])
        assert ref.details["owner"] == owner.label()
        assert await other.owned("somebody-else") == []
        await sandbox.pause(kind=provider.capabilities.pause[0], deadline_s=D)
        left_behind.extend(sandbox._members())
        await other.destroy(ref, deadline_s=D)
        assert await other.owned(owner.run_id) == []
        await other.aclose()

    within(owner, act)


HARNESS = """
import asyncio, os, sys
from pytest_sandboxbench.model import Owner, SandboxSpec
from pytest_sandboxbench.providers import bubblewrap, proc

async def main():
    label, pause = sys.argv[1:]
    run_id, host, pid, started = label.split("/")
    owner = Owner(run_id, host, int(pid), started)
    provider = bubblewrap.factory("bubblewrap", {})
    sandbox = await provider.create(SandboxSpec(), owner=owner, deadline_s=20)
    await sandbox.exec(["sh", "-c", "setsid sleep 65 & exit 0"], deadline_s=20)
    running = asyncio.create_task(sandbox.exec(["sh", "-c", "setsid sleep 66 & sleep 67"], deadline_s=60))
    while not sandbox._running:
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.2)
    if pause == "yes":
        await sandbox.pause(kind=provider.capabilities.pause[0], deadline_s=20)
    print(sandbox.ref.id, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("pause", ["no", "yes"])
def test_a_killed_harness_leaves_nothing_that_a_reaper_does_not_find(owner: Owner, pause: str) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    harness = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HARNESS), owner.label(), pause],
        stdout=subprocess.PIPE,
        env=env,
        text=True,
    )
    try:
        assert harness.stdout is not None
        sandbox = harness.stdout.readline().strip()
        assert sandbox
    finally:
        harness.send_signal(signal.SIGKILL)
        harness.wait()
        harness.stdout.close()  # type: ignore[union-attr]
    if pause == "no":
        deadline = time.monotonic() + 5
        while proc.labelled(proc.SANDBOX_LABEL, sandbox) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not proc.labelled(proc.SANDBOX_LABEL, sandbox), "the sandbox outlived its harness"

    async def reap() -> None:
        provider = bubblewrap.factory("bubblewrap", {})
        (ref,) = await provider.owned(owner.run_id)
        assert ref.id == sandbox
        assert bool(proc.labelled(proc.SANDBOX_LABEL, sandbox)) is (pause == "yes")
        start = time.monotonic()
        await provider.destroy(ref, deadline_s=D)
        assert time.monotonic() - start < 1.5
        assert await provider.owned(owner.run_id) == []

    asyncio.run(reap())
