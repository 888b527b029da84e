"""Prints the matrix of what ran, as a section of its own at the end."""

from __future__ import annotations

import pytest

from ..providers.conftest import bubblewrap_ready
from .fault import Result
from .matrix import table

__all__ = ["bubblewrap_ready"]  # a fixture

RESULTS = pytest.StashKey[list[Result]]()


@pytest.fixture
def results(request: pytest.FixtureRequest) -> list[Result]:
    return request.config.stash.setdefault(RESULTS, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    found = config.stash.get(RESULTS, [])
    if found:
        terminalreporter.section("faults")
        for line in table(found):
            terminalreporter.write_line(line)
