"""The command ``pytest-benchmark`` on files that we saved."""

from __future__ import annotations

import sys

import pytest

from .conftest import Bench


@pytest.fixture
def saved(bench: Bench, workers: tuple[str, ...]) -> Bench:
    bench.levels(1, 16)
    assert bench.run("--benchmark-save=base", *workers).ret == 0
    assert bench.run("--benchmark-save=next", "--factor=2", *workers).ret == 0
    # The command imports ./conftest.py, which belongs to the run.
    (bench.pytester.path / "conftest.py").unlink()
    return bench


def command(bench: Bench, *arguments: str) -> pytest.RunResult:
    return bench.pytester.run(sys.executable, "-m", "pytest_benchmark", *arguments)


def test_list(saved: Bench) -> None:
    result = command(saved, "list")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*0001_base.json", "*0002_next.json"])


def test_compare(saved: Bench) -> None:
    result = command(saved, "compare", "--sort=name", "--columns=min,median", "--csv=out.csv")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "*benchmark 'startup{cache=miss} @1': 4 tests*",
            "test_startup[[]bubblewrap-c1] (0001_base)*",
            "test_startup[[]bubblewrap-c1] (0002_next)*",
            "*benchmark 'startup{cache=miss} @16': 4 tests*",
        ]
    )
    rows = (saved.pytester.path / "out.csv").read_text().splitlines()
    assert rows[0] == (
        "name,param:cache,param:concurrency,param:operation,param:phase,param:provider,param:shape,min,median"
    )
    assert "bubblewrap:startup{cache=miss}@1/burst,miss,1,startup,,bubblewrap,burst,0.0039,0.0041" in rows


def test_compare_by_a_parameter(saved: Bench) -> None:
    result = command(saved, "compare", "0002", "--group-by=param:provider")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*'provider=bubblewrap': 2 tests*", "*'provider=null': 2 tests*"])
