"""Verdicts as people read them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pytest_sandboxbench.budgets.evidence import Evidence
from pytest_sandboxbench.budgets.grammar import parse
from pytest_sandboxbench.budgets.model import Placed, Verdict
from pytest_sandboxbench.budgets.wording import describe, headline
from pytest_sandboxbench.stats import Interval

from .measured import MS, alone, lanes, verdict

STEADY = (61.0, 62.0, 63.2, 63.2, 65.0, 66.1)


def test_a_broken_budget_says_what_was_found_where_it_stands_and_what_owes_most() -> None:
    placed = Placed(parse("startup median 44ms..52ms @1,16"), "pyproject.toml: [tool.sandboxbench] budgets, entry 2")
    found = Verdict(
        "fail",
        placed,
        "bubblewrap:startup@16/burst",
        interval=Interval(63.2 * MS, 61 * MS, 66.1 * MS, 0.95, 20),
        n=320,
        moved="create 38.2 ms, 81 % of the median",
    )
    assert describe(found).split("\n") == [
        "startup on bubblewrap at 16 lanes: median 63.2 ms (61.0 .. 66.1, 95 %, 20 rounds, 320 samples) is above 52 ms",
        "  budget: startup median 44ms..52ms @1,16 (pyproject.toml: [tool.sandboxbench] budgets, entry 2)",
        "  most of it: create 38.2 ms, 81 % of the median",
    ]
    grew = describe(replace(found, moved="create: 12.1 -> 38.2 ms")).split("\n")[-1]
    assert grew == "  what grew most: create: 12.1 -> 38.2 ms"
    assert len(describe(replace(found, outcome="pass")).split("\n")) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("startup median ..52ms", "median 63.2 ms (61.0 .. 66.1, 95 %, 6 samples) is above 52 ms"),
        ("startup median 1.5s..", "median 63.2 ms (61.0 .. 66.1, 95 %, 6 samples) is below 1.5 s"),
        ("startup median ..80ms", "median 63.2 ms (61.0 .. 66.1, 95 %, 6 samples) is not above 80 ms"),
        ("startup median 950us..", "median 63.2 ms (61.0 .. 66.1, 95 %, 6 samples) is not below 950 µs"),
        ("startup median 44ms..80ms", "median 63.2 ms (61.0 .. 66.1, 95 %, 6 samples) is within 44 ms .. 80 ms"),
        (
            "startup median ..63ms",
            "median 63.2 ms (61.0 .. 66.1, 95 %, 6 samples) is undecided: "
            "its interval 61.0 .. 66.1 ms holds the limit 63 ms",
        ),
        ("startup p95 ..1s", "p95 n/a (63.2 .. … ms, 95 %, 6 samples) is undecided: p95 needs 20 samples, have 6"),
        ("startup success = 100%", "success 100 % (54.1 .. 100, 95 %, 6 samples) is 100 %, as it must be"),
        (
            "startup success >= 99.5%",
            "success 100 % (54.1 .. 100, 95 %, 6 samples) is undecided: "
            "a success rate of 99.5 % is judged from 736 samples on, have 6",
        ),
        ("startup throughput 30/s..", "throughput 15.8/s (15.1 .. 16.4, 95 %, 6 rounds) is below 30/s"),
        ("startup median / floor ..2", "median / floor 3.16× (3.05 .. 3.31, 95 %, 6 rounds) is above 2"),
        ("startup median / docker: ..20", "median / docker 3.16× (3.05 .. 3.31, 95 %, 6 rounds) is not above 20"),
        ("startup median / baseline ..1.1", "median / baseline 1.26× (1.22 .. 1.32, 95 %, 6 samples) is above 1.1"),
    ],
)
def test_each_statistic_has_its_unit(text: str, said: str) -> None:
    other = alone(*[20.0] * 6, key="docker:startup@1/burst")
    found = verdict(text, alone(*STEADY), floor=other, other=other, baseline=[50.0 * MS] * 6)
    assert headline(found) == f"startup on p at 1 lane: {said}"


def test_levels_and_shapes_are_named() -> None:
    found = verdict("startup median@16 / @1 ..1.2", lanes(16, *STEADY), below=Evidence(alone(*[20.0] * 6)))
    said = "median / median at 1 lane 3.17× (3.07 .. 3.27, 95 %, 6 rounds, 96 samples) is above 1.2"
    assert headline(found) == f"startup on p at 16 lanes: {said}"
    closed = headline(verdict("startup median ..1s", lanes(2, *STEADY, shape="closed-2")))
    assert closed.startswith("startup on p at 2 lanes, closed-2: median 63.2 ms")


def test_a_phase_stands_with_its_operation() -> None:
    found = verdict("startup.create median ..1ms", alone(*STEADY, phases={"create": 0.5}))
    assert headline(found).startswith("startup.create on p at 1 lane: median 31.6 ms (")


def test_without_an_interval_there_is_the_reason() -> None:
    failed = verdict("startup median ..1s", alone("failed"))
    assert headline(failed) == "startup on p at 1 lane: no sample succeeded"
    undecided = verdict("startup median / floor ..2", alone(*STEADY))
    assert headline(undecided) == (
        "startup on p at 1 lane: median / floor is undecided: the floor was not measured beside it"
    )
    some = verdict("startup success = 100%", alone(*[5.0] * 999, "timeout"))
    assert headline(some) == (
        "startup on p at 1 lane: success 99.9 % (99.4 .. 99.9, 95 %, 1000 samples) is below 100 %; "
        "1 of 1000 attempts did not succeed: 1 timeout"
    )


@pytest.mark.parametrize(("confidence", "said"), [(0.95, "95 %"), (1 - 0.05 * 2 / 3, "96.7 %"), (0.994444, "99.4 %")])
def test_the_confidence_is_that_of_the_look(confidence: float, said: str) -> None:
    assert f", {said}, " in headline(verdict("startup median ..1s", alone(*[5.0] * 9), confidence=confidence))


def test_what_others_wrote_is_harmless() -> None:
    found = Verdict(
        "fail",
        Placed(parse("startup median ..52ms"), "a\x1b[2J/\nfile.toml"),
        "not a key\x1b[2J",
        interval=Interval(63.2 * MS, 61 * MS, math.inf, 0.95, 20),
        reason="because\nof \x07",
        moved="cre\x1b[31mate 3 ms, 81 % of the median",
    )
    lines = describe(found).split("\n")
    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)


def test_a_phase_of_anybody_is_harmless() -> None:
    found = verdict("startup median ..1ms", alone(*STEADY, phases={"a\x1b[2J\nb": 0.5, "c": 0.1}))
    assert found.moved == "a\\x1b[2J b 31.6 ms, 50 % of the median"
