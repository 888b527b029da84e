"""``-n``: workers drive the lanes of a bench together, and all looks as if one process had run it."""

from __future__ import annotations

from textwrap import dedent
from xml.etree import ElementTree

import pytest

from .conftest import Suite, clean, printed

THREE = """
    import pytest

    @pytest.mark.sandbox_bench("exec")
    async def test_exec(sandbox_bench):
        await sandbox_bench.measure()

    @pytest.mark.sandbox_bench("write_file")
    async def test_write(sandbox_bench):
        await sandbox_bench.measure()

    @pytest.mark.sandbox_bench("read_file")
    async def test_read(sandbox_bench):
        await sandbox_bench.measure()
"""

# A line for each worker that was there, in a file beside the suite.
SAY = """
    import os
    import time

    import pytest

    WORKER = os.environ.get("PYTEST_XDIST_WORKER", "alone")

    def say(*words):
        with open("said", "a") as file:
            print(WORKER, *words, file=file)

    async def nothing(sandbox):
        pass
"""

SERIES = {
    f"fake:{operation}@{level}/burst": 3 * level
    for operation in ("exec", "write_file", "read_file")
    for level in (1, 4)
}
FULL = pytest.mark.full


def said(suite: Suite) -> list[list[str]]:
    path = suite.path / "said"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def one(body: str) -> str:
    """A module with ``say`` and what follows."""
    return dedent(SAY) + dedent(body)


# -- what a person sees of it


def test_one_dot_one_report_and_one_case_for_each_bench_and_level(suite: Suite) -> None:
    suite.write(test_three=THREE)
    result = suite.run("-n", "2", "--sandbox-concurrency=1,4", "--junitxml=out.xml", "--benchmark-json=out.json")
    text = clean(result, 0)
    assert result.parseoutcomes() == {"passed": 6}
    assert "...... " in text.partition("sandbox benchmarks")[0], "no more dots than tests"
    cases = [case.get("name") for case in ElementTree.parse(suite.path / "out.xml").iter("testcase")]
    assert sorted(cases, key=str) == sorted(
        f"test_{name}[fake-c{level}]" for name in ("exec", "write", "read") for level in (1, 4)
    )
    assert suite.series() == SERIES
    assert {b["fullname"]: b["stats"]["rounds"] for b in suite.json()} == SERIES
    assert {block["id"]: block["workers"] for block in suite.header()["blocks"] if block["level"] == 4} == {
        "exec@4": 2,
        "files@4": 2,
    }
    assert {sample["lane"] for sample in suite.samples()} == {0, 1, 2, 3}


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("-p", "no:xdist"), id="no:xdist"),
        pytest.param(("-n", "0"), id="n0"),
        pytest.param(("-n", "1"), id="n1", marks=FULL),
        pytest.param(("-n", "3"), id="n3", marks=FULL),
        pytest.param(("-n", "8", "--maxprocesses=2"), id="maxprocesses", marks=FULL),
        pytest.param(("-d", "--tx", "2*popen"), id="tx", marks=FULL),
        *(
            pytest.param(("-n", "2", f"--dist={how}"), id=how, marks=FULL)
            for how in ("load", "loadscope", "loadfile", "loadgroup", "worksteal", "each", "no")
        ),
    ],
)
def test_the_series_are_the_same_whoever_drives_the_lanes(suite: Suite, arguments: tuple[str, ...]) -> None:
    suite.write(test_three=THREE)
    result = suite.run("--sandbox-concurrency=1,4", "--benchmark-json=out.json", *arguments)
    clean(result, 0)
    assert result.parseoutcomes() == {"passed": 6}
    assert suite.series() == SERIES
    assert {b["fullname"]: b["stats"]["rounds"] for b in suite.json()} == SERIES
    suite.assert_nothing_left()


FAILING = one(
    """
    async def bad(sandbox):
        raise AssertionError("no good")

    async def test_1(sandbox_bench):
        await sandbox_bench.measure(nothing)

    async def test_2(sandbox_bench):
        await sandbox_bench.measure(bad)

    async def test_3(sandbox_bench):
        await sandbox_bench.measure(bad)

    async def test_4(sandbox_bench):
        await sandbox_bench.measure(nothing)
    """
)


@pytest.mark.parametrize(
    ("argument", "outcomes"),
    [
        ("-x", {"passed": 1, "failed": 1}),
        pytest.param("--maxfail=2", {"passed": 1, "failed": 2}, marks=FULL),
        pytest.param("--maxfail=3", {"passed": 2, "failed": 2}, marks=FULL),
    ],
)
def test_it_stops_after_so_many_failures(suite: Suite, argument: str, outcomes: dict[str, int]) -> None:
    suite.write(test_failing=FAILING)
    result = suite.run("-n", "2", "--sandbox-concurrency=2", argument)
    text = printed(result)
    assert "INTERNALERROR" not in text
    assert result.ret == (1 if argument == "--maxfail=3" else 2), text
    assert result.parseoutcomes() == outcomes
    assert "were not run" not in text
    suite.assert_nothing_left()


