"""``--sandbox-budgets``: which budgets apply to which series, and where they stand. Collects, measures nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from .budgeting import Budgets, expected_keys, lacks
from .budgets.grammar import write
from .budgets.matching import idle_levels, matches, unmatched
from .budgets.model import Placed
from .model import SeriesKey
from .naming import is_ours, measures
from .records.series import Series
from .records.untrusted import harmless

__all__ = ["main", "show"]


def main(config: pytest.Config, listing: Callable[[pytest.Config, pytest.Session], int]) -> int | pytest.ExitCode:
    """In place of a run: what ``listing`` prints."""
    from _pytest.main import wrap_session

    config.option.verbose = min(config.option.verbose, -1)  # no header, no summary of a run that there is not
    # xdist would start its workers with the session.
    config.option.dist, config.option.tx, config.option.numprocesses = "no", [], 0
    return wrap_session(config, listing)


def show(config: pytest.Config, session: pytest.Session) -> int:
    """The budgets."""
    session.perform_collect()
    config.option.collectonly = True  # what ends here measured nothing, and was not to
    budgets = Budgets(config)
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    used: dict[Placed, None] = {}
    found: dict[SeriesKey, dict[Placed, None]] = {}
    for item in session.items:
        if is_ours(item) and measures(item):
            for key in expected_keys(item):
                about = [p for p in budgets.about(item) if matches(p.budget, key)]
                found.setdefault(key, {}).update(dict.fromkeys(about))
                used.update(dict.fromkeys(about))
    series = [Series(key) for key in found]
    why = {one.placed: one.reason for one in (*unmatched(used, series), *idle_levels(used, series))}
    why |= {placed: reason for placed in used if (reason := lacks(config, placed))}
    lines: list[str] = []
    for key in found:
        lines.append(harmless(str(key)))
        lines += [f"  {line}" for line in _lines(found[key])] or ["  no budget"]
    idle = [placed for placed in budgets.placed if placed not in used]
    if idle:
        lines.append("apply to no series of these tests:")
        lines += [f"  {line}" for line in _lines(idle)]
    if why:
        lines.append("not judged, or not wholly:")
        lines += [f"  {harmless(write(placed.budget))}: {reason}" for placed, reason in why.items()]
    reporter.write_line("")
    for line in lines or ["no benches were collected"]:
        reporter.write_line(line)
    return pytest.ExitCode.OK if found else pytest.ExitCode.NO_TESTS_COLLECTED


def _lines(placed: Iterable[Placed]) -> list[str]:
    texts = [(harmless(write(one.budget)), harmless(one.where)) for one in placed]
    longest = max((len(text) for text, _ in texts), default=0)
    return [f"{text:<{min(longest, 60)}}  {where}" for text, where in texts]
