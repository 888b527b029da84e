"""The product from outside: a run of ``pytest benches/`` as a person types it, and what its records say."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .children import ROOT, Used, environment, run

__all__ = ["Measured", "Round", "Runner"]

# What an installation of this project brings, and no more.
_PLUGINS = [word for name in ("asyncio", "benchmark", "sandboxbench", "xdist") for word in ("-p", name)]
_BENCH = "benches/test_cold_run.py::test_cold_run"


@dataclass(frozen=True, slots=True)
class Round:
    """Times of one round (ns, one clock). ``latencies`` ascending, each from the common release to the known end.

    ``spread`` is from the first lane's own start to the last's, over all processes; ``over`` is when the last sandbox
    was removed.
    """

    level: int
    released: int
    over: int
    latencies: tuple[int, ...]
    spread: int
    warmup: bool


@dataclass(frozen=True, slots=True)
class Measured:
    """One run. ``workers`` drove the lanes, by level; ``rounds`` in the order in which they ran, warm-ups included."""

    used: Used
    rounds: tuple[Round, ...]
    workers: Mapping[int, int]

    @property
    def latencies(self) -> list[list[int]]:
        return [list(one.latencies) for one in self.rounds if not one.warmup]

    @property
    def pauses(self) -> list[int]:
        """From the end of a round to the release of the next one of its block."""
        pairs = zip(self.rounds, self.rounds[1:], strict=False)
        return [after.released - before.over for before, after in pairs if before.level == after.level]

    @property
    def timed_s(self) -> float:
        """What the rounds lasted, removals included: in a block no two of them overlap."""
        return sum(one.over - one.released for one in self.rounds) / 1e9


class Runner:
    """Runs the product with nothing in its environment but what belongs to it. Byte code is compiled once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._env = environment(folder)
        (folder / "test_one.py").write_text("def test_one():\n    pass\n", encoding="ascii")
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="ascii")

    def cold_run(self, provider: str, levels: Sequence[int], rounds: int, workers: int) -> Measured:
        """``cold_run`` at these levels with ``-n workers``; without ``-n`` for 0. One warm-up round a level."""
        with TemporaryDirectory(prefix="records-", dir=self._folder) as name:
            records = Path(name, "records")
            options = ["--provider", provider, "--sandbox-floor", "none", "--sandbox-records", str(records)]
            options += ["--concurrency", ",".join(map(str, levels)), "--sandbox-samples", str(rounds)]
            argv = [*self._pytest(workers), _BENCH, *options, "--sandbox-warmup", "1"]
            used = run(argv, cwd=ROOT, env=self._env)
            blocks = json.loads((records / "run.json").read_text())["blocks"]
            return Measured(used, tuple(_rounds(records)), {one["level"]: one.get("workers", 1) for one in blocks})

    def empty(self, workers: int) -> Used:
        """The same pytest with the same workers, on one test that passes."""
        return run([*self._pytest(workers), "test_one.py"], cwd=self._folder, env=self._env)

    @staticmethod
    def _pytest(workers: int) -> list[str]:
        lanes = ["-n", str(workers)] if workers else []
        return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *_PLUGINS, *lanes]


def _rounds(records: Path) -> Iterator[Round]:
    """By their release. A sample of ``cold_run`` has a twin, ``cold_run_total``, which ends with the removal."""
    lanes: dict[tuple[str, int], list[dict[str, Any]]] = {}
    over: dict[tuple[str, int], int] = {}
    for path in records.glob("samples*.jsonl"):
        for line in path.read_text().splitlines():
            sample = json.loads(line)
            if sample["outcome"] != "ok":
                raise RuntimeError(sample.get("error") or line)
            operation, _, level = sample["series"].partition(":")[2].partition("@")
            at = level.partition("/")[0], sample["round"]
            if operation == "cold_run":
                lanes.setdefault(at, []).append(sample)
            over[at] = max(over.get(at, 0), sample["ended_ns"])
    found = []
    for (level, number), samples in lanes.items():
        starts = [sample["started_ns"] for sample in samples]
        released = samples[0]["scheduled_ns"]
        if len(samples) != int(level) or any(sample["scheduled_ns"] != released for sample in samples):
            raise RuntimeError(f"round {number} at {level} lanes: not all lanes, or not one common release")
        latencies = tuple(sorted(sample["ended_ns"] - released for sample in samples))
        warmup = bool(samples[0].get("warmup"))
        found.append(Round(int(level), released, over[level, number], latencies, max(starts) - min(starts), warmup))
    yield from sorted(found, key=lambda one: one.released)
