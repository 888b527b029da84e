"""What was created by whom, on disk before it is created: so that nothing is left whatever happens to a run.

One file a process, in the user's state folder, named after its owner; one JSON object a line, appended in one call to
the kernel. The file is locked for as long as its process lives, and gone once all that it made is. What a reader finds
unlocked was left by the dead (:mod:`.reaping`).

``{"can": NAME, "kind", "options", "labels"}``   how to make the provider again; settings that are secrets are left out
``{"making": NAME, "n"}``                         about to create so many; written before
``{"made": NAME, "id", "details"}``               one of those, by its id
``{"none": NAME, "n"}``                           creates that surely came to nothing
``{"over": NAME, "n"}``                           creates of which the sandboxes are gone, without ever a ``made`` line
``{"gone": NAME, "id"}``                          destroyed
"""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from .facts import process_start
from .model import Owner, SandboxRef

if sys.platform != "win32":
    import fcntl

__all__ = ["Book", "Ledger", "Made", "books", "folder_of_user", "standing", "taken", "this_process"]

_SUFFIX = ".jsonl"
_LONGEST = 64 * 2**20
"""A file of more bytes is none of ours: a line is some hundred bytes, and a run of days has some 100 000."""


def folder_of_user() -> Path:
    """Where this user's ledgers are. ``XDG_STATE_HOME`` moves it."""
    from platformdirs import user_state_path

    return user_state_path("sandboxbench") / "ledger"


def this_process(run_id: str) -> Owner:
    """The owner that this process is. In a pid namespace below the host's, the host's name says so."""
    host = os.uname().nodename if hasattr(os, "uname") else ""
    try:
        namespace = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        namespace = _FIRST_PID_NAMESPACE
    if namespace != _FIRST_PID_NAMESPACE:
        host += f"+{namespace}"
    return Owner(run_id, host.replace("/", "_"), os.getpid(), process_start(os.getpid()))


_FIRST_PID_NAMESPACE = 0xEFFFFFFC  # include/linux/proc_ns.h: PROC_PID_INIT_INO


def standing(owner: Owner) -> str:
    """``alive``, ``dead``, or ``elsewhere`` for a process that cannot be seen from here."""
    here = this_process("")
    if owner.host != here.host:
        return "elsewhere"
    started = process_start(owner.pid)
    if started:
        return "alive" if started == owner.started else "dead"
    if not sys.platform.startswith("linux"):
        try:
            os.kill(owner.pid, 0)
        except ProcessLookupError:
            return "dead"
        except OSError:
            pass
        return "alive"
    return "dead"


class Ledger:
    """The book of one process. Nothing is on disk before the first create, and nothing after a clean end.

    ``problem`` says why it cannot be written, empty while it can. Then what is made is found by its labels only, and
    for providers that have none :meth:`making` raises ``OSError``.
    """

    def __init__(self, folder: Path, owner: Owner) -> None:
        self.owner = owner
        self.problem = ""
        self.live: dict[tuple[str, str], SandboxRef] = {}
        """Sandboxes that exist, by provider and id."""
        self.unknown: dict[str, int] = {}
        """Creates by provider whose outcome is not known (yet)."""
        self._path = folder / f"{quote(owner.label(), safe='')}{_SUFFIX}"
        self._labels: dict[str, bool] = {}
        self._written: set[tuple[str, str]] = set()
        self._descriptor: int | None = None

    def can(self, name: str, kind: str, options: Mapping[str, Any], *, labels: bool) -> None:
        """How to make the provider again; said once, before its first create."""
        if name not in self._labels:
            self._labels[name] = labels
            self._append({"can": name, "kind": kind, "options": dict(options), "labels": labels})

    def making(self, name: str, number: int = 1) -> None:
        """So many creates are about to start. On disk when it returns."""
        self.unknown[name] = self.unknown.get(name, 0) + number
        self._append({"making": name, "n": number})
        if self.problem and not self._labels.get(name, False):
            raise OSError(self.problem)

    def made(self, ref: SandboxRef, *, now: bool = True) -> None:
        """One of those creates gave this sandbox. ``now`` false keeps the line back until :meth:`settle`.

        A sandbox without labels is written down at once: nothing else leads back to it.
        """
        key = (ref.provider, ref.id)
        self.live[key] = ref
        self.unknown[ref.provider] = max(0, self.unknown.get(ref.provider, 0) - 1)
        if now or not self._labels.get(ref.provider, False):
            self._write_made(ref)

    def none(self, name: str, number: int = 1) -> None:
        """So many creates surely gave no sandbox: rejected, failed, or never asked for."""
        if number:
            self.unknown[name] = max(0, self.unknown.get(name, 0) - number)
            self._append({"none": name, "n": number})

    def gone(self, ref: SandboxRef) -> None:
        """It is destroyed."""
        key = (ref.provider, ref.id)
        if self.live.pop(key, None) is None:
            return
        if key in self._written:
            self._written.discard(key)
            self._append({"gone": ref.provider, "id": ref.id})
        else:
            self._append({"over": ref.provider, "n": 1})

    def settle(self) -> None:
        """Write down what was kept back and is still there."""
        for key, ref in self.live.items():
            if key not in self._written:
                self._write_made(ref)

    def close(self) -> None:
        """The end of the process's run: without anything left or unknown, the file goes."""
        if self._descriptor is None:
            return
        if not self.live and not any(self.unknown.values()):
            self._path.unlink(missing_ok=True)
        else:
            self.settle()
        os.close(self._descriptor)
        self._descriptor = None

    def _write_made(self, ref: SandboxRef) -> None:
        self._written.add((ref.provider, ref.id))
        self._append({"made": ref.provider, "id": ref.id, "details": dict(ref.details)})

    def _append(self, line: Mapping[str, Any]) -> None:
        if self.problem:
            return
        try:
            if self._descriptor is None:
                self._descriptor = _open(self._path)
            text = json.dumps(line).encode() + b"\n"
            if os.write(self._descriptor, text) != len(text):
                raise OSError("the disk is full")
        except OSError as error:
            self.problem = f"the ledger cannot be written: {self._path.parent}: {error.strerror or error}"


