"""Hooks that this plugin offers to conftests and other plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

__all__ = ["pytest_sandboxbench_update_header"]


def pytest_sandboxbench_update_header(config: pytest.Config, header: dict[str, Any]) -> None:
    """Add facts to the header of the records before anything is measured, under a key of your own.

    ``header["host"]`` holds the facts of the host. Values must be JSON; one whose key sounds like a secret is hidden.
    """
