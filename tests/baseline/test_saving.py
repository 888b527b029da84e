"""``--benchmark-json``, ``-save``, ``-autosave``, ``-save-data``."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Bench, printed

KEY = "bubblewrap:startup{cache=miss}@1/burst"


def result_of(document: dict[str, Any], fullname: str) -> dict[str, Any]:
    (found,) = [result for result in document["benchmarks"] if result["fullname"] == fullname]
    assert isinstance(found, dict)
    return found


def test_json_holds_the_series_digit_for_digit(bench: Bench, workers_always: tuple[str, ...]) -> None:
    result = bench.run("--benchmark-json=out.json", *workers_always)
    assert result.ret == 0
    result.assert_outcomes(passed=2)
    found = result_of(bench.read("out.json"), KEY)
    stats = found.pop("stats")
    assert found == {
        "group": "startup{cache=miss} @1",
        "name": "test_startup[bubblewrap-c1]",
        "fullname": KEY,
        "params": {
            "cache": "miss",
            "provider": "bubblewrap",
            "operation": "startup",
            "phase": "",
            "concurrency": 1,
            "shape": "burst",
        },
        "param": "bubblewrap-c1",
        "extra_info": {"success_rate": 0.75, "interval_ns": [3_900_000, None], "isolation": ["a", "b"]},
        "options": {"timer": "time.monotonic_ns", "disable_gc": False},
    }
    assert stats["data"] == [0.0041, 0.0039, 0.004, 0.0043, 0.004700001]
    assert (stats["min"], stats["max"], stats["median"]) == (0.0039, 0.004700001, 0.0041)
    assert (stats["rounds"], stats["iterations"]) == (5, 1)
    assert (stats["p95"], stats["success_rate"]) == (0.0047, 0.75)


@pytest.mark.parametrize("how", ["--benchmark-save=base", "--benchmark-autosave"])
def test_a_saved_run_holds_our_samples_and_only_ours(bench: Bench, workers: tuple[str, ...], how: str) -> None:
    bench.add_ordinary()
    result = bench.run(how, *workers)
    assert result.ret == 0
    (path,) = bench.saved()
    assert path.name.startswith("0001_")
    document = bench.read(path)
    assert len(result_of(document, KEY)["stats"]["data"]) == 5
    if not workers:  # pytest-benchmark measures nothing of its own under xdist
        assert "data" not in result_of(document, "test_ordinary.py::test_add")["stats"]


def test_save_data_still_saves_the_samples_of_ordinary_benchmarks(bench: Bench) -> None:
    bench.add_ordinary()
    assert bench.run("--benchmark-save=base", "--benchmark-save-data").ret == 0
    (path,) = bench.saved()
    assert result_of(bench.read(path), "test_ordinary.py::test_add")["stats"]["data"]


def test_a_run_without_our_series_is_saved_as_ever(bench: Bench) -> None:
    bench.add_ordinary()
    assert bench.run("--benchmark-save=base", "test_ordinary.py").ret == 0
    (path,) = bench.saved()
    (only,) = bench.read(path)["benchmarks"]
    assert "data" not in only["stats"]


def test_a_series_without_a_success_is_not_published(bench: Bench, workers: tuple[str, ...]) -> None:
    result = bench.run("--benchmark-json=out.json", "--no-samples", "-W", "ignore", *workers)
    assert result.ret == 0
    path = bench.pytester.path / "out.json"
    assert not path.exists()


def test_the_clock_of_the_moment_is_not_saved(bench: Bench) -> None:
    assert bench.run("--benchmark-json=out.json").ret == 0
    cpu = bench.read("out.json")["machine_info"]["cpu"]
    assert cpu == {"count": 2}


def test_nothing_warns_under_xdist(bench: Bench) -> None:
    result = bench.run("--benchmark-autosave", "-n", "2", "-W", "error")
    assert result.ret == 0
    assert "automatically disabled" not in printed(result)
