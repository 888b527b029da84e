"""``--benchmark-compare``: which file is compared, what is shown, what our own table can get from it."""

from __future__ import annotations

from ast import literal_eval
from typing import Any

import pytest

from .conftest import Bench, no_traceback, printed


@pytest.mark.parametrize("which", ["--benchmark-compare", "--benchmark-compare=0001"])
def test_baselines_are_loaded_and_shown_once(bench: Bench, workers: tuple[str, ...], which: str) -> None:
    assert bench.run("--benchmark-save=base").ret == 0
    result = bench.run(which, "--factor=2", *workers)
    assert result.ret == 0
    text = printed(result)
    assert text.count("Comparing against benchmarks from") == 1
    assert "test_startup[bubblewrap-c1] (0001_base)" in text
    assert "test_startup[bubblewrap-c1] (NOW)" in text


def test_the_samples_of_the_baseline_in_nanoseconds(bench: Bench, workers_always: tuple[str, ...]) -> None:
    assert bench.run("--benchmark-save=base", *workers_always).ret == 0
    result = bench.run("--benchmark-compare", *workers_always)
    expected = {
        "bubblewrap:startup{cache=miss}@1/burst": [4_100_000.0, 3_900_000.0, 4_000_000.0, 4_300_000.0, 4_700_001.0],
        "null:startup{cache=miss}@1/burst": [1_000_000.0, 1_100_000.0, 1_050_000.0],
    }
    (line,) = [line for line in result.outlines if line.startswith("baseline samples: ")]
    assert literal_eval(line.removeprefix("baseline samples: ")) == expected


def test_the_newest_of_several_files_gives_the_samples(bench: Bench) -> None:
    assert bench.run("--benchmark-save=base").ret == 0
    assert bench.run("--benchmark-save=base", "--factor=2").ret == 0
    result = bench.run("--benchmark-compare=*base*")
    result.stdout.fnmatch_lines(["baseline samples: *bubblewrap*: [[]8200000.0, *"])


def test_no_samples_without_a_comparison(bench: Bench) -> None:
    bench.run().stdout.fnmatch_lines(["baseline samples: {}"])


def test_files_without_raw_samples_give_none(bench: Bench) -> None:
    def strip(document: dict[str, Any]) -> None:
        for result in document["benchmarks"]:
            del result["stats"]["data"]

    assert bench.run("--benchmark-save=base").ret == 0
    bench.edit(bench.saved()[0], strip)
    result = bench.run("--benchmark-compare")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["baseline samples: {}"])


def test_another_provider_is_not_compared(bench: Bench) -> None:
    assert bench.run("--benchmark-save=base", "-k", "null").ret == 0
    result = bench.run("--benchmark-compare", "-k", "bubblewrap")
    assert result.ret == 0
    assert "0001_base)" not in printed(result)


def test_a_moved_file_keeps_its_baseline(bench: Bench) -> None:
    assert bench.run("--benchmark-save=base").ret == 0
    folder = bench.pytester.mkdir("elsewhere")
    (bench.pytester.path / "test_sandbox.py").rename(folder / "test_renamed.py")
    assert "(0001_base)" in printed(bench.run("--benchmark-compare"))


def test_the_clock_of_the_moment_makes_no_difference(bench: Bench) -> None:
    def spin(document: dict[str, Any]) -> None:  # as saved without this plugin
        document["machine_info"]["cpu"] |= {"hz_actual": [1, 0], "hz_actual_friendly": "1 Hz"}

    assert bench.run("--benchmark-save=base").ret == 0
    bench.edit(bench.saved()[0], spin)
    result = bench.run("--benchmark-compare", "-W", "error")
    assert result.ret == 0


def test_another_machine_warns_once(bench: Bench, workers: tuple[str, ...]) -> None:
    assert bench.run_apart("--benchmark-save=base").ret == 0
    bench.edit(bench.saved()[0], lambda document: document["machine_info"].update(node="another"))
    result = bench.run_apart("--benchmark-compare", *workers)
    assert result.ret == 0
    assert printed(result).count("Benchmark machine_info is different") == 1
    result = bench.run_apart("--benchmark-compare", "-W", "error", *workers)
    assert result.ret == 4
    no_traceback(result)


def test_the_first_run_of_all_may_ask_for_a_comparison(bench: Bench, workers: tuple[str, ...]) -> None:
    result = bench.run_apart("--benchmark-compare", "--benchmark-autosave", *workers)
    assert result.ret == 0
    assert printed(result).count("Can't load the previous benchmark") == 1
    assert len(bench.saved()) == 1


def test_an_ordinary_run_is_compared_as_ever(bench: Bench) -> None:
    bench.add_ordinary()
    assert bench.run("--benchmark-save=base", "test_ordinary.py").ret == 0
    result = bench.run("test_ordinary.py", "--benchmark-compare")
    assert result.ret == 0
    assert "test_add (0001_base)" in printed(result)
