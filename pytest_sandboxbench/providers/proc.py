"""What ``/proc`` says about processes: start time, labels, descendants. Every answer may be out of date at once.

A pid alone names nobody: it is used again. A process is ``(pid, start time)``, and one of ours also carries our
labels in its environment.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from ..model import Owner

__all__ = [
    "EXEC_LABEL",
    "OWNER_LABEL",
    "PROVIDER_LABEL",
    "SANDBOX_LABEL",
    "descendants",
    "is_namespace_init",
    "kill_labelled",
    "kill_tree",
    "labelled",
    "labels",
    "labels_for",
    "lives",
    "sandboxes",
    "start_time",
    "state",
    "wait_gone",
    "wait_group_gone",
]

OWNER_LABEL = "SANDBOXBENCH_OWNER"
SANDBOX_LABEL = "SANDBOXBENCH_SANDBOX"
EXEC_LABEL = "SANDBOXBENCH_EXEC"
PROVIDER_LABEL = "SANDBOXBENCH_PROVIDER"

_PF_EXITING = 0x4


def labels_for(owner: Owner, provider: str, sandbox: str) -> dict[str, str]:
    """The environment variables by which a process of ours is known, whoever looks for it."""
    return {OWNER_LABEL: owner.label(), PROVIDER_LABEL: provider, SANDBOX_LABEL: sandbox}


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the third on (state first): the second may hold spaces and brackets."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].decode().split()
    except (OSError, ValueError):
        return []


def start_time(pid: int) -> str | None:
    """In clock ticks since boot, as text; ``None`` when there is no such process."""
    fields = _stat(pid)
    return fields[19] if len(fields) > 19 else None


def state(pid: int) -> str:
    """``R``, ``S``, ``D``, ``T``, ``Z``...; empty when there is no such process."""
    fields = _stat(pid)
    return fields[0] if fields else ""


def lives(pid: int, started: str) -> bool:
    """Is this process there, and not about to end? The first one of a namespace takes the others along first."""
    fields = _stat(pid)
    return len(fields) > 19 and fields[19] == started and fields[0] not in "ZX" and not int(fields[6]) & _PF_EXITING


def labels(pid: int) -> dict[str, str]:
    """Our labels in the environment of a process; empty when it has none, is gone or is somebody else's."""
    try:
        raw = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    if b"SANDBOXBENCH_" not in raw:
        return {}
    pairs = (item.decode("utf-8", "replace").partition("=") for item in raw.split(b"\0"))
    return {key: value for key, _, value in pairs if key.startswith("SANDBOXBENCH_")}


def _status(pid: int, key: str) -> list[str]:
    """The values of a line of /proc/PID/status; none when there is no such line or process."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return []
    return next((line.split()[1:] for line in status.splitlines() if line.startswith(f"{key}:")), [])


def is_namespace_init(pid: int) -> bool:
    """Is it the first process of a pid namespace below ours?"""
    found = _status(pid, "NSpid")
    return len(found) > 1 and found[-1] == "1"


def sandboxes(provider: str, uids: Collection[int]) -> Iterator[tuple[int, dict[str, str]]]:
    """Processes of sandboxes of a kind with their labels: those of these users only, root could read everybody's."""
    for pid in pids():
        found = labels(pid)
        if found.get(PROVIDER_LABEL) == provider and SANDBOX_LABEL in found:
            uid = next(iter(_status(pid, "Uid")), "")
            if uid.isdecimal() and int(uid) in uids:
                yield pid, found


def pids() -> Iterator[int]:
    if sys.platform == "linux":
        yield from (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def labelled(key: str, value: str) -> list[int]:
    """Every live process with this label; zombies have no environment and do not count."""
    return [pid for pid in pids() if labels(pid).get(key) == value]


def children(pid: int) -> set[int]:
    """Children belong to the thread that started them, so all threads are asked."""
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                found.update(map(int, (thread / "children").read_bytes().split()))
    return found


def descendants(roots: Iterable[int]) -> set[int]:
    """All processes below ``roots``, without the roots themselves."""
    found: set[int] = set()
    todo = list(roots)
    while todo:
        for child in children(todo.pop()):
            if child not in found:
                found.add(child)
                todo.append(child)
    return found


def send(targets: Iterable[int], number: int) -> None:
    for pid in targets:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def kill_labelled(key: str, value: str, *, below: int | None = None, spare: int | None = None) -> None:
    """Kill every process with this label, and all below process ``below`` whatever their labels; never ``spare``.

    ``below`` itself only by its label.

    Repeats until a look finds none: what is being killed may start others meanwhile.
    """
    deadline = time.monotonic() + 1.0
    while time.monotonic() < deadline:
        targets = set(labelled(key, value))
        if below is not None:
            targets |= {pid for pid in descendants([below]) if state(pid) not in ("Z", "")}
        targets -= {spare}
        if not targets:
            return
        send(targets, signal.SIGKILL)
        time.sleep(0.001)


def kill_tree(key: str, value: str, root: int) -> None:
    """As ``kill_labelled`` below ``root``, for a child of ours that starts a sandbox: it is stopped first.

    What it starts between a look and its own death would be nobody's child, and, as long as it is changing its user
    namespace, its labels can be read by nobody but root.
    """
    send([root], signal.SIGSTOP)
    deadline = time.monotonic() + 0.1
    while state(root) not in ("T", "Z", "X", "") and time.monotonic() < deadline:
        time.sleep(0.0002)
    send(descendants([root]), signal.SIGKILL)
    kill_labelled(key, value, below=root)


def wait_gone(pid: int, started: str | None, timeout_s: float) -> bool:
    """Wait until the process is gone (or only a zombie that its parent has to collect). False on a timeout."""
    deadline = time.monotonic() + timeout_s
    while start_time(pid) == started and state(pid) not in ("Z", "X", ""):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.0005)
    return True


def wait_group_gone(group: int, timeout_s: float) -> bool:
    """Wait until nothing of a killed process group runs. Zombies that somebody else has to collect do not count."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            os.killpg(group, 0)
        except (ProcessLookupError, PermissionError):
            return True
        if not any(fields[2] == str(group) and fields[0] not in "ZX" for pid in pids() if (fields := _stat(pid))):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.0005)
