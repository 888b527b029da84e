"""``--benchmark-compare-fail``: a regression is a section and exit status 1."""

from __future__ import annotations

import pytest

from .conftest import Bench, no_traceback, printed

SLOW_ORDINARY = """
import time
def test_add(benchmark):
    benchmark.pedantic(time.sleep, [SECONDS], rounds=2)
"""


def test_a_regression_fails_the_run_and_all_else_is_printed(bench: Bench, workers_always: tuple[str, ...]) -> None:
    assert bench.run("--benchmark-save=base").ret == 0
    result = bench.run("--benchmark-compare", "--benchmark-compare-fail=median:10%", "--factor=2", *workers_always)
    assert result.ret == 1
    no_traceback(result)
    result.stdout.fnmatch_lines(
        [
            "*sandbox regressions*",
            "bubblewrap:startup{cache=miss}@1/burst: median 4.1 ms -> 8.2 ms (+100.0 %), allowed +10 %, "
            "baseline *0001_base.json",
        ]
    )
    result.stdout.fnmatch_lines(["baseline samples: *"])  # another plugin's summary
    result.stdout.fnmatch_lines(["*= 2 passed*"])
    assert "null:startup{cache=miss}@1/burst:" not in result.stdout.str()


def test_an_allowance_in_seconds(bench: Bench) -> None:
    assert bench.run("--benchmark-save=base").ret == 0
    compare = ("--benchmark-compare", "--factor=2")
    assert bench.run(*compare, "--benchmark-compare-fail=min:0.0040").ret == 0
    result = bench.run(*compare, "--benchmark-compare-fail=min:0.0038")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*: min 3.9 ms -> 7.8 ms (+100.0 %), allowed +3.8 ms, *"])


@pytest.mark.parametrize("factor", ["0.5", "1", "1.09"])
def test_no_regression_within_the_allowance(bench: Bench, workers: tuple[str, ...], factor: str) -> None:
    assert bench.run("--benchmark-save=base").ret == 0
    result = bench.run("--benchmark-compare", "--benchmark-compare-fail=median:10%", f"--factor={factor}", *workers)
    assert result.ret == 0
    assert "regressions" not in printed(result)


def test_a_gate_that_judged_nothing_fails(bench: Bench, workers: tuple[str, ...]) -> None:
    """Of another provider, for instance, or from before an operation got its name: pytest-benchmark passes this."""
    assert bench.run("--benchmark-save=base", "-k", "null").ret == 0
    result = bench.run("--benchmark-compare", "-k", "bubblewrap", "--benchmark-compare-fail=median:1%", *workers)
    assert result.ret == 1
    no_traceback(result)
    result.stdout.fnmatch_lines(
        [
            "*not compared*",
            "ERROR: --benchmark-compare-fail judged nothing: the saved run has no series of this run: "
            "bubblewrap:startup{cache=miss}@1/burst",
        ]
    )


def test_what_the_saved_run_lacks_is_named_beside_what_was_judged(bench: Bench, workers: tuple[str, ...]) -> None:
    assert bench.run("--benchmark-save=base", "-k", "null").ret == 0
    result = bench.run("--benchmark-compare", "--benchmark-compare-fail=median:1%", *workers)
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "--benchmark-compare-fail did not judge 1 of 2 series, which the saved run lacks: "
            "bubblewrap:startup{cache=miss}@1/burst"
        ]
    )


def test_several_checks_each_say_what_broke(bench: Bench) -> None:
    assert bench.run("--benchmark-save=base").ret == 0
    result = bench.run("--benchmark-compare", "--factor=2", "--benchmark-compare-fail", "min:5%", "max:9%")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*: min 3.9 ms -> 7.8 ms*", "*: max 4.7 ms -> 9.4 ms*"])


def test_a_failed_test_keeps_its_exit_status(bench: Bench) -> None:
    assert bench.run("--benchmark-save=base").ret == 0
    bench.pytester.makepyfile(test_wrong="def test_wrong(): assert False")
    result = bench.run("--benchmark-compare", "--benchmark-compare-fail=median:10%", "--factor=2")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*sandbox regressions*", "FAILED test_wrong.py::test_wrong*", "*1 failed, 2 passed*"])


def test_quiet_still_fails(bench: Bench) -> None:
    assert bench.run("--benchmark-save=base").ret == 0
    result = bench.run("--benchmark-compare", "--benchmark-compare-fail=median:10%", "--factor=2", "--benchmark-quiet")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*sandbox regressions*"])


def test_without_a_terminal_the_exit_status_is_the_same(bench: Bench) -> None:
    assert bench.run("--benchmark-save=base").ret == 0
    result = bench.run("-p", "no:terminal", "--benchmark-compare", "--benchmark-compare-fail=min:1%", "--factor=2")
    assert result.ret == 1


def test_an_ordinary_regression_beside_ours_is_told_without_a_traceback(bench: Bench) -> None:
    bench.add_ordinary(SLOW_ORDINARY.replace("SECONDS", "0.001"))
    assert bench.run("--benchmark-save=base").ret == 0
    bench.add_ordinary(SLOW_ORDINARY.replace("SECONDS", "0.05"))
    result = bench.run("--benchmark-compare", "--benchmark-compare-fail=min:99%")
    assert result.ret == 1
    no_traceback(result)
    result.stdout.fnmatch_lines(["*benchmark regressions*", "test_add (0001_base) - Field 'min' has failed *"])
    assert "sandbox regressions" not in printed(result)


def test_an_ordinary_run_fails_as_ever(bench: Bench) -> None:
    bench.add_ordinary(SLOW_ORDINARY.replace("SECONDS", "0.001"))
    assert bench.run_apart("--benchmark-save=base", "test_ordinary.py").ret == 0
    bench.add_ordinary(SLOW_ORDINARY.replace("SECONDS", "0.05"))
    result = bench.run_apart("test_ordinary.py", "--benchmark-compare", "--benchmark-compare-fail=min:99%")
    assert result.ret == 1
    assert "PerformanceRegression" in printed(result)
