"""What a series tells by round."""

from __future__ import annotations

from typing import Any

from pytest_sandboxbench.records.schema import encode
from pytest_sandboxbench.records.series import Series, SeriesTable

from .written import sample


def series_of(*rows: dict[str, Any]) -> Series:
    table = SeriesTable()
    for row in rows:
        table.add(encode(sample(**row), 0))
    (series,) = table
    return series


def test_the_wall_time_of_a_round_ends_with_its_last_act_failed_or_not() -> None:
    series = series_of(
        {"round": 0, "lane": 0, "level": 2, "ms": 10},
        {"round": 0, "lane": 1, "level": 2, "ms": 30, "outcome": "failed"},
        {"round": 3, "lane": 0, "level": 2, "ms": 5},
        {"round": -1, "level": 2, "ms": 99, "warmup": True},
    )
    assert series.walls_ns == {0: 30_000_000, 3: 5_000_000}
    assert sum(series.walls_ns.values()) / 1e9 == series.wall_s


def test_successes_are_counted_by_round() -> None:
    series = series_of(
        {"round": 4, "lane": 0, "level": 2},
        {"round": 2, "lane": 0, "level": 2},
        {"round": 2, "lane": 1, "level": 2, "outcome": "timeout"},
        {"round": 4, "lane": 1, "level": 2},
        {"round": 5, "lane": 1, "level": 2, "outcome": "rejected(quota)"},
        {"round": -1, "level": 2, "warmup": True},
    )
    assert series.successes() == [(2, 2), (1, 2), (0, 1)]


def test_a_phase_is_known_by_round_also_where_the_rounds_came_mixed() -> None:
    """As when several processes drive the lanes."""
    series = series_of(
        {"round": 4, "lane": 0, "level": 2, "phases": {"boot": (0, 1)}},
        {"round": 2, "lane": 0, "level": 2, "phases": {"boot": (0, 2)}},
        {"round": 2, "lane": 1, "level": 2, "outcome": "failed", "phases": {"boot": (0, 9)}},
        {"round": 4, "lane": 1, "level": 2, "phases": {"boot": (0, 3)}},
        {"round": 5, "lane": 1, "level": 2, "outcome": "failed"},
        {"round": -1, "level": 2, "warmup": True, "phases": {"boot": (0, 8)}},
    )
    assert series.phase_rounds("boot") == {4: [1, 3], 2: [2]}


def test_a_phase_that_some_successes_lack_is_not_known_by_round() -> None:
    series = series_of(
        {"round": 0, "phases": {"boot": (0, 1), "queue": (1, 2)}},
        {"round": 1, "phases": {"boot": (0, 2)}},
    )
    assert series.phase_rounds("boot") == {0: [1], 1: [2]}
    assert series.phase_rounds("queue") is None
    assert series.phase_rounds("other") is None
