"""What several processes must agree on: which sandboxes exist, who waits, how many calls a script has served.

One small table behind :class:`State`: in memory, or with a folder in a file that all processes of one host share under
a lock; and a :class:`Turnstile` over the same seam.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import UsageError
from .fake_clock import loop_ns

if sys.platform != "win32":
    import fcntl

__all__ = ["Live", "State", "Table", "Turnstile"]

_POLL_S = 0.001


@dataclass(slots=True)
class Live:
    """A sandbox that exists; ``stuck`` is one that no destroy removes.

    ``from_ns`` is the begin and ``expires_ns`` the end of its lifetime, where it has one.
    """

    run_id: str
    owner: str
    expires_ns: int | None = None
    stuck: bool = False
    from_ns: int | None = None

    def shows(self, run_id: str | None) -> bool:
        """Whether it is listed now, among those of a run or of all."""
        return run_id in (None, self.run_id) and (self.from_ns is None or self.from_ns <= loop_ns())


@dataclass(slots=True)
class Table:
    """What all processes agree on. ``making`` and ``waiting`` hold the pid of who makes or waits."""

    live: dict[str, Live] = field(default_factory=dict)
    making: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, int] = field(default_factory=dict)
    served: dict[str, int] = field(default_factory=dict)
    admitted_ns: list[int] = field(default_factory=list)


class State:
    """The table, one reader and writer at a time."""

    def __init__(self, instance: str, folder: Path | None) -> None:
        self._table = Table()
        self._lock = threading.Lock()
        self._file = folder / (re.sub(r"[^\w.-]", "_", instance) + ".json") if folder else None
        if folder:
            if sys.platform == "win32":
                raise UsageError(
                    f"{instance}: state_dir needs locks between processes, which Windows lacks; leave it out"
                )
            folder.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def table(self) -> Iterator[Table]:
        """The table now; changes are kept when the block ends without an error. Do not await inside."""
        with self._lock:
            if self._file is None:
                _expire(self._table)
                yield self._table
                return
            assert sys.platform != "win32"
            with self._file.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                text = _text_of(self._file)
                table = _parse(text) if text else Table()
                _expire(table)
                yield table
                changed = _text(table)
                if changed != text:
                    _replace(self._file, changed)

    def gate(self, place: int) -> Path | None:
        """The lock file of one place in the turnstile; None where no other process takes part."""
        return None if self._file is None else self._file.with_suffix(f".gate{place}")


def _text(table: Table) -> str:
    live = {k: (v.run_id, v.owner, v.expires_ns, v.stuck, v.from_ns) for k, v in table.live.items()}
    return json.dumps([live, table.making, table.waiting, table.served, table.admitted_ns])


def _text_of(file: Path) -> str:
    for candidate in (file, file.with_suffix(".new")):
        try:
            return candidate.read_text()
        except FileNotFoundError:
            pass
    return ""


def _replace(file: Path, text: str) -> None:
    """Whole or not at all, even when killed. A rename onto a file would make ext4 write it to the disk: some 4 ms."""
    new = file.with_suffix(".new")
    new.write_text(text)
    file.unlink(missing_ok=True)
    new.rename(file)


def _parse(text: str) -> Table:
    live, making, waiting, served, admitted_ns = json.loads(text)
    return Table(
        {k: Live(*v) for k, v in live.items()},
        # A process that was killed neither makes nor waits any more; what it had made lives on.
        {k: pid for k, pid in making.items() if _runs(pid)},
        {k: pid for k, pid in waiting.items() if _runs(pid)},
        served,
        admitted_ns,
    )


def _expire(table: Table) -> None:
    now = loop_ns()
    for id_ in [id_ for id_, live in table.live.items() if live.expires_ns is not None and live.expires_ns <= now]:
        del table.live[id_]


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


class Turnstile:
    """Lets ``width`` through at once, in this process and, with a shared state, in all."""

    def __init__(self, state: State, width: int) -> None:
        self._state = state
        self._width = width
        self._own: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        if self._own is None or self._own[0] is not loop:  # a semaphore serves one loop only
            self._own = (loop, asyncio.Semaphore(self._width))
        async with self._own[1]:
            gates = [gate for place in range(self._width) if (gate := self._state.gate(place))]
            taken = await _take_any(gates) if gates else None
            try:
                yield
            finally:
                if taken is not None:
                    os.close(taken)


async def _take_any(gates: Sequence[Path]) -> int:
    """A descriptor that holds the lock of one of the files, and gives it back when closed or when the process ends."""
    assert sys.platform != "win32"
    while True:
        for gate in gates:
            held = os.open(gate, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(held)
            else:
                return held
        await asyncio.sleep(_POLL_S)
