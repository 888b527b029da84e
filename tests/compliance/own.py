"""The checks of a group on the providers of our own: each passes, or is left out for what is declared."""

from __future__ import annotations

from collections.abc import Collection
from types import ModuleType
from typing import Any

import pytest

from pytest_sandboxbench.compliance.check import Check
from pytest_sandboxbench.errors import ProviderMissing
from pytest_sandboxbench.providers.registry import Registry
from tests.compliance.faulty import verdict

__all__ = ["check_passes", "passing"]

TIMEOUT_S = 20.0


def passing(group: ModuleType, *, slow: Collection[str] = ()) -> list[Any]:
    """Parameters ``provider, check``. Of the ``slow`` ones the fast tier has only those on bubblewrap."""
    return [
        pytest.param(
            provider,
            check,
            marks=[pytest.mark.full] if check.name in slow and provider != "bubblewrap" else [],
            id=f"{provider}-{check.name}",
        )
        for provider in ("fake", "null", "bubblewrap")
        for check in group.CHECKS
    ]


def check_passes(provider: str, check: Check) -> None:
    try:
        found = verdict(Registry(None), provider, check, TIMEOUT_S)
    except ProviderMissing as error:
        if provider == "bubblewrap":
            pytest.skip(str(error))
        raise
    if provider == "fake" and "shell" in check.needs:
        assert (found.outcome, found.said) == ("left out", "has no shell in its guest"), found
        return
    assert (found.outcome, found.said) == ("passed", ""), found
