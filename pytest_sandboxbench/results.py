"""Results that no test reports: verdicts on several series, where xdist's controller or the only process knows all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from .budgets.model import Verdict
from .budgets.plain import to_plain
from .budgets.wording import describe

__all__ = ["FOLDER", "emit", "properties"]

FOLDER = "budgets"
"""What stands before ``::`` in the ids of such results, where a test has its file."""


def emit(
    config: pytest.Config,
    name: str,
    failure: str,
    *,
    verdicts: Sequence[Verdict] = (),
    tests: Iterable[str] = (),
) -> None:
    """Report a result as if a test of this ``name`` had run: passed, or failed with the text ``failure``.

    ``tests`` are the ids of those that measured what it is about: ``--lf`` runs them again after a failure, since there
    is no test of this name to run. ``-x`` and ``--maxfail`` count it.
    """
    nodeid, location = f"{FOLDER}::{name}", (FOLDER, None, name)
    session: Any = config.pluginmanager.get_plugin("session")
    if session is not None:
        session.testscollected += 1  # or progress goes beyond 100 %
    if config.getoption("dist", "no") == "no":
        config.hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
    for when, text in (("call", failure), ("teardown", "")):
        report = _report(nodeid, location, "failed" if text else "passed", text or None, when)
        report.sandboxbench = {"own": True, "verdicts": to_plain(verdicts)}
        report.user_properties = properties(verdicts)
        config.hook.pytest_runtest_logreport(report=report)
    if config.getoption("dist", "no") == "no":
        config.hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)
    if failure:
        _run_again(config, nodeid, tests)
        gang: Any = config.pluginmanager.get_plugin("sandboxbench-gang")
        if gang is not None and session is not None and session.shouldfail:
            gang.stop(str(session.shouldfail))


def _report(nodeid: str, location: tuple[str, None, str], outcome: str, text: str | None, when: str) -> Any:
    return pytest.TestReport(nodeid, location, {}, outcome, text, when)  # type: ignore[arg-type]


def properties(verdicts: Iterable[Verdict]) -> list[tuple[str, object]]:
    """For junit's XML: what came of each budget, in words."""
    return [("sandbox_budget", f"{verdict.outcome}: {describe(verdict)}") for verdict in verdicts]


def _run_again(config: pytest.Config, nodeid: str, tests: Iterable[str]) -> None:
    """Tell pytest's cache, and nobody else, that these tests failed instead: how it keeps them may change."""
    plugin: Any = config.pluginmanager.get_plugin("lfplugin")
    if plugin is None:
        return
    for name, outcome in ((nodeid, "passed"), *((test, "failed") for test in tests)):
        plugin.pytest_runtest_logreport(_report(name, (FOLDER, None, name), outcome, None, "call"))
