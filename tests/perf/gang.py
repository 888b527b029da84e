"""What it costs to drive lanes from several workers: the spread of their starts, and the time beside the work.

From the command line and the records only. The time beside the work of a run is its wall time, less that of an empty
run with as many workers (their start, pytest's, the plugins'), less the rounds themselves, from the common release to
the last removal. What is left is ours: collecting, preflight, the way to the workers, barriers, records, the report.
The same run in one process has the same without a gang.
"""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

from pytest_sandboxbench.stats import median, median_interval

from .product import Measured, Runner
from .table import Row, show, shuffled

__all__ = ["measure"]

_WORKERS = 4
_LEVELS = (1, 16, 50, 100)
_PROVIDERS = ("fake", "null", "bubblewrap")  # nothing to start, bare processes, sandboxes


def measure(*, quick: bool = False) -> list[Row]:
    levels, rounds, turns = ((1, 8), 3, 2) if quick else (_LEVELS, 10, 6)
    draw = random.Random(0)
    rows: list[Row] = []
    with TemporaryDirectory(prefix="sandboxbench-perf-") as name:
        runner = Runner(Path(name))
        for workers in (0, _WORKERS):
            runner.empty(workers), runner.cold_run("null", [1], 1, workers)
        for provider in _PROVIDERS:
            gangs: list[Measured] = []
            shares: dict[int, list[float]] = {0: [], _WORKERS: []}
            pauses: dict[int, list[float]] = {0: [], _WORKERS: []}
            for _ in range(turns):
                for side in shuffled(["gang", "alone"], draw):
                    workers = _WORKERS if side == "gang" else 0
                    empty: list[float] = []
                    sweeps: list[Measured] = []
                    for part in shuffled(["empty", "sweep"], draw):
                        if part == "empty":
                            empty.append(runner.empty(workers).wall_s)
                        else:
                            sweeps.append(runner.cold_run(provider, levels, rounds, workers))
                    (sweep,) = sweeps
                    gangs += sweeps if workers else []
                    beside = sweep.used.wall_s - empty[0] - sweep.timed_s
                    shares[workers].append(beside / sweep.timed_s * 100)
                    pauses[workers].append(median(sorted(sweep.pauses)) / 1e6)
            rows += _rows(provider, gangs, shares, pauses)
    return rows


def _rows(
    provider: str, gangs: list[Measured], shares: dict[int, list[float]], pauses: dict[int, list[float]]
) -> list[Row]:
    most = max(gangs[0].workers)
    rounds = [one for run in gangs for one in run.rounds if one.level == most and not one.warmup]
    drove = " or ".join(map(str, sorted({run.workers[most] for run in gangs})))
    spreads = median_interval([one.spread / 1e6 for one in rounds])
    timed = median(sorted(run.timed_s for run in gangs))
    levels = ", ".join(map(str, gangs[0].workers))
    return [
        Row(
            f"{provider}: spread of starts, {most} lanes",
            show(spreads, 1, "ms", 2),
            "5 ms",
            f"over {drove} workers of -n {_WORKERS}; the worst round {max(one.spread for one in rounds) / 1e6:.1f} ms",
        ),
        Row(
            f"{provider}: beside the work, -n {_WORKERS}",
            show(median_interval(shares[_WORKERS]), 1, "%", 0),
            "10 %",
            f"(wall - empty run - rounds) / rounds; {levels} lanes, the rounds last {timed:.1f} s",
        ),
        Row(f"{provider}: the same without -n", show(median_interval(shares[0]), 1, "%", 0)),
        Row(
            f"{provider}: from round to round, -n {_WORKERS}",
            show(median_interval(pauses[_WORKERS]), 1, "ms", 2),
            "",
            "the last removal to the next release, the median of a run",
        ),
        Row(f"{provider}: the same without -n", show(median_interval(pauses[0]), 1, "ms", 2)),
    ]
