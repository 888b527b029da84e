"""The matrix, a test a cell; a few of them among the fast tests. ``python -m tests.faults`` prints it as a table."""

from __future__ import annotations

import sys

import pytest

from .fault import Fault, Result, run
from .matrix import FAULTS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at the host through /proc")


def cells() -> list[object]:
    found: list[object] = []
    for fault in FAULTS:
        for kind in fault.providers:
            marks = [] if kind in fault.fast else [pytest.mark.full]
            found.append(pytest.param(fault, kind, id=f"{kind}-{fault.name}", marks=marks))
    return found


@pytest.mark.parametrize(("fault", "kind"), cells())
def test_fault(fault: Fault, kind: str, results: list[Result], request: pytest.FixtureRequest) -> None:
    if lacks := fault.lacks():
        pytest.skip(lacks)
    if kind == "bubblewrap":
        request.getfixturevalue("bubblewrap_ready")
    result = run(fault, kind)
    results.append(result)
    assert not result.wrong, result.wrong
