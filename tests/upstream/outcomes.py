"""A plugin of pytest that writes a line a test and phase: ``-p outcomes``. Runs in other projects' environments."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.reports import BaseReport

FILE = "UPSTREAM_OUTCOMES"


def pytest_configure(config: pytest.Config) -> None:
    # Taken out, so that a pytest that a test starts with this one's arguments does not write to it.
    path = os.environ.pop(FILE, None)
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Writing(Path(path)))


class _Writing:
    def __init__(self, path: Path) -> None:
        self._path = path

    def _write(self, report: BaseReport, when: str) -> None:
        if report.passed and when not in ("call", "collect"):
            return
        outcome = f"x{report.outcome}" if hasattr(report, "wasxfail") else report.outcome
        with self._path.open("a", encoding="ascii") as file:
            file.write(json.dumps([report.nodeid, when, outcome]) + "\n")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._write(report, report.when)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if not report.passed:
            self._write(report, "collect")
