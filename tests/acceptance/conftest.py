"""The shipped suites in a folder of their own, run as a user runs them."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Suite, suite, workers, workers_always

__all__ = ["benches", "suite", "workers", "workers_always"]


@pytest.fixture
def benches(suite: Suite) -> Suite:
    suite.init()
    return suite
