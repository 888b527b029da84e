"""``cold_run`` at several levels: the harness over a C program with a thread a lane, at the same command lines."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping

from pytest_sandboxbench.stats import median, median_interval, ratio_interval

from .bare import spawner
from .chain import Chain, chain, work_folders
from .table import Row, show, shuffled

__all__ = ["measure"]

_ROUNDS: Mapping[int, int] = {1: 40, 16: 12, 50: 8, 100: 6}


def measure(*, quick: bool = False) -> list[Row]:
    return asyncio.run(_measure({1: 6, 4: 6} if quick else _ROUNDS))


async def _measure(rounds: Mapping[int, int]) -> list[Row]:
    rows: list[Row] = []
    async with chain() as ours:
        for level, count in rounds.items():
            rows += await _level(ours, level, count)
    return rows


async def _level(ours: Chain, level: int, rounds: int) -> list[Row]:
    """One pair a round: the medians of its lanes, and its last lanes."""
    draw = random.Random()
    medians: list[tuple[float, float]] = []
    lasts: list[tuple[float, float]] = []
    commands = await ours.commands(level)
    with work_folders(commands), spawner(commands) as bare:
        bare.run(level)
        for _ in range(rounds):
            found: dict[str, list[int]] = {}
            for name in shuffled(["harness", "C"], draw):
                found[name] = sorted(await ours.turn(level) if name == "harness" else bare.run(level))
            medians.append((median(found["harness"]), median(found["C"])))
            lasts.append((found["harness"][-1], found["C"][-1]))
    lanes = "1 lane" if level == 1 else f"{level} lanes"
    rows = [
        Row(f"{lanes}: the median lane", show(ratio_interval(medians)), "", _times(medians)),
        Row(f"{lanes}: the last lane", show(ratio_interval(lasts)), "", _times(lasts)),
    ]
    return rows[: 1 if level == 1 else 2]


def _times(pairs: list[tuple[float, float]]) -> str:
    mine, other = (median_interval([pair[at] for pair in pairs]).estimate / 1e6 for at in (0, 1))
    return f"harness {mine:.1f} ms, C {other:.1f} ms"
