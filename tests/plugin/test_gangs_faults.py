"""``-n``: a worker that dies or hangs, wherever it is, costs its own bench at most. Nothing is measured twice."""

from __future__ import annotations

import re

import pytest

from .conftest import Suite, printed
from .test_gangs import one, said

FULL = pytest.mark.full

# DIES is the worker that ends at WHERE, in the second bench.
DEADLY = one(
    """
    DIES, WHERE = "{dies}", "{where}"

    def here(where):
        say(where)
        if WORKER == DIES and where == WHERE:
            os._exit(9)

    @pytest.fixture
    def around():
        here("before")
        yield
        here("after")

    async def test_1(sandbox_bench):
        await sandbox_bench.measure(nothing)

    async def test_deadly(around, sandbox_bench):
        async def act(sandbox):
            here("inside")
        await sandbox_bench.measure(act)
        here("measured")

    def test_between():
        pass

    async def test_2(sandbox_bench):
        await sandbox_bench.measure(nothing)

    async def test_3(sandbox_bench):
        await sandbox_bench.measure(nothing)
    """
)


def state(suite: Suite) -> str:
    """With this what a dead worker made can be found, and destroyed, by others."""
    return f"--sandbox-option=fake.state_dir={suite.path / 'state'}"


def dies(suite: Suite, who: str, where: str, *arguments: str, status: int = 1) -> tuple[str, dict[str, int]]:
    suite.write(test_two=DEADLY.format(dies=who, where=where))
    result = suite.run_apart("-n", "2", "--sandbox-concurrency=4", state(suite), *arguments)
    text = printed(result)
    assert "INTERNALERROR" not in text
    assert result.ret == status, text
    assert f"{who} ended (exit 9)" in text or not status
    suite.assert_nothing_left()
    series = suite.series()
    for name in ("1", "2", "3"):
        assert series[f"fake:{name}@4/burst"] == 12, "measured once, and whole"
    return text, result.parseoutcomes()


@pytest.mark.parametrize(
    ("who", "where", "deadly_n"),
    [
        pytest.param("gw1", "before", 0, id="follower-before"),
        pytest.param("gw0", "before", 0, id="leader-before", marks=FULL),
        pytest.param("gw1", "inside", 0, id="follower-inside", marks=FULL),
        pytest.param("gw0", "inside", 0, id="leader-inside", marks=FULL),
        pytest.param("gw0", "measured", 12, id="leader-measured", marks=FULL),
        pytest.param("gw0", "after", 12, id="leader-after", marks=FULL),
    ],
)
@pytest.mark.parametrize(
    "restarts", [(), pytest.param(("--max-worker-restart=0",), marks=FULL)], ids=["replaced", "for good"]
)
def test_a_worker_dies_in_a_bench(suite: Suite, who: str, where: str, deadly_n: int, restarts: tuple[str, ...]) -> None:
    text, outcomes = dies(suite, who, where, *restarts)
    # A leader that had said that its test passed has it said once more by xdist, as for any test.
    assert {**outcomes, "passed": 4} == {"passed": 4, "failed": 1}, text
    assert outcomes["passed"] == (5 if where == "after" else 4), text
    assert suite.series().get("fake:deadly@4/burst", 0) <= 4 if not deadly_n else True
    if deadly_n:
        assert suite.series()["fake:deadly@4/burst"] == deadly_n


@pytest.mark.parametrize("where", ["measured", pytest.param("after", marks=FULL)])
def test_a_follower_that_dies_when_all_is_measured(suite: Suite, where: str) -> None:
    """The bench is whole: nothing of it is lost."""
    text, outcomes = dies(suite, "gw1", where, status=0)
    assert suite.series()["fake:deadly@4/burst"] == 12
    assert outcomes == {"passed": 5}, text


BETWEEN = one(
    """
    from pytest_sandboxbench.load.member import Link

    ask, came = Link.ask, []

    def die_before_the_second(self, subject, what=None):
        came.append(what)
        if WORKER == "{dies}" and len(came) == 2:
            os._exit(9)
        return ask(self, subject, what)

    Link.ask = die_before_the_second

    @pytest.mark.parametrize("number", range(3))
    async def test_one(sandbox_bench, number):
        await sandbox_bench.measure(nothing, operation=f"one_{number}")
    """
)


