"""Gangs: what a suite of somebody's own does on each worker that drives lanes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Suite, clean, printed
from .test_gangs import FULL, THREE, one, said

OWN = one(
    """
    @pytest.fixture(scope="session")
    def whole():
        say("session begins")
        yield
        say("session ends")

    @pytest.fixture(scope="module")
    def part(whole):
        say("module begins")
        yield
        say("module ends")

    async def test_act(sandbox_bench, part):
        async def act(sandbox):
            await sandbox.exec(["true"])
        measured = await sandbox_bench.measure(act)
        say("act", len(measured.latencies_s))

    async def test_life(sandbox_bench, part):
        async def life(lane):
            sandbox = await lane.sandbox()
            async with lane.timed("one"):
                await sandbox.exec(["true"])
            async with lane.timed("two"):
                await sandbox.exec(["true"])
        await sandbox_bench.run(life, "one", "two")
    """
)


def test_benches_and_fixtures_of_ones_own(suite: Suite) -> None:
    suite.write(
        test_own=OWN, test_then=one("async def test_alone(sandbox_bench): await sandbox_bench.measure(nothing)")
    )
    result = suite.run("-n", "2", "--sandbox-concurrency=4")
    clean(result, 0)
    assert result.parseoutcomes() == {"passed": 3}
    assert suite.series() == {f"fake:{name}@4/burst": 12 for name in ("act", "one", "two", "alone")}
    for worker in ("gw0", "gw1"):
        words = [" ".join(rest) for who, *rest in said(suite) if who == worker and rest[0] != "act"]
        assert words == ["session begins", "module begins", "module ends", "session ends"]
    assert ["gw0", "act", "12"] in said(suite), "who reports it has the samples of all"
    suite.assert_nothing_left()


ON_ONE = one(
    """
    @pytest.fixture(scope="module")
    def part():
        say("begins")
        yield
        say("ends")

    @pytest.mark.parametrize("concurrency", [2])
    async def test_together(sandbox_bench, part):
        await sandbox_bench.measure(nothing)

    @pytest.mark.parametrize("concurrency", [1])
    async def test_alone(sandbox_bench, part):
        await sandbox_bench.measure(nothing)
    """
)


@FULL
def test_fixtures_end_on_a_worker_that_skips_the_last_bench_that_uses_them(suite: Suite) -> None:
    suite.write(
        test_a=ON_ONE,
        test_b=one("async def test_last(sandbox_bench): await sandbox_bench.measure(nothing)"),
    )
    result = suite.run("-n", "2")
    clean(result, 0)
    assert sorted(" ".join(words) for words in said(suite)) == ["gw0 begins", "gw0 ends", "gw1 begins", "gw1 ends"]


def test_what_fails_on_a_follower_is_in_the_one_report(suite: Suite) -> None:
    suite.write(
        test_lanes=one(
            """
            async def test_lanes(sandbox_bench):
                async def act(sandbox):
                    assert WORKER == "gw0", f"{WORKER} is another"
                await sandbox_bench.measure(act)
            """
        ),
        test_setup=one(
            """
            @pytest.fixture
            def picky():
                if WORKER == "gw1":
                    raise RuntimeError("not on this one")

            async def test_setup(picky, sandbox_bench):
                await sandbox_bench.measure(nothing)

            async def test_next(sandbox_bench):
                await sandbox_bench.measure(nothing)
            """
        ),
    )
    result = suite.run("-n", "2", "--sandbox-concurrency=4")
    text = printed(result)
    assert result.ret == 1, text
    assert result.parseoutcomes() == {"passed": 1, "failed": 2}
    assert "fake:lanes@4/burst: 6 failed of 12" in text
    assert "first: AssertionError: gw1 is another" in text
    assert "gw1 left before the end: setup: " in text
    assert "not on this one" in text
    assert suite.series() == {"fake:lanes@4/burst": 12, "fake:next@4/burst": 12}
    suite.assert_nothing_left()


@FULL
def test_all_stop_at_the_same_round_when_the_time_is_over(suite: Suite) -> None:
    suite.write(test_three=THREE)
    result = suite.run(
        "-n",
        "2",
        "--sandbox-concurrency=4",
        "--sandbox-samples=1000",
        "--sandbox-max-seconds=0.4",
        "--sandbox-option=fake.exec=0.01",
    )
    clean(result, 0)
    rounds: dict[str, dict[int, set[int]]] = {}
    for sample in suite.samples():
        rounds.setdefault(sample["series"], {}).setdefault(sample["round"], set()).add(sample["lane"])
    assert len(rounds) == 3
    for of_series in rounds.values():
        assert sorted(of_series) == list(range(len(of_series)))
        assert len(of_series) < 1000
        assert all(lanes == {0, 1, 2, 3} for lanes in of_series.values())


@FULL
def test_an_error_of_a_collection_is_told_once(suite: Suite) -> None:
    suite.write(test_wrong="import no_such_module\n", test_three=THREE)
    result = suite.run("-n", "2")
    text = printed(result)
    assert "INTERNALERROR" not in text
    assert text.count("ModuleNotFoundError: No module named 'no_such_module'") == 1
    assert result.ret == 1, "pytest-xdist runs the others all the same"


def records(suite: Suite) -> Path:
    return suite.folder / "run.json"


@FULL
def test_records_of_several_workers_are_one_run(suite: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    from pytest_sandboxbench.cli import main

    suite.write(test_three=THREE)
    clean(suite.run("-n", "2", "--sandbox-concurrency=4"), 0)
    assert json.loads(records(suite).read_text())["complete"] is True
    assert len(list(suite.folder.glob("samples-gw*.jsonl"))) == 2
    capsys.readouterr()
    assert main(["report", str(suite.folder)]) == 0
    assert " 12 " in capsys.readouterr().out
