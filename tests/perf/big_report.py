"""``sandboxbench report`` on a folder of a million samples: time and memory.

A small real run gives the header and one sample of every kind; its rounds are repeated with other latencies.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from pytest_sandboxbench.records.schema import Row as SampleRow
from pytest_sandboxbench.records.schema import lines
from pytest_sandboxbench.stats import median_interval

from .children import ROOT, environment, run
from .table import Row, show

__all__ = ["measure"]

_PLUGINS = ["-p", "asyncio", "-p", "sandboxbench"]


@dataclass(frozen=True, slots=True)
class _Mix:
    levels: str
    what: str


_MIXES = (_Mix("1", "one lane"), _Mix("1,16,100", "1, 16 and 100 lanes"))


def measure(*, quick: bool = False) -> list[Row]:
    samples, times = (10_000, 1) if quick else (1_000_000, 6)
    rows: list[Row] = []
    for mix in _MIXES:
        with TemporaryDirectory(prefix="sandboxbench-perf-") as name:
            folder = Path(name)
            series = _make(folder, mix.levels, samples)
            argv = [sys.executable, "-m", "pytest_sandboxbench.cli", "report", str(folder / "records")]
            used = [run(argv, cwd=ROOT, env=environment(folder)) for _ in range(times + 1)][1:]
        what = f"{samples:,} samples, {mix.what}"
        note = f"{series} series"
        rows += [
            Row(what, show(median_interval([one.wall_s for one in used]), 1, "s", 2), "5 s", note),
            Row(f"{what}, CPU time", show(median_interval([one.cpu_s for one in used]), 1, "s", 2)),
            Row(f"{what}, memory", f"{max(one.memory_mib for one in used):.0f} MiB", "500 MB", "the most"),
        ]
    return rows


def _make(folder: Path, levels: str, samples: int) -> int:
    """Records with that many samples, by repeating a run's; returns the number of series."""
    records = folder / "records"
    argv = [sys.executable, "-m", "pytest", *_PLUGINS, "-p", "no:cacheprovider", "benches", "--provider", "null"]
    argv += ["--concurrency", levels, "--sandbox-samples", "1", "--sandbox-records", str(records)]
    run(argv, cwd=ROOT, env=environment(folder))
    path = records / "samples.jsonl"
    rows: list[SampleRow] = msgspec.json.Decoder(SampleRow).decode_lines(path.read_bytes())
    rows = [row for row in rows if not row.warmup]
    with path.open("ab") as file:
        for repeated in _repeated(rows, samples - len(rows)):
            file.write(lines(repeated))
    return len({row.series for row in rows})


def _repeated(rows: list[SampleRow], samples: int) -> Iterator[list[SampleRow]]:
    draw = random.Random(0)
    number = 0
    while samples > 0:
        number += 1
        factors = {row.series: draw.lognormvariate(0, 0.2) for row in rows}  # lanes of a round share its fate
        again = []
        for row in rows[:samples]:
            taken = (row.ended_ns - row.started_ns) * factors[row.series] * draw.lognormvariate(0, 0.05)
            again.append(msgspec.structs.replace(row, round=number, ended_ns=row.started_ns + int(taken)))
        samples -= len(again)
        yield again
