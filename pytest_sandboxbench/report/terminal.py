"""The sections at the end of a pytest run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from .notes import notes
from .scaling import scaling
from .table import Line, build, render
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
    if len(session.results):
        groups = build(session.results, session.header)
        terminal.section("sandbox benchmarks", sep="=")
        width = max(60, terminal._tw.fullwidth)
        _write(terminal, [*render(groups, session.header, width), *notes(groups, session.header, width)])
        _write(terminal, scaling(groups, session.header, width, getattr(terminal._tw._file, "encoding", None)))
        folder = session.folder
        if folder is not None and (folder / "run.json").exists():
            shown = os.path.relpath(folder, session.config.invocation_params.dir)
            partial = "" if session.header.get("complete") else " --partial"
            terminal.write_line(f"records: {shown} (sandboxbench report {shown}{partial} prints this table again)")
    news = session.news
    if news.absent:
        terminal.section("sandbox providers that are not ready", sep="=")
        for name, (reason, cure) in news.absent.items():
            terminal.write_line(f"{name}: {harmless(reason)}. {harmless(cure)}", yellow=True)
    if news.left:
        terminal.section("sandbox leaks", sep="=", red=True)
        for provider, id_, reason in news.left:
            terminal.write_line(f"{provider} {harmless(id_)}: {harmless(reason)}", red=True)
        terminal.write_line("`sandboxbench reap` tries again; `sandboxbench list` says what still exists")
    for note in news.notes:
        terminal.write_line(harmless(note, 2000), yellow=True)
    if news.problem:
        terminal.write_line(harmless(news.problem), red=True)


def _write(terminal: pytest.TerminalReporter, lines: list[Line]) -> None:
    for line in lines:
        terminal.write_line(line.text, **_MARKUP[line.kind])
