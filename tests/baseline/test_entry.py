"""A result as pytest-benchmark keeps it."""

from __future__ import annotations

import pytest

from pytest_sandboxbench.baseline.entry import RegressionWatch, SeriesMetadata, SeriesStats


def entry(**more: object) -> SeriesMetadata:
    settings = {
        "name": "test_x[null-c1]",
        "fullname": "null:startup@1/burst",
        "group": "startup @1",
        "param": "null-c1",
        "params": {},
        "extra_info": {},
        "figures": {"p95": 2.5},
        "latencies_ns": [1_500_000_000, 2_500_000_000],
    }
    return SeriesMetadata(**{**settings, **more})  # type: ignore[arg-type]


def test_samples_are_always_saved_and_never_in_the_table() -> None:
    assert entry().as_dict(include_data=False)["stats"]["data"] == [1.5, 2.5]
    assert "data" not in entry().as_dict(include_data=False, flat=True)


def test_figures_stand_behind_the_known_statistics() -> None:
    stats = entry().as_dict()["stats"]
    assert (stats["mean"], stats["rounds"], stats["p95"]) == (2.0, 2, 2.5)


def test_a_check_finds_a_figure() -> None:
    assert entry()["p95"] == 2.5
    with pytest.raises(AttributeError):
        entry()["p99"]


@pytest.mark.parametrize("name", ["median", "ops", "data", "iterations"])
def test_a_figure_may_not_take_a_known_name(name: str) -> None:
    with pytest.raises(ValueError, match=f"statistics named {name} already"):
        SeriesStats({name: 1.0})


def test_a_watch_hands_on_what_is_not_taken() -> None:
    class Check:
        field = "min"

        def fails(self, current: object, compared: object) -> str:
            return "slower"

    assert RegressionWatch(Check(), lambda *_: False).fails({}, {}) == "slower"
    assert RegressionWatch(Check(), lambda *_: True).fails({}, {}) is None
    assert RegressionWatch(Check(), None).field == "min"
