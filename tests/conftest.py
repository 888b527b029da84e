"""For all tests: the ledgers of the runs that they make are not the user's, and Ctrl-C reaches these runs."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")
"""The same examples in every run: a property that fails on a colleague's machine fails in CI as well, and no change is
held back by what it did not touch. `pytest --hypothesis-profile=default` looks for new ones."""


@pytest.fixture(scope="session", autouse=True)
def _own_state() -> Iterator[None]:
    before = os.environ.get("XDG_STATE_HOME")
    with tempfile.TemporaryDirectory(prefix="sandboxbench-state-") as folder:
        os.environ["XDG_STATE_HOME"] = folder
        yield
    if before is None:
        del os.environ["XDG_STATE_HOME"]
    else:
        os.environ["XDG_STATE_HOME"] = before


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_heard() -> Iterator[None]:
    """What a shell starts in the background ignores it, and so would all that is started here."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, signal.SIG_IGN)
