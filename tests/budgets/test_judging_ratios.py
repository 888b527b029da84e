"""Verdicts on success rates, on ratios, and on which phase it was."""

from __future__ import annotations

import pytest

from pytest_sandboxbench.budgets.evidence import Evidence
from pytest_sandboxbench.stats import needed, success_interval

from .measured import MS, alone, lanes, measured, verdict

STEADY = (48.0, 49.0, 50.0, 50.0, 51.0, 52.0)


# -- success


def test_a_hundred_percent_is_a_statement_on_this_run() -> None:
    good = verdict("startup success = 100%", alone(5.0))
    assert (good.outcome, good.n, good.needs, good.reason) == ("pass", 1, 0, "")
    bad = verdict("startup success = 100%", alone(*[5.0] * 99, "timeout"))
    assert (bad.outcome, bad.n, bad.reason) == ("fail", 100, "1 of 100 attempts did not succeed: 1 timeout")
    none = verdict("startup success >= 100%", alone("failed", "rejected(quota)"))
    assert none.reason == "2 of 2 attempts did not succeed: 1 failed, 1 rejected(quota)"
    assert none.outcome == "fail"


def test_any_other_share_is_judged_by_its_interval() -> None:
    assert verdict("startup success >= 90%", alone(*[5.0] * 36)).outcome == "pass"
    few = verdict("startup success >= 90%", alone(*[5.0] * 34))
    assert (few.outcome, few.needs) == ("inconclusive", 36)
    assert few.reason == "a success rate of 90 % is judged from 36 samples on, have 34"
    some = verdict("startup success >= 90%", alone(*[5.0] * 38, "failed", "failed"))
    assert (some.outcome, some.needs) == ("inconclusive", 0)
    assert some.reason == "its interval 83.1 .. 99.4 % holds the limit 90 %"
    most = verdict("startup success >= 90%", alone(*[5.0] * 10, *["failed"] * 10))
    assert (most.outcome, most.reason) == ("fail", "10 of 20 attempts did not succeed: 10 failed")


def test_a_rejection_is_an_attempt_that_did_not_succeed() -> None:
    series = alone(*[5.0] * 10, *["rejected(capacity)"] * 10)
    assert verdict("startup success >= 90%", series).interval == success_interval(10, 20)


@pytest.mark.parametrize("limit", [0.5, 0.9, 0.99])
def test_so_many_successes_prove_a_rate_and_one_less_does_not(limit: float) -> None:
    needs = needed(limit, 0.95, "both")
    assert verdict(f"startup success {limit}..", alone(*[5.0] * needs)).outcome == "pass"
    short = verdict(f"startup success {limit}..", alone(*[5.0] * (needs - 1)))
    assert (short.outcome, short.needs) == ("inconclusive", needs)


def test_under_several_lanes_a_round_is_one_attempt() -> None:
    found = verdict("startup success >= 90%", lanes(16, *[5.0] * 20))
    assert (found.outcome, found.n, found.needs) == ("inconclusive", 320, 36)
    assert found.reason == "a success rate of 90 % is judged from 36 rounds on, have 20"
    assert found.interval is not None
    assert found.interval.low == success_interval(20, 20).low
    assert verdict("startup success >= 90%", lanes(16, *[5.0] * 36)).outcome == "pass"


def test_a_part_of_a_round_is_rounded_away_from_the_rate() -> None:
    series = measured("p:startup@2/burst", [[5.0, 5.0]] * 9 + [[5.0, "failed"]])
    found = verdict("startup success >= 90%", series).interval
    assert found is not None
    assert (found.estimate, found.units) == (0.95, 10)
    assert (found.low, found.high) == (success_interval(9, 10).low, 1.0)


# -- within rounds


def test_a_ratio_to_the_floor_is_taken_round_by_round() -> None:
    """What slows both, ten times here, falls out."""
    slowed = [1.0, 1.0, 1.0, 10.0, 10.0, 10.0]
    series = alone(*[ms * slow for ms, slow in zip(STEADY, slowed, strict=True)])
    floor = alone(*[5 * slow for slow in slowed], key="null:startup@1/burst")
    found = verdict("startup median / floor ..20", series, floor=floor)
    assert (found.outcome, found.keys) == ("pass", ["p:startup@1/burst", "null:startup@1/burst"])
    assert found.interval is not None
    assert (found.interval.low, found.interval.estimate, found.interval.high) == (9.6, 10.0, 10.4)
    assert verdict("startup median / floor ..9", series, floor=floor).outcome == "fail"
    assert (
        verdict("startup median / floor ..10", series, floor=floor).reason
        == "its interval 9.60 .. 10.4 holds the limit 10"
    )


