"""Which series a budget is about, and what is said of one that is about none."""

from __future__ import annotations

import pytest

from pytest_sandboxbench.budgets.grammar import parse
from pytest_sandboxbench.budgets.matching import Unmatched, applies, idle_levels, matches, no_phase, unmatched
from pytest_sandboxbench.budgets.model import Placed
from pytest_sandboxbench.records.schema import parse_key

from .measured import alone, measured


@pytest.mark.parametrize(
    ("budget", "key", "expected"),
    [
        ("startup median ..1s", "p:startup@1/burst", True),
        ("startup median ..1s", "p:startup@16/closed-100", True),
        ("startup median ..1s", "p:exec@1/burst", False),
        ("p:startup median ..1s", "p:startup@1/burst", True),
        ("q:startup median ..1s", "p:startup@1/burst", False),
        ("startup median ..1s @1,16", "p:startup@16/burst", True),
        ("startup median ..1s @1,16", "p:startup@4/burst", False),
        ("startup median ..1s @1/burst", "p:startup@1/rate-20", False),
        ("startup median ..1s @1/rate-20", "p:startup@1/rate-20", True),
        ("startup{cache=miss} median ..1s", "p:startup{cache=miss,kind=frozen}@1/burst", True),
        ("startup{cache=miss} median ..1s", "p:startup{cache=hit}@1/burst", False),
        ("startup{cache=miss} median ..1s", "p:startup@1/burst", False),
        ("startup median@16 / @1 ..1.2", "p:startup@16/burst", True),
        ("startup median@16 / @1 ..1.2", "p:startup@1/burst", False),
        ("startup.create median ..1s", "p:startup@1/burst", True),
    ],
)
def test_what_a_budget_leaves_out_is_any(budget: str, key: str, expected: bool) -> None:
    assert matches(parse(budget), parse_key(key)) is expected


def test_the_operation_may_be_that_of_the_test() -> None:
    budget, key = parse("median ..1s", own=True), parse_key("p:startup@1/burst")
    assert matches(budget, key, own="startup")
    assert not matches(budget, key, own="exec")
    assert not matches(budget, key)
    assert not matches(parse("exec median ..1s"), key, own="startup")


def test_a_phase_is_looked_up_in_the_series() -> None:
    series, failed = alone(5.0, phases={"create": 0.5}), alone("failed")
    assert applies(parse("startup.create median ..1s"), series)
    assert not applies(parse("startup.craete median ..1s"), series)
    assert applies(parse("startup.craete median ..1s"), failed)
    assert not applies(parse("exec.create median ..1s"), series)


MEASURED = [
    alone(5.0, key="p:startup@1/burst", phases={"create": 0.5, "first_exec": 0.5}),
    alone(5.0, key="p:startup@16/burst", phases={"create": 0.5, "first_exec": 0.5}),
    alone(5.0, key="null:startup@1/burst"),
    alone(5.0, key="p:exec@1/burst"),
    alone(5.0, key="p:pull{cache=hit,size=big}@1/burst"),
    alone(5.0, key="p:pull{cache=cold,size=small}@1/burst"),
    measured("p:startup@4/closed-8", [[5.0]]),
]


def why(text: str, *, own: str | None = None) -> Unmatched | None:
    placed = Placed(parse(text, own=own is not None), "here")
    found = unmatched([placed], MEASURED, own=own)
    assert all(one.placed is placed for one in found)
    return found[0] if found else None


