"""What the tests of real providers share: an owner of their own, and a look for what they left behind."""

from __future__ import annotations

import os
import socket
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_sandboxbench.model import Owner
from pytest_sandboxbench.providers import proc


def is_own(path: Path) -> bool:
    """The folders of somebody else's sandboxes cannot be seen."""
    try:
        return path.is_dir() and path.stat().st_uid == os.geteuid()
    except FileNotFoundError:
        return False


def stray_cgroups() -> set[str]:
    """Empty groups of sandboxes that have no folder (any more): others may run some at the same time."""
    found: set[str] = set()
    live = {path.name.rpartition("~")[2] for path in Path("/var/tmp").glob("sandboxbench-*/*/*~*")}
    for line in Path("/proc/self/mountinfo").read_text().splitlines() if sys.platform == "linux" else []:
        if " - cgroup" in line:
            root = Path(line.split()[4])
            # Not `rglob`: the tests of another worker may remove a group in the middle of the walk, and that it raises.
            there = [Path(at, name) for at, folders, _ in os.walk(root) for name in folders]
            own = [path for path in there if path.name.startswith("sandboxbench-") and is_own(path)]
            names = {str(path): path.name.partition("-")[2] for path in own}
            found.update(path for path, name in names.items() if name not in live and not name.startswith("probe"))
    return {path for path in found if is_empty(Path(path))}


def is_empty(group: Path) -> bool:
    try:
        return not (group / "cgroup.procs").read_text()
    except OSError:
        return False


@pytest.fixture
def owner() -> Iterator[Owner]:
    """An owner that nobody else has. Afterwards nothing of it may be left: process, folder or cgroup."""
    pid = os.getpid()
    strays = stray_cgroups()
    owner = Owner(f"test-{uuid.uuid4().hex[:8]}", socket.gethostname(), pid, proc.start_time(pid) or "0")
    yield owner
    processes = [
        (pid, found) for pid in proc.pids() if (found := proc.labels(pid)).get(proc.OWNER_LABEL) == owner.label()
    ]
    assert not processes, "processes"
    folders = [str(path) for path in Path("/var/tmp").glob("sandboxbench-*/*/*") if owner.run_id in path.name]
    assert not folders
    left = stray_cgroups() - strays
    # Somebody else's may be just about to get its folder, or to go.
    deadline = time.monotonic() + 5
    while left := left & stray_cgroups():
        assert time.monotonic() < deadline, f"cgroups {left}"
        time.sleep(0.1)


@pytest.fixture(scope="session")
def bubblewrap_ready() -> None:
    """Skips, with the reason, where bubblewrap cannot run."""
    import asyncio

    from pytest_sandboxbench.providers import bubblewrap

    found = asyncio.run(bubblewrap.factory("bubblewrap", {}).preflight())
    if not found.ready:
        pytest.skip(f"{found.reason}: {found.cure}")


@pytest.fixture
def left_behind(owner: Owner) -> Iterator[list[int]]:
    """Pids that have to be gone at the end."""
    pids: list[int] = []
    yield pids
    # The first process of a namespace ends when all its zombies are collected, some of them by the host's init.
    deadline = time.monotonic() + 5
    while alive := [pid for pid in pids if proc.state(pid) not in ("", "Z", "X")]:
        assert time.monotonic() < deadline, alive
        time.sleep(0.01)
