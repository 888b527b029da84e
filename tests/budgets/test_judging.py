"""Verdicts: each kind of budget with a series that keeps it, one that breaks it, and one that does not tell."""

from __future__ import annotations

import math
import random

import pytest

from pytest_sandboxbench.budgets.evidence import Evidence
from pytest_sandboxbench.budgets.judging import decide, judge, tail_interval
from pytest_sandboxbench.budgets.model import Budget, Placed, Reference
from pytest_sandboxbench.model import SeriesKey
from pytest_sandboxbench.records.schema import parse_key
from pytest_sandboxbench.records.series import Series
from pytest_sandboxbench.stats import Interval, cluster_interval, order_interval, percentile

from .measured import MS, alone, lanes, measured, verdict

TEN = [46.0, 47.0, 48.0, 48.0, 49.0, 50.0, 51.0, 51.0, 52.0, 53.0]
"""Its median is 49.5, with the interval 47 .. 52 at 95 %."""


@pytest.mark.parametrize(
    ("limits", "outcome"),
    [
        ("..52ms", "pass"),
        ("..51.999ms", "inconclusive"),
        ("47ms..", "pass"),
        ("47.001ms..", "inconclusive"),
        ("47ms..52ms", "pass"),
        ("..47ms", "inconclusive"),
        ("..46.999ms", "fail"),
        ("52.001ms..", "fail"),
        ("52ms..", "inconclusive"),
        ("53ms..60ms", "fail"),
        ("10ms..20ms", "fail"),
        ("48ms..49ms", "inconclusive"),
    ],
)
def test_an_interval_is_held_against_the_limits_which_belong_to_the_inside(limits: str, outcome: str) -> None:
    found = verdict(f"startup median {limits}", alone(*TEN))
    assert found.interval == order_interval([value * MS for value in TEN], 0.5)
    assert (found.outcome, found.n, found.needs) == (outcome, 10, 0)
    assert found.keys == ["p:startup@1/burst"]


def test_the_limit_that_an_interval_holds_is_named() -> None:
    assert verdict("startup median ..50ms", alone(*TEN)).reason == "its interval 47.0 .. 52.0 ms holds the limit 50 ms"
    both = verdict("startup median 48ms..49.5ms", alone(*TEN))
    assert both.reason == "its interval 47.0 .. 52.0 ms holds the limits 48 ms and 49.5 ms"


@pytest.mark.parametrize(("limits", "outcome"), [("..5ms", "pass"), ("5ms..", "pass"), ("..4ms", "fail")])
def test_an_interval_of_no_width_is_judged_too(limits: str, outcome: str) -> None:
    assert verdict(f"startup median {limits}", alone(*[5.0] * 6)).outcome == outcome


@pytest.mark.parametrize(
    ("statistic", "n", "needs", "reason"),
    [
        ("median", 5, 6, "median is judged from 6 samples on, have 5"),
        ("p95", 9, 72, "p95 needs 20 samples, have 9"),
        ("p95", 20, 72, "p95 is judged from 72 samples on, have 20"),
        ("p99", 99, 368, "p99 needs 100 samples, have 99"),
        ("p90", 34, 36, "p90 is judged from 36 samples on, have 34"),
    ],
)
def test_what_has_too_few_samples_says_how_many_it_takes(statistic: str, n: int, needs: int, reason: str) -> None:
    found = verdict(f"startup {statistic} ..1s", alone(*[10.0 + i / n for i in range(n)]))
    assert (found.outcome, found.needs, found.reason) == ("inconclusive", needs, reason)
    enough = verdict(f"startup {statistic} ..1s", alone(*[10.0 + i / n for i in range(needs)]))
    assert (enough.outcome, enough.needs, enough.reason) == ("pass", 0, "")


def test_a_tail_percentile_fails_early_and_passes_late() -> None:
    twenty = alone(*[10.0 + i for i in range(20)])
    assert verdict("startup p95 ..20ms", twenty).outcome == "fail"
    assert verdict("startup p95 20ms..", twenty).outcome == "pass"
    assert verdict("startup p95 ..20s", twenty).outcome == "inconclusive"


def test_a_higher_confidence_takes_more_samples() -> None:
    series = alone(*[10.0] * 6)
    assert verdict("startup median ..11ms", series, confidence=0.9667).outcome == "pass"
    late = verdict("startup median ..11ms", series, confidence=0.9944)
    assert (late.outcome, late.needs) == ("inconclusive", 9)


