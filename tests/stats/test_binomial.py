from __future__ import annotations

import math
import time
from fractions import Fraction
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_sandboxbench.stats.binomial import lower_rank, lower_tail, proportion_above, term

HALF = Fraction(1, 2)
EXACT_Q = [
    Fraction(1, 100),
    Fraction(1, 20),
    Fraction(1, 4),
    HALF,
    Fraction(9, 10),
    Fraction(19, 20),
    Fraction(99, 100),
]


def exact_tails(n: int, q: Fraction) -> list[Fraction]:
    """``P(B <= k)`` for every k, in rational numbers, term by term."""
    return list(accumulate(math.comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(n + 1)))


@pytest.mark.parametrize("q", EXACT_Q)
@pytest.mark.parametrize("n", [1, 2, 6, 59, 72, 150])
def test_terms_and_tails_are_exact(n: int, q: Fraction) -> None:
    tails = exact_tails(n, q)
    for k, tail in enumerate(tails):
        single = tail - (tails[k - 1] if k else 0)
        assert term(k, n, float(q)) == pytest.approx(float(single), rel=1e-10, abs=1e-300)
        if k <= (n + 1) * q:
            assert lower_tail(k, n, float(q)) == pytest.approx(float(tail), rel=1e-10, abs=1e-300)


def test_outside_the_support() -> None:
    assert term(-1, 5, 0.5) == term(6, 5, 0.5) == lower_tail(-1, 5, 0.5) == 0.0


@pytest.mark.parametrize("q", EXACT_Q)
@pytest.mark.parametrize("error", [Fraction(1, 40), Fraction(1, 20), Fraction(1, 200), HALF])
def test_rank_is_that_of_the_naive_search(q: Fraction, error: Fraction) -> None:
    for n in [*range(1, 40), 59, 100, 299, 400]:
        naive = sum(1 for tail in exact_tails(n, q)[:n] if tail <= error)
        # An exact tie counts as reached, whatever the rounding of q and error.
        assert lower_rank(n, float(q), float(error)) == naive, n


@pytest.mark.parametrize("q", [0.01, 0.5, 0.95, 0.999])
def test_rank_for_a_million_values(q: float) -> None:
    n, error = 1_000_000, 0.025
    began = time.process_time()
    rank = lower_rank(n, q, error)
    took = time.process_time() - began
    # A sum of every term that counts, from the far side and with the exact summation of fsum.
    first = max(0, rank - 12_000)
    below = math.fsum(term(k, n, q) for k in range(first, rank))
    assert below <= error < below + term(rank, n, q)
    assert took < 0.25


@given(st.integers(min_value=1, max_value=400), st.data())
def test_upper_limit_of_a_proportion_solves_its_equation(n: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(min_value=0, max_value=n - 1))
    limit = proportion_above(successes, n, 0.025)
    assert successes / n < limit < 1
    assert lower_tail(successes, n, limit) == pytest.approx(0.025, rel=1e-6)


def test_upper_limit_in_closed_form() -> None:
    assert proportion_above(0, 50, 0.025) == pytest.approx(1 - 0.025 ** (1 / 50), rel=1e-12)
    assert proportion_above(50, 50, 0.025) == 1.0
