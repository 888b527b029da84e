"""Hooks that this plugin offers to conftests and other plugins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .budgets.evidence import Evidence
    from .budgets.model import Placed, Verdict

__all__ = [
    "pytest_sandboxbench_budgets",
    "pytest_sandboxbench_check",
    "pytest_sandboxbench_providers",
    "pytest_sandboxbench_update_header",
]


def pytest_sandboxbench_update_header(config: pytest.Config, header: dict[str, Any]) -> None:
    """Add facts to the header of the records before anything is measured, under a key of your own.

    ``header["host"]`` holds the facts of the host. Values must be JSON; one whose key sounds like a secret is hidden.
    """


def pytest_sandboxbench_budgets(config: pytest.Config) -> Sequence[str]:  # type: ignore[empty-body]
    """Budgets to add to those of the options and files: texts such as ``"startup median 44ms..52ms @1,16"``.

    Called once in each process that has benches. A text that is no budget ends the run with a message (status 4).
    """


def pytest_sandboxbench_providers(config: pytest.Config) -> Mapping[str, str]:  # type: ignore[empty-body]
    """Kinds of providers to add: name -> ``"package.module:factory"``, as in the entry point group.

    For a provider that lives beside the suites. Only test runs know it, ``sandboxbench reap`` does not: what is to be
    found again by another command is registered as an entry point.
    """


@pytest.hookspec(firstresult=True)
def pytest_sandboxbench_check(config: pytest.Config, placed: Placed, evidence: Evidence) -> Verdict | None:
    """Decide whether a budget holds. The first answer that is not None counts; the default's is by intervals.

    ``placed``    the budget and where it stands
    ``evidence``  the series that it is about, with what it is divided by

    It may be asked more than once of one budget, with more rounds each time, for as long as it says ``inconclusive``.
    Called where the test runs, for budgets on one series; in xdist's controller for those on several.
    """
