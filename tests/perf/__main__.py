"""``python -m tests.perf [PART...]``: measures and prints one table. See README.md beside this file."""

from __future__ import annotations

import argparse
import importlib
import platform
from pathlib import Path

from pytest_sandboxbench.facts import host_facts

from .table import Machine, render

PARTS = {
    "cold_run": "cold_run over the same command line in C and in hyperfine, one lane",
    "lanes": "cold_run over the same command lines in C, by the number of lanes",
    "sweep": "cold_run through pytest and its workers, over the same command lines in C, by the number of lanes",
    "gang": "what it costs to drive the lanes from several workers",
    "plugin_load": "a pytest run of one test without benches, with and without the plugin",
    "wall_time": "where the wall time of `pytest benches/ --provider bubblewrap` goes",
    "e2b": "create and exec of E2B through adapter and SDK, over a bare client that keeps its connection",
    "big_report": "`sandboxbench report` on many samples",
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.perf", description="What this project itself costs.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"only these: {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="few runs: does it work at all?")
    arguments = parser.parse_args()
    unknown = [part for part in arguments.parts if part not in PARTS]
    if unknown:
        parser.error(f"no part {unknown[0]!r}; there are: {', '.join(PARTS)}")
    facts = host_facts()
    print(
        f"{facts.get('cpu', '?')}, {facts['cpus_usable']} CPUs, {facts['system']} {facts['kernel']}, "
        f"Python {platform.python_version()}, euid {facts.get('euid', '?')}. "
        "Estimates are medians; in brackets the 95 % interval and the number of pairs or runs.",
        flush=True,
    )
    for part in arguments.parts or PARTS:
        machine = Machine()
        rows = importlib.import_module(f"{__package__}.{Path(part).name}").measure(quick=arguments.quick)
        print("\n" + render(f"{part}: {PARTS[part]}", [*rows, machine.row()]), flush=True)


if __name__ == "__main__":
    main()
