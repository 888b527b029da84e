"""Where the time of a run goes that a person starts with ``pytest benches/ --provider bubblewrap``.

"Sandboxes working" is the time in which a call into a provider was under way, timed or not: making, entering and
removing sandboxes, and the same for the floor's bare processes. All else is this project's, pytest's and Python's.
The preflight makes a sandbox too, but nobody asked for that one: it is not counted as work.
"""

from __future__ import annotations

import json
import sys
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from pytest_sandboxbench.measuring import FLOOR
from pytest_sandboxbench.records.schema import Row as SampleRow

from .children import ROOT, Used, environment, run
from .table import Row
from .watch import FILE

__all__ = ["measure"]

Interval = tuple[int, int]

# What an installation of this project brings, and no more.
_PLUGINS = [word for name in ("asyncio", "benchmark", "sandboxbench", "xdist") for word in ("-p", name)]


def measure(*, quick: bool = False) -> list[Row]:
    with TemporaryDirectory(prefix="sandboxbench-perf-") as name:
        records, watched = Path(name, "records"), Path(name, "watched.json")
        argv = [
            sys.executable,
            "-m",
            "pytest",
            *_PLUGINS,
            "-p",
            "tests.perf.watch",
            "benches",
            "--provider",
            "bubblewrap",
        ]
        argv += ["-p", "no:cacheprovider", "--sandbox-records", str(records)]
        env = environment(Path(name)) | {FILE: str(watched)}
        run([*argv, "--sandbox-samples", "1", "-k", "startup", f"--sandbox-records={name}/first"], cwd=ROOT, env=env)
        used = run([*argv, *(["--sandbox-samples", "2"] if quick else [])], cwd=ROOT, env=env)
        seen = {kind: [(a, b, who) for a, b, who in spans] for kind, spans in json.loads(watched.read_text()).items()}
        return _rows(used, seen, _timed(records))


def _timed(records: Path) -> list[Interval]:
    """The timed spans, warm-ups included."""
    origin = json.loads((records / "run.json").read_text())["origin_monotonic_ns"]
    rows = msgspec.json.Decoder(SampleRow).decode_lines((records / "samples.jsonl").read_bytes())
    return [(origin + row.scheduled_ns, origin + row.ended_ns) for row in rows]


def _rows(used: Used, seen: dict[str, list[tuple[int, int, str]]], timed: Sequence[Interval]) -> list[Row]:
    calls, blocks, preflights = ([(a, b) for a, b, _ in seen[kind]] for kind in ("call", "block", "preflight"))
    turns = [(a, b) for a, b, _ in seen["turn"]]
    beside = [(a, b) for a, b, who in seen["turn"] if who == FLOOR]
    wall = used.ended_ns - used.started_ns
    working = _length(calls)
    floor = _begun_in(beside, calls)
    floor_ns, floor_timed = _length(floor), _shared(floor, timed)
    timed_ns = _shared(calls, timed) - floor_timed
    in_turns = _length([*turns, *calls]) - working
    preflight = _length(preflights)
    start = min(a for a, _ in preflights) - used.started_ns
    end = used.ended_ns - max(b for _, b in blocks)
    between = wall - start - preflight - end - working - in_turns
    rest = wall - working

    def row(what: str, ns: int, note: str = "", aim: str = "", of: int = wall) -> Row:
        return Row(what, f"{ns / 1e9:7.2f} s  {ns / of:6.1%}", aim, note)

    return [
        row("wall", wall),
        row("start-up", start, "until the first provider is asked"),
        row("preflights", preflight),
        row("sandboxes, timed", timed_ns),
        row("sandboxes, untimed", working - floor_ns - timed_ns, "making, looking into and removing them"),
        row("floor, timed", floor_timed, "bare processes beside them"),
        row("floor, untimed", floor_ns - floor_timed),
        row("harness inside turns", in_turns, f"{in_turns / len(turns) / 1e3:.0f} µs a turn, {len(turns)} turns"),
        row("harness between turns", between, f"records, order, pytest; {len(blocks)} blocks"),
        row("end", end, "report, closing, exit"),
        row("not sandboxes working", rest, "all but sandboxes and floor", "15 %"),
        row("the same, floor left out", rest, "as a share of the time without the floor", "", wall - floor_ns),
    ]


def _begun_in(turns: Sequence[Interval], calls: Sequence[Interval]) -> list[Interval]:
    """The calls that began in one of these turns."""
    ordered = sorted(turns)
    starts = [start for start, _ in ordered]
    placed = [(bisect_right(starts, call[0]) - 1, call) for call in calls]
    return [call for at, call in placed if at >= 0 and call[0] <= ordered[at][1]]


def _length(spans: Iterable[Interval]) -> int:
    """How long at least one of them lasted."""
    total = edge = 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, edge))
        edge = max(edge, end)
    return total


def _shared(some: Sequence[Interval], others: Sequence[Interval]) -> int:
    """How long some and others lasted at once."""
    return _length(some) + _length(others) - _length([*some, *others])
