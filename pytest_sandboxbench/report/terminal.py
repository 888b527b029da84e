"""The sections at the end of a pytest run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from .ci import MOST_ANNOTATIONS, annotation, is_github, step_summary, write_step_summary
from .notes import notes
from .scaling import scaling
from .table import Line, Row, build, render
from .text import harmless

if TYPE_CHECKING:
    from ..session import BenchSession
    from ..several import Several

__all__ = ["write_summary"]

_SUMMARY = 120
"""Columns of the tables in GitHub's summary of a step."""

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
    groups = build(session.results, session.header)
    if len(session.results):
        terminal.section("sandbox benchmarks", sep="=")
        width = max(60, terminal._tw.fullwidth)
        _write(terminal, [*render(groups, session.header, width), *notes(groups, session.header, width)])
        _write(terminal, scaling(groups, session.header, width, getattr(terminal._tw._file, "encoding", None)))
        folder = session.folder
        if folder is not None and (folder / "run.json").exists():
            shown = os.path.relpath(folder, session.config.invocation_params.dir)
            partial = "" if session.header.get("complete") else " --partial"
            terminal.write_line(f"records: {shown} (sandboxbench report {shown}{partial} prints this table again)")
    judged = session.judged
    if judged is not None and (judged.verdicts or judged.unmatched):
        _write_budgets(terminal, judged, wordy=session.config.get_verbosity() > 0)
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
    if is_github():
        _tell_github(terminal, session, groups)


def _tell_github(terminal: pytest.TerminalReporter, session: BenchSession, groups: Sequence[Sequence[Row]]) -> None:
    """Annotations on standard output, and the summary of the step in its file."""
    verdicts = session.judged.verdicts if session.judged is not None else []
    said: list[tuple[str, str]] = []
    if verdicts:
        from ..budgets.wording import describe, headline

        said = [(verdict.outcome, describe(verdict)) for verdict in verdicts]
        for outcome, level in (("fail", "error"), ("inconclusive", "warning")):
            for verdict in [verdict for verdict in verdicts if verdict.outcome == outcome][:MOST_ANNOTATIONS]:
                terminal.write_line(annotation(level, f"sandbox budget: {headline(verdict)}", describe(verdict)))
    if not groups and not said:
        return
    table = [*render(groups, session.header, _SUMMARY), *notes(groups, session.header, _SUMMARY)]
    lines = [line.text for line in table]
    if problem := write_step_summary(step_summary("Sandbox benchmarks", said, lines)):
        terminal.write_line(problem, yellow=True)


def _write_budgets(terminal: pytest.TerminalReporter, judged: Several, *, wordy: bool) -> None:
    """What fails stands above with its test; here once more what was not decided, and where all of them stand."""
    from ..budgets.wording import describe

    terminal.section("sandbox budgets", sep="=")
    for outcome, markup in (("fail", {"red": True}), ("inconclusive", {"yellow": True}), ("pass", {"green": True})):
        found = [verdict for verdict in judged.verdicts if verdict.outcome == outcome]
        if not found:
            continue
        terminal.write_line(f"{outcome}: {len(found)}", bold=True, **markup)
        if outcome != "pass" or wordy:
            for verdict in found:
                for line in describe(verdict).split("\n"):
                    terminal.write_line(f"  {line}")
    for one in judged.unmatched:
        terminal.write_line(f"not in this run: {one.reason}  ({one.placed.where})", light=True)


def _write(terminal: pytest.TerminalReporter, lines: list[Line]) -> None:
    for line in lines:
        terminal.write_line(line.text, **_MARKUP[line.kind])
