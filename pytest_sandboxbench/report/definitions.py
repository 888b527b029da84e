"""The definitions of the spans as a page, made from the code that measures."""

from __future__ import annotations

from ..load.operations import OPERATIONS, SCENARIOS

__all__ = ["definitions"]


def definitions() -> str:
    """Markdown: every operation with its span, and the scenarios that time them."""
    lines = [
        "# Operations and their spans",
        "",
        "<!-- Made by `sandboxbench operations`; a test compares. -->",
        "",
        "All times are taken by the client on one monotonic clock. The timed region contains the act and nothing else:",
        "imports, clients, warm-up rounds and teardown lie outside, or are operations of their own.",
        "",
        "| operation | from | to | state before |",
        "|---|---|---|---|",
    ]
    lines += [f"| `{op.name}` | {op.start} | {op.end} | {op.before} |" for op in OPERATIONS.values()]
    lines += [
        "",
        "## Scenarios",
        "",
        "One life of a sandbox gives samples of several operations. A scenario always runs as a whole, whichever of",
        "its operations were selected, so that a number never depends on `-k`; the table shows those that were asked",
        "for, the records hold all (`sandboxbench report --all`).",
        "",
        "| scenario | operations | needs |",
        "|---|---|---|",
    ]
    for scenario in SCENARIOS.values():
        operations = ", ".join(f"`{name}`" for name in scenario.operations)
        lines.append(f"| `{scenario.name}` | {operations} | {scenario.needs or 'nothing'} |")
    return "\n".join(lines) + "\n"
