"""Create, exec, write, read, pause, resume, destroy over several sandboxes, in any order, on each local provider."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from pytest_sandboxbench.errors import SandboxGone
from pytest_sandboxbench.model import Owner, SandboxSpec
from pytest_sandboxbench.providers import bubblewrap, fake, null, proc
from pytest_sandboxbench.providers.fake_clock import run_virtual

from .machine import Lives
from .world import World

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="its processes are looked for in /proc")


def lead(world: World, examples: int, steps: int) -> None:
    class LivesHere(Lives):
        pass

    LivesHere.world = world
    run_state_machine_as_test(LivesHere, settings=settings(max_examples=examples, stateful_step_count=steps))
    assert len(world.made) >= 2 * examples


@pytest.fixture
def work_root() -> Iterator[Path]:
    """Where the guests' user can reach it: pytest's own folders are closed. At the end nothing may be left in it."""
    folder = Path(tempfile.mkdtemp(prefix="lives-", dir="/var/tmp"))
    folder.chmod(0o711)
    yield folder
    left = [path for path in folder.glob("*/*") if "~" in path.name]
    shutil.rmtree(folder)
    assert not left


def nothing_is_left(world: World) -> None:
    owners = {pid: proc.labels(pid).get(proc.OWNER_LABEL, "") for pid in proc.pids()}
    assert not [pid for pid, owner in owners.items() if owner.startswith(world.run)], "processes"
    groups = [folder for folder, _, _ in os.walk("/sys/fs/cgroup") if "/sandboxbench-" in folder]
    assert not [folder for folder in groups if folder.rpartition("-")[2] in world.made], "cgroups"


def test_a_scripted_command_does_not_outlive_its_sandbox() -> None:
    """It used to end well, after as long as it was told to take, in a sandbox that was destroyed meanwhile."""

    async def test(deadline_s: float) -> None:
        provider = fake.factory("fake", {})
        sandbox = await provider.create(SandboxSpec(), owner=Owner("run", "here", 1, "0"), deadline_s=1)
        command = asyncio.ensure_future(sandbox.exec(["sleep", "20"], deadline_s=deadline_s))
        await asyncio.sleep(1)
        await provider.destroy(sandbox.ref, deadline_s=1)
        with pytest.raises(SandboxGone):
            await command

    for deadline_s in (60, 10):
        run_virtual(test(deadline_s))


FAKE_PATHS = ("a", "b", "ä b", "/tmp/c", "/dev/shm/d")


def test_scripted_lives() -> None:
    kinds = "frozen,stopped,memory,filesystem"
    world = World(lambda run: fake.factory("fake", {"pause_kinds": kinds}), FAKE_PATHS, virtual=True, shared=False)
    lead(world, 60, 40)


def test_scripted_lives_that_processes_share(tmp_path: Path) -> None:
    world = World(
        lambda run: fake.factory("fake", {"state_dir": str(tmp_path / run)}), FAKE_PATHS, virtual=True, shared=True
    )
    lead(world, 10, 30)


@linux_only
@pytest.mark.parametrize(
    ("examples", "steps"), [(5, 12), pytest.param(40, 30, marks=pytest.mark.full)], ids=["few", "many"]
)
def test_bare_lives(work_root: Path, examples: int, steps: int) -> None:
    options = {"work_root": str(work_root)}
    world = World(lambda run: null.factory("null", options), ("a", "b", "ä b"), virtual=False, shared=True)
    try:
        lead(world, examples, steps)
    finally:
        nothing_is_left(world)


@linux_only
@pytest.mark.usefixtures("bubblewrap_ready")
@pytest.mark.parametrize(
    ("examples", "steps"), [(5, 12), pytest.param(40, 30, marks=pytest.mark.full)], ids=["few", "many"]
)
def test_bubblewrap_lives(work_root: Path, examples: int, steps: int) -> None:
    options = {"work_root": str(work_root)}
    paths = ("a", "b", "ä b", "/tmp/c", "/dev/shm/d")
    world = World(lambda run: bubblewrap.factory("bubblewrap", options), paths, virtual=False, shared=True)
    try:
        lead(world, examples, steps)
    finally:
        nothing_is_left(world)