def _open(path: Path) -> int:
    """Make and lock a new file. ``OSError`` also for a folder that others may write."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_private(path.parent)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    if sys.platform != "win32":
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # a reader holds it for a moment
        except OSError:
            pass  # a file system without locks
    return descriptor


def _check_private(folder: Path) -> None:
    """Who can write here decides what we destroy."""
    if sys.platform == "win32":
        return
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise PermissionError(f"{folder} is not a folder that only user {os.geteuid()} can write")


def _is_free(descriptor: int) -> bool:
    """Take the lock; false when another process holds it. Where there are no locks, only pids tell who lives."""
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return True


@dataclass(slots=True)
class Made:
    """What a ledger says of one provider: how to make it again, what exists, how many creates are unaccounted for."""

    kind: str
    options: Mapping[str, Any]
    labels: bool
    live: dict[str, SandboxRef] = field(default_factory=dict)
    unknown: int = 0


@dataclass(frozen=True, slots=True)
class Book:
    """A ledger as its file tells it. ``standing`` is its owner's: ``alive``, ``dead`` or ``elsewhere``."""

    path: Path
    owner: Owner
    standing: str
    age_s: float
    """Seconds since its last line."""
    made: Mapping[str, Made]


def books(folder: Path) -> list[Book]:
    """All ledgers of a folder, oldest run first. A line that is cut off or is no line of a ledger counts for nothing.

    ``OSError`` when others may write the folder: then it proves nothing.
    """
    try:
        _check_private(folder)
        paths = sorted(path for path in folder.iterdir() if path.name.endswith(_SUFFIX))
    except FileNotFoundError:
        return []
    return [book for path in paths if (book := _read(path)) is not None]


def _read(path: Path) -> Book | None:
    owner = Owner.parse(unquote(path.name.removesuffix(_SUFFIX)))
    try:
        found = path.lstat()
        if owner is None or not stat.S_ISREG(found.st_mode) or found.st_size > _LONGEST:
            return None
        with taken(path) as free:
            text = path.read_bytes()
    except FileNotFoundError:
        return None
    made: dict[str, Made] = {}
    for line in text.split(b"\n"):
        try:
            _take_in(made, json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    there = standing(owner)
    # The lock is proof of life wherever the process is; without it a process of that pid and start may be a fork.
    return Book(path, owner, there if free or there == "elsewhere" else "alive", time.time() - found.st_mtime, made)


def _take_in(made: dict[str, Made], line: Mapping[str, Any]) -> None:
    if "can" in line:
        made.setdefault(str(line["can"]), Made(str(line["kind"]), dict(line["options"]), bool(line["labels"])))
    elif "making" in line:
        made[line["making"]].unknown += _count(line)
    elif "made" in line:
        one = made[line["made"]]
        one.live[str(line["id"])] = SandboxRef(str(line["made"]), str(line["id"]), _details(line["details"]))
        one.unknown = max(0, one.unknown - 1)
    elif "none" in line:
        made[line["none"]].unknown = max(0, made[line["none"]].unknown - _count(line))
    elif "over" in line:
        made[line["over"]].unknown = max(0, made[line["over"]].unknown - _count(line))
    elif "gone" in line:
        made[line["gone"]].live.pop(str(line["id"]), None)


def _count(line: Mapping[str, Any]) -> int:
    return max(0, min(int(line["n"]), 1_000_000))


def _details(found: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in found.items()}


@contextmanager
def taken(path: Path) -> Iterator[bool]:
    """Hold the lock of a ledger, as whoever clears it does; false when somebody else holds it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0))
    try:
        yield _is_free(descriptor)
    finally:
        os.close(descriptor)