def test_only_rounds_in_which_both_succeeded_are_pairs() -> None:
    floor = alone("failed", 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, key="null:startup@1/burst")
    found = verdict("startup median / floor ..20", alone(*STEADY), floor=floor)
    assert (found.outcome, found.needs) == ("inconclusive", 6)
    assert found.reason == "median is judged from 6 rounds on, have 5"


def test_a_ratio_of_another_percentile_is_one_of_two_percentiles() -> None:
    series, floor = alone(*[50 + i / 100 for i in range(72)]), alone(*[5.0] * 72, key="null:startup@1/burst")
    assert verdict("startup p95 / floor ..11", series, floor=floor).outcome == "pass"
    assert verdict("startup p95 / floor ..9", series, floor=floor).outcome == "fail"


def test_throughput_can_be_compared_round_by_round() -> None:
    series, other = lanes(4, *STEADY), lanes(4, *[2 * ms for ms in STEADY], provider="docker")
    assert verdict("startup throughput / docker: 1.9..2.1", series, other=other).outcome == "pass"


@pytest.mark.parametrize(
    ("floor", "reason"),
    [
        (None, "the floor was not measured beside it"),
        (alone(*[0.0] * 6), "a round of the floor came to 0: nothing to divide by"),
        (alone("failed"), "no sample of the floor succeeded"),
        (alone("failed", *["failed"] * 5, 5.0), "there is no round in which the floor succeeded as well"),
        (
            alone(*[5.0] * 6, "rejected(quota)"),
            "1 of the floor's 7 attempts were rejected: fewer at a time are another load",
        ),
    ],
)
def test_what_cannot_be_divided_by_the_floor_is_inconclusive(floor: object, reason: str) -> None:
    found = verdict("startup median / floor ..20", alone(*STEADY), floor=floor)
    assert (found.outcome, found.reason, found.interval) == ("inconclusive", reason, None)


# -- between levels


def test_flatness() -> None:
    low = Evidence(alone(*STEADY))
    assert verdict("startup median@16 / median@1 ..1.2", lanes(16, *STEADY), below=low).outcome == "pass"
    grown = lanes(16, *[2 * ms for ms in STEADY])
    assert verdict("startup median@16 / median@1 ..1.2", grown, below=low).outcome == "fail"
    some = lanes(16, *[1.15 * ms for ms in STEADY])
    assert verdict("startup median@16 / median@1 ..1.2", some, below=low).outcome == "inconclusive"


def test_growth_of_throughput() -> None:
    low = Evidence(alone(*STEADY))
    assert verdict("startup throughput@16 / throughput@1 >= 8", lanes(16, *STEADY), below=low).outcome == "pass"
    serial = lanes(16, *[16 * ms for ms in STEADY])
    assert verdict("startup throughput@16 / throughput@1 >= 8", serial, below=low).outcome == "fail"


def test_a_level_with_too_few_rounds_is_named() -> None:
    found = verdict("startup median@16 / @1 ..1.2", lanes(16, *STEADY), below=Evidence(alone(*STEADY[:4])))
    assert (found.outcome, found.needs) == ("inconclusive", 6)
    assert found.reason == "median is judged from 6 samples on, have 4 at level 1"
    assert verdict("startup median@16 / @1 ..1.2", lanes(16, *STEADY)).reason == "level 1 was not measured"


def test_growth_over_that_of_the_floor() -> None:
    """Both take four times as long with 16 lanes: a small host, not the sandbox."""
    low = Evidence(alone(*STEADY), floor=alone(*[5.0] * 6, key="null:startup@1/burst"))
    top, floor = lanes(16, *[4 * ms for ms in STEADY]), lanes(16, *[20.0] * 6, provider="null")
    assert verdict("startup median@16 / @1 ..1.5", top, below=low).outcome == "fail"
    found = verdict("startup median@16 / @1 / floor ..1.5", top, floor=floor, below=low)
    assert found.outcome == "pass"
    assert found.keys == [f"{name}:startup@{level}/burst" for level in (16, 1) for name in ("p", "null")]
    less = verdict("startup median@16 / @1 / floor ..1.5", top, floor=lanes(16, *[5.0] * 6, provider="null"), below=low)
    assert less.outcome == "fail"


