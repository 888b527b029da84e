from __future__ import annotations

import math
import statistics
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_sandboxbench.stats import judged_side, median, needed, percentile, shown, shown_from

values = st.lists(st.floats(min_value=0.0, max_value=1e12), min_size=1, max_size=60)
shares = st.floats(min_value=0.0, max_value=1.0)


def close(a: float, b: float, scale: float = 0.0) -> bool:
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9 * max(1.0, scale))


@pytest.mark.parametrize(
    ("data", "q", "expected"),
    [
        ([7.0], 0.0, 7.0),
        ([7.0], 0.95, 7.0),
        ([1.0, 2.0], 0.5, 1.5),
        ([1.0, 2.0, 3.0, 4.0], 0.25, 1.75),
        ([10.0, 20.0, 30.0, 40.0, 50.0], 0.9, 46.0),
        ([10.0, 20.0, 30.0, 40.0, 50.0], 1.0, 50.0),
        (list(range(1, 101)), 0.99, 99.01),
        (list(range(1, 21)), 0.95, 19.05),
    ],
)
def test_literal_examples(data: list[float], q: float, expected: float) -> None:
    assert percentile(data, q) == pytest.approx(expected, rel=1e-12)


def test_the_result_is_a_float_also_for_integers() -> None:
    assert isinstance(percentile([1, 2, 3], 0.5), float)


def test_no_values() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


@pytest.mark.parametrize("q", [-0.01, 1.01, 95.0, math.nan])
def test_q_is_a_share(q: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        percentile([1.0], q)
    with pytest.raises(ValueError, match="between 0 and 1"):
        shown_from(q)


@given(values)
def test_median_is_that_of_the_statistics_module(data: list[float]) -> None:
    assert close(median(sorted(data)), statistics.median(data))


@given(st.lists(st.integers(min_value=0, max_value=10**12), min_size=1, max_size=60))
def test_median_of_whole_nanoseconds_agrees_to_the_last_digit(data: list[int]) -> None:
    assert median(sorted(data)) == statistics.median(data)


@given(st.lists(st.floats(min_value=0.0, max_value=1e12), min_size=2, max_size=60))
def test_percentiles_are_those_of_the_statistics_module(data: list[float]) -> None:
    theirs = statistics.quantiles(data, n=100, method="inclusive")
    ordered = sorted(data)
    assert all(close(percentile(ordered, i / 100), theirs[i - 1], ordered[-1]) for i in range(1, 100))


@given(values, st.lists(shares, min_size=2, max_size=20))
def test_monotone_in_q_and_within_the_range(data: list[float], qs: list[float]) -> None:
    ordered = sorted(data)
    found = [percentile(ordered, q) for q in sorted(qs)]
    assert all(a <= b for a, b in pairwise(found))
    assert ordered[0] <= found[0]
    assert found[-1] <= ordered[-1]


@given(values, shares, st.sampled_from([0.25, 2.0, 1024.0]))
def test_scale(data: list[float], q: float, factor: float) -> None:
    ordered = sorted(data)
    assert close(percentile([x * factor for x in ordered], q), percentile(ordered, q) * factor)


@given(values, shares, st.floats(min_value=-1e9, max_value=1e9))
def test_shift(data: list[float], q: float, shift: float) -> None:
    ordered = sorted(data)
    assert close(percentile([x + shift for x in ordered], q), percentile(ordered, q) + shift, 1e12)


@given(st.floats(min_value=0.0, max_value=1e12), st.integers(min_value=1, max_value=50), shares)
def test_ties(value: float, n: int, q: float) -> None:
    assert percentile([value] * n, q) == value


def test_when_a_percentile_is_shown() -> None:
    assert [shown_from(q) for q in (0.0, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)] == [1, 1, 4, 10, 20, 100, 1000, 1]
    assert [shown(0.95, n) for n in (0, 19, 20)] == [False, False, True]
    assert [shown(0.99, n) for n in (30, 99, 100)] == [False, False, True]
    assert [shown(0.5, n) for n in (0, 1)] == [False, True]
    assert shown_from(0.05) == 20


def test_when_a_percentile_is_judged() -> None:
    assert [needed(q) for q in (0.5, 0.9, 0.95, 0.99)] == [6, 29, 59, 299]
    assert [needed(q, side="both") for q in (0.9, 0.95, 0.99)] == [36, 72, 368]
    assert needed(0.5, side="upper") == needed(0.5, 0.9) == 5
    assert needed(0.05) == 59
    assert needed(0.05, side="upper") == 1
    assert [judged_side(q) for q in (0.05, 0.5, 0.95)] == ["lower", "both", "upper"]


def test_an_exact_tie_is_enough() -> None:
    assert needed(0.5, confidence=1 - 2 * 0.5**6) == 6
    assert needed(0.5, confidence=1 - 0.5**6, side="lower") == 6


@given(st.floats(min_value=0.01, max_value=0.995), st.floats(min_value=0.5, max_value=0.999))
def test_needed_is_the_first_number_that_reaches_the_confidence(q: float, confidence: float) -> None:
    n = needed(q, confidence, "upper")
    error = 1 - confidence
    assert q**n <= error * (1 + 1e-8)
    assert n == 1 or q ** (n - 1) > error * (1 - 1e-8)


@pytest.mark.parametrize(("q", "confidence"), [(0.0, 0.95), (1.0, 0.95), (0.5, 0.4), (0.5, 1.0), (0.5, 95.0)])
def test_needed_refuses_nonsense(q: float, confidence: float) -> None:
    with pytest.raises(ValueError, match="is a share"):
        needed(q, confidence)
