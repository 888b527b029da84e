"""Where this plugin keeps its state: keys of pytest's stashes. No module holds any."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .baseline.bridge import Wishes
    from .session import BenchSession

__all__ = ["NEWS", "PAYLOAD", "SESSION", "SHARED", "WISHES"]

SESSION: pytest.StashKey[BenchSession] = pytest.StashKey()
"""On the config: the benches of this session, once there are any."""

WISHES: pytest.StashKey[Wishes] = pytest.StashKey()
"""On the config: what pytest-benchmark's options ask of our measuring."""

NEWS: pytest.StashKey[dict[str, Mapping[str, Any]]] = pytest.StashKey()
"""On the config of xdist's controller: what each worker said last of leaks, missing providers and records."""

SHARED: pytest.StashKey[Mapping[str, str]] = pytest.StashKey()
"""On the config, but of xdist's workers: the run's id, and the folder of its records."""

PAYLOAD: pytest.StashKey[dict[str, Any]] = pytest.StashKey()
"""On an item: what it measured, on its way to its report."""
