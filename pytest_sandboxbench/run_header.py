"""The header of a run's records while it is being made: kept by the process that leads, and written whenever it grows.

Where the leader of a gang dies, the next one goes on with what that one wrote.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import __version__
from .facts import cpu_ticks, host_facts, load_average
from .load.block import Block
from .load.operations import OPERATIONS
from .records.redaction import hide_arguments, redact
from .records.schema import SCHEMA
from .records.spool import write_header

__all__ = ["RunHeader"]


class RunHeader:
    """``values`` is the header. ``told`` gets it as JSON whenever it is written, for another process."""

    def __init__(
        self,
        folder: Path,
        run_id: str,
        *,
        origin_ns: int,
        seed: int,
        secrets: Sequence[str],
        told: Callable[[bytes], None] | None = None,
    ) -> None:
        self.leads = True
        self.problem = ""
        self._folder = folder
        self._secrets = secrets
        self._told = told
        self._took_over = False
        self._busy: Counter[tuple[str, bool]] = Counter()
        self._ticks: tuple[int, int] | None = None
        self._began = 0.0
        self._block: dict[str, Any] = {}
        self.values: dict[str, Any] = {
            "schema": SCHEMA,
            "version": __version__,
            "run_id": run_id,
            "folder": str(folder),
            "started": _now(),
            "origin_monotonic_ns": origin_ns,
            "seed": seed,
            "command": hide_arguments(sys.argv),
            "host": host_facts(),
            "providers": {},
            "guests": {},
            "limits": {},
            "operations": {},
            "blocks": [],
            "complete": False,
        }

    # -- facts

    def provider(self, name: str, facts: Mapping[str, Any]) -> None:
        self.values["providers"][name] = redact(facts, self._secrets)

    def guest(self, name: str, facts: Mapping[str, str]) -> None:
        if facts:
            self.values["guests"][name] = redact(facts, self._secrets)

    def limits(self, name: str, enforced: Mapping[str, str], unenforced: Sequence[str]) -> None:
        if enforced or unenforced:
            limits = {"enforced": dict(enforced), "unenforced": sorted(unenforced)}
            self.values["limits"][name] = redact(limits, self._secrets)

    # -- blocks

    def begin(self, block: Block, asked: Mapping[str, Sequence[str]] | None, workers: int) -> None:
        """Write down that a block begins, before anything of it is measured."""
        if not self.leads:
            return
        if not self._took_over:
            self._take_over()
        self._define(block.scenario.operations)
        self._block = {
            "id": block.id,
            "scenario": block.scenario.name,
            "level": block.level,
            "shape": block.shape,
            "variants": dict(block.key_variants),
            "providers": list(block.providers),
            "floor": block.floor,
            "operations": list(block.scenario.operations),
            "asked": _asked(block, asked),
            "rounds": block.plan.rounds,
            "looks": list(block.plan.looks),
            "warmup": block.plan.warmup,
            "workers": workers,
            "complete": False,
            "load_average": load_average(),
        }
        self.values["blocks"].append(self._block)
        self._busy.clear()
        self._began = time.monotonic()
        self.write()

    def end(self, *, complete: bool, why: str = "") -> None:
        """It is over: to its end, or cut, for a reason if one is known."""
        if not self.leads:
            return
        self._block["complete"] = complete
        if why:
            self._block["cut"] = why
        self._block["wall_s"] = round(time.monotonic() - self._began, 3)
        names = {name for name, _ in self._busy}
        shares = {name: (self._busy[name, True], self._busy[name, False]) for name in sorted(names)}
        self._block["busy"] = {name: round(busy / total, 3) for name, (busy, total) in shares.items() if total}
        self.write()

    def turn_begins(self) -> None:
        if self.leads:
            self._ticks = cpu_ticks()

    def turn_ends(self, provider: str) -> None:
        """How busy the CPUs were in the meantime, by whomever."""
        before, self._ticks = self._ticks, None
        if before is not None and (after := cpu_ticks()) is not None:
            self._busy[provider, True] += after[0] - before[0]
            self._busy[provider, False] += after[1] - before[1]

    def _define(self, operations: Sequence[str]) -> None:
        """Spans of the operations measured so far, in the order of their definition: tables keep it."""
        wanted = {*self.values["operations"], *operations}
        self.values["operations"] = {
            name: {"start": op.start, "end": op.end, "before": op.before}
            for name, op in OPERATIONS.items()
            if name in wanted
        }

    def _take_over(self) -> None:
        """Go on with the header of a leader that is gone. It is this run's own: the folder was new or empty."""
        self._took_over = True
        try:
            before = json.loads((self._folder / "run.json").read_bytes())
        except (OSError, ValueError):
            return
        if before.get("run_id") != self.values["run_id"]:
            return
        for name in ("providers", "guests", "limits", "operations"):
            self.values[name] = {**before[name], **self.values[name]}
        self.values["blocks"] = [*before["blocks"], *self.values["blocks"]]
        self.values["started"] = before["started"]

    # -- writing

    def finish(self) -> None:
        """Once, at the end of the run."""
        if "finished" in self.values:
            return
        self.values["complete"] = all(block["complete"] for block in self.values["blocks"])
        self.values["finished"] = _now()
        if self.leads and self.values["blocks"]:
            self.write()

    def write(self) -> None:
        values = redact(self.values, self._secrets)
        self.problem = write_header(self._folder, values) or self.problem
        if self._told is not None:
            self._told(json.dumps(values).encode())


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _asked(block: Block, asked: Mapping[str, Sequence[str]] | None) -> dict[str, list[str]]:
    everything = block.scenario.operations
    if asked is None:
        return {name: list(everything) for name in block.providers}
    shown = {name: [op for op in everything if op in asked.get(name, ())] for name in block.providers}
    if block.floor is not None:
        shown[block.floor] = [op for op in everything if any(op in operations for operations in shown.values())]
    return shown
