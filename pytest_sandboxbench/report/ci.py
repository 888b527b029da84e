"""What continuous integration reads: GitHub's annotations and step summary, and the file of github-action-benchmark.

Workflow commands are lines on standard output: ``::error title=...::message``, see GitHub's "Workflow commands for
GitHub Actions". What comes from a sandbox must not begin one, and Markdown must not become HTML.
"""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..records.untrusted import harmless
from .table import Row

__all__ = ["MOST_ANNOTATIONS", "annotation", "benchmark_entries", "is_github", "step_summary", "write_step_summary"]

MOST_ANNOTATIONS = 10
"""GitHub shows no more of one level and step."""

_LARGEST_SUMMARY = 1_000_000  # bytes; GitHub takes 1 MiB a step and drops a larger one as a whole


def is_github() -> bool:
    return os.environ.get("GITHUB_ACTIONS") == "true"


def annotation(level: str, title: str, message: str) -> str:
    """One workflow command; ``level`` is error, warning or notice. ``message`` may have several lines.

    >>> annotation("error", "50 %, or 1:2", "first\\nsecond")
    '::error title=50 %25%2C or 1%3A2::first%0Asecond'
    """
    name = _escaped(harmless(title, 200)).replace(":", "%3A").replace(",", "%2C")
    text = _escaped("\n".join(harmless(line, 1000) for line in message.split("\n")))
    return f"::{level} title={name}::{text}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def step_summary(title: str, verdicts: Sequence[tuple[str, str]], tables: Iterable[str]) -> str:
    """Markdown: a row for each verdict (outcome and text), then the tables as they stand in the terminal."""
    parts = [f"## {html.escape(harmless(title, 200))}", ""]
    if verdicts:
        parts += ["| | budget |", "| --- | --- |"]
        parts += [f"| {outcome} | {_cell(text)} |" for outcome, text in verdicts]
        parts.append("")
    # A block that is indented needs no fence, which what is shown could close.
    parts += [f"    {line}" for line in tables]
    return "\n".join(parts) + "\n"


def _cell(text: str) -> str:
    lines = (html.escape(harmless(line, 1000)) for line in text.split("\n"))
    # Whatever Markdown would read: a link of somebody else's in our summary, for instance.
    return "<br>".join("".join(f"\\{c}" if c in "\\`*_[]|~!" else c for c in line.strip()) for line in lines)


def write_step_summary(text: str) -> str:
    """Append to the file that GitHub names. Returns what went wrong, in words; "" for nothing."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return ""
    data = text.encode()
    if len(data) > _LARGEST_SUMMARY:
        data = data[:_LARGEST_SUMMARY].rpartition(b"\n")[0] + b"\n\ncut: there was more\n"
    try:
        with Path(path).open("ab") as file:
            file.write(data)
    except OSError as error:
        return f"the step summary was not written: {error.strerror or error}"
    return ""


def benchmark_entries(groups: Iterable[Sequence[Row]]) -> list[dict[str, Any]]:
    """Entries for github-action-benchmark with ``tool: customSmallerIsBetter``: medians in milliseconds."""
    return [entry for group in groups for row in group if not row.floor and (entry := _entry(row)) is not None]


def _entry(row: Row) -> dict[str, Any] | None:
    summary = row.summary
    if summary.median is None:
        return None
    half = None if summary.low is None or summary.high is None else (summary.high - summary.low) / 2e6
    return {
        "name": f"{harmless(str(row.key), 500)} median",
        "unit": "ms",
        "value": round(summary.median / 1e6, 6),
        **({} if half is None else {"range": f"± {half:.4g}"}),
        "extra": f"n={summary.n}\nsucceeded: {100 * (summary.success_rate or 0):.4g} %",
    }
