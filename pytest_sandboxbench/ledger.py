"""What was created by whom, on disk before it is created: so that nothing is left whatever happens to a run.

One file a process, in the user's state folder, named after its owner; one JSON object a line, appended in one call to
the kernel. The file is locked for as long as its process lives, and gone once all that it made is. What a reader finds
unlocked was left by the dead (:mod:`.reaping`).

``{"can": NAME, "kind", "options", "labels"}``   how to make the provider again, without its secrets
``{"making": NAME, "n"}``                         about to create so many; written before
``{"made": NAME, "id", "details"}``               one of those, by its id
``{"over": NAME, "n"}``                           so many of those came to nothing, or are gone again
``{"gone": NAME, "id"}``                          one with a ``made`` line is destroyed
"""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from .facts import process_start
from .model import Capabilities, Owner, SandboxRef

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

    Only :meth:`making` writes at once, and :meth:`made` for a sandbox to which no label leads back; the rest is written
    by :meth:`settle`, outside of what is timed. ``hide`` takes the secrets out of what is written.
    ``problem`` says why nothing can be written, empty while it can be.
    """

    def __init__(self, folder: Path, owner: Owner, hide: Callable[[Any], Any] = lambda data: data) -> None:
        self.owner = owner
        self.problem = ""
        self.live: dict[tuple[str, str], SandboxRef] = {}
        """Sandboxes that exist, by provider and id."""
        self.unknown: Counter[str] = Counter()
        """Creates by provider of which nobody knows (yet) what came."""
        self._path = folder / f"{quote(owner.label(), safe='')}{_SUFFIX}"
        self._hide = hide
        self._introduced: dict[str, bytes] = {}
        self._labels: dict[str, bool] = {}
        self._written: set[tuple[str, str]] = set()
        self._over: Counter[str] = Counter()
        self._gone: list[tuple[str, str]] = []
        self._descriptor: int | None = None

    def can(self, name: str, kind: str, options: Mapping[str, Any], can: Capabilities) -> None:
        """How to make the provider again, before its first create. Without this nothing of it is booked.

        A script without a state on disk is not: its sandboxes end with the process.
        """
        if can.isolation == "scripted" and not can.labels:
            return
        self._labels[name] = can.labels
        line = {"can": name, "kind": kind, "options": dict(options), "labels": can.labels}
        self._introduced[name] = self._line(line)

    def making(self, name: str, number: int = 1) -> None:
        """So many creates are about to start. On disk when it returns.

        ``OSError`` when it is not, for a provider without labels: nothing would lead to what it makes.
        """
        if name not in self._labels:
            return
        introduced = self._introduced.pop(name, b"")
        self._append(b"".join(self._overs()) + introduced + self._line({"making": name, "n": number}))
        if self.problem and not self._labels[name]:
            raise OSError(self.problem)
        self.unknown[name] += number

    def made(self, ref: SandboxRef) -> None:
        """One of those creates gave this sandbox."""
        name = ref.provider
        if name not in self._labels or (name, ref.id) in self.live:
            return
        self.live[name, ref.id] = ref
        self._account(name, 1)
        if not self._labels[name]:
            self._append(self._made(ref))

    def over(self, name: str, number: int = 1) -> None:
        """Nothing is left, for sure, of so many creates of which nothing was known."""
        number = min(number, self.unknown[name])
        if number:
            self._account(name, number)
            self._over[name] += number

    def gone(self, ref: SandboxRef) -> None:
        """It is destroyed."""
        key = (ref.provider, ref.id)
        if self.live.pop(key, None) is None:
            return
        if key in self._written:
            self._written.discard(key)
            self._gone.append(key)
        else:
            self._over[ref.provider] += 1

    def settle(self) -> None:
        """Write down what came of the creates since the last time, and what of it is still there.

        Where labels lead to what is left, that something is over can wait for the next line.
        """
        lines = [self._line({"gone": name, "id": id_}) for name, id_ in self._gone]
        lines += [self._made(ref) for key, ref in self.live.items() if key not in self._written]
        self._gone.clear()
        if lines or not all(self._labels[name] for name in self._over):
            self._append(b"".join([*self._overs(), *lines]))

    def _overs(self) -> list[bytes]:
        lines = [self._line({"over": name, "n": number}) for name, number in self._over.items() if number]
        self._over.clear()
        return lines

    def close(self, *, all_gone: bool = False) -> None:
        """The end of the process's run: without anything left or unknown, the file goes.

        ``all_gone``: somebody looked, and there is nothing, whatever is written.
        """
        if all_gone:
            self.live.clear()
            self.unknown.clear()
        if self._descriptor is None:
            return
        if self.live or any(self.unknown.values()):
            self.settle()
        else:
            with suppress(OSError):
                self._path.unlink()
        os.close(self._descriptor)
        self._descriptor = None

    def _account(self, name: str, number: int) -> None:
        self.unknown[name] = max(0, self.unknown[name] - number)

    def _made(self, ref: SandboxRef) -> bytes:
        self._written.add((ref.provider, ref.id))
        return self._line({"made": ref.provider, "id": ref.id, "details": dict(ref.details)})

    def _line(self, line: Mapping[str, Any]) -> bytes:
        return json.dumps(self._hide(line)).encode() + b"\n"

    def _append(self, text: bytes) -> None:
        if self.problem:
            return
        try:
            if self._descriptor is None:
                self._descriptor = _open(self._path)
            if os.write(self._descriptor, text) != len(text):
                raise OSError("the disk is full")
        except OSError as error:
            self.problem = (
                f"the ledger cannot be written: {self._path.parent}: {error.strerror or error}; "
                "XDG_STATE_HOME names another place"
            )


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
    spoilt: bool = False
    """It has lines, and says nothing: what its owner made is not known."""


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
    there = there if free or there == "elsewhere" else "alive"
    return Book(path, owner, there, time.time() - found.st_mtime, made, spoilt=not made and b"\n" in text)


def _take_in(made: dict[str, Made], line: Mapping[str, Any]) -> None:
    if "can" in line:
        made.setdefault(str(line["can"]), Made(str(line["kind"]), dict(line["options"]), bool(line["labels"])))
    elif "making" in line:
        made[line["making"]].unknown += _count(line)
    elif "made" in line:
        one = made[line["made"]]
        one.live[str(line["id"])] = SandboxRef(str(line["made"]), str(line["id"]), _details(line["details"]))
        one.unknown = max(0, one.unknown - 1)
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