@pytest.mark.parametrize("statistic", ["median", "p95", "throughput"])
def test_what_never_succeeded_keeps_no_limit(statistic: str) -> None:
    limits = "1/s.." if statistic == "throughput" else "..52ms"
    found = verdict(f"startup {statistic} {limits}", alone("failed", "timeout"))
    assert (found.outcome, found.reason, found.interval) == ("fail", "no sample succeeded", None)


def test_what_was_not_tried_is_not_known() -> None:
    found = verdict("startup median ..52ms", Series(parse_key("p:startup@1/burst")))
    assert (found.outcome, found.reason) == ("inconclusive", "nothing was measured")


# -- several lanes


def test_with_several_lanes_the_round_is_the_unit() -> None:
    found = verdict("startup median ..60ms", lanes(16, 50, 51, 49, 52, 48))
    assert (found.outcome, found.needs) == ("inconclusive", 6)
    assert found.reason == "median is judged from 6 rounds on, have 5"
    assert verdict("startup median ..60ms", lanes(16, 50, 51, 49, 52, 48, 50)).outcome == "pass"
    assert verdict("startup median ..40ms", lanes(16, 50, 51, 49, 52, 48, 50)).outcome == "fail"


def test_a_tail_percentile_of_several_lanes_takes_as_many_rounds_as_it_takes_samples() -> None:
    few = verdict("startup p95 ..60ms", lanes(16, *[50 + i / 71 for i in range(71)]))
    assert few.reason == "p95 is judged from 72 rounds on, have 71"
    assert verdict("startup p95 ..60ms", lanes(16, *[50 + i / 71 for i in range(72)])).outcome == "pass"


def test_the_tail_of_equal_lanes_is_that_of_as_many_single_values() -> None:
    rng = random.Random(1)
    values = [rng.lognormvariate(0, 1) for _ in range(90)]
    one = order_interval(sorted(values), 0.95)
    found = tail_interval([[value] * 16 for value in values], 0.95)
    assert (found.low, found.high, found.units) == (one.low, one.high, 90)


def test_a_round_with_fewer_values_weighs_as_much() -> None:
    rng = random.Random(2)
    values = [rng.lognormvariate(0, 1) for _ in range(120)]
    found = tail_interval([[value] * rng.randint(1, 9) for value in values], 0.9)
    one = order_interval(sorted(values), 0.9)
    assert (found.low, found.high) == (one.low, one.high)


@pytest.mark.parametrize("lanes_of_a_round", [1, 2, 16])
def test_the_tail_interval_has_values_that_were_measured_around_the_estimate(lanes_of_a_round: int) -> None:
    rng = random.Random(3)
    rounds = [[rng.random() for _ in range(lanes_of_a_round)] for _ in range(200)]
    found, pooled = tail_interval(rounds, 0.95), sorted(value for values in rounds for value in values)
    assert found.estimate == percentile(pooled, 0.95)
    assert found.low < found.estimate < found.high
    assert {found.low, found.high} <= set(pooled)
    boot = cluster_interval(rounds, 0.95, seed=0)
    assert lanes_of_a_round == 1 or (found.low <= boot.low and boot.high <= found.high)


# -- the load generator


@pytest.mark.parametrize(
    ("limits", "outcome"),
    [("..100ms", "pass"), ("..10ms", "inconclusive"), ("10ms..", "inconclusive"), ("100ms..", "fail")],
)
def test_lag_only_adds_to_a_latency(limits: str, outcome: str) -> None:
    found = verdict(f"startup median {limits}", lanes(4, *[50.0] * 6, lag=0.14))
    assert found.outcome == outcome
    spoilt = "generator bound: 14 % of the median is the load generator's"
    assert found.reason == (spoilt if outcome == "inconclusive" else "")
    assert verdict(f"startup median {limits}", lanes(4, *[50.0] * 6, lag=0.09)).reason == ""


@pytest.mark.parametrize(
    ("limits", "outcome"),
    [("1/s..", "pass"), ("1000/s..", "inconclusive"), ("..1000/s", "inconclusive"), ("..1/s", "fail")],
)
def test_lag_only_takes_off_a_throughput(limits: str, outcome: str) -> None:
    assert verdict(f"startup throughput {limits}", lanes(4, *[50.0] * 6, lag=0.5)).outcome == outcome


