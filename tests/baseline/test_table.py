"""pytest-benchmark's own table, and ``--benchmark-group-by``, ``-columns``, ``-sort``, ``-name``, ``-verbose``."""

from __future__ import annotations

import re

import pytest

from .conftest import Bench, no_traceback, printed

ASKING = [
    "--benchmark-columns=min,median",
    "--benchmark-columns=min,max,mean,stddev,median,iqr,outliers,ops,rounds,iterations",
    "--benchmark-sort=min",
    "--benchmark-sort=name",
    "--benchmark-group-by=group",
    "--benchmark-name=normal",
    "--benchmark-name=long",
    "--benchmark-verbose",
    "--benchmark-time-unit=ms",
]


def groups_in(text: str) -> list[str]:
    return re.findall(r"-+ benchmark ?(.*?): \d+ tests -+", text)


def test_our_series_are_not_shown_twice(bench: Bench, workers: tuple[str, ...]) -> None:
    result = bench.run("--benchmark-autosave", *workers)
    assert result.ret == 0
    assert groups_in(printed(result)) == []
    assert "Legend:" not in printed(result)


@pytest.mark.parametrize("asking", ASKING)
def test_asked_for_it_is_shown(bench: Bench, asking: str) -> None:
    result = bench.run(asking)
    assert result.ret == 0
    assert "'startup{cache=miss} @1'" in groups_in(printed(result))


@pytest.mark.parametrize("where", ["environment", "ini"])
def test_asked_for_elsewhere(bench: Bench, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    if where == "environment":
        monkeypatch.setenv("PYTEST_ADDOPTS", "--benchmark-sort min")
    else:
        bench.pytester.makeini("[pytest]\naddopts = --benchmark-sort=min")
    assert groups_in(printed(bench.run())) != []


def test_the_table_of_ordinary_benchmarks_stays(bench: Bench) -> None:
    bench.add_ordinary()
    result = bench.run()
    assert result.ret == 0
    assert groups_in(printed(result)) == [""]
    assert re.search(r"^test_add  ", result.stdout.str(), re.MULTILINE)


def test_asked_for_under_xdist(bench: Bench) -> None:
    result = bench.run("--benchmark-columns=median", "-n", "2")
    assert groups_in(printed(result)) == ["'startup{cache=miss} @1'"]


def test_groups_are_sorted_by_number(bench: Bench, workers: tuple[str, ...]) -> None:
    bench.levels(100, 1, 16)
    result = bench.run("--benchmark-group-by=group", *workers)
    assert groups_in(printed(result)) == [f"'startup{{cache=miss}} @{level}'" for level in (1, 16, 100)]


def test_group_by_a_parameter(bench: Bench, workers: tuple[str, ...]) -> None:
    bench.levels(100, 1, 16)
    result = bench.run("--benchmark-group-by=param:concurrency,param:provider", *workers)
    assert groups_in(printed(result)) == [
        f"'concurrency={level} provider={provider}'" for level in (1, 16, 100) for provider in ("bubblewrap", "null")
    ]


def test_group_by_a_parameter_that_an_ordinary_benchmark_lacks(bench: Bench) -> None:
    bench.add_ordinary()
    result = bench.run("--benchmark-group-by=param:concurrency", "--benchmark-json=out.json")
    assert result.ret == 0
    no_traceback(result)
    assert groups_in(printed(result)) == ["'concurrency=1'", "'concurrency=-'"]
    (ordinary,) = [b for b in bench.read("out.json")["benchmarks"] if b["name"] == "test_add"]
    assert ordinary["params"] is None  # the file says what the test has


@pytest.mark.parametrize("by", ["name", "fullname", "func", "fullfunc", "param", "param:cache"])
def test_every_grouping_works(bench: Bench, by: str) -> None:
    result = bench.run(f"--benchmark-group-by={by}")
    assert result.ret == 0
    assert groups_in(printed(result)) != []


def test_nothing_at_all_when_quiet(bench: Bench) -> None:
    assert groups_in(printed(bench.run("--benchmark-quiet", "--benchmark-sort=min"))) == []
