"""Control groups for local sandboxes: which limits and which freezer this process may use, and using them.

Both versions: v1 with a hierarchy for each controller, v2 with one for all, and the mixture of both (a v2 mount for
nothing but the freezer beside v1 controllers). A sandbox gets a group ``sandboxbench-ID`` where it needs one, with
the limits, and inside it a group ``guest`` for its processes: a guest that mounts its own cgroup namespace sees only
the inner one, and cannot lift the limits of the outer.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .cgroup_limits import limit_file, limits_in, set_limit

__all__ = [
    "CannotLimit",
    "CgroupHost",
    "Freezer",
    "Limits",
    "Place",
    "group_name",
    "groups_of_process",
    "remove_group",
    "thaw",
]

PREFIX = "sandboxbench-"
_LEAF = "guest"
_CONTROLLERS = {"freezer": "freezer", "memory_mib": "memory", "pids": "pids", "vcpus": "cpu"}


class CannotLimit(Exception):
    """A limit cannot be set here; says why in words, and what to do."""

    def __init__(self, limit: str, reason: str, cure: str) -> None:
        self.limit = limit
        self.reason = reason
        self.cure = cure
        super().__init__(limit, reason, cure)


def group_name(sandbox: str) -> str:
    return PREFIX + sandbox


@dataclass(frozen=True, slots=True)
class Place:
    """Below ``parent`` this process may make groups; it stands in ``home``. ``version`` is the hierarchy's."""

    version: int
    parent: Path
    home: Path

    def group(self, sandbox: str) -> Path:
        return self.parent / group_name(sandbox)


@dataclass(frozen=True, slots=True)
class Limits:
    """Groups with limits, made for one sandbox: every process of it has to join each of ``joins``."""

    v1_groups: tuple[Path, ...] = ()
    v2_group: Path | None = None

    @property
    def groups(self) -> tuple[Path, ...]:
        return self.v1_groups if self.v2_group is None else (*self.v1_groups, self.v2_group)

    @property
    def joins(self) -> tuple[Path, ...]:
        """Files that a process without threads writes 0 to. ``tasks`` where there is one.

        Joining by ``cgroup.procs`` waits for a grace period of the kernel, about 10 ms, unless somebody just did.
        """
        last = () if self.v2_group is None else (self.v2_group / _LEAF / "cgroup.procs",)
        return (*(group / _LEAF / "tasks" for group in self.v1_groups), *last)

    def enforced(self) -> dict[str, str]:
        """What the groups say now: the name of each limit in force and its value."""
        found: dict[str, str] = {}
        for group in self.groups:
            found.update(limits_in(group, 2 if group == self.v2_group else 1))
        return dict(sorted(found.items()))


