"""What the ledgers of a folder say, whoever wrote them and however they ended."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ..model import Owner, SandboxRef
from ..owners import standing
from .files import SUFFIX, check_private, open_locked

__all__ = ["Book", "Made", "books", "taken"]

_LONGEST = 64 * 2**20
"""A file of more bytes is not read: the writer keeps its own far below, unless it has 100 000 sandboxes at once."""

_LOOKS = 5
_BETWEEN_LOOKS_S = 0.02


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
    """It says something that cannot be understood, or read at all: what its owner made is not known."""
    clearing: bool = False
    """``alive`` for its lock alone: no such process is on this host. Somebody else clears it up at this moment."""


def books(folder: Path) -> list[Book]:
    """All ledgers of a folder, oldest run first. A line that is cut off or is no line of a ledger counts for nothing.

    ``OSError`` when others may write the folder: then it proves nothing. A file that cannot be read is ``spoilt``.
    """
    try:
        check_private(folder)
        paths = sorted(path for path in folder.iterdir() if path.name.endswith(SUFFIX))
    except FileNotFoundError:
        return []
    return [book for path in paths if (book := _read(path)) is not None]


def _read(path: Path) -> Book | None:
    owner = Owner.parse(unquote(path.name.removesuffix(SUFFIX).partition("@")[0]))
    if owner is None:
        return None
    free: bool | None = None
    text: bytes | None = None
    changed = time.time()
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            return None
        changed = found.st_mtime
        free, text = _look(path)
    except FileNotFoundError:
        return None
    except OSError:
        pass
    made = _understood(text or b"")
    there = standing(owner)
    if free and there == "alive" and not owner.started:
        there = "dead"  # the pid is used again, and only the lock can tell
    clearing = free is False and there == "dead"
    there = "alive" if free is False else there
    spoilt = text is None or (bool(text) and not made)
    return Book(path, owner, there, time.time() - changed, made, spoilt, clearing)


def _look(path: Path) -> tuple[bool | None, bytes | None]:
    """Whether the lock is free, and the text; ``None`` when it is too long."""
    descriptor, free = open_locked(path, shared=True)
    with os.fdopen(descriptor, "rb") as file:
        text = file.read(_LONGEST + 1) if os.fstat(descriptor).st_size <= _LONGEST else None
    return free, text


def _understood(text: bytes) -> dict[str, Made]:
    made: dict[str, Made] = {}
    for line in text.split(b"\n"):
        try:
            _take_in(made, json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            continue
    return made


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
    """Hold the lock of a ledger, as whoever clears it does; false when somebody else holds it.

    Where no lock can be had, only pids tell who lives, and it is true. ``FileNotFoundError`` when the file is gone.
    """
    descriptor, free = _take(path)
    try:
        yield free is not False
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _take(path: Path) -> tuple[int | None, bool | None]:
    """A reader holds it for a moment, which is waited for."""
    try:
        descriptor, free = open_locked(path, shared=False)
        for _ in range(_LOOKS):
            if free is not False:
                break
            os.close(descriptor)
            time.sleep(_BETWEEN_LOOKS_S)
            descriptor, free = open_locked(path, shared=False)
    except FileNotFoundError:
        raise
    except OSError:
        return None, None
    return descriptor, free