@FULL
@pytest.mark.parametrize("who", ["gw0", "gw1"])
@pytest.mark.parametrize("restarts", [(), ("--max-worker-restart=0",)], ids=["replaced", "for good"])
def test_a_worker_that_dies_between_benches_costs_none(suite: Suite, who: str, restarts: tuple[str, ...]) -> None:
    suite.write(test_one=BETWEEN.replace("{dies}", who))
    result = suite.run_apart("-n", "2", "--sandbox-concurrency=4", *restarts)
    text = printed(result)
    assert "INTERNALERROR" not in text
    assert result.parseoutcomes() == {"passed": 3}, text
    assert list(suite.series().values()) == [12, 12, 12]
    assert result.ret == 0, text


ORDINARY = one(
    """
    @pytest.mark.parametrize("n", range(6))
    def test_ordinary(n):
        say("ordinary", n)
        if n == 4:
            os._exit(9)

    async def test_1(sandbox_bench):
        await sandbox_bench.measure(nothing)

    async def test_2(sandbox_bench):
        await sandbox_bench.measure(nothing)
    """
)


@FULL
@pytest.mark.parametrize(
    ("how", "restarts"),
    [
        ("load", ()),
        ("worksteal", ()),
        # With this pytest-xdist runs the deadly test once more on each new worker, as long as there are new ones.
        ("loadscope", ("--max-worker-restart=1",)),
        # Without a new one, pytest-xdist ends all workers at once: benches run where no ordinary test is left.
        ("load", ("--max-worker-restart=0",)),
        ("loadscope", ("--max-worker-restart=0",)),
    ],
)
def test_a_worker_dies_in_an_ordinary_test_before_the_benches(
    suite: Suite, how: str, restarts: tuple[str, ...]
) -> None:
    suite.write(test_mixed=ORDINARY)
    result = suite.run_apart("-n", "2", "--sandbox-concurrency=4", f"--dist={how}", *restarts)
    text = printed(result)
    assert "INTERNALERROR" not in text
    assert result.ret == 1, text
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] == 1 or how == "loadscope"
    if not restarts:
        assert outcomes == {"passed": 7, "failed": 1}
        assert len([words for words in said(suite) if words[1] == "ordinary"]) == 6, "none of them ran twice"
    assert suite.series() == {"fake:1@4/burst": 12, "fake:2@4/burst": 12}


VIEWS = one(
    """
    from pytest_sandboxbench.load.lanes import Lane

    if WORKER == "{dies}":
        acquire, turns = Lane.timed, []

        def timed(self, operation):
            turns.append(operation)
            if len(turns) > 4:
                os._exit(9)
            return acquire(self, operation)

        Lane.timed = timed

    @pytest.mark.sandbox_bench("write_file")
    async def test_write(sandbox_bench):
        await sandbox_bench.measure()

    @pytest.mark.sandbox_bench("read_file")
    async def test_read(sandbox_bench):
        await sandbox_bench.measure()

    async def test_then(sandbox_bench):
        await sandbox_bench.measure(nothing)
    """
)


@pytest.mark.parametrize("who", ["gw1", pytest.param("gw0", marks=FULL)])
@pytest.mark.parametrize(
    "restarts", [("--max-worker-restart=0",), pytest.param((), marks=FULL)], ids=["for good", "replaced"]
)
def test_the_other_views_of_a_block_that_was_cut_fail_with_its_cause(
    suite: Suite, who: str, restarts: tuple[str, ...]
) -> None:
    suite.write(test_views=VIEWS.format(dies=who))
    result = suite.run_apart(
        "-n", "2", "--sandbox-concurrency=4", "--sandbox-samples=10", state(suite), "-v", *restarts
    )
    text = printed(result)
    assert "INTERNALERROR" not in text
    assert result.ret == 1, text
    assert result.parseoutcomes() == {"passed": 1, "failed": 2}
    assert re.search(rf"files@4 was cut short: {who} ended \(exit 9\) while it drove lanes;", text)
    series = suite.series()
    assert series["fake:then@4/burst"] == 40
    assert 0 < series["fake:write_file@4/burst"] < 40
    assert [block["id"] for block in suite.header()["blocks"]] == ["files@4", "test_views::test_then@4"]
    suite.assert_nothing_left()
