"""What limits did to a series: rejections with their own latency, waits that can be taken out, who was inside."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_sandboxbench.records.rejections import Rejections
from pytest_sandboxbench.records.schema import Row, parse_key
from pytest_sandboxbench.records.series import Series

KEY = "p:cold_run@4/burst"


def row(outcome: str = "ok", *, started: int = 0, ended: int = 10, number: int = 0, **more: Any) -> Row:
    return Row(KEY, number, 0, number, 0, started, ended, outcome, **more)


def series(*rows: Row) -> Series:
    made = Series(parse_key(KEY))
    for one in rows:
        made.add(one)
    return made


def test_each_reason_has_its_latencies() -> None:
    made = series(
        row(ended=50),
        row("rejected(queue)", ended=7),
        row("rejected(quota)", ended=9),
        row("rejected(queue)", ended=3, phases={"turned_away": (1, 3)}),
        row("failed", ended=8),
        row("rejected(queue)", ended=1, warmup=True),
    )
    assert made.rejections.latencies == {"rejected(queue)": [3, 7], "rejected(quota)": [9]}
    assert made.rejections.ours == 1
    assert made.latencies == [50]


def test_waits_for_our_limits_can_be_taken_out() -> None:
    made = series(
        row(ended=50),
        row(ended=80, phases={"queue": (10, 40), "queue_2": (50, 60), "boot": (60, 70)}),
        row(ended=90, phases={"queue": (10, 50), "queued_by_provider": (50, 90)}),
        row(ended=60, phases={"provider_queue": (0, 60)}),
        row(ended=60, phases={"queue": (5, 5)}),
    )
    assert made.rejections.waited == 2
    assert made.rejections.without_waits(made.latencies) == [40, 50, 50, 60, 60]


def test_a_wait_is_never_longer_than_the_latency() -> None:
    """Whatever a file of somebody's says."""
    latest = (1 << 62) - 1
    made = series(row(ended=5, phases=dict.fromkeys(("queue", "queue_2", "queue_3"), (-latest, latest))))
    assert made.rejections.without_waits(made.latencies) == [0]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=30), st.lists(st.integers(0, 50)))
def test_taking_waits_out_keeps_all_others(waits: list[tuple[int, int]], others: list[int]) -> None:
    rejections = Rejections()
    for latency, wait in waits:
        rejections.serve(latency, {"queue": (0, wait)})
    every = [latency for latency, _ in waits] + others
    wanted = [latency - min(wait, latency) for latency, wait in waits] + others
    assert rejections.without_waits(every) == sorted(wanted)


def test_who_was_accepted_and_when_they_ended_by_round() -> None:
    made = series(
        row(started=1, ended=30),
        row("failed", started=4, ended=20),
        row("rejected(queue)", started=6, ended=20),
        row("rejected(quota)", started=2, ended=9, number=3),
        row(started=5, ended=9, number=3),
        row(started=1, ended=9, number=3),
        row("rejected(queue)", started=9, ended=9, number=-1, warmup=True),
    )
    assert made.arrivals() == [(6, [20, 30]), (5, [9, 9])]


@pytest.mark.parametrize("outcome", ["rejected", "rejected(", "rejected(else)"])
def test_a_rejection_for_a_reason_that_nobody_knows_is_one_all_the_same(outcome: str) -> None:
    made = series(row(outcome))
    assert made.rejected == 1
    assert made.rejections.latencies == {outcome: [10]}


def test_one_lane_has_nobody_to_crowd_with() -> None:
    made = Series(parse_key("p:cold_run@1/burst"))
    made.add(Row("p:cold_run@1/burst", 0, 0, 0, 0, 0, 5, "rejected(quota)"))
    assert made.arrivals() == []
    assert made.rejections.latencies == {"rejected(quota)": [5]}