@dataclass(frozen=True)
class CgroupHost:
    """What this process may do with cgroups. ``places`` by purpose: ``freezer`` and the names of limits."""

    places: Mapping[str, Place] = field(default_factory=dict)

    @classmethod
    def discover(cls, versions: Iterable[int] = (1, 2), proc_self: Path = Path("/proc/self")) -> CgroupHost:
        """By reading only. v1 comes first: its groups can be joined without waiting for the kernel."""
        places: dict[str, Place] = {}
        mounts = list(_mounts(proc_self))
        for version in versions:
            for controllers, parents in (mount[1:] for mount in mounts if mount[0] == version):
                for purpose, controller in _CONTROLLERS.items():
                    if purpose in places or (version == 1 and controller not in controllers):
                        continue
                    allowed = _v1_allowed if version == 1 else _v2_allowed(purpose, controller)
                    parent = next(filter(allowed, parents), None)
                    if parent is not None:
                        places[purpose] = Place(version, parent, parents[0])
        return cls(places)

    @property
    def limits(self) -> frozenset[str]:
        return frozenset(self.places) - {"freezer"}

    @property
    def mode(self) -> str:
        """For the facts: ``v1``, ``v2``, ``v1+v2`` or ``none``."""
        return (
            "+".join(f"v{version}" for version in sorted({place.version for place in self.places.values()})) or "none"
        )

    def probed(self, name: str) -> CgroupHost:
        """Only what really works: a group is made and removed in every place."""
        good = dict(self.places)
        for purpose, place in self.places.items():
            group = place.group(f"{name}-{purpose}")
            try:
                if purpose == "freezer":
                    Freezer(group, place.version, group).make()
                else:
                    _enable(place, purpose)
                    _make(group)
                    if not (group / limit_file(purpose, place.version)).exists():
                        raise FileNotFoundError(errno.ENOENT, "no limit", str(group))
            except OSError:
                del good[purpose]
            finally:
                with contextlib.suppress(OSError):
                    remove_group(group)
        return CgroupHost(good)

    def limit(self, sandbox: str, asked: Mapping[str, float]) -> Limits:
        """Make the groups for the limits that were asked for. ``CannotLimit``, with nothing left behind."""
        groups: dict[Path, int] = {}
        try:
            for name, amount in asked.items():
                place = self.places.get(name)
                if place is None:
                    raise CannotLimit(name, "no cgroup hierarchy for it is writable here", _cure(name))
                group = place.group(sandbox)
                try:
                    groups[group] = place.version
                    _enable(place, name)
                    _make(group)
                    set_limit(group, name, place.version, amount)
                except OSError as error:
                    raise CannotLimit(name, f"{error.strerror}: {error.filename}", _cure(name)) from error
        except CannotLimit:
            for group in groups:
                remove_group(group)
            raise
        v1_groups = tuple(group for group, version in groups.items() if version == 1)
        return Limits(v1_groups, next((group for group, version in groups.items() if version == 2), None))

    def freezer(self, sandbox: str, limits: Limits) -> Freezer | None:
        """The freezer of one sandbox; its group is not made yet, unless it is the v2 group with its limits."""
        place = self.places.get("freezer")
        if place is None:
            return None
        if place.version == 2 and limits.v2_group is not None:
            return Freezer(limits.v2_group, 2, limits.v2_group / _LEAF)
        group = place.group(sandbox)
        return Freezer(group, place.version, group, place.home)

    def groups_of(self, sandbox: str) -> set[Path]:
        """Where a group of this sandbox would be, made by a process that stood where we stand."""
        return {place.group(sandbox) for place in self.places.values()}


def _cure(limit: str) -> str:
    return (
        f"run as root, or under `systemd-run --user --scope -p Delegate=yes`, leave {limit} out, "
        "or allow it to be unenforced (allow_unenforced)"
    )


def _make(group: Path) -> None:
    group.mkdir(exist_ok=True)
    (group / _LEAF).mkdir(exist_ok=True)


@dataclass(frozen=True, slots=True)
class Freezer:
    """Freezes everything in ``group``; ``inner``, that or a group inside, is where processes are.

    v1: they are born there (:meth:`born_inside`), which costs nothing. v2: they join when they are to be frozen,
    because joining waits for a grace period of the kernel, and a create or an exec should not.
    """

    group: Path
    version: int
    inner: Path
    home: Path | None = None

    def make(self) -> None:
        self.group.mkdir(exist_ok=True)
        file = self.group / ("freezer.state" if self.version == 1 else "cgroup.freeze")
        if not file.exists():
            raise FileNotFoundError(errno.ENOENT, "no freezer", str(file))

    @contextlib.contextmanager
    def born_inside(self) -> Iterator[None]:
        """What the calling *thread* starts meanwhile is born in the group: with v1, threads move one by one.

        The group must not be frozen meanwhile, or the thread is.
        """
        if self.version != 1 or self.home is None:
            yield
            return
        # The way back is open before the thread leaves: a process that has no descriptor left would never find it.
        home = os.open(self.home / "tasks", os.O_WRONLY | os.O_CLOEXEC)
        try:
            (self.inner / "tasks").write_text("0")
            try:
                yield
            finally:
                os.write(home, b"0")
        finally:
            os.close(home)

    def gather(self, members: Callable[[], set[int]]) -> None:
        """v2: take in every process, until a look finds no new one."""
        if self.version == 2:
            self.make()
            while self._take_in(members()):
                pass

    def freeze(self, members: Callable[[], set[int]], cancelled: Callable[[], bool], deadline: float) -> bool:
        """Freeze, and wait until the kernel says so. False at the deadline or when cancelled: thaw it then."""
        self._write(frozen=True)
        pause_s = 0.00005
        while True:
            # What was born outside while the others joined is found now: its parents do not run any more.
            if self.frozen() and (self.version == 1 or self._take_in(members()) == 0):
                return True
            if cancelled() or time.monotonic() > deadline:
                return False
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, 0.001)

    def _take_in(self, members: set[int]) -> int:
        procs = self.inner / "cgroup.procs"
        new = members - set(map(int, procs.read_text().split()))
        for pid in new:
            with contextlib.suppress(ProcessLookupError):
                procs.write_text(str(pid))
        return len(new)

    def frozen(self) -> bool:
        if self.version == 1:
            return (self.group / "freezer.state").read_text().strip() == "FROZEN"
        return "frozen 1" in (self.group / "cgroup.events").read_text()

    def _write(self, *, frozen: bool) -> None:
        if self.version == 1:
            (self.group / "freezer.state").write_text("FROZEN" if frozen else "THAWED")
        else:
            (self.group / "cgroup.freeze").write_text("1" if frozen else "0")

    def thaw(self) -> None:
        if self.group.exists():
            self._write(frozen=False)


