"""``cold_run`` of bubblewrap through the whole harness, over the same command line in a C program and in hyperfine.

Harness and C program take turns run by run; hyperfine, which does not stop between runs, block by block.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from pytest_sandboxbench.stats import median, median_interval, ratio_interval

from .bare import Spawner, hyperfine, spawner
from .chain import Chain, chain, work_folders
from .table import Row, show, shuffled

__all__ = ["measure"]

# All that could differ between two ways to start it: rights, maps of users, mounts, files, environment, limits.
# Not SigIgn: glibc's posix_spawn ignores the two signals that it keeps for itself.
_SELF = [
    "sh",
    "-c",
    "grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp|SigBlk|SigCgt)' /proc/self/status; cat /proc/self/uid_map "
    "/proc/self/gid_map /proc/self/cgroup /proc/self/limits; cut -d' ' -f4-6 /proc/self/mountinfo; ls /proc/self/fd; "
    "env; pwd; nice; cut -d' ' -f6-8 /proc/self/stat",
]


def measure(*, quick: bool = False) -> list[Row]:
    return asyncio.run(_measure(6, 3) if quick else _measure(10, 20))


async def _measure(blocks: int, runs: int) -> list[Row]:
    draw = random.Random()
    pairs: list[tuple[float, float]] = []
    over_hyperfine: list[tuple[float, float]] = []
    bare_over_hyperfine: list[tuple[float, float]] = []
    async with chain() as ours:
        alike = await _alike(ours)
        commands = await ours.commands()
        with work_folders(commands), spawner(commands) as bare:
            await ours.turn()
            bare.run()
            for _ in range(blocks):
                mine: list[tuple[int, int]] = []
                other: list[float] = []
                for part in shuffled(["pairs", "hyperfine"], draw):
                    if part == "pairs":
                        mine = [await _pair(ours, bare, draw) for _ in range(runs)]
                    else:
                        other = hyperfine(commands[0], runs)
                pairs += mine
                theirs = median(sorted(other)) * 1e9
                over_hyperfine.append((median(sorted(a for a, _ in mine)), theirs))
                bare_over_hyperfine.append((median(sorted(b for _, b in mine)), theirs))
    return _rows(pairs, over_hyperfine, bare_over_hyperfine, alike)


async def _alike(ours: Chain) -> str:
    """Whether a guest can see a difference between the two: empty, or the difference."""
    expected, command = await ours.output(_SELF)
    with work_folders([command]), spawner([command]) as bare:
        bare.run()
    ours_only = set(expected.splitlines()) - set(bare.output.splitlines())
    bare_only = set(bare.output.splitlines()) - set(expected.splitlines())
    return f"harness {sorted(ours_only)}, C {sorted(bare_only)}" if ours_only or bare_only else ""


async def _pair(ours: Chain, bare: Spawner, draw: random.Random) -> tuple[int, int]:
    found: dict[str, int] = {}
    for name in shuffled(["harness", "C"], draw):
        if name == "harness":
            (found[name],) = await ours.turn()
        else:
            (found[name],) = bare.run()
    return found["harness"], found["C"]


def _rows(
    pairs: Sequence[tuple[float, float]],
    over_hyperfine: Sequence[tuple[float, float]],
    bare_over_hyperfine: Sequence[tuple[float, float]],
    difference: str,
) -> list[Row]:
    return [
        Row("cold_run through the harness", show(median_interval([a for a, _ in pairs]), 1e-6, "ms", 2)),
        Row("the same command line in C", show(median_interval([b for _, b in pairs]), 1e-6, "ms", 2)),
        Row("what the harness adds", show(median_interval([a - b for a, b in pairs]), 1e-6, "ms", 2), "", "run by run"),
        Row("harness / C", show(ratio_interval(pairs)), "1.05", "run by run"),
        Row("harness / hyperfine", show(ratio_interval(over_hyperfine)), "", "medians, block by block"),
        Row("C / hyperfine", show(ratio_interval(bare_over_hyperfine)), "", "medians, block by block"),
        Row("what a guest sees", f"DIFFERS: {difference}" if difference else "the same, harness and C"),
    ]
