"""The book that a process keeps of what it makes."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..model import Capabilities, Owner, SandboxRef
from .files import SUFFIX, append, check_private, create, sweep, sync

__all__ = ["Ledger", "folder_of_user"]

_LARGE = 2**20
"""A file of more bytes is written anew, with what exists only: a create adds 50 to 250, and a long run has millions."""

_encode = json.JSONEncoder(default=str).encode


def folder_of_user() -> Path:
    """Where this user's ledgers are. ``XDG_STATE_HOME`` moves it."""
    from platformdirs import user_state_path

    return user_state_path("sandboxbench") / "ledger"


class Ledger:
    """The book of one process. Nothing is on disk before the first create, and nothing after a clean end.

    Only :meth:`making` writes at once, and :meth:`made` for a sandbox to which no label leads back; the rest is written
    by :meth:`settle`, outside of what is timed. ``problem`` says why nothing can be written, empty while it can be.

    A power loss takes what the kernel has not yet written: not the first intent, and no intent on a hosted provider,
    whose sandboxes would go on to cost money. Those are on the disk when :meth:`making` returns.

    ``hide`` takes the secrets out of a provider's options and of a sandbox's details. An id that holds one is not
    written: its create stays one of which nobody knows what came.
    """

    def __init__(self, folder: Path, owner: Owner, hide: Callable[[Any], Any] = lambda data: data) -> None:
        self.owner = owner
        self.problem = ""
        self.live: dict[tuple[str, str], SandboxRef] = {}
        """Sandboxes that exist, by provider and id."""
        self.unknown: Counter[str] = Counter()
        """Creates by provider of which nobody knows (yet) what came."""
        self._folder = folder
        self._hide = hide
        self._can: dict[str, Capabilities] = {}
        self._introductions: dict[str, bytes] = {}
        self._over: Counter[str] = Counter()
        self._gone: list[tuple[str, str]] = []
        self._closed = False
        # Of the file as it is:
        self._path: Path | None = None
        self._descriptor: int | None = None
        self._size = 0
        self._longest = _LARGE
        self._introduced: set[str] = set()
        self._written: set[tuple[str, str]] = set()

    def can(self, name: str, kind: str, options: Mapping[str, Any], can: Capabilities) -> None:
        """How to make the provider again, before its first create. Without this nothing of it is booked.

        Neither is what ends with this process: a script without a state on disk, and processes without labels.
        """
        if can.isolation in ("scripted", "none") and not can.labels and not can.hosted:
            return
        self._can[name] = can
        line = {"can": name, "kind": kind, "options": self._hide(dict(options)), "labels": can.labels}
        self._introductions[name] = _line(line)

    def making(self, name: str, number: int = 1) -> None:
        """So many creates are about to start. In the file when it returns.

        ``OSError`` when it is not, for a provider without labels: nothing would lead to what it makes.
        """
        can = self._can.get(name)
        if can is None:
            return
        self._append(self._pending() + self._about(name, {"making": name, "n": number}), for_good=can.hosted)
        if self.problem and not can.labels:
            raise OSError(self.problem)
        self.unknown[name] += number

    def made(self, ref: SandboxRef) -> None:
        """One of those creates gave this sandbox."""
        name = ref.provider
        if name not in self._can or (name, ref.id) in self.live:
            return
        self.live[name, ref.id] = ref
        self._account(name, 1)
        if self._closed or not self._can[name].labels:
            self._append(self._pending() + self._made(ref))

    def still(self, ref: SandboxRef) -> None:
        """It is there, whatever was said of it."""
        if ref.provider in self._can and (ref.provider, ref.id) not in self.live:
            self.unknown[ref.provider] += 1
            self.made(ref)

    def over(self, name: str, number: int = 1) -> None:
        """Nothing is left, for sure, of so many creates of which nothing was known."""
        number = min(number, self.unknown[name])
        if number:
            self._account(name, number)
            self._over[name] += number
            self._close_again()

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
        self._close_again()

    def settle(self) -> None:
        """Write down what came of the creates since the last time, and what of it is still there.

        Where labels lead to what is left, that something is over can wait for the next line.
        """
        new = [ref for key, ref in self.live.items() if key not in self._written]
        if new or self._gone or not all(self._can[name].labels for name in self._over):
            self._append(self._pending() + b"".join(map(self._made, new)))
        if self._size > self._longest:
            self._write_anew()

    def close(self, *, all_gone: bool = False) -> None:
        """The end of the process's run: without anything left or unknown, the file goes.

        Else it stays, and its lock with it, until the process ends. What comes later is written at once.
        ``all_gone``: somebody looked, and there is nothing, whatever is written.
        """
        self._closed = True
        if all_gone:
            self.live.clear()
            self.unknown.clear()
        if self._descriptor is None or self._path is None:
            return
        if self.live or any(self.unknown.values()):
            self.settle()
            return
        with suppress(OSError):
            self._path.unlink()
        os.close(self._descriptor)
        self._path = self._descriptor = None
        self._size, self._longest = 0, _LARGE
        for of_the_file in (self._introduced, self._written, self._over, self._gone):
            of_the_file.clear()

    def _close_again(self) -> None:
        if self._closed:
            self.close()

    def _account(self, name: str, number: int) -> None:
        self.unknown[name] = max(0, self.unknown[name] - number)

    # -- lines

    def _pending(self) -> bytes:
        """What is gone and over, which comes before any other line: an id may be given again."""
        lines = [self._about(name, {"gone": name, "id": id_}) for name, id_ in self._gone]
        lines += [self._about(name, {"over": name, "n": number}) for name, number in self._over.items() if number]
        self._gone.clear()
        self._over.clear()
        return b"".join(lines)

    def _made(self, ref: SandboxRef) -> bytes:
        if self._hide(ref.id) != ref.id:
            return b""
        self._written.add((ref.provider, ref.id))
        details = self._hide(dict(ref.details)) if ref.details else {}
        return self._about(ref.provider, {"made": ref.provider, "id": ref.id, "details": details})

    def _about(self, name: str, line: Mapping[str, Any]) -> bytes:
        """A line, after the provider's introduction where the file has none yet."""
        if name in self._introduced:
            return _line(line)
        self._introduced.add(name)
        return self._introductions[name] + _line(line)

    # -- the file

    def _append(self, text: bytes, *, for_good: bool = False) -> None:
        if self.problem:
            return
        try:
            if self._descriptor is None:
                self._begin(text)
            else:
                append(self._descriptor, text)
                if for_good:
                    sync(self._descriptor)
            self._size += len(text)
        except OSError as error:
            self.problem = (
                f"the ledger cannot be written: {self._folder}: {error.strerror or error}; "
                "XDG_STATE_HOME names another place"
            )

    def _begin(self, text: bytes) -> None:
        """A new file. ``OSError`` also for a folder that others may write."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_private(self._folder)
        sweep(self._folder)
        stem = quote(self.owner.label(), safe="")
        path, number = self._folder / f"{stem}{SUFFIX}", 1
        while os.path.lexists(path):  # another book of this owner
            number += 1
            path = self._folder / f"{stem}@{number}{SUFFIX}"
        self._descriptor = create(path, text)
        self._path = path

    def _write_anew(self) -> None:
        """Only what exists and what is under way, in a file that takes the place of the one that grew.

        At any moment one of the two is there, whole and locked. When it cannot be made, the old one goes on to grow.
        """
        if self._descriptor is None or self._path is None or self.problem:
            return
        self._longest = 2 * self._size
        exist = Counter(name for name, _id in self.live)
        lines = []
        for name in self._introduced:
            lines.append(self._introductions[name])
            if number := exist[name] + self.unknown[name]:
                lines.append(_line({"making": name, "n": number}))
        lines += map(self._made, self.live.values())
        text = b"".join(lines)
        old = self._descriptor
        try:
            self._descriptor = create(self._path, text)
        except OSError:
            return
        with suppress(OSError):
            os.close(old)
        self._gone.clear()
        self._over.clear()
        self._size, self._longest = len(text), max(_LARGE, 2 * len(text))


def _line(line: Mapping[str, Any]) -> bytes:
    return _encode(line).encode() + b"\n"
