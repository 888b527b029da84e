"""What is simulated: budgets whose limit is the truth itself, and ones with the truth inside of and beyond it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from pytest_sandboxbench.budgets.evidence import Evidence
from pytest_sandboxbench.budgets.judging import judge
from pytest_sandboxbench.budgets.looks import confidence, schedule
from pytest_sandboxbench.budgets.model import Budget, Placed, Reference
from pytest_sandboxbench.model import SeriesKey
from pytest_sandboxbench.records.schema import Row
from pytest_sandboxbench.records.series import Series
from pytest_sandboxbench.stats import Interval, cluster_interval

from .worlds import World, series_of

__all__ = ["LANES", "SINGLE", "Case", "all_cases", "of_quantile", "until_certain"]

Find = Callable[[Budget, Evidence], Interval | None]

SINGLE = (
    World("log-normal, sd 0.1", 0.1),
    World("log-normal, sd 0.25", 0.25),
    World("log-normal, sd 0.5", 0.5),
    World("bimodal: 30 % take twice as long", 0.1, modes=((0.7, 1.0), (0.3, 2.0))),
)

LANES = (
    World("16 lanes, sd 0.25, of rounds 0.05", 0.25, 0.05, lanes=16),
    World("16 lanes, sd 0.05, of rounds 0.16", 0.05, 0.16, lanes=16),
    World("16 lanes, 6 % of rounds take twice as long", 0.1, modes=((0.94, 1.0), (0.06, 2.0)), shared=True, lanes=16),
)

SLOW_ROUNDS = World(
    "16 lanes, 25 % of rounds take twice as long", 0.1, modes=((0.75, 1.0), (0.25, 2.0)), shared=True, lanes=16
)


@dataclass(frozen=True, slots=True)
class Case:
    """``draw`` makes the evidence of a run with so many rounds; ``budgets`` have the truth at, in and beyond the limit.

    ``looks``     the rounds at which one looks and the confidence then; one look unless sampling goes on until certain
    ``promised``  whether the rate is said to be held: not by other ways that stand here for comparison, and not by the
                  median of few rounds some of which are slow as a whole
    """

    world: str
    what: str
    runs: int
    looks: tuple[tuple[int, float], ...]
    draw: Callable[[random.Random, int], Callable[[int, float], Evidence]]
    budgets: tuple[Budget, Budget, Budget]
    find: Find
    promised: bool = True


def judged(budget: Budget, evidence: Evidence) -> Interval | None:
    """The interval that a verdict of the product rests on."""
    return judge(Placed(budget, "simulation"), evidence).interval


def booted(budget: Budget, evidence: Evidence) -> Interval | None:
    """What the bootstrap over rounds would say of a tail percentile."""
    rounds = list(evidence.series.rounds.values())
    return cluster_interval(rounds, budget.quantile or 0.5, evidence.confidence, seed=0)


def _upper(budget: Budget, truth: float) -> tuple[Budget, Budget, Budget]:
    return replace(budget, high=truth), replace(budget, high=1.1 * truth), replace(budget, high=truth / 1.1)


def of_quantile(
    world: World,
    statistic: str,
    looks: tuple[tuple[int, float], ...],
    runs: int,
    *,
    what: str = "",
    find: Find = judged,
) -> Case:
    budget = Budget("startup", statistic)
    q = budget.quantile or 0.5

    def draw(rng: random.Random, rounds: int) -> Callable[[int, float], Evidence]:
        drawn = world.draw(rng, rounds)
        return lambda upto, sure: Evidence(series_of(drawn[:upto], lanes=world.lanes), sure)

    budgets = _upper(budget, world.quantile(q))
    promised = not what and not (world.shared and q == 0.5)
    return Case(world.name, what or statistic, runs, looks, draw, budgets, find, promised)


def until_certain(world: World, statistic: str, planned: int, most: int, runs: int, *, paid: bool) -> Case:
    looks = schedule(planned, most)
    sure = [confidence(number, len(looks)) if paid else 0.95 for number in range(1, len(looks) + 1)]
    case = of_quantile(world, statistic, tuple(zip(looks, sure, strict=True)), runs)
    return replace(case, what=statistic if paid else f"{statistic}, looks not paid for", promised=paid)


def _over(world: World, floor: World, kinds: tuple[Reference, ...], truth: float, rounds: int, runs: int) -> Case:
    """A ratio; what is slow in a round is slow for the floor of that round as well, by a quarter more or less."""
    name = {"level": "@1", "floor": "floor"}
    what = " / ".join(["median@16" if kinds[0].kind == "level" else "median", *(name[over.kind] for over in kinds)])

    def one(rng: random.Random, lanes: int, grown: float) -> Evidence:
        own, bare = (replace(one, lanes=lanes).draw(rng, rounds) for one in (world, floor))
        slow = [grown * rng.lognormvariate(0.0, 0.25) for _ in range(rounds)] if len(kinds) == 2 else [grown] * rounds
        own, bare = (
            [[round(value * factor) for value in values] for values, factor in zip(drawn, slow, strict=True)]
            for drawn in (own, bare)
        )
        return Evidence(
            series_of(own, lanes=lanes), floor=series_of(bare, lanes=lanes, provider="null"), confidence=0.95
        )

    def draw(rng: random.Random, _rounds: int) -> Callable[[int, float], Evidence]:
        two = kinds[0].kind == "level"
        found = replace(one(rng, 16, 2.0), below=one(rng, 1, 1.0)) if two else one(rng, 1, 1.0)
        return lambda upto, sure: found

    budgets = _upper(Budget("startup", "median", over=kinds), truth)
    return Case(world.name, what, runs, ((rounds, 0.95),), draw, budgets, judged)


def _success(lanes: int, rounds: int, runs: int) -> Case:
    """5 % fail; with several lanes half of these by themselves, half with their whole round."""
    world = "5 % fail" if lanes == 1 else f"{lanes} lanes, 5 % fail, half of these with all of their round"
    key = SeriesKey("p", "startup", level=lanes)

    def draw(rng: random.Random, count: int) -> Callable[[int, float], Evidence]:
        series = Series(key)
        for number in range(count):
            together = lanes > 1 and rng.random() < 0.025
            for lane in range(lanes):
                bad = together or rng.random() < (0.05 if lanes == 1 else 1 - 0.95 / 0.975)
                series.add(Row(str(key), number, lane, number, 0, 0, 1, "failed" if bad else "ok"))
        return lambda upto, sure: Evidence(series, sure)

    budget = Budget("startup", "success")
    budgets = (replace(budget, low=0.95), replace(budget, low=0.90), replace(budget, low=0.98))
    return Case(world, "success", runs, ((rounds, 0.95),), draw, budgets, judged)


def all_cases(single: int, lanes: int) -> Iterator[Case]:
    """``single`` runs of each case whose units are values, ``lanes`` of each that has several a round."""
    for world in SINGLE:
        for statistic in ("median", "p95"):
            for units in (6, 20, 40, 100):
                yield of_quantile(world, statistic, ((units, 0.95),), single)
    for world in LANES:
        for units, runs in ((6, single), (20, lanes), (40, lanes), (100, lanes // 2)):
            yield of_quantile(world, "median", ((units, 0.95),), runs)
        for units in (20, 40, 100, 200):
            yield of_quantile(world, "p95", ((units, 0.95),), lanes)
        yield of_quantile(world, "p95", ((100, 0.95),), lanes // 2, what="p95 by bootstrap", find=booted)
    for units, runs in ((6, single), (20, lanes), (40, lanes)):
        yield of_quantile(SLOW_ROUNDS, "median", ((units, 0.95),), runs)
    quiet, floor = World("log-normal, sd 0.25", 0.25), World("floor", 0.1)
    level, bare = Reference("level", level=1), Reference("floor")
    yield _over(quiet, floor, (bare,), 1.0, 20, single)
    yield _over(replace(LANES[0], name="1 and 16 lanes, sd 0.25, of rounds 0.05"), floor, (level,), 2.0, 20, lanes)
    beside = replace(LANES[0], name="the same; 0.25 of the rounds of both")
    yield _over(beside, floor, (level, bare), 1.0, 20, lanes)
    yield _success(1, 100, single)
    yield _success(1, 400, single // 2)
    yield _success(16, 100, lanes // 2)
    for world, runs in ((SINGLE[1], single), (SINGLE[3], single), (LANES[0], lanes // 2)):
        yield until_certain(world, "median", 20, 80, runs, paid=True)
        yield until_certain(world, "median", 20, 80, runs, paid=False)
    yield until_certain(SINGLE[1], "p95", 60, 960, single // 2, paid=True)
    yield until_certain(SINGLE[1], "median", 6, 384, single, paid=True)
    yield until_certain(SINGLE[1], "median", 6, 384, single, paid=False)
