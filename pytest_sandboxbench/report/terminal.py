"""The sections at the end of a pytest run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from ..load.block import Left
from .table import Line, build, notes, render
from .text import harmless

if TYPE_CHECKING:
    from ..session import BenchSession

__all__ = ["write_summary"]

_MARKUP: dict[str, dict[str, bool]] = {
    "head": {"bold": True},
    "title": {"cyan": True},
    "row": {},
    "floor": {"light": True},
    "bad": {"red": True},
    "note": {"light": True},
}


def write_summary(terminal: pytest.TerminalReporter, session: BenchSession) -> None:
    """Table, leaks, missing providers, and where the records are."""
    measuring = session.measuring
    if len(session.results):
        groups = build(session.results, session.header)
        terminal.section("sandbox benchmarks", sep="=")
        width = max(60, terminal._tw.fullwidth)
        _write(terminal, [*render(groups, session.header, width), *notes(groups, session.header)])
        folder = session.folder
        if folder is not None:
            shown = os.path.relpath(folder, session.config.invocation_params.dir)
            terminal.write_line(f"records: {shown} (sandboxbench report {shown} prints this table again)")
    if session.absent:
        terminal.section("sandbox providers that are not ready", sep="=")
        for name, answer in session.absent.items():
            terminal.write_line(f"{name}: {harmless(answer.reason)}. {harmless(answer.cure)}", yellow=True)
    leaks: list[Left] = measuring.left if measuring is not None else []
    if leaks:
        terminal.section("sandbox leaks", sep="=", red=True)
        for left in leaks:
            terminal.write_line(f"{left.ref.provider} {harmless(left.ref.id)}: {harmless(left.reason)}", red=True)
    if measuring is not None and measuring.problem:
        terminal.write_line(harmless(measuring.problem), red=True)


def _write(terminal: pytest.TerminalReporter, lines: list[Line]) -> None:
    for line in lines:
        terminal.write_line(line.text, **_MARKUP[line.kind])
