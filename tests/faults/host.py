"""What is on this host of a case: processes, mounts, cgroups, sockets, files, ledgers, a scripted provider's table."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path

from pytest_sandboxbench.providers import proc
from pytest_sandboxbench.providers.cgroups import PREFIX

__all__ = ["Host"]

_SETTLES_S = 20.0
_PYTEST_OWN = ("pytest-of-", "pytest-current")


class Host:
    """Made before the case begins. What belongs to a case has its folder in its environment, arguments or mounts.

    Others use this host at the same time: a cgroup without processes counts only when it stays.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._cgroups = set(_cgroups())
        self._spared = _with_parents(os.getpid())

    def left(self, runs: Iterable[str] = ()) -> list[str]:
        """Everything that is there now, one line each, the most telling first."""
        return [
            *self.processes(set(runs)),
            *self.mounts(),
            *self.cgroups(),
            *self.sockets(),
            *self.files(),
            *self.ledgers(),
            *self.table(),
        ]

    def settled(self, runs: Iterable[str] = ()) -> list[str]:
        """What stays: empty as soon as nothing is there."""
        until = time.monotonic() + _SETTLES_S
        known = list(runs)
        stays: set[str] | None = None
        while True:
            found = self.left(known)
            stays = set(found) if stays is None else stays & set(found)
            if not found or time.monotonic() > until or (not stays and time.monotonic() > until - _SETTLES_S + 5):
                return [line for line in found if line in stays]
            time.sleep(0.05)

    def processes(self, runs: set[str]) -> list[str]:
        found = []
        for pid in proc.pids():
            if pid in self._spared:
                continue
            texts = [_read(f"/proc/{pid}/{name}") for name in ("environ", "cmdline", "mountinfo")]
            owner = proc.labels(pid).get(proc.OWNER_LABEL, "").partition("/")[0]
            if owner in runs or any(os.fsencode(self._folder) in text for text in texts):
                words = texts[1].replace(b"\0", b" ").decode(errors="replace")[:100]
                found.append(f"process {pid} ({proc.state(pid)}): {words}")
        return found

    def mounts(self) -> list[str]:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        return [f"mount {line.split()[4]}" for line in lines if str(self._folder) in line]

    def cgroups(self) -> list[str]:
        found = []
        for group in set(_cgroups()) - self._cgroups:
            files = [Path(folder, "cgroup.procs") for folder, _, _ in os.walk(group)]
            members = {int(pid) for file in files for pid in _read(file).split() if pid.isdigit()}
            if not members or any(os.fsencode(self._folder) in _read(f"/proc/{pid}/mountinfo") for pid in members):
                found.append(f"cgroup {group}")
        return found

    def sockets(self) -> list[str]:
        lines = _read("/proc/net/unix").decode(errors="replace").splitlines()
        return [f"socket {line.split()[-1]}" for line in lines if str(self._folder) in line]

    def files(self) -> list[str]:
        temporary = [p for p in (self._folder / "tmp").glob("*") if not p.name.startswith(_PYTEST_OWN)]
        return [f"file {path}" for path in [*temporary, *(self._folder / "work").glob("*/*~*")]]

    def ledgers(self) -> list[str]:
        return [f"ledger {path.name}" for path in (self._folder / "state").glob("sandboxbench/ledger/*")]

    def table(self) -> list[str]:
        return [
            f"scripted sandbox {id_}"
            for path in (self._folder / "fake").glob("*.json")
            for id_ in json.loads(path.read_text() or "[{}]")[0]
        ]


def _cgroups() -> Iterable[Path]:
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        if line.partition(" - ")[2].startswith(("cgroup ", "cgroup2 ")):
            for folder, names, _ in os.walk(line.split()[4]):
                yield from (Path(folder, name) for name in names if name.startswith(PREFIX))


def _read(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def _with_parents(pid: int) -> set[int]:
    found = set()
    while pid > 0:
        found.add(pid)
        line = next(
            (line for line in _read(f"/proc/{pid}/status").splitlines() if line.startswith(b"PPid:")), b"PPid: 0"
        )
        pid = int(line.split()[1])
    return found
