"""One row a finding, and the state of the machine in which it was found."""

from __future__ import annotations

import math
import os
import random
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_sandboxbench.stats import Interval

__all__ = ["Machine", "Row", "render", "show", "shuffled"]


@dataclass(frozen=True, slots=True)
class Row:
    """``aim`` is what is hoped for, as text; ``note`` says what the number is made of."""

    what: str
    value: str
    aim: str = ""
    note: str = ""


def show(interval: Interval, scale: float = 1.0, unit: str = "", digits: int = 3) -> str:
    """An estimate with its 95 % interval: ``1.043  (1.031..1.055, n = 200)``."""

    def number(value: float) -> str:
        return "…" if math.isinf(value) else f"{value * scale:.{digits}f}"

    bounds = f"{number(interval.low)}..{number(interval.high)}"
    return f"{number(interval.estimate)}{unit and ' ' + unit}  ({bounds}, n = {interval.units})"


def shuffled(names: Sequence[str], draw: random.Random) -> list[str]:
    """A random order of its own for each round: what drifts falls on all alike."""
    return draw.sample(names, len(names))


def render(title: str, rows: Sequence[Row]) -> str:
    width = max(len(row.what) for row in rows)
    values = max((len(row.value) for row in rows if row.aim or row.note), default=0)
    aims = max(len(row.aim) for row in rows) + len("aim ")
    lines = [title]
    for row in rows:
        aim = f"aim {row.aim}" if row.aim else ""
        lines.append(f"  {row.what:<{width}}  {row.value:<{values}}  {aim:<{aims}}  {row.note}".rstrip())
    return "\n".join(lines)


class Machine:
    """Who else used the machine from here on: load average, and CPU time that was not this process's or its children's.

    Work of the kernel on behalf of sandboxes (removing namespaces) counts as somebody else's, too.
    """

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._busy, self._stolen = _cpu_s()
        self._own = _own_s()

    def row(self) -> Row:
        seconds = (time.monotonic() - self._started) * (os.cpu_count() or 1)
        busy, stolen = _cpu_s()
        others = max(0.0, busy - self._busy - (_own_s() - self._own)) / seconds
        load = " ".join(f"{value:.1f}" for value in os.getloadavg())
        text = f"load average {load}; CPU used by others {others:.0%}, stolen {(stolen - self._stolen) / seconds:.0%}"
        return Row("machine meanwhile", text)


def _cpu_s() -> tuple[float, float]:
    fields = [int(text) for text in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    ticks = os.sysconf("SC_CLK_TCK")
    user, nice, system, _idle, _iowait, irq, softirq, stolen = fields
    return (user + nice + system + irq + softirq) / ticks, stolen / ticks


def _own_s() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
