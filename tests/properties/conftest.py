"""Where hypothesis keeps what it learns about the code: nowhere in the checkout."""

from __future__ import annotations

import tempfile

from hypothesis.configuration import set_hypothesis_home_dir

from ..providers.conftest import bubblewrap_ready

__all__ = ["bubblewrap_ready"]  # a fixture

# Not in a fixture: it reads the constants of the code, and keeps them, as soon as its tests are collected.
_home = tempfile.TemporaryDirectory(prefix="sandboxbench-hypothesis-")
set_hypothesis_home_dir(_home.name)


def pytest_unconfigure() -> None:
    set_hypothesis_home_dir(None)
    _home.cleanup()
