"""Mistakes in options: one message, exit status 4, nothing measured before."""

from __future__ import annotations

import pytest

from .conftest import Bench, no_traceback, printed


def refused(result: pytest.RunResult, message: str) -> None:
    assert result.ret == 4
    no_traceback(result)
    assert printed(result).count(message) == 1
    assert "passed" not in printed(result)


def test_no_such_baseline(bench: Bench, workers_always: tuple[str, ...]) -> None:
    assert bench.run_apart("--benchmark-save=base").ret == 0
    result = bench.run_apart("--benchmark-compare=0099", *workers_always)
    refused(result, "ERROR: --benchmark-compare=0099: no saved run matches in ")
    assert "saved there: 0001_base" in printed(result)


def test_no_such_baseline_where_warnings_are_errors(bench: Bench, workers: tuple[str, ...]) -> None:
    refused(bench.run("--benchmark-compare=0099", "-W", "error", *workers), "ERROR: Can't compare.")


def test_no_baseline_at_all(bench: Bench, workers: tuple[str, ...]) -> None:
    result = bench.run_apart("--benchmark-compare", "--benchmark-compare-fail=min:5%", *workers)
    refused(result, "nothing is saved there yet: run with --benchmark-autosave")


def test_compare_fail_without_compare(bench: Bench, workers: tuple[str, ...]) -> None:
    refused(bench.run("--benchmark-compare-fail=min:5%", *workers), "ERROR: --benchmark-compare-fail has nothing to")


def test_unknown_grouping(bench: Bench, workers: tuple[str, ...]) -> None:
    refused(bench.run("--benchmark-group-by=provider", *workers), "--benchmark-group-by=provider: 'provider' is not")


def test_a_grouping_that_another_plugin_knows(bench: Bench) -> None:
    bench.pytester.makepyfile(
        speciality="import pytest\n@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_benchmark_group_stats(config, benchmarks, group_by):\n"
        "    return [('special', benchmarks)] if group_by == 'special' else None"
    )
    bench.pytester.syspathinsert()
    result = bench.run("-p", "speciality", "--benchmark-group-by=special")
    assert result.ret == 0
    assert "benchmark 'special': 2 tests" in printed(result)


def test_json_into_a_missing_folder(bench: Bench, workers: tuple[str, ...]) -> None:
    result = bench.run_apart("--benchmark-json=missing/out.json", *workers)
    assert result.ret == 4
    no_traceback(result)
    assert "passed" not in printed(result)


def test_noticed_late_it_is_an_exit_status_all_the_same(bench: Bench, workers: tuple[str, ...]) -> None:
    result = bench.run("--late", "--benchmark-compare-fail=min:5%", *workers)
    assert result.ret == 4
    no_traceback(result)
    result.stdout.fnmatch_lines(["ERROR: --benchmark-compare-fail was given, and no saved run*", "*2 passed*"])


def test_an_ordinary_run_is_not_refused(bench: Bench) -> None:
    bench.add_ordinary()
    result = bench.run_apart("test_ordinary.py", "--benchmark-compare=0099")
    assert result.ret == 0
    assert printed(result).count("Can't compare. No benchmark files in ") == 1
