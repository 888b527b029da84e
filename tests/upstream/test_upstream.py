"""See the package's docstring. Which tests differ stands in the message of the failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packaging.conftest import build

from .comparison import compare
from .sides import prepare
from .suites import SUITES, Suite

pytestmark = pytest.mark.full


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build(folder, "--wheel")
    (made,) = folder.glob("*.whl")
    return made


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_a_suite_ends_as_without_the_plugin(suite: Suite, wheel: Path, tmp_path: Path) -> None:
    found = compare(prepare(suite, wheel, tmp_path), [suite.tests, *suite.slow])
    print(found)
    assert not found.problem, found.problem
