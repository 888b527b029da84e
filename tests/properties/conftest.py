"""Where hypothesis keeps what it learns about the code: nowhere in the checkout."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis.configuration import set_hypothesis_home_dir

from ..providers.conftest import bubblewrap_ready

__all__ = ["bubblewrap_ready"]  # a fixture


@pytest.fixture(scope="session", autouse=True)
def hypothesis_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    set_hypothesis_home_dir(tmp_path_factory.mktemp("hypothesis"))
    yield
    set_hypothesis_home_dir(None)
