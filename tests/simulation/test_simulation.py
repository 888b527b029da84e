"""The simulation in small: that it counts rightly, and that no verdict is wrong more often than promised."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from pytest_sandboxbench.stats import Interval, percentile

from .cases import LANES, SINGLE, Case, all_cases, of_quantile, until_certain
from .rates import PROMISED, allowed, simulate, table
from .worlds import World


@pytest.mark.parametrize(
    "case",
    [
        of_quantile(SINGLE[1], "median", ((20, 0.95),), 400),
        of_quantile(SINGLE[3], "p95", ((100, 0.95),), 200),
        of_quantile(LANES[1], "median", ((20, 0.95),), 40),
        of_quantile(LANES[2], "p95", ((100, 0.95),), 40),
        until_certain(SINGLE[1], "median", 6, 384, 200, paid=True),
    ],
    ids=lambda case: f"{case.world}, {case.what}",
)
def test_verdicts_are_wrong_no_more_often_than_promised(case: Case) -> None:
    assert simulate(case).wrong <= allowed(case.runs)


def test_far_from_the_limit_they_are_right() -> None:
    _, inside, outside = simulate(of_quantile(SINGLE[0], "median", ((40, 0.95),), 100)).outcomes
    assert inside["pass"] > 95
    assert outside["fail"] > 95


@pytest.mark.parametrize("world", [*SINGLE, *LANES], ids=lambda world: world.name)
@pytest.mark.parametrize("q", [0.5, 0.95])
def test_the_true_quantile_is_that_of_many_samples(world: World, q: float) -> None:
    drawn = world.draw(random.Random(1), 40_000 // world.lanes)
    assert percentile(sorted(value for values in drawn for value in values), q) == pytest.approx(
        world.quantile(q), rel=0.05
    )


def test_an_interval_that_is_always_wrong_is_found_out() -> None:
    case = of_quantile(
        SINGLE[0], "median", ((6, 0.95),), 20, what="wrong", find=lambda budget, evidence: Interval(1, 1, 1, 0.95, 6)
    )
    rates = simulate(case)
    assert rates.wrong == 1
    assert list(table([rates]))[-1].endswith("| **100.0 of 13.0** |")


def test_equal_cases_come_to_equal_rates() -> None:
    case = of_quantile(SINGLE[0], "p95", ((72, 0.95),), 20)
    assert simulate(case) == simulate(case)
    assert simulate(replace(case, runs=10)).outcomes != simulate(case).outcomes


def test_more_runs_leave_less_room() -> None:
    assert PROMISED < allowed(2000) < allowed(200) < 0.06


def test_each_case_has_a_name_of_its_own() -> None:
    names = [(case.world, case.what, case.looks) for case in all_cases(2, 2)]
    assert len(set(names)) == len(names)
