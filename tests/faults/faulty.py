"""A provider around another one that goes wrong where it is told, for tests.

Settings: ``inner`` is the kind inside and gets all further settings; ``at`` the operation, ``what`` happens there:
``hang`` (until cancelled), ``swallow`` (hangs and swallows the cancellation), ``block`` (the event loop), ``thread``
(hangs in ``asyncio.to_thread``), ``slow:SECONDS`` (and then goes well; ``slow:SECONDS:N``: the first N of them fail),
``late:SECONDS`` (create: never returns, the sandbox comes to life that much later), ``raise:NAME``. ``good`` calls go
well before; while the file ``off`` exists, all do. ``labels=false``: it declares none. Each begun and each ended call
is a line in the file ``log``.
"""

from __future__ import annotations

import asyncio
import builtins
import dataclasses
import time
from collections import Counter
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

INNER = {kind: f"pytest_sandboxbench.providers.{kind}" for kind in ("bubblewrap", "null", "fake")}
LONG_S = 120.0


class Odd(BaseException):
    """No ``Exception``."""


class Unsayable(Exception):
    def __str__(self) -> str:
        raise ValueError("an exception that cannot be printed")


class Faults:
    def __init__(self, at: str, what: str, good: int, off: str, log: str) -> None:
        self.at, self.what, self.good = at, what, good
        self._off, self._log = Path(off), Path(log)
        self._calls: Counter[str] = Counter()
        self.late: set[asyncio.Task[Any]] = set()

    def note(self, operation: str, word: str, sandbox: str = "") -> None:
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"{operation} {word} {sandbox}\n")

    def is_due(self, operation: str) -> bool:
        if operation != self.at or self._off.exists():
            return False
        self._calls[operation] += 1
        return self._calls[operation] > self.good

    def now(self, operation: str) -> None:
        """What goes wrong at once."""
        if not self.is_due(operation):
            return
        name = self.what.partition(":")[2]
        if self.what == "block":
            time.sleep(LONG_S)
        elif self.what.startswith("raise:"):
            raise made(name)

    async def first(self, operation: str, sandbox: str = "") -> None:
        """Before a call of the provider inside."""
        self.note(operation, "begins", sandbox)
        if not self.is_due(operation):
            return
        self.note(operation, "fault", sandbox)
        if self.what == "hang":
            await asyncio.get_running_loop().create_future()
        elif self.what == "swallow":
            await swallow()
        elif self.what == "block":
            time.sleep(LONG_S)  # noqa: ASYNC251 -- blocking the loop is the point
        elif self.what == "thread":
            await asyncio.to_thread(time.sleep, LONG_S)
        elif self.what.startswith("slow"):
            await self._slow(operation, *self.what.split(":")[1:])
        elif self.what.startswith("raise:"):
            raise made(self.what.partition(":")[2])

    async def _slow(self, operation: str, seconds: str, fail: str = "0") -> None:
        number = self._calls[operation] - self.good
        await asyncio.sleep(float(seconds))
        if number <= int(fail):
            raise RuntimeError(f"{operation} fails on purpose, {number} of {fail}")


async def swallow() -> None:
    until = time.monotonic() + LONG_S
    while time.monotonic() < until:
        try:
            await asyncio.sleep(LONG_S)
        except asyncio.CancelledError:
            pass


def made(name: str) -> BaseException:
    if name == "CancelledError":
        return asyncio.CancelledError("of the adapter's own")
    kind: Any = {"Odd": Odd, "Unsayable": Unsayable}.get(name) or getattr(builtins, name)
    error: BaseException = kind("on purpose")
    return error


class FaultySandbox:
    def __init__(self, inner: Any, faults: Faults) -> None:
        self.inner = inner
        self._faults = faults

    @property
    def ref(self) -> Any:
        self._faults.now("ref")
        return self.inner.ref

    @property
    def unenforced(self) -> Any:
        return self.inner.unenforced

    @property
    def path(self) -> str:
        return str(self.inner.path)

    def phases(self) -> Any:
        self._faults.now("phases")
        return self.inner.phases() if hasattr(self.inner, "phases") else {}

    async def exec(self, argv: Any, **how: Any) -> Any:
        await self._faults.first("exec", self.inner.ref.id)
        return await self.inner.exec(argv, **how)

    async def stream(self, argv: Any, **how: Any) -> Any:
        await self._faults.first("stream", self.inner.ref.id)
        async for piece in self.inner.stream(argv, **how):
            yield piece

    async def write_file(self, path: str, data: bytes, **how: Any) -> None:
        await self._faults.first("write_file", self.inner.ref.id)
        await self.inner.write_file(path, data, **how)

    async def read_file(self, path: str, **how: Any) -> Any:
        await self._faults.first("read_file", self.inner.ref.id)
        return await self.inner.read_file(path, **how)

    async def pause(self, **how: Any) -> None:
        await self._faults.first("pause", self.inner.ref.id)
        await self.inner.pause(**how)

    async def resume(self, **how: Any) -> None:
        await self._faults.first("resume", self.inner.ref.id)
        await self.inner.resume(**how)


class FaultyProvider:
    def __init__(self, name: str, inner: Any, faults: Faults, *, labels: bool) -> None:
        self.name = name
        self._labels = labels
        self._inner = inner
        self._faults = faults

    @property
    def capabilities(self) -> Any:
        self._faults.now("capabilities")
        can = self._inner.capabilities
        return can if self._labels else dataclasses.replace(can, labels=False)

    async def preflight(self) -> Any:
        await self._faults.first("preflight")
        return await self._inner.preflight()

    async def create(self, spec: Any, **how: Any) -> Any:
        await self._faults.first("create")
        if self._faults.what.startswith("late:") and self._faults.is_due("create"):
            self._faults.late.add(asyncio.ensure_future(self._late(spec, how)))
            await asyncio.get_running_loop().create_future()
        inner = await self._inner.create(spec, **how)
        self._faults.note("create", "made", inner.ref.id)
        return FaultySandbox(inner, self._faults)

    async def _late(self, spec: Any, how: Any) -> None:
        await asyncio.sleep(float(self._faults.what.partition(":")[2]))
        inner = await self._inner.create(spec, **how)
        self._faults.note("create", "late", inner.ref.id)

    async def run_once(self, spec: Any, argv: Any, **how: Any) -> Any:
        await self._faults.first("run_once")
        return await self._inner.run_once(spec, argv, **how)

    async def owned(self, run_id: str | None = None) -> Any:
        await self._faults.first("owned")
        return await self._inner.owned(run_id)

    async def destroy(self, ref: Any, **how: Any) -> None:
        await self._faults.first("destroy", ref.id)
        await self._inner.destroy(ref, **how)
        self._faults.note("destroy", "done", ref.id)

    async def round_trip(self) -> None:
        await self._faults.first("round_trip")
        await self._inner.round_trip()

    async def aclose(self) -> None:
        await self._faults.first("aclose")
        await self._inner.aclose()


def factory(name: str, options: Mapping[str, Any]) -> FaultyProvider:
    rest = dict(options)
    inner, at, what = str(rest.pop("inner")), str(rest.pop("at", "")), str(rest.pop("what", ""))
    faults = Faults(at, what, int(rest.pop("good", 0)), str(rest.pop("off")), str(rest.pop("log")))
    faults.now("factory")
    labels = str(rest.pop("labels", "true")) == "true"
    return FaultyProvider(name, import_module(INNER[inner]).factory(name, rest), faults, labels=labels)
