"""Which cgroups may be used, on trees that look like v1, v2 and mixed hosts; and the writes that go there."""

from __future__ import annotations

import os
import resource
import shutil
import time
from pathlib import Path

import pytest

from pytest_sandboxbench.providers import cgroups
from pytest_sandboxbench.providers.cgroups import CannotLimit, CgroupHost, Freezer, Limits, remove_group

FILES = {
    "memory": {"memory.limit_in_bytes": "max", "memory.memsw.limit_in_bytes": "max"},
    "pids": {"pids.max": "max"},
    "cpu": {"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000"},
    "freezer": {"freezer.state": "THAWED"},
}
V2_FILES = {
    "cgroup.procs": "",
    "cgroup.freeze": "0",
    "cgroup.events": "populated 0\nfrozen 0\n",
    "cgroup.type": "domain",
    "cgroup.controllers": "",
    "cgroup.subtree_control": "",
}
V2_CONTROLLED = {
    "memory": {"memory.max": "max", "memory.swap.max": "max"},
    "pids": {"pids.max": "max"},
    "cpu": {"cpu.max": "max 100000"},
}


class Tree:
    """A cgroup file system made of folders: what is made in it gets the kernel's files, and is removed with them."""

    def __init__(self, top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.top = top
        self.proc = top / "proc"
        self.proc.mkdir()
        self.mounts: list[str] = []
        self.own: list[str] = []
        self.versions: dict[Path, str] = {}
        mkdir, rmdir = Path.mkdir, Path.rmdir

        def make(path: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
            new = not path.exists()
            mkdir(path, mode, parents, exist_ok)
            if new:
                self.fill(path)

        def remove(path: Path) -> None:
            if any(child.is_dir() for child in path.iterdir()):
                rmdir(path)
            shutil.rmtree(path)

        monkeypatch.setattr(Path, "mkdir", make)
        monkeypatch.setattr(Path, "rmdir", remove)

    def v1(self, controller: str, own: str = "/", root: str = "/") -> Path:
        top = self.top / controller
        self.versions[top] = controller
        top.mkdir()
        self.mounts.append(f"30 25 0:26 {root} {top} rw shared:9 - cgroup cgroup rw,{controller}")
        self.own.append(f"{len(self.own) + 1}:{controller}:{own}")
        return top

    def v2(self, own: str = "/", controllers: str = "", enabled: str = "", root: str = "/") -> Path:
        top = self.top / "v2"
        self.versions[top] = "v2"
        top.mkdir()
        (top / "cgroup.type").unlink()
        (top / "cgroup.controllers").write_text(controllers)
        (top / "cgroup.subtree_control").write_text(enabled)
        self.mounts.append(f"31 25 0:27 {root} {top} rw shared:10 - cgroup2 cgroup2 rw,nsdelegate")
        self.own.append(f"0::{own}")
        return top

    def fill(self, path: Path) -> None:
        top = next((top for top in self.versions if path == top or top in path.parents), None)
        if top is None:
            return
        kind = self.versions[top]
        files = V2_FILES if kind == "v2" else {"tasks": "", "cgroup.procs": "", **FILES.get(kind, {})}
        for name, text in files.items():
            (path / name).write_text(text)
        if kind == "v2" and path != top:
            enabled = (path.parent / "cgroup.subtree_control").read_text().replace("+", "").split()
            (path / "cgroup.controllers").write_text(" ".join(enabled))
            for controller in enabled:
                for name, text in V2_CONTROLLED.get(controller, {}).items():
                    (path / name).write_text(text)

    def discover(self, versions: tuple[int, ...] = (1, 2)) -> CgroupHost:
        (self.proc / "mountinfo").write_text("\n".join(["1 0 8:1 / / rw - ext4 /dev/sda rw", *self.mounts]) + "\n")
        (self.proc / "cgroup").write_text("\n".join(self.own) + "\n")
        return CgroupHost.discover(versions, self.proc)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    return Tree(tmp_path, monkeypatch)


def forbid(monkeypatch: pytest.MonkeyPatch, *paths: Path) -> None:
    """These cannot be written. Not by permissions: the tests may run as root."""
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode, **more: Path(path) not in paths and access(path, mode, **more))


def test_a_host_without_cgroups(tree: Tree) -> None:
    host = tree.discover()
    assert (host.mode, host.limits, host.freezer("a", Limits())) == ("none", frozenset(), None)
    with pytest.raises(CannotLimit) as caught:
        host.limit("a", {"pids": 5})
    assert "allow_unenforced" in caught.value.cure


def test_v1_each_controller_has_its_own_place(tree: Tree) -> None:
    tops = {name: tree.v1(name) for name in ("freezer", "memory", "pids", "cpu")}
    host = tree.discover()
    assert host.mode == "v1"
    assert host.limits == {"memory_mib", "pids", "vcpus"}
    limits = host.limit("a", {"memory_mib": 64, "pids": 16, "vcpus": 0.5})
    groups = {name: top / "sandboxbench-a" for name, top in tops.items()}
    assert (groups["memory"] / "memory.limit_in_bytes").read_text() == str(64 << 20)
    assert (groups["memory"] / "memory.memsw.limit_in_bytes").read_text() == str(64 << 20)
    assert (groups["pids"] / "pids.max").read_text() == "16"
    assert (groups["cpu"] / "cpu.cfs_quota_us").read_text() == "50000"
    assert set(limits.joins) == {groups[name] / "guest" / "tasks" for name in ("memory", "pids", "cpu")}
    for group in limits.groups:
        remove_group(group)
    assert not list(tree.top.glob("*/sandboxbench-*"))


def test_v1_below_our_own_group_where_it_is_writable(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    top = tree.v1("memory", own="/harness")
    (top / "harness").mkdir()
    assert tree.discover().places["memory_mib"].parent == top / "harness"
    forbid(monkeypatch, top / "harness")
    assert tree.discover().places["memory_mib"].parent == top
    forbid(monkeypatch, top, top / "harness")
    assert not tree.discover().places


def test_a_mount_of_a_part_of_the_hierarchy(tree: Tree) -> None:
    top = tree.v1("pids", own="/docker/abc/inner", root="/docker/abc")
    (top / "inner").mkdir()
    assert tree.discover().places["pids"].parent == top / "inner"


@pytest.mark.parametrize("own", ["/../outside", "/elsewhere"])
def test_a_group_outside_of_what_is_mounted(tree: Tree, own: str) -> None:
    top = tree.v1("pids", own=own, root="/docker/abc")
    assert tree.discover().places["pids"].parent == top


def test_v2_at_the_root_switches_controllers_on(tree: Tree) -> None:
    top = tree.v2(controllers="cpu memory pids", enabled="memory")
    host = tree.discover()
    assert host.mode == "v2"
    assert host.limits == {"memory_mib", "pids", "vcpus"}
    assert (top / "cgroup.subtree_control").read_text() == "memory", "looking changes nothing"
    limits = host.limit("a", {"pids": 16})
    assert (top / "cgroup.subtree_control").read_text() == "+pids"
    assert limits.v2_group == top / "sandboxbench-a"
    assert (top / "sandboxbench-a" / "pids.max").read_text() == "16"
    assert limits.joins == (top / "sandboxbench-a" / "guest" / "cgroup.procs",)


def test_v2_all_limits_in_one_group_that_is_also_frozen(tree: Tree) -> None:
    top = tree.v2(own="/user", controllers="cpu memory pids", enabled="cpu memory pids")
    (top / "user").mkdir()
    host = tree.discover()
    assert host.places["freezer"].parent == top / "user"
    limits = host.limit("a", {"memory_mib": 1.5, "pids": 9, "vcpus": 2})
    group = top / "sandboxbench-a"
    assert limits.groups == (group,)
    assert (group / "memory.max").read_text() == str(3 << 19)
    assert (group / "memory.swap.max").read_text() == "0"
    assert (group / "cpu.max").read_text() == "200000 100000"
    freezer = host.freezer("a", limits)
    assert freezer is not None
    assert (freezer.group, freezer.inner) == (group, group / "guest")
    assert host.freezer("b", Limits()) == Freezer(
        top / "user" / "sandboxbench-b", 2, top / "user" / "sandboxbench-b", top / "user"
    )


def test_v2_below_a_group_that_does_not_pass_controllers_on(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    top = tree.v2(own="/user", controllers="memory")
    (top / "user").mkdir()
    forbid(monkeypatch, top, top / "cgroup.procs")
    host = tree.discover()
    assert host.limits == frozenset()
    assert host.places["freezer"].parent == top / "user"


def test_v2_needs_the_common_group_writable(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    top = tree.v2(controllers="memory")
    forbid(monkeypatch, top / "cgroup.procs")
    assert not tree.discover().places


def test_mixed_v1_limits_and_a_v2_freezer(tree: Tree) -> None:
    tree.v1("memory")
    top = tree.v2()
    host = tree.discover()
    assert host.mode == "v1+v2"
    assert host.limits == {"memory_mib"}
    limits = host.limit("a", {"memory_mib": 5})
    freezer = host.freezer("a", limits)
    assert freezer is not None
    assert freezer.group == top / "sandboxbench-a"


def test_v1_is_preferred_and_can_be_excluded(tree: Tree) -> None:
    tree.v1("freezer")
    tree.v2()
    assert tree.discover().places["freezer"].version == 1
    assert tree.discover((2,)).places["freezer"].version == 2
    assert not tree.discover(()).places


def test_a_limit_that_the_kernel_refuses_leaves_nothing(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.v1("memory")
    tree.v1("pids")
    host = tree.discover()
    write = Path.write_text

    def refuse(path: Path, text: str) -> int:
        if path.name == "pids.max" and text == "9":
            raise OSError(22, "Invalid argument", str(path))
        return write(path, text)

    monkeypatch.setattr(Path, "write_text", refuse)
    with pytest.raises(CannotLimit, match="Invalid argument"):
        host.limit("a", {"memory_mib": 5, "pids": 9})
    assert not list(tree.top.glob("*/sandboxbench-*"))


def test_probing_drops_what_does_not_work_and_leaves_nothing(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.v1("memory")
    tree.v1("freezer")
    host = tree.discover()
    assert host.probed("x") == host
    monkeypatch.setitem(FILES, "freezer", {})
    assert set(host.probed("x").places) == {"memory_mib"}
    assert not list(tree.top.glob("*/sandboxbench-*"))


def test_freezing_takes_in_what_is_born_meanwhile(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    top = tree.v2()
    freezer = Freezer(top / "sandboxbench-a", 2, top / "sandboxbench-a")
    joined: list[str] = []
    looks = iter([{1}, {1, 2}, {1, 2}, {1, 2, 3}, {1, 2, 3}])
    write = Path.write_text

    def kernel(path: Path, text: str) -> int:
        if path.name == "cgroup.procs" and text:
            joined.append(text)
            text = "".join(f"{pid}\n" for pid in joined)
        if path.name == "cgroup.freeze":
            write(path.parent / "cgroup.events", f"populated 1\nfrozen {text}\n")
        return write(path, text)

    monkeypatch.setattr(Path, "write_text", kernel)
    freezer.gather(lambda: next(looks))
    assert joined == ["1", "2"]
    assert freezer.freeze(lambda: next(looks), lambda: False, time.monotonic() + 5)
    assert joined == ["1", "2", "3"]
    freezer.thaw()
    assert (freezer.group / "cgroup.freeze").read_text() == "0"


def test_a_freeze_that_does_not_come_ends_at_the_deadline_or_when_cancelled(tree: Tree) -> None:
    top = tree.v1("freezer")
    freezer = Freezer(top / "sandboxbench-a", 1, top / "sandboxbench-a", top)
    freezer.make()
    (freezer.group / "freezer.state").unlink()
    (freezer.group / "freezer.state").symlink_to("/dev/null")
    start = time.monotonic()
    assert not freezer.freeze(set, lambda: False, start + 0.05)
    assert not freezer.freeze(set, lambda: True, start + 50)
    assert time.monotonic() - start < 1


def test_only_groups_of_ours_are_removed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        remove_group(tmp_path)
    remove_group(tmp_path / "sandboxbench-gone")


def test_a_busy_group_is_tried_again(tmp_path: Path) -> None:
    group = tmp_path / "sandboxbench-a"
    (group / "busy").mkdir(parents=True)
    with pytest.raises(OSError, match="not empty"):
        remove_group(group, 0.02)


def test_thaw_takes_anything(tmp_path: Path) -> None:
    cgroups.thaw(tmp_path / "sandboxbench-gone")
    (tmp_path / "freezer.state").write_text("FROZEN")
    (tmp_path / "cgroup.freeze").write_text("1")
    cgroups.thaw(tmp_path)
    assert (tmp_path / "freezer.state").read_text() == "THAWED"
    assert (tmp_path / "cgroup.freeze").read_text() == "0"


def test_a_thread_comes_back_where_no_descriptor_is_left(tmp_path: Path) -> None:
    """It would stay in the group, which could not be removed then, and be frozen with it."""
    inner, home = tmp_path / "sandboxbench-a", tmp_path / "home"
    for folder in (inner, home):
        folder.mkdir()
        (folder / "tasks").write_text("")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        with Freezer(inner, 1, inner, home).born_inside():
            assert (inner / "tasks").read_text() == "0"
            assert (home / "tasks").read_text() == ""
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
            with pytest.raises(OSError, match="Too many open files"):
                (home / "tasks").read_text()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert (home / "tasks").read_text() == "0"
