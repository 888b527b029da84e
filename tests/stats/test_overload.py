from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_sandboxbench.stats.overload import Crowd, beyond, crowds


@pytest.mark.parametrize(
    ("last", "ends", "inside"),
    [
        (0.0, [], 0),
        (1.0, [5.0] * 20, 20),
        (1.0, [0.5, 1.0, 1.5], 1),
        (9.0, [1.0, 2.0], 0),
    ],
)
def test_who_is_not_over_when_the_last_one_comes_is_inside(last: float, ends: list[float], inside: int) -> None:
    (found,) = crowds([(last, ends)])
    assert found.accepted == len(ends)
    assert found.inside == inside


def test_a_published_overload() -> None:
    """60 at once at 4 running and 16 queued: exactly 20 accepted; the first of them ended after the last had come."""
    (found,) = crowds([(0.036, [0.040 + 0.030 * (i // 4) for i in range(20)])])
    assert found == Crowd(20, 0)
    assert beyond([found], 20) == []
    assert beyond([found], 19) == [found]


times = st.floats(0, 100)


@given(st.lists(st.tuples(times, st.lists(times, max_size=30)), max_size=5), st.integers(0, 30))
def test_no_crowd_is_beyond_what_fits_and_one_less_is(rounds: list[tuple[float, list[float]]], capacity: int) -> None:
    found = crowds(rounds)
    assert all(0 <= crowd.inside <= crowd.accepted for crowd in found)
    most = max((crowd.inside for crowd in found), default=0)
    assert beyond(found, most) == []
    assert bool(beyond(found, capacity)) == (most > capacity)


@given(times, st.lists(times, min_size=1, max_size=30))
def test_a_later_last_arrival_finds_no_more_inside(last: float, ends: list[float]) -> None:
    early, late = crowds([(last, ends), (last + 1, ends)])
    assert late.inside <= early.inside