def groups_of_process(pid: int, sandbox: str) -> set[Path]:
    """The groups of ours that a process of the sandbox is in, found without knowing who made them."""
    found: set[Path] = set()
    for _, _, chain in _mounts(Path("/proc/self"), Path(f"/proc/{pid}/cgroup")):
        found.update(group for group in chain if group.name == group_name(sandbox))
    return found


def thaw(group: Path) -> None:
    """Thaw a group of either version; one that is not there, or no freezer, is thawed."""
    for name, word in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
        with contextlib.suppress(OSError):
            if (group / name).exists():
                (group / name).write_text(word)


def remove_group(group: Path, timeout_s: float = 2.0) -> None:
    """Remove a group of ours and the one inside. Right after its last process ended it is busy for some ms."""
    assert group.name.startswith(PREFIX)
    deadline = time.monotonic() + timeout_s
    pause_s = 0.0001
    for path in (group / _LEAF, group):
        while True:
            try:
                path.rmdir()
            except FileNotFoundError:
                pass
            except OSError:
                if time.monotonic() < deadline:
                    time.sleep(pause_s)
                    pause_s = min(pause_s * 2, 0.005)
                    continue
                raise
            break


def _mounts(proc_self: Path, membership: Path | None = None) -> Iterable[tuple[int, frozenset[str], list[Path]]]:
    """Version, controllers and, nearest first, the groups from our own up to the root of each mounted hierarchy."""
    own: dict[str, str] = {}
    try:
        for line in (membership or proc_self / "cgroup").read_text().splitlines():
            if line.count(":") < 2:
                continue
            _, controllers, path = line.split(":", 2)
            own.update(dict.fromkeys(controllers.split(","), path))
        mounts = (proc_self / "mountinfo").read_text().splitlines()
    except OSError:
        return
    for line in mounts:
        left, _, right = line.partition(" - ")
        kind, _source, options = right.split(" ", 2)
        if kind not in ("cgroup", "cgroup2"):
            continue
        root, top = left.split()[3], Path(left.split()[4])
        names = frozenset(options.split(",")) if kind == "cgroup" else frozenset({""})
        if not names & own.keys():
            continue
        path = own[next(iter(names & own.keys()))]
        here = top
        with contextlib.suppress(ValueError):
            if ".." not in path:
                here = top / Path(path).relative_to(root)
        chain = [here, *here.parents]
        yield (1 if kind == "cgroup" else 2), names, chain[: chain.index(top) + 1]


def _v1_allowed(parent: Path) -> bool:
    return os.access(parent, os.W_OK | os.X_OK)


def _v2_allowed(purpose: str, controller: str) -> Callable[[Path], bool]:
    def allowed(parent: Path) -> bool:
        # To move a process, the group that holds both its old and its new place has to be writable.
        if not os.access(parent, os.W_OK | os.X_OK) or not os.access(parent / "cgroup.procs", os.W_OK):
            return False
        return purpose == "freezer" or _v2_enabled(parent, controller)

    return allowed


def _v2_enabled(parent: Path, controller: str) -> bool:
    """Are groups below ``parent`` limited by ``controller``, or could they be?"""
    try:
        if controller in (parent / "cgroup.subtree_control").read_text().split():
            return True
        return _is_v2_root(parent) and controller in (parent / "cgroup.controllers").read_text().split()
    except OSError:
        return False


def _is_v2_root(group: Path) -> bool:
    return not (group / "cgroup.type").exists()


def _enable(place: Place, name: str) -> None:
    """Switch a v2 controller on at the hierarchy's root, where it is not yet.

    Only there: a group with processes of its own cannot pass controllers on, and other groups are somebody else's.
    """
    if place.version == 2 and _is_v2_root(place.parent):
        control = place.parent / "cgroup.subtree_control"
        if _CONTROLLERS[name] not in control.read_text().split():
            control.write_text(f"+{_CONTROLLERS[name]}")
