"""The daily short forms: ``pytest benches/ --provider microsandbox`` for ``--sandbox-provider microsandbox``."""

from __future__ import annotations

import pytest

from pytest_sandboxbench.options import add_short_options


def pytest_addoption(parser: pytest.Parser) -> None:
    add_short_options(parser)
