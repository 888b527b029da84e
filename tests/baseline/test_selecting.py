"""``--benchmark-only``, ``-skip``, ``-disable``, ``-enable``."""

from __future__ import annotations

import pytest

from .conftest import Bench, no_traceback, printed


@pytest.fixture
def mixed(bench: Bench) -> Bench:
    """Two tests of ours, an ordinary benchmark, a plain test."""
    bench.add_ordinary()
    bench.pytester.makepyfile(test_plain="def test_plain(): pass")
    return bench


def test_only(mixed: Bench, workers: tuple[str, ...]) -> None:
    result = mixed.run("--benchmark-only", "--benchmark-json=out.json", *workers)
    assert result.ret == 0
    result.assert_outcomes(passed=3, skipped=1)
    assert len(mixed.read("out.json")["benchmarks"]) == (2 if workers else 3)


def test_only_beats_skip(mixed: Bench) -> None:
    result = mixed.run("--benchmark-only", "--benchmark-skip")
    assert result.ret == 0
    result.assert_outcomes(passed=3, skipped=1)


def test_only_and_disable_exclude_each_other(mixed: Bench, workers: tuple[str, ...]) -> None:
    result = mixed.run("--benchmark-only", "--benchmark-disable", *workers)
    assert result.ret == 4
    no_traceback(result)


def test_only_under_xdist_without_series_of_ours_is_refused_as_ever(mixed: Bench) -> None:
    result = mixed.run("--benchmark-only", "-n", "2", "test_plain.py", "test_ordinary.py")
    assert result.ret == 4
    no_traceback(result)
    assert "Can't have both --benchmark-only and --benchmark-disable" in printed(result)


def test_only_without_series_of_ours(mixed: Bench) -> None:
    result = mixed.run("--benchmark-only", "test_plain.py", "test_ordinary.py", "-rs")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED * Skipping non-benchmark (--benchmark-only active)."])


def test_skip(mixed: Bench, workers: tuple[str, ...]) -> None:
    result = mixed.run("--benchmark-skip", "--benchmark-json=out.json", "-W", "ignore", *workers)
    assert result.ret == 0
    result.assert_outcomes(passed=1, skipped=3)


def test_disable_publishes_nothing(mixed: Bench, workers: tuple[str, ...]) -> None:
    result = mixed.run("--benchmark-disable", "--benchmark-save=base", *workers)
    assert result.ret == 0
    result.assert_outcomes(passed=4)
    assert mixed.saved() == []


def test_enable_beats_disable(mixed: Bench) -> None:
    result = mixed.run("--benchmark-disable", "--benchmark-enable", "--benchmark-save=base")
    assert result.ret == 0
    assert len(mixed.saved()) == 1
