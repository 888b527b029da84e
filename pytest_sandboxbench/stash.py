"""Where this plugin keeps its state: keys of pytest's stashes. No module holds any."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .baseline.bridge import Wishes
    from .budgets.model import Verdict
    from .load.gang import Heard
    from .session import BenchSession

__all__ = ["HEARD", "SERIES", "SESSION", "SHARED", "VERDICTS", "WISHES"]

SESSION: pytest.StashKey[BenchSession] = pytest.StashKey()
"""On the config: the benches of this session, once there are any."""

WISHES: pytest.StashKey[Wishes] = pytest.StashKey()
"""On the config: what pytest-benchmark's options ask of our measuring."""

HEARD: pytest.StashKey[Heard] = pytest.StashKey()
"""On the config of xdist's controller: what the workers said."""

SHARED: pytest.StashKey[Mapping[str, str]] = pytest.StashKey()
"""On the config, but of xdist's workers: the run's id, and the folder of its records."""

SERIES: pytest.StashKey[list[str]] = pytest.StashKey()
"""On an item: the keys of the series that it shows."""

VERDICTS: pytest.StashKey[list[Verdict]] = pytest.StashKey()
"""On an item: what came of the budgets on its series."""