def test_growth_over_that_of_another_provider_that_was_not_measured_below() -> None:
    found = verdict(
        "startup median@16 / @1 / docker: ..1.5",
        lanes(16, *STEADY),
        other=lanes(16, *STEADY, provider="docker"),
        below=Evidence(alone(*STEADY)),
    )
    assert found.reason == "docker was not measured beside it at level 1"


# -- a baseline


def test_a_baseline_is_compared_with() -> None:
    before = [ms * MS for ms in STEADY]
    series = alone(*[1.5 * ms for ms in STEADY])
    assert verdict("startup median / baseline ..1.1", alone(*STEADY), baseline=before).outcome == "pass"
    assert verdict("startup median / baseline ..1.1", series, baseline=before).outcome == "fail"
    few = verdict("startup median / baseline ..1.1", series, baseline=before[:5])
    assert few.reason == "median is judged from 6 samples on, have 5 in the baseline"


def test_the_baseline_of_several_lanes_is_put_into_rounds_again() -> None:
    series = lanes(16, *STEADY)
    rounds = verdict("startup median / baseline ..1.1", series, baseline=series.latencies)
    assert rounds.outcome == "pass"
    assert rounds.interval is not None
    assert rounds.interval.units == 6
    few = verdict("startup median / baseline ..1.1", series, baseline=series.latencies[: 5 * 16])
    assert few.reason == "median is judged from 6 rounds on, have 5 in the baseline"


@pytest.mark.parametrize(
    ("text", "shape", "samples", "reason"),
    [
        ("startup median / baseline ..1.1", "burst", None, "there is no baseline of this series"),
        ("startup median / baseline ..1.1", "burst", [], "there is no baseline of this series"),
        (
            "startup median / baseline ..1.1",
            "burst",
            [1.0] * 31,
            "the baseline's 31 samples are no whole rounds of 16: some failed",
        ),
        (
            "startup median / baseline ..1.1",
            "closed-10s",
            [1.0] * 32,
            "which rounds the baseline's samples are of is not known of closed-10s",
        ),
        ("startup median / baseline ..1.1", "burst", [0.0] * 96, "one of the two is 0: there is no ratio"),
    ],
)
def test_a_baseline_that_cannot_be_compared_with(
    text: str, shape: str, samples: list[float] | None, reason: str
) -> None:
    found = verdict(text, lanes(16, *STEADY, shape=shape), baseline=samples)
    assert (found.outcome, found.reason) == ("inconclusive", reason)


def test_a_closed_loop_of_so_many_requests_has_rounds_of_so_many() -> None:
    series = measured("p:startup@2/closed-4", [[ms] * 4 for ms in STEADY])
    assert verdict("startup median / baseline ..1.1", series, baseline=series.latencies).outcome == "pass"


# -- which phase


def test_the_largest_phase_is_named_where_a_limit_is_not_kept() -> None:
    series = alone(*STEADY, phases={"create": 0.8, "exec": 0.1})
    assert verdict("startup median ..10ms", series).moved == "create 40.0 ms, 80 % of the median"
    assert verdict("startup median ..50ms", series).moved == "create 40.0 ms, 80 % of the median"
    assert verdict("startup median ..90ms", series).moved == ""
    assert verdict("startup.create median ..10ms", series).moved == ""
    assert verdict("startup median ..10ms", alone(*STEADY, phases={"all": 1.0})).moved == ""


def test_of_a_ratio_it_is_the_phase_that_grew_most() -> None:
    low = Evidence(alone(*[10.0] * 6, phases={"create": 0.5, "exec": 0.5}))
    top = lanes(4, *[50.0] * 6, phases={"create": 0.2, "exec": 0.8})
    assert verdict("startup median@4 / @1 ..1.2", top, below=low).moved == "exec: 5.00 -> 40.0 ms"
    other = lanes(4, *[10.0] * 6, phases={"create": 0.5}, provider="docker")
    assert verdict("startup median / docker: ..1.2", top, other=other).moved == "create: 5.00 -> 10.0 ms"


def test_where_nothing_can_be_compared_it_is_the_largest() -> None:
    series = alone(*STEADY, phases={"create": 0.8, "exec": 0.1})
    floor = alone(*[5.0] * 6, key="null:startup@1/burst")
    assert verdict("startup median / floor ..2", series, floor=floor).moved == "create 40.0 ms, 80 % of the median"
    before = [5.0 * MS] * 6
    assert (
        verdict("startup median / baseline ..2", series, baseline=before).moved == "create 40.0 ms, 80 % of the median"
    )
