"""Budgets: what was written comes back, and any other text is one or is refused in one line."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_sandboxbench.budgets.grammar import BudgetError, parse, write
from pytest_sandboxbench.budgets.model import Budget, Placed, Reference
from pytest_sandboxbench.budgets.sources import from_marker, from_option, from_toml
from pytest_sandboxbench.errors import UsageError

# An operation may be called like a statistic, like what it is divided by, or like a number with its unit. Names here
# have some of the characters that names may have.
TAKEN = ["median", "success", "throughput", "p95", "mean", "max", "floor", "52ms", "min", "1e3"]
OPERATION = st.text("abzX059_+-äßжΩ٣中", min_size=1, max_size=8) | st.sampled_from(TAKEN)
PHASE = st.just("") | st.lists(OPERATION, min_size=1, max_size=2).map(".".join)
PROVIDER = st.from_regex(r"[aZ05][aX059_.ж-]{0,8}", fullmatch=True) | st.sampled_from([*TAKEN, "burst", "rate-5"])
PART = st.text("abzX059_+-.äж", min_size=1, max_size=8)
VARIANTS = st.dictionaries(PART, PART, max_size=2).map(lambda found: tuple(sorted(found.items())))
PERCENTILE = st.integers(1_000, 99_900).filter(lambda share: share != 50_000).map(lambda share: f"p{share / 1000:g}")
STATISTIC = st.sampled_from(["median", "p5", "p95", "p99", "p99.9", "success", "throughput"]) | PERCENTILE
LEVELS = st.lists(st.integers(1, 10_000), unique=True, max_size=4).map(lambda found: tuple(sorted(found)))
SHAPE = st.sampled_from([None, "burst", "closed-100", "closed-10s", "rate-0.5", "stagger-50ms"])
TWO_LEVELS = st.lists(st.integers(1, 10_000), unique=True, min_size=2, max_size=2)
BESIDE = st.just(Reference("floor")) | PROVIDER.map(lambda name: Reference("series", provider=name))
OVER = st.none() | BESIDE | st.just(Reference("baseline"))


def ranges(ends: st.SearchStrategy[float]) -> st.SearchStrategy[list[float]]:
    two = st.lists(ends, unique=True, min_size=2, max_size=2).map(sorted)
    return two | ends.map(lambda high: [-math.inf, high]) | ends.map(lambda low: [low, math.inf])


ODD = st.sampled_from([0.0, 1.0, 0.3, 5e-324])
SHARES = ranges(st.floats(0, 1) | ODD) | st.just([1.0, 1.0])
LIMITS = ranges(st.integers(0, 10**12).map(float) | st.floats(0, 1e12) | st.floats(0, 1e300) | ODD)


@st.composite
def budgets(draw: st.DrawFn, *, own: bool = False) -> Budget:
    """Every budget that the grammar can say. ``own``: one at a test, without an operation."""
    statistic = draw(STATISTIC)
    low, high = draw(SHARES if statistic == "success" else LIMITS)
    levels: tuple[int, ...]
    beside = None if statistic == "success" else draw(OVER)
    over = () if beside is None else (beside,)
    if statistic != "success" and beside != Reference("baseline") and draw(st.booleans()):
        above, below = draw(TWO_LEVELS)
        levels, over = (above,), (Reference("level", below), *over)
    else:
        levels = draw(LEVELS)
    phase, shape = draw(PHASE), draw(SHAPE) if levels else None
    if own:
        return Budget(None, statistic, low, high, None, (), phase, levels, shape, over)
    provider, operation, variants = draw(st.none() | PROVIDER), draw(OPERATION), draw(VARIANTS)
    return Budget(operation, statistic, low, high, provider, variants, phase, levels, shape, over)


def same(one: Budget, other: Budget) -> bool:
    """To the last bit, which ``==`` says of all but a zero's sign."""
    return one == other and math.copysign(1, one.low) == math.copysign(1, other.low)


@given(budgets(), st.booleans())
@settings(max_examples=300)
def test_a_budget_comes_back_from_its_text(budget: Budget, own: bool) -> None:
    text = write(budget)
    assert text.isprintable()
    assert same(parse(text, own=own), budget)
    assert write(parse(text)) == text


@given(budgets(own=True))
@settings(max_examples=200)
def test_a_budget_at_a_test_comes_back_from_its_text(budget: Budget) -> None:
    assert same(parse(write(budget), own=True), budget)


@given(budgets(), st.data())
@settings(max_examples=200)
def test_white_space_between_the_parts_does_not_matter(budget: Budget, data: st.DataObject) -> None:
    """Around signs that are no part of a name, a number or a range; a slash may be that of a unit or of a shape."""
    spaces = st.sampled_from(["", " ", "\t ", "\n"])
    text = "".join(data.draw(spaces) + c + data.draw(spaces) if c in ":{},=@/" else c for c in write(budget))
    assert parse(data.draw(spaces) + text + data.draw(spaces)) == budget