@pytest.mark.parametrize(
    ("text", "reason", "mistaken"),
    [
        (
            "statrup median ..1s",
            "no operation 'statrup' was measured; there are startup, exec, pull: did you mean 'startup'?",
            False,
        ),
        ("boot median ..1s", "no operation 'boot' was measured; there are startup, exec, pull", False),
        ("docker:startup median ..1s", "no provider 'docker' was measured with startup; there are p, null", False),
        ("startup median ..1s @100", "startup was measured at 1, 4, 16 lanes, not at 100", False),
        ("null:startup median ..1s @16,100", "startup was measured at 1 lane, not at 16, 100", False),
        (
            "startup median ..1s @4/closed-9",
            "startup was not measured in the shape 'closed-9'; there is closed-8: did you mean 'closed-8'?",
            False,
        ),
        (
            "startup.craete median ..1s",
            "'startup' has no phase 'craete'; it has create, first_exec: did you mean 'create'?",
            True,
        ),
        ("exec.create median ..1s", "'exec' has no phase 'create': none is measured inside of it", True),
        (
            "pull{chache=hit} median ..1s",
            "'pull' has no variant 'chache'; there are cache, size: did you mean 'cache'?",
            True,
        ),
        ("exec{cache=hit} median ..1s", "'exec' has no variant 'cache': it has none", True),
        (
            "pull{cache=warm} median ..1s",
            "pull was not measured with cache=warm; there are cache=hit, cache=cold",
            False,
        ),
        ("pull{cache=hit,size=small} median ..1s", "pull was not measured with size=small; there is size=big", False),
        ("startup median@16 / @2 ..1.2", "startup was measured at 1, 4, 16 lanes, not at 2", False),
        (
            "startup median@4/closed-8 / @16 ..1.2",
            "startup was measured at 16 lanes in another shape, variant or provider only",
            False,
        ),
        (
            "p:startup median / null: ..1.2 @16",
            "'null' was measured with startup at other levels, in other shapes or variants only",
            False,
        ),
        ("exec median / p: ..1.2", "no other provider was measured with exec to divide by that of 'p'", False),
        (
            "p:startup median / docker: ..1.2",
            "no provider 'docker' was measured with startup to divide by; there are p, null",
            False,
        ),
    ],
)
def test_the_reason_says_what_there_is(text: str, reason: str, mistaken: bool) -> None:
    found = why(text)
    assert found is not None
    said = found.reason.removeprefix("matches no series: ")
    assert said.split(": did you mean 'cache=")[0] == reason
    assert found.mistaken is mistaken


@pytest.mark.parametrize(
    "text",
    [
        "startup median ..1s",
        "startup.create median ..1s @1,16",
        "pull{cache=hit} p95 ..1s",
        "startup median@16 / @1 ..1.2",
    ],
)
def test_one_that_is_about_a_series_is_not_named(text: str) -> None:
    assert why(text) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("startup median ..1s @1,16,100", "startup was measured at 1, 4, 16 lanes, not at 100"),
        ("null:startup median ..1s @1,16", "startup was measured at 1 lane, not at 16"),
        ("startup.create median ..1s @1,4", "startup was measured at 1, 16 lanes, not at 4"),
        ("startup median ..1s @1,16", None),
        ("startup median ..1s", None),
        ("startup median ..1s @100", None),  # about no series at all: that is told otherwise
    ],
)
def test_levels_of_which_only_a_part_was_measured_are_told(text: str, reason: str | None) -> None:
    found = idle_levels([Placed(parse(text), "here")], MEASURED)
    assert [one.reason for one in found] == ([] if reason is None else [reason])
    assert not any(one.mistaken for one in found)


def test_the_operation_of_a_test_is_known_there() -> None:
    assert why(".create median ..1s", own="startup") is None
    found = why(".create median ..1s", own="exec")
    assert found is not None
    assert "'exec' has no phase 'create'" in found.reason


def test_where_nothing_was_measured_nothing_is_listed() -> None:
    (found,) = unmatched([Placed(parse("startup median ..1s"), "here")], [])
    assert found.reason == "matches no series: no operation 'startup' was measured"


def test_names_of_others_are_harmless_and_not_too_many() -> None:
    text = no_phase("start\x1b[2J", "create", [f"a\x1b[{i}m" for i in range(20)])
    assert text.isprintable()
    assert text.endswith("\\x1b[11m, ...")
