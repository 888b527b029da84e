"""What stands below the table: how its numbers were made, on which host, and what was not as it should be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..stats import GENERATOR_BOUND
from .limiter import limiter_note
from .table import Line, Row, shown_columns
from .text import harmless, number, wrap

__all__ = ["notes"]


_ISOLATION: Mapping[str, str] = {"none": "no isolation", "scripted": "scripted, no sandbox at all"}

_SHOWN_FACTS = ("version", "service", "sdk", "guest_python", "pause", "cgroup")


def notes(groups: Sequence[Sequence[Row]], header: Mapping[str, Any], width: int = 120) -> list[Line]:
    """What a reader must know to trust the table, in as few lines as that takes."""
    rows = [row for group in groups for row in group]
    if not rows:
        return []
    shown = shown_columns(groups, width)
    one = "order statistics, one sandbox is one unit"
    several = "a bootstrap over rounds, one round of all lanes is one unit"
    levels = {row.key.level > 1 for row in rows}
    how = f"{one}; with several lanes {several}" if len(levels) > 1 else several if True in levels else one
    out = [f"interval: of the median, {how}; p95 is shown from n = 20, p99 from n = 100"]
    floor = next((r.key.provider for r in rows if r.floor), None)
    if floor is not None and "× floor" in shown:
        out.append(
            f"× floor: median of the ratios to `{floor}` in the same round, what the host takes without a sandbox: "
            "bare processes, and files written and read in place; rounds are interleaved"
        )
    if any(row.unlike and row.summary.floor_ratio is not None for row in rows):
        out.append(
            "(×): the floor pauses in another way, by a signal to its processes: two acts, not one with and without"
        )
    if "rate" in shown:
        out.append("rate: successful acts a second of the wall time of their rounds")
    if "at once" in shown:
        out.append("at once: the most lanes in flight at one instant, the range over the rounds")
    if "spread" in shown:
        out.append("spread: from the first lane's start to the last's, median of the rounds")
    if any(row.summary.generator_bound for row in rows):
        out.append(
            f"GENERATOR BOUND: more than {GENERATOR_BOUND:.0%} of the median is waiting for this program, not for a "
            "sandbox: the row says little of its provider"
        )
    out += [note for row in rows if (note := limiter_note(row.series, header))]
    host = header.get("host", {})
    limits = "".join(f", {k.replace('_', ' ')} {host[k]}" for k in ("cpu_quota", "memory_limit") if k in host)
    if host:
        out.append(
            f"host: {host.get('cpu', 'CPU unknown')}, {host.get('cpus_usable')} CPUs, "
            f"{host.get('system')} {host.get('kernel')}, Python {host.get('python')}{limits}{_load(host)}"
        )
    cut = [block for block in header.get("blocks", []) if not block.get("complete")]
    if cut:
        names = ", ".join(str(block["id"]) for block in cut)
        out.append(f"INTERRUPTED: {names} did not run to the end; of the last round some lanes may be missing")
    for name, provider in header.get("providers", {}).items():
        told = {k: v for k, v in provider.get("facts", {}).items() if k in _SHOWN_FACTS}
        settings = provider.get("options", {})
        text = ", ".join([*(f"{k} {v}" for k, v in told.items()), *(f"{k}={v}" for k, v in settings.items())])
        guest = header.get("guests", {}).get(name, {})
        inside = ", ".join(f"{guest[k]} {t}" for k, t in (("vcpus", "vCPUs"), ("memory_mib", "MiB")) if k in guest)
        isolation = str(provider.get("isolation", "isolation unknown"))
        out.append(
            f"{name}: {_ISOLATION.get(isolation, isolation)}{', ' + text if text else ''}"
            f"{'; in the guest: ' + inside if inside else ''}{_limits(header, name)}"
        )
    return [Line(line, "note") for text in out for line in wrap(harmless(text, 600), width, more="  ", most=4)]


def _load(host: Mapping[str, Any]) -> str:
    """The load average before the run; busy from half a process a CPU on, by others than this run."""
    average, cpus = host.get("load_average"), host.get("cpus_usable")
    if not isinstance(average, list) or not average or not isinstance(average[0], int | float):
        return ""
    busy = isinstance(cpus, int) and average[0] > cpus / 2
    return f", load {number(average[0])}" + (
        ": BUSY, neither times nor ratios are those of a quiet machine" if busy else ""
    )


def _limits(header: Mapping[str, Any], name: str) -> str:
    limits = header.get("limits", {}).get(name, {})
    enforced = ", ".join(f"{k} {v}" for k, v in limits.get("enforced", {}).items())
    missing = ", ".join(limits.get("unenforced", []))
    return (f"; limits: {enforced}" if enforced else "") + (f"; NOT enforced: {missing}" if missing else "")
