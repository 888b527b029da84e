"""Budgets: what was written comes back, and any other text is one or is refused."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_sandboxbench.budgets.grammar import BudgetError, parse, write
from pytest_sandboxbench.budgets.model import Budget, Reference

WORD = st.from_regex(r"[a-zäж][\w+-]{0,8}", fullmatch=True).filter(
    lambda word: word not in ("median", "success", "throughput", "floor", "baseline")
)
NAME = st.from_regex(r"[A-Za-z0-9][\w.-]{0,8}", fullmatch=True).filter(str.isascii)
STATISTIC = st.sampled_from(["median", "p5", "p90", "p95", "p99", "p99.9", "success", "throughput"])
LEVELS = st.lists(st.integers(1, 10_000), unique=True, max_size=4).map(lambda found: tuple(sorted(found)))
SHAPES = st.none() | st.sampled_from(["burst", "closed-100", "rate-0.5", "stagger-50ms"])


@st.composite
def budgets(draw: st.DrawFn) -> Budget:
    statistic = draw(STATISTIC)
    levels, shape = draw(LEVELS), draw(SHAPES)
    over: tuple[Reference, ...] = ()
    if statistic != "success":
        beside = st.sampled_from([Reference("floor"), Reference("series", provider=draw(NAME))])
        level = Reference("level", draw(st.integers(1, 10_000)))
        over = draw(
            st.just(())
            | beside.map(lambda one: (one,))
            | st.just(() if statistic == "throughput" else (Reference("baseline"),))
            | st.just((level,))
            | beside.map(lambda one: (level, one))
        )
        if level in over:
            levels = (draw(st.integers(1, 10_000).filter(lambda at: at != level.level)),)
    most = 1.0 if statistic == "success" else 1e15
    ends = st.floats(0, most, allow_subnormal=False)
    low, high = draw(
        st.lists(ends, unique=True, min_size=2, max_size=2).map(sorted)
        | ends.map(lambda high: [-math.inf, high])
        | ends.map(lambda low: [low, math.inf])
    )
    names = draw(st.lists(WORD, unique=True, max_size=2))
    inside = tuple(sorted((name, draw(WORD)) for name in names))
    divisors = [one.provider for one in over if one.kind == "series"]
    provider = draw(st.none() | NAME.filter(lambda name: name not in divisors))
    of_whole = statistic in ("success", "throughput") or Reference("baseline") in over
    phase = "" if of_whole else draw(st.just("") | WORD)
    return Budget(draw(WORD), statistic, low, high, provider, inside, phase, levels, shape if levels else None, over)


@given(budgets())
@settings(max_examples=100)
def test_a_budget_comes_back_from_its_text(budget: Budget) -> None:
    assert parse(write(budget)) == budget


@given(st.text(max_size=40) | st.text("startup median.,@/{}=<>%sm0123456789: ", max_size=40), st.booleans())
@settings(max_examples=100)
def test_any_text_is_a_budget_or_is_refused(text: str, own: bool) -> None:
    try:
        budget = parse(text, own=own)
    except BudgetError as error:
        refused = error
    else:
        assert parse(write(budget), own=own) == budget
        return
    assert text[refused.at :].startswith(refused.token)


@given(budgets(), st.data())
@settings(max_examples=100)
def test_one_that_was_edited_is_one_still_or_is_refused(budget: Budget, data: st.DataObject) -> None:
    text = write(budget)
    at = data.draw(st.integers(0, len(text)))
    edited = text[:at] + data.draw(st.text("startup median.,@/{}=<>%s0: ", max_size=2)) + text[at + 1 :]
    try:
        again = parse(edited)
    except BudgetError:
        return
    assert parse(write(again)) == again
