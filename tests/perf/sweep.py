"""``cold_run`` of bubblewrap at several levels: the whole product, started with pytest, over a C program.

The product drives its lanes from as many workers as there are CPUs (``-n``). A pair is one run of pytest, and as many
bursts of the C program, which has a thread a lane: the same command lines, released at one instant. Between two
bursts the C program rests as long as the product did between two rounds, because what the kernel removes after a
sandbox is work for the next. Latencies count from the common release on both sides.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from pytest_sandboxbench.stats import median, median_interval, ratio_interval

from .bare import Spawner, spawner
from .chain import Chain, chain, work_folders
from .product import Measured, Runner
from .table import Row, show, shuffled

__all__ = ["measure"]

# level: pairs, and rounds in each
_PLAN: Mapping[int, tuple[int, int]] = {1: (8, 30), 16: (8, 8), 50: (8, 5), 100: (8, 5)}
_QUICK: Mapping[int, tuple[int, int]] = {1: (2, 3), 4: (2, 3)}


def measure(*, quick: bool = False) -> list[Row]:
    return asyncio.run(_measure(_QUICK if quick else _PLAN))


async def _measure(plan: Mapping[int, tuple[int, int]]) -> list[Row]:
    rows: list[Row] = []
    cpus = len(os.sched_getaffinity(0))
    with TemporaryDirectory(prefix="sandboxbench-perf-") as name:
        runner = Runner(Path(name))
        runner.cold_run("bubblewrap", [1], 1, cpus)
        async with chain() as ours:
            for level, (pairs, rounds) in plan.items():
                rows += await _level(runner, ours, level, pairs, rounds, cpus)
    return rows


async def _level(runner: Runner, ours: Chain, level: int, pairs: int, rounds: int, cpus: int) -> list[Row]:
    draw = random.Random(level)
    medians: list[tuple[float, float]] = []
    lasts: list[tuple[float, float]] = []
    drove: set[int] = set()
    commands = await ours.commands(level)
    with work_folders(commands), spawner(commands) as bare:
        rest = _rest(runner.cold_run("bubblewrap", [level], rounds, cpus))
        for _ in range(pairs):
            found: dict[str, Sequence[Sequence[int]]] = {}
            for name in shuffled(["product", "C"], draw):
                if name == "product":
                    measured = runner.cold_run("bubblewrap", [level], rounds, cpus)
                    found[name], rest = measured.latencies, _rest(measured)
                    drove.add(measured.workers[level])
                else:
                    found[name] = _bursts(bare, level, rounds, rest)
            medians.append((_median_lane(found["product"]), _median_lane(found["C"])))
            lasts.append((_last_lane(found["product"]), _last_lane(found["C"])))
    lanes = "1 lane" if level == 1 else f"{level} lanes"
    workers = f"-n {cpus}, {' or '.join(map(str, sorted(drove)))} of them drove the lanes"
    rows = [
        Row(f"{lanes}: the median lane", show(ratio_interval(medians)), _aim(level), f"{_times(medians)}; {workers}"),
        Row(f"{lanes}: the last lane", show(ratio_interval(lasts)), _aim(level), _times(lasts)),
    ]
    return rows[: 1 if level == 1 else 2]


def _aim(level: int) -> str:
    return "1.05" if level == 1 else "1.10"


def _rest(measured: Measured) -> float:
    return median(sorted(measured.pauses)) / 1e9


def _bursts(bare: Spawner, level: int, rounds: int, rest: float) -> list[list[int]]:
    """As many as the product has rounds, after one that warms up."""
    found = []
    for _ in range(rounds + 1):
        found.append(bare.run(level))
        time.sleep(rest)
    return found[1:]


def _median_lane(rounds: Sequence[Sequence[int]]) -> float:
    return median(sorted(latency for one in rounds for latency in one))


def _last_lane(rounds: Sequence[Sequence[int]]) -> float:
    return median(sorted(max(one) for one in rounds))


def _times(pairs: Sequence[tuple[float, float]]) -> str:
    mine, other = (median_interval([pair[at] for pair in pairs]).estimate / 1e6 for at in (0, 1))
    return f"product {mine:.2f} ms, C {other:.2f} ms"
