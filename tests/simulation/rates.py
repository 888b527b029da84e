"""Series of known truth, and how often a budget on them is passed, failed or left undecided."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from pytest_sandboxbench.budgets.judging import decide, tail_interval
from pytest_sandboxbench.budgets.looks import confidence, schedule
from pytest_sandboxbench.budgets.model import Budget
from pytest_sandboxbench.stats import Interval, percentile_interval

__all__ = ["KINDS", "LIMITS", "Kind", "Rates", "rates", "until_decided"]

Rounds = Sequence[Sequence[float]]

LANES = 16
LIMITS = {"at the truth": 1.0, "10 % above it": 1.1, "10 % below it": 0.9}
"""Where the upper limit of a budget lies, by the true value of the statistic."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What is drawn: ``n`` rounds from a generator; ``distribution`` is that of a single value, for the truth."""

    name: str
    draw: Callable[[random.Random, int], Rounds]
    distribution: Callable[[float], float]

    def truth(self, q: float) -> float:
        low, high = 1e-3, 1e3
        for _ in range(100):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self.distribution(middle) < q else (low, middle)
        return low


def _log_normal(sd: float) -> Kind:
    return Kind(
        f"log-normal, sd {sd:g}",
        lambda rng, n: [[rng.lognormvariate(0, sd)] for _ in range(n)],
        lambda x: NormalDist().cdf(math.log(x) / sd),
    )


def _two(rng: random.Random) -> float:
    return rng.lognormvariate(0 if rng.random() < 0.6 else math.log(2), 0.05)


def _round(rng: random.Random) -> list[float]:
    shift = rng.gauss(0, 0.05)
    return [math.exp(shift + rng.gauss(0, 0.1)) for _ in range(LANES)]


KINDS = (
    *map(_log_normal, (0.1, 0.25, 0.5)),
    Kind(
        "bimodal: 60 % at 1, 40 % at 2",
        lambda rng, n: [[_two(rng)] for _ in range(n)],
        lambda x: (
            0.6 * NormalDist().cdf(math.log(x) / 0.05) + 0.4 * NormalDist().cdf((math.log(x) - math.log(2)) / 0.05)
        ),
    ),
    Kind(
        f"{LANES} lanes, sd 0.1, rounds 5 % apart",
        lambda rng, n: [_round(rng) for _ in range(n)],
        lambda x: NormalDist().cdf(math.log(x) / math.hypot(0.1, 0.05)),
    ),
)


@dataclass(frozen=True, slots=True)
class Rates:
    """Shares of ``runs``; ``fail`` and ``passed`` are the wrong ones where the limit is the truth."""

    passed: float
    fail: float
    inconclusive: float
    runs: int


def interval(rounds: Rounds, q: float, sure: float) -> Interval:
    """As budgets are judged: a percentile of several lanes is bounded by whole rounds."""
    if q != 0.5 and len(rounds[0]) > 1:
        return tail_interval(rounds, q, sure)
    return percentile_interval(rounds, q, sure)


def rates(kind: Kind, q: float, n: int, limit: float, runs: int, seed: int = 1) -> Rates:
    """Of budgets ``.. limit * truth`` on ``n`` rounds each, looked at once."""
    return until_decided(kind, q, n, n, limit, runs, seed)


def until_decided(kind: Kind, q: float, n: int, most: int, limit: float, runs: int, seed: int = 1) -> Rates:
    """The same where an undecided one takes more rounds, up to ``most``."""
    rng = random.Random(f"{seed}/{kind.name}/{q}/{n}/{most}/{limit}")
    budget = Budget("x", "median", high=limit * kind.truth(q))
    looks = schedule(n, most)
    found = {"pass": 0, "fail": 0, "inconclusive": 0}
    for _ in range(runs):
        rounds = kind.draw(rng, most)
        outcome = "inconclusive"
        for number, upto in enumerate(looks, 1):
            outcome = decide(budget, interval(rounds[:upto], q, confidence(number, len(looks))))
            if outcome != "inconclusive":
                break
        found[outcome] += 1
    return Rates(found["pass"] / runs, found["fail"] / runs, found["inconclusive"] / runs, runs)
