"""When a block is looked at, and what the looks cost."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from pytest_sandboxbench.budgets.looks import ERROR, confidence, schedule
from pytest_sandboxbench.stats import median_interval, needed


@pytest.mark.parametrize(
    ("planned", "most", "expected"),
    [
        (20, 20, (20,)),
        (20, 5, (20,)),
        (20, 21, (20, 21)),
        (20, 40, (20, 40)),
        (20, 100, (20, 40, 80, 100)),
        (6, 96, (6, 12, 24, 48, 96)),
        (1, 3, (1, 2, 3)),
    ],
)
def test_looks_come_when_the_rounds_have_doubled(planned: int, most: int, expected: tuple[int, ...]) -> None:
    assert schedule(planned, most) == expected


def test_a_block_of_no_rounds_has_no_schedule() -> None:
    with pytest.raises(ValueError, match="at least one round"):
        schedule(0, 10)


@pytest.mark.parametrize("of", range(1, 12))
def test_the_error_of_all_looks_is_what_one_look_has(of: int) -> None:
    assert sum(1 - confidence(look, of) for look in range(1, of + 1)) == pytest.approx(ERROR)


def test_a_single_look_has_the_usual_confidence() -> None:
    assert confidence(1, 1) == 0.95


@pytest.mark.parametrize("of", range(1, 12))
def test_six_units_bound_a_median_at_the_first_look(of: int) -> None:
    assert needed(0.5, confidence(1, of)) == 6


@pytest.mark.parametrize(("look", "of"), [(0, 1), (2, 1), (5, 4), (-1, 3)])
def test_a_look_that_is_not_planned_is_refused(look: int, of: int) -> None:
    with pytest.raises(ValueError, match="is not one of"):
        confidence(look, of)


def test_peeking_is_paid_for() -> None:
    """The median lies at the limit: whoever decides is wrong, on one side or the other."""
    looks = schedule(20, 640)
    paid = wrong(looks, lambda look: confidence(look, len(looks)))
    free = wrong(looks, lambda look: 0.95)
    assert max(paid) <= 0.025 + 3 * (0.025 * 0.975 / RUNS) ** 0.5
    assert min(free) > 0.025 + 3 * (0.025 * 0.975 / RUNS) ** 0.5


RUNS = 1000


def wrong(looks: Sequence[int], of_look: Callable[[int], float]) -> tuple[float, float]:
    """How often the first look that decides says that the median lies above the limit, and below it."""
    rng = random.Random(1)
    above = below = 0
    for _ in range(RUNS):
        values = [rng.random() - 0.5 for _ in range(looks[-1])]
        for look, rounds in enumerate(looks, 1):
            interval = median_interval(values[:rounds], of_look(look))
            if 0.0 not in interval:
                above += interval.low > 0
                below += interval.high < 0
                break
    return above / RUNS, below / RUNS
