"""What would keep this machine from measuring well, with a cure for each."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from .facts import host_facts
from .model import Preflight
from .report.text import harmless

__all__ = ["Finding", "examine"]


@dataclass(frozen=True, slots=True)
class Finding:
    level: Literal["ok", "note", "bad"]
    text: str
    cure: str = ""


def examine(providers: Sequence[tuple[str, str, Preflight]]) -> Iterator[Finding]:
    """Findings in the order in which they matter. ``providers`` are (name, kind, preflight)."""
    facts = host_facts()
    yield Finding(
        "ok",
        f"{facts.get('cpu', 'CPU unknown')}, {facts.get('cpus_usable')} CPUs usable, {facts.get('system')} "
        f"{facts.get('kernel')}, Python {facts.get('python')}",
    )
    yield from _packages()
    yield from _quiet(facts)
    yield from _host()
    default = "bubblewrap" if sys.platform == "linux" else "null"
    for name, _kind, answer in providers:
        if answer.ready:
            yield Finding("ok", f"provider {name} is ready")
        else:
            level: Literal["bad", "note"] = "bad" if name == default else "note"
            yield Finding(level, f"provider {name} is missing: {harmless(answer.reason)}", harmless(answer.cure))


def _packages() -> Iterator[Finding]:
    for name in ("pytest", "pytest-benchmark", "pytest-asyncio", "pytest-xdist"):
        try:
            yield Finding("ok", f"{name} {version(name)}")
        except PackageNotFoundError:
            yield Finding("bad", f"{name} is not installed", "pip install pytest-sandboxbench")


def _quiet(facts: dict[str, object]) -> Iterator[Finding]:
    load, cpus = facts.get("load_average"), facts.get("cpus_usable")
    if isinstance(load, list) and isinstance(cpus, int) and load[0] > 0.5 * cpus:
        yield Finding(
            "note",
            f"the machine is busy: load {load[0]} on {cpus} CPUs",
            "measure when nothing else runs: load changes the times, and the ratios too",
        )
    if "cpu_quota" in facts:
        yield Finding(
            "note", f"the harness runs under a CPU quota ({facts['cpu_quota']})", "bursts of lanes are throttled"
        )


def _host() -> Iterator[Finding]:
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):
        yield Finding(
            "note",
            "PYTHONDONTWRITEBYTECODE is set: each pytest process compiles its plugins again",
            "unset it; runs start faster",
        )
    governor = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    try:
        found = governor.read_text(encoding="ascii").strip()
        if found not in ("performance", "schedutil"):
            yield Finding("note", f"the CPU governor is {found}", "cpupower frequency-set -g performance")
    except OSError:
        pass
    try:
        with tempfile.TemporaryFile(dir=Path.cwd()):
            pass
    except OSError as error:
        yield Finding("bad", f"records cannot be written to {Path.cwd()}: {error.strerror}", "--sandbox-records DIR")