NUMBER = st.integers(0, 9999).map(str) | st.floats(0, 100).map(lambda value: f"{value:.3f}")


@given(NUMBER, NUMBER, st.sampled_from(["ns", "us", "µs", "ms", "s", "min"]), st.booleans())
def test_a_unit_at_one_end_is_that_of_both(low: str, high: str, unit: str, at_low: bool) -> None:
    if float(low) < float(high):
        short = f"{low}{unit}..{high}" if at_low else f"{low}..{high}{unit}"
        assert parse(f"a median {short}") == parse(f"a median {low}{unit} .. {high} {unit}")


@given(st.integers(0, 10**15), st.integers(-12, 12))
def test_a_time_is_the_same_number_in_every_unit(digits: int, exponent: int) -> None:
    found = {
        parse(f"a median ..{digits}e{exponent - power}{unit}").high
        for unit, power in (("ns", 0), ("us", 3), ("ms", 6), ("s", 9))
    }
    assert found == {float(f"{digits}e{exponent}")}


# Any text

SIGNS = "startup median p95 ..,@/{}=<>%sm0123456789: floor.x"
WORDS = [
    "a",
    "median",
    "p95",
    "success",
    "5",
    "1e9",
    "ms",
    "%",
    "x",
    "/s",
    "..",
    ".",
    "@",
    "1",
    ",",
    "/",
    "floor",
    "b:",
]
WORDS += ["{", "}", "=", "<", ">=", "burst"]
ANYTHING = st.text(max_size=40) | st.text(SIGNS, max_size=40)


def refused(call: Callable[[], Any], kind: type[Exception]) -> Exception | None:
    """The error that it raises, which is of this kind and has one line that can be printed; None for none."""
    try:
        call()
    except kind as error:
        found: Exception | None = error
    else:
        found = None
    assert found is None or str(found).isprintable()
    return found


def check(text: str, own: bool) -> None:
    error = refused(lambda: parse(text, own=own), BudgetError)
    if error is None:
        budget = parse(text, own=own)
        assert same(parse(write(budget), own=own), budget)
        return
    assert isinstance(error, BudgetError)
    assert 0 <= error.at <= len(error.text)
    assert error.text[error.at :].startswith(error.token)
    assert bool(error.token) == bool(error.text[error.at :].strip())
    assert len(str(error)) < 1000


@given(ANYTHING, st.booleans())
@settings(max_examples=300)
def test_any_text_is_a_budget_or_is_refused(text: str, own: bool) -> None:
    check(text, own)


@given(st.lists(st.sampled_from(WORDS)))
@settings(max_examples=300)
def test_any_row_of_words_is_a_budget_or_is_refused(words: list[str]) -> None:
    check(" ".join(words), own=False)
    check("".join(words), own=True)


@given(budgets() | budgets(own=True), st.booleans(), st.data())
@settings(max_examples=300)
def test_one_that_was_edited_is_one_still_or_is_refused(budget: Budget, own: bool, data: st.DataObject) -> None:
    text = write(budget)
    for _ in range(data.draw(st.integers(1, 2))):
        at = data.draw(st.integers(0, len(text)))
        put = data.draw(st.text(SIGNS, max_size=2) | st.text(max_size=2) | st.sampled_from(["9" * 400, "9" * 5000]))
        text = text[:at] + put + text[at + data.draw(st.integers(0, 2)) :]
    check(text, own)


# Sources

VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats() | ANYTHING | st.none() | st.dates() | budgets().map(write),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANYTHING, inner, max_size=3),
    max_leaves=5,
)


@given(st.lists(budgets(), max_size=3))
def test_a_list_of_budgets_comes_back_from_every_source(several: list[Budget]) -> None:
    texts = [write(budget) for budget in several]
    table = tomllib.loads(f"budgets = {json.dumps(texts, ensure_ascii=False)}")
    for found in (from_option(texts), from_toml(table, "x"), from_marker(texts, {}, "x") if texts else []):
        assert [placed.budget for placed in found] == several
    assert [placed.where for placed in from_toml(table, "x")] == [
        f"x budgets, entry {n + 1}" for n in range(len(texts))
    ]


@given(budgets())
def test_what_stands_before_the_statistic_can_be_a_key(budget: Budget) -> None:
    before, _, behind = write(budget).partition(" ")
    assert from_toml({"budgets": {before: behind}}, "x") == [Placed(budget, f"x budgets, {before}")]
    assert from_toml({"budgets": {before: [behind]}}, "x") == [Placed(budget, f"x budgets, {before}, entry 1")]


@given(VALUES, st.dictionaries(st.text(max_size=5), VALUES, max_size=1))
@settings(max_examples=300)
def test_any_value_is_budgets_or_is_refused(value: Any, named: dict[str, object]) -> None:
    refused(lambda: from_toml({"budgets": value}, "x"), UsageError)
    refused(lambda: from_option(value, "hook x"), UsageError)
    refused(lambda: from_marker([value], named, "x"), UsageError)