@FULL
def test_the_last_failed_run_again_alone(suite: Suite) -> None:
    suite.write(test_failing=FAILING)
    suite.run("-n", "2", "--sandbox-concurrency=2")
    result = suite.run("-n", "2", "--sandbox-concurrency=2", "--lf")
    assert result.parseoutcomes() == {"failed": 2}
    result = suite.run("-n", "2", "--sandbox-concurrency=2", "-k", "test_1 or test_4")
    assert result.parseoutcomes() == {"passed": 2}


@FULL
def test_nothing_runs_where_tests_are_only_collected(suite: Suite) -> None:
    suite.write(test_three=THREE)
    result = suite.run("-n", "2", "--collect-only", "-q")
    clean(result, 0)
    assert "3 tests collected" in result.stdout.str()
    assert suite.folders == []


@FULL
def test_saved_compared_and_drawn_as_without(suite: Suite) -> None:
    suite.write(test_three=THREE)
    usual = ("--sandbox-concurrency=4", "--benchmark-storage=kept")
    clean(suite.run(*usual, "-n", "4", "--benchmark-save=first"), 0)
    # pygal is not one to be loaded twice.
    result = suite.run_apart(
        *usual, "-n", "4", "--benchmark-compare", "--benchmark-histogram=drawn", "--benchmark-json=o.json"
    )
    text = clean(result, 0)
    assert "Comparing against benchmarks from: " in text
    assert list(suite.path.glob("drawn*.svg"))
    assert {b["fullname"]: b["stats"]["rounds"] for b in suite.json("o.json")} == {
        key: n for key, n in SERIES.items() if "@4" in key
    }


# -- beside ordinary tests


BESIDE = one(
    """
    @pytest.mark.parametrize("number", range(8))
    def test_ordinary(number):
        began = time.monotonic()
        time.sleep(0.1)
        say("ordinary", began, time.monotonic())

    async def test_bench(sandbox_bench):
        async def act(sandbox):
            say("bench", time.monotonic(), time.monotonic())
        await sandbox_bench.measure(act)

    @pytest.mark.parametrize("number", range(8, 16))
    def test_more(number):
        test_ordinary(number)
    """
)


@pytest.mark.parametrize(
    "how",
    ["load", *(pytest.param(how, marks=FULL) for how in ("worksteal", "loadscope", "loadfile", "loadgroup", "each"))],
)
def test_ordinary_tests_are_spread_by_xdist_and_none_runs_beside_a_bench(suite: Suite, how: str) -> None:
    suite.write(test_beside=BESIDE, test_other=BESIDE.replace("test_bench", "test_bench_too"))
    result = suite.run("-n", "2", f"--dist={how}", "--sandbox-concurrency=2")
    clean(result, 0)
    twice = 2 if how == "each" else 1
    assert result.parseoutcomes() == {"passed": 32 * twice + 2}
    words = said(suite)
    ordinary = [(worker, float(began), float(ended)) for worker, what, began, ended in words if what == "ordinary"]
    benches = [float(began) for _, what, began, _ in words if what == "bench"]
    assert len(ordinary) == 32 * twice
    assert {worker for worker, _, _ in ordinary} == {"gw0", "gw1"}
    assert {worker for worker, what, *_ in words if what == "bench"} == {"gw0", "gw1"}
    first, last = min(benches), max(benches)
    assert [one for one in ordinary if one[1] < last and first < one[2]] == []


@pytest.mark.parametrize(
    ("how", "name"),
    [
        ("load", "LoadScheduling"),
        *(
            pytest.param(how, name, marks=FULL)
            for how, name in (
                ("worksteal", "WorkStealingScheduling"),
                ("loadscope", "LoadScopeScheduling"),
                ("each", "EachScheduling"),
            )
        ),
    ],
)
def test_without_benches_it_is_xdists_own_scheduler(suite: Suite, how: str, name: str) -> None:
    suite.pytester.makeconftest(
        """
        import pytest

        @pytest.hookimpl(wrapper=True)
        def pytest_sessionfinish(session):
            dsession = session.config.pluginmanager.get_plugin("dsession")
            if dsession is not None:
                print("it was", type(dsession.sched._first).__name__, dsession.sched._gangs)
            return (yield)
        """
    )
    suite.write(test_plain="import pytest\n\n@pytest.mark.parametrize('n', range(6))\ndef test_plain(n):\n    pass\n")
    result = suite.run("-n", "2", f"--dist={how}", "-v", "-s")
    text = clean(result, 0)
    assert f"scheduling tests via {name}" in text
    assert f"it was {name} None" in text
    assert result.parseoutcomes() == {"passed": 12 if how == "each" else 6}


@FULL
def test_workers_that_collect_different_tests_are_told_of_by_xdist(suite: Suite) -> None:
    suite.pytester.makeconftest(
        """
        import os

        def pytest_collection_modifyitems(items):
            if os.environ.get("PYTEST_XDIST_WORKER") == "gw1":
                del items[0]
        """
    )
    suite.write(test_three=THREE)
    result = suite.run("-n", "2")
    text = printed(result)
    assert "Different tests were collected between gw" in text
    assert result.ret == 1, text
    assert "INTERNALERROR" not in text
