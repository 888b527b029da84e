"""bubblewrap: a start that fails halfway, or whose harness is killed halfway, leaves nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_sandboxbench.errors import CreateFailed
from pytest_sandboxbench.model import Owner, SandboxSpec
from pytest_sandboxbench.owners import this_process
from pytest_sandboxbench.providers import bubblewrap, local, proc
from pytest_sandboxbench.providers.bubblewrap import BubblewrapProvider
from pytest_sandboxbench.providers.bubblewrap_host import find_bwrap
from pytest_sandboxbench.providers.bubblewrap_sandbox import BubblewrapSandbox

from .bubblewrap_runs import D, within

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap needs Linux"),
    pytest.mark.usefixtures("bubblewrap_ready"),
]

HARNESS = """
import asyncio, sys
from pytest_sandboxbench.model import Owner, SandboxSpec
from pytest_sandboxbench.providers import bubblewrap

run_id, host, pid, started = sys.argv[1].split("/")
provider = bubblewrap.factory("bubblewrap", {"bwrap": sys.argv[2]})
asyncio.run(provider.create(SandboxSpec(), owner=Owner(run_id, host, int(pid), started), deadline_s=20))
"""


def test_a_harness_killed_during_a_create_leaves_no_process(owner: Owner, tmp_path: Path) -> None:
    slow = tmp_path / "bwrap"
    slow.write_text(f'#!/bin/sh\nsleep 0.4\nexec {find_bwrap(None)} "$@"\n')
    slow.chmod(0o755)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    harness = subprocess.Popen([sys.executable, "-c", HARNESS, owner.label(), str(slow)], env=env)
    deadline = time.monotonic() + 10
    while not proc.labelled(proc.OWNER_LABEL, owner.label()) and time.monotonic() < deadline:
        time.sleep(0.005)
    harness.send_signal(signal.SIGKILL)
    harness.wait()
    assert proc.labelled(proc.OWNER_LABEL, owner.label()), "it was killed too late or too early"
    deadline = time.monotonic() + 3
    while (left := proc.labelled(proc.OWNER_LABEL, owner.label())) and time.monotonic() < deadline:
        time.sleep(0.01)
    stuck = [Path(f"/proc/{pid}/comm").read_text().strip() for pid in left]

    async def reap() -> None:
        provider = bubblewrap.factory("bubblewrap", {})
        for ref in await provider.owned(owner.run_id):
            await provider.destroy(ref, deadline_s=D)

    asyncio.run(reap())
    assert not stuck


def count_open() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_start_that_fails_leaves_no_descriptor_open(owner: Owner) -> None:
    async def main() -> None:
        provider = bubblewrap.factory("bubblewrap", {})
        assert (await provider.preflight()).ready
        provider._made = replace(provider._lines(), bwrap="/no/such/bwrap")
        open_before = 0
        for attempt in range(4):
            with pytest.raises(CreateFailed, match="/no/such/bwrap"):
                await provider.create(SandboxSpec(), owner=owner, deadline_s=D)
            open_before = open_before if attempt else count_open()
        assert count_open() <= open_before + 3, "wakes of idle threads apart"
        for _ in range(20):
            with pytest.raises(CreateFailed):
                await provider.create(SandboxSpec(), owner=owner, deadline_s=D)
        assert count_open() <= open_before + 3
        await provider.aclose()

    asyncio.run(main())


def test_a_python_without_files_in_memory(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create")
    with local.info_file() as fd:
        assert os.fstat(fd).st_nlink == 0
    within(owner, lambda provider, sandbox: sandbox.exec(["true"], deadline_s=D))


def test_the_guest_does_not_have_the_file_for_bwraps_info(owner: Owner) -> None:
    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> set[int]:
        assert all(kind in ("pipe", "user") for pid in sandbox._members() for kind in kinds_of_open(pid))
        return sandbox._members()

    within(owner, act)


def kinds_of_open(pid: int) -> list[str]:
    """Of a process that is not bwrap itself: ``pipe``, ``user`` (its own namespace), ..."""
    if Path(f"/proc/{pid}/comm").read_text().strip() == "bwrap":
        return []
    return [str(entry.readlink()).partition(":")[0] for entry in Path(f"/proc/{pid}/fd").iterdir()]


def test_the_next_preflight_removes_what_a_killed_one_left() -> None:
    """And leaves alone what belongs to one that is under way."""
    provider = bubblewrap.factory("bubblewrap", {})
    living = this_process("preflight")
    dead = replace(living, pid=2**22 + 1, started="1")

    async def main() -> None:
        kept = await provider.create(SandboxSpec(), owner=living, deadline_s=D)
        left = await provider.create(SandboxSpec(), owner=dead, deadline_s=D)
        assert (await provider.preflight()).ready
        there = {ref.id for ref in await provider.owned("preflight")}
        assert kept.ref.id in there
        assert left.ref.id not in there
        for sandbox in (left, kept):
            await provider.destroy(sandbox.ref, deadline_s=D)

    asyncio.run(main())
