"""Run the cases, and print what came of them as a table."""

from __future__ import annotations

import math
import random
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from pytest_sandboxbench.budgets.judging import decide
from pytest_sandboxbench.budgets.model import Outcome

from .cases import Case

__all__ = ["PROMISED", "Rates", "allowed", "simulate", "table"]

PROMISED = 0.025
"""Of all verdicts on a limit, those that are wrong on one side of it."""

_SIGMAS = 3


@dataclass(frozen=True, slots=True)
class Rates:
    """Outcomes with the truth at the limit, inside and outside; ``units``: at how many one stopped, in the mean."""

    case: Case
    outcomes: tuple[Counter[Outcome], Counter[Outcome], Counter[Outcome]]
    units: float

    @property
    def errors(self) -> int:
        """The most verdicts that are wrong on one side. At the limit each is, the truth being infinitely near it."""
        at, inside, outside = self.outcomes
        return max(at["pass"], at["fail"], inside["fail"], outside["pass"])

    @property
    def wrong(self) -> float:
        """The share of the runs that these are."""
        return self.errors / self.case.runs


def allowed(runs: int) -> float:
    """What so many runs may come to where the true rate is the promised one: three standard errors more."""
    return PROMISED + _SIGMAS * math.sqrt(PROMISED * (1 - PROMISED) / runs)


def simulate(case: Case) -> Rates:
    """All runs of a case. Its seed is made of its name, so that no case depends on what else is run."""
    rng = random.Random(zlib.crc32(f"{case.world}/{case.what}/{case.looks}".encode()))
    found: tuple[Counter[Outcome], ...] = (Counter(), Counter(), Counter())
    used = 0
    for _ in range(case.runs):
        evidence = case.draw(rng, case.looks[-1][0])
        left = dict(enumerate(case.budgets))
        for number, (rounds, sure) in enumerate(case.looks):
            interval = case.find(case.budgets[0], evidence(rounds, sure))
            for at, budget in list(left.items()):
                outcome: Outcome = "inconclusive" if interval is None else decide(budget, interval)
                if outcome != "inconclusive" or number == len(case.looks) - 1:
                    found[at][outcome] += 1
                    used += rounds if at else 0
                    del left[at]
            if not left:
                break
    return Rates(case, (found[0], found[1], found[2]), used / (2 * case.runs))


def table(rates: Iterable[Rates]) -> Iterable[str]:
    """Markdown, row by row, each as soon as it is known. Shares in percent: pass, fail, inconclusive."""
    yield "| samples | units | budget | truth at the limit | 10 % inside | 10 % outside | wrong |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for one in rates:
        case = one.case
        units = f"{case.looks[0][0]}"
        if len(case.looks) > 1:
            units = f"{case.looks[0][0]} to {case.looks[-1][0]}: {one.units:.0f}"
        shares = [
            " / ".join(f"{100 * counted[outcome] / case.runs:.1f}" for outcome in ("pass", "fail", "inconclusive"))
            for counted in one.outcomes
        ]
        over = one.wrong > allowed(case.runs)
        wrong = f"{'**' * over}{100 * one.errors / case.runs:.1f} of {100 * allowed(case.runs):.1f}{'**' * over}"
        yield f"| {case.world} | {units} | {case.what} | {' | '.join(shares)} | {wrong} |"