def test_lag_below_the_line_works_the_other_way() -> None:
    low, top = lanes(2, *[10.0] * 6, lag=0.5), lanes(8, *[20.0] * 6)
    assert verdict("startup median@8 / @2 ..3", top, below=Evidence(low)).outcome == "inconclusive"
    assert verdict("startup median@8 / @2 ..1.5", top, below=Evidence(low)).outcome == "fail"
    found = verdict(
        "startup median@8 / @2 ..1.5", lanes(8, *[20.0] * 6, lag=0.5), below=Evidence(lanes(2, *[10.0] * 6))
    )
    assert found.reason == "generator bound: 50 % of the median is the load generator's"


def test_the_lag_of_a_floor_is_part_of_what_it_is() -> None:
    floor = lanes(4, *[10.0] * 6, provider="null", lag=0.5)
    assert verdict("startup median / floor ..3", lanes(4, *[20.0] * 6), floor=floor).outcome == "pass"
    other = verdict("startup median / null: ..3", lanes(4, *[20.0] * 6), other=floor)
    assert other.reason == "generator bound: 50 % of the median of null is the load generator's"


# -- phases


def test_a_phase_has_limits_of_its_own() -> None:
    series = alone(*TEN, phases={"create": 0.5, "exec": 0.25})
    assert verdict("startup.create median ..26ms", series).outcome == "pass"
    assert verdict("startup.create median ..23ms", series).outcome == "fail"
    assert verdict("startup.exec median ..13ms", series).outcome == "pass"


def test_a_phase_that_is_not_there_keeps_no_limit() -> None:
    found = verdict("startup.craete median ..26ms", alone(*TEN, phases={"create": 0.5, "exec": 0.25}))
    assert found.outcome == "fail"
    assert found.reason == "'startup' has no phase 'craete'; it has create, exec: did you mean 'create'?"


def test_a_phase_of_several_lanes_is_judged_by_round() -> None:
    text = "startup.create median ..30ms"
    assert verdict(text, lanes(4, *[50.0] * 5, phases={"create": 0.5})).reason.endswith("6 rounds on, have 5")
    assert verdict(text, lanes(4, *[50.0] * 6, phases={"create": 0.5}, lag=0.3)).outcome == "pass"


def test_a_phase_that_some_samples_lack_is_judged_where_each_sample_is_a_unit() -> None:
    series, several = alone(*TEN, phases={"create": 0.5}), lanes(4, *[50.0] * 6, phases={"create": 0.5})
    for one in (series, several):
        one.phases["create"].pop()
    assert verdict("startup.create median ..30ms", series).outcome == "pass"
    reason = "not every sample has the phase 'create': of which rounds is not known"
    assert verdict("startup.create median ..30ms", several).reason == reason
    assert verdict("startup.create median / floor ..30", series, floor=series).reason == reason


# -- throughput


def test_throughput_is_that_of_the_rounds() -> None:
    series = measured("p:startup@2/burst", [[100.0, 50.0]] * 5 + [[200.0, "failed"]])
    found = verdict("startup throughput 5/s..", series)
    assert found.interval is not None
    assert (found.interval.estimate, found.interval.units) == (20.0, 6)
    assert found.interval.low == pytest.approx(5.0)
    assert found.outcome == "pass"
    assert verdict("startup throughput 25/s..", series).outcome == "fail"
    assert verdict("startup throughput 10/s..", series).outcome == "inconclusive"
    assert verdict("startup throughput 10/s..", measured("p:startup@1/burst", [[1.0]] * 5)).reason == (
        "throughput is judged from 6 rounds on, have 5"
    )


def test_a_round_of_no_time_has_no_throughput() -> None:
    found = verdict("startup throughput 5/s..", alone(*[0.0] * 6))
    assert (found.outcome, found.reason) == ("inconclusive", "a round took no time: it has no throughput")


def test_decide_needs_no_bound_on_a_side_without_a_limit() -> None:
    open_above = Interval(10.0, 5.0, math.inf, 0.95, 20)
    assert decide(Budget("startup", "p95", low=5.0), open_above) == "pass"
    assert decide(Budget("startup", "p95", high=4.0), open_above) == "fail"
    assert decide(Budget("startup", "p95", high=1e9), open_above) == "inconclusive"


def test_a_verdict_is_on_the_level_above_the_line() -> None:
    budget = Budget("startup", "median", high=2.0, over=(Reference("level", level=1),), levels=(16,))
    found = judge(Placed(budget, "here"), Evidence(lanes(16, *[10.0] * 6), below=Evidence(alone(*TEN))))
    assert (found.series, found.keys) == ("p:startup@16/burst", ["p:startup@16/burst", "p:startup@1/burst"])
    assert SeriesKey("p", "startup", level=16) == parse_key(found.series)
