"""What the load generator did, from the times of the acts: spread, queue, how many at once, and ramps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_sandboxbench.records.generator import Generator, in_flight
from pytest_sandboxbench.records.schema import Row
from pytest_sandboxbench.records.series import Series, SeriesTable

ACTS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 10)).map(lambda act: (act[0], sum(act))), max_size=30)


@given(ACTS)
def test_in_flight_is_the_most_that_any_instant_sees(acts: list[tuple[int, int]]) -> None:
    instants = {start for start, _ in acts}
    most = max((sum(start <= at < end for start, end in acts) for at in instants), default=0)
    assert in_flight([start for start, _ in acts], [end for _, end in acts]) == most


@pytest.mark.parametrize(
    ("acts", "most"),
    [
        ([(0, 10)] * 8, 8),
        ([(0, 5), (5, 10)], 1),  # the end is not inside
        ([(0, 6), (5, 10)], 2),
        ([(0, 10), (1, 2), (3, 4)], 2),
        ([(5, 5)], 0),  # it took no time at all
        ([], 0),
    ],
)
def test_in_flight(acts: list[tuple[int, int]], most: int) -> None:
    assert in_flight([start for start, _ in acts], [end for _, end in acts]) == most


def row(number: int, due: int, started: int, ended: int, outcome: str = "ok", level: int = 4, **more: object) -> Row:
    shape = more.pop("shape", "burst")
    return Row(f"fake:exec@{level}/{shape}", number, 0, 0, due, started, ended, outcome, **more)  # type: ignore[arg-type]


def series(rows: Sequence[Row]) -> Series:
    table = SeriesTable()
    for one in rows:
        table.add(one)
    (made,) = table
    return made


def generator(rows: Sequence[Row]) -> Generator:
    found = series(rows).generator()
    assert found is not None
    return found


def test_by_round() -> None:
    found = generator(
        [
            row(0, 100, 101, 200),
            row(0, 100, 103, 200),
            row(0, 100, 111, 200),
            row(1, 1000, 1000, 1010),
            row(1, 1000, 1010, 1020),
            row(2, 2000, 2007, 2020, "failed"),
            row(-1, 0, 50, 90, warmup=True),
        ]
    )
    assert list(found.spreads) == [10, 10, 0]
    assert list(found.queues) == [3, 5, 7]
    assert list(found.achieved) == [3, 1, 1]
    assert (found.spread_ns, found.worst_spread_ns, found.queue_ns, found.achieved_range) == (10, 10, 5, (1, 3))


def test_a_lane_that_is_due_later_is_not_late() -> None:
    """As in a stagger: what counts is the start from when that lane was due."""
    found = generator([row(0, 100 * lane, 100 * lane + 5, 1000, shape="stagger-100ns") for lane in range(4)])
    assert list(found.spreads) == [0]
    assert list(found.achieved) == [4]


def test_one_lane_alone_has_no_generator() -> None:
    assert series([row(0, 0, 1, 9, level=1)]).generator() is None
    assert series([row(0, 0, 1, 9, level=1, shape="rate-50")]).generator() is not None
    assert series([row(0, 0, 1, 9, warmup=True)]).generator() is None


@given(st.lists(ACTS.filter(bool), min_size=1, max_size=5), st.randoms())
def test_the_order_in_which_samples_come_is_no_matter(rounds: list[list[tuple[int, int]]], draw: object) -> None:
    """Several processes write a file each: the samples of a round lie apart."""
    rows = [[row(n, 0, start, end) for start, end in acts] for n, acts in enumerate(rounds)]
    one = generator(list(chain.from_iterable(rows)))
    first = [acts[0] for acts in rows]  # the rounds keep their order
    rest = list(chain.from_iterable(acts[1:] for acts in rows))
    draw.shuffle(rest)  # type: ignore[attr-defined]
    assert generator([*first, *rest]) == one


def test_lags_are_queues_and_the_adapters_own() -> None:
    one = series([row(0, 0, 5, 90, phases={"spawn_queue": (10, 30), "boot": (30, 80)}), row(0, 0, 7, 90)])
    assert list(one.queues) == [5, 7]
    assert list(one.lags) == [25, 7]


def test_a_ramp() -> None:
    """Ten lanes 100 ns apart; each takes as long as it is late, and the last one fails."""
    rows = [
        row(n, 1000 * n + 100 * lane, 1000 * n + 100 * lane, 1000 * n + 200 * lane, shape="stagger-100ns", level=10)
        for n in range(2)
        for lane in range(9)
    ]
    rows += [
        row(n, 1000 * n + 900, 1000 * n + 900, 1000 * n + 900, "failed", 10, shape="stagger-100ns") for n in (0, 1)
    ]
    ramp = series(rows).ramp()
    assert [(one.first_ns, one.last_ns) for one in ramp] == [(0, 180), (180, 360), (360, 540), (540, 720), (720, 900)]
    assert [one.latencies for one in ramp] == [
        [0, 0, 100, 100],
        [200, 200, 300, 300],
        [400, 400, 500, 500],
        [600, 600, 700, 700],
        [800, 800],
    ]


def test_a_burst_is_a_ramp_of_one_step() -> None:
    (only,) = series([row(0, 100, 101, 200), row(0, 100, 103, 150)]).ramp()
    assert only == (0, 0, [50, 100])
    assert series([row(0, 0, 1, 9, level=1)]).ramp() == []
