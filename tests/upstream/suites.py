"""Whose suites, and what they need. Read from their own tox.ini and pyproject.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["SUITES", "Suite"]


@dataclass(frozen=True, slots=True)
class Suite:
    """``optional`` packages are left out where no index has them; the tests that want them skip, on both sides.

    ``tests`` says which are all, ``options`` are given whichever tests run, ``slow`` leaves out what costs more than
    it tells. ``environment`` may say ``{root}``: the unpacked archive, in which the suite runs without its ``src``, so
    that the installed package is tested.
    """

    name: str
    tests: str
    options: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    slow: tuple[str, ...] = ()


SUITES = (
    Suite(
        "pytest-xdist",
        tests="testing",
        needs=("filelock",),
        slow=("--deselect=testing/test_looponfail.py",),
    ),
    Suite(
        "pytest-benchmark",
        tests="tests",
        # Its own without --nbmake: forty packages of Jupyter for one test.
        options=("-o", "addopts=-ra --strict-markers --doctest-modules --doctest-glob=*.rst --tb=short"),
        needs=("pytest-xdist", "freezegun", "setuptools"),
        optional=("aspectlib", "elasticsearch", "pygal", "pygaljs"),
        environment={"COLUMNS": "80", "PYTHONPATH": "{root}/tests"},
        slow=("--ignore=tests/test_calibration.py",),
    ),
)
