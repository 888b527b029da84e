"""A pytest plugin that notes when a provider was at work, for ``wall_time``: ``-p tests.perf.watch``.

Every call into a provider goes through one guard; a turn and a block are what the runner makes of them. Times are
those of the monotonic clock, the same in all processes of the host; with a turn stands whose it was.
"""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from pytest_sandboxbench.load.block import BlockRunner
from pytest_sandboxbench.load.deadlines import Guard
from pytest_sandboxbench.measuring import Measuring

__all__ = ["FILE", "pytest_unconfigure"]

FILE = "SANDBOXBENCH_PERF_WATCH"

Call = Callable[..., Awaitable[Any]]

_seen: dict[str, list[tuple[int, int, str]]] = {"call": [], "turn": [], "block": [], "preflight": []}


def _noting(kind: str, original: Call) -> Call:
    note = _seen[kind].append

    @functools.wraps(original)
    async def noting(*args: Any, **options: Any) -> Any:
        started = time.monotonic_ns()
        try:
            return await original(*args, **options)
        finally:
            note((started, time.monotonic_ns(), args[2] if kind == "turn" else ""))

    return noting


for _class, _method, _kind in (
    (Guard, "within", "call"),
    (BlockRunner, "_turn", "turn"),
    (Measuring, "run", "block"),
    (Measuring, "preflight", "preflight"),
):
    setattr(_class, _method, _noting(_kind, getattr(_class, _method)))


def pytest_unconfigure() -> None:
    Path(os.environ[FILE]).write_text(json.dumps(_seen), encoding="ascii")
