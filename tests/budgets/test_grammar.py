"""The grammar: what is read, how it is written back, and what a mistake is answered with."""

from __future__ import annotations

import copy
import math

import pytest

from pytest_sandboxbench.budgets.grammar import BudgetError, parse, write
from pytest_sandboxbench.budgets.model import Budget, Reference

MS = 1e6
ONE = Reference("level", 1)
FLOOR = Reference("floor")
DOCKER = Reference("series", provider="docker")


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        (
            "startup median 44ms..52ms @1,16,50,100",
            Budget("startup", "median", 44 * MS, 52 * MS, levels=(1, 16, 50, 100)),
        ),
        (
            "bubblewrap:startup{cache=miss}.create median ..30ms @16/burst",
            Budget(
                "startup", "median", -math.inf, 30 * MS, "bubblewrap", (("cache", "miss"),), "create", (16,), "burst"
            ),
        ),
        ("startup p95 < 1s", Budget("startup", "p95", high=1000 * MS)),
        ("startup p95<=1s@16,1", Budget("startup", "p95", high=1000 * MS, levels=(1, 16))),
        ("startup p50 > 1us", Budget("startup", "median", low=1000.0)),
        ("startup p1 >= 1ns", Budget("startup", "p1", low=1.0)),
        ("startup p99.9 ..0.5min", Budget("startup", "p99.9", high=30e9)),
        ("startup p99..1s", Budget("startup", "p99", high=1e9)),
        ("startup median 44..52ms", Budget("startup", "median", 44 * MS, 52 * MS)),
        ("startup median 44ms..52", Budget("startup", "median", 44 * MS, 52 * MS)),
        ("startup median 44us..52ms", Budget("startup", "median", 44e3, 52 * MS)),
        ("startup median 0..1us", Budget("startup", "median", 0.0, 1e3)),
        ("startup median ..7µs", Budget("startup", "median", high=7000.0)),
        ("startup median ..7 μs", Budget("startup", "median", high=7000.0)),
        ("startup median ..1.5e3ms", Budget("startup", "median", high=1.5e9)),
        ("startup median .5ms..", Budget("startup", "median", low=5e5)),
        ("startup success >= 99%", Budget("startup", "success", low=0.99)),
        ("startup success 99%..", Budget("startup", "success", low=0.99)),
        ("startup success 0.99..", Budget("startup", "success", low=0.99)),
        ("startup success 0..50%", Budget("startup", "success", 0.0, 0.5)),
        ("startup success = 100%", Budget("startup", "success", 1.0, 1.0)),
        ("startup success = 1", Budget("startup", "success", 1.0, 1.0)),
        (
            "startup throughput >= 20/s @4/closed-100",
            Budget("startup", "throughput", low=20.0, levels=(4,), shape="closed-100"),
        ),
        ("startup throughput 1200/min..", Budget("startup", "throughput", low=20.0)),
        ("startup throughput 20 .. 30 / s", Budget("startup", "throughput", 20.0, 30.0)),
        ("startup median@100 / median@1 ..1.2", Budget("startup", "median", high=1.2, levels=(100,), over=(ONE,))),
        ("startup median @100 / @1 < 1.2", Budget("startup", "median", high=1.2, levels=(100,), over=(ONE,))),
        ("startup p50@100 / median@1 < 120%", Budget("startup", "median", high=1.2, levels=(100,), over=(ONE,))),
        (
            "startup median @100 / @1 / floor ..1.5x",
            Budget("startup", "median", high=1.5, levels=(100,), over=(ONE, FLOOR)),
        ),
        (
            "startup median @100/@1 / docker: ..1.5",
            Budget("startup", "median", high=1.5, levels=(100,), over=(ONE, DOCKER)),
        ),
        (
            "startup median@100/closed-1000 / @1 ..2",
            Budget("startup", "median", high=2.0, levels=(100,), shape="closed-1000", over=(ONE,)),
        ),
        ("startup median / floor ..20 @1", Budget("startup", "median", high=20.0, levels=(1,), over=(FLOOR,))),
        ("startup median / docker: ..0.5 @1,16", Budget("startup", "median", high=0.5, levels=(1, 16), over=(DOCKER,))),
        ("startup median@16/docker:..0.5", Budget("startup", "median", high=0.5, levels=(16,), over=(DOCKER,))),
        ("startup median / baseline ..1.1", Budget("startup", "median", high=1.1, over=(Reference("baseline"),))),
        ("startup median / baseline ..110%", Budget("startup", "median", high=1.1, over=(Reference("baseline"),))),
    ],
)
def test_what_is_read_is_written_back(text: str, budget: Budget) -> None:
    assert parse(text) == budget
    assert parse(write(budget)) == budget
    assert parse(text, own=True) == budget


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("startup   median<52ms", "startup median ..52ms"),
        ("startup median 0.044s..0.052s @16,1", "startup median 44ms..52ms @1,16"),
        ("startup median ..60s", "startup median ..1min"),
        ("startup median ..0.1min", "startup median ..6s"),
        ("startup median ..1.25ms", "startup median ..1.25ms"),
        ("startup median ..250ms", "startup median ..250ms"),
        ("startup median 0ns..1us", "startup median 0s..1us"),
        ("startup median ..1e25ns", "startup median ..1e22us"),
        ("startup median ..1e300ns", "startup median ..1e291s"),
        ("startup p50.0 ..1s", "startup median ..1s"),
        ("startup p95.50 ..1s", "startup p95.5 ..1s"),
        ("startup median @100/@1 < 1.2", "startup median@100 / median@1 ..1.2"),
        ("startup success 0.99..1.0", "startup success 99%..100%"),
        ("startup success 99.95%..", "startup success 99.95%.."),
        ("startup throughput 7/min..", "startup throughput 7/min.."),
        ("startup throughput 60/min..", "startup throughput 1/s.."),
        ("startup median / floor ..2000%", "startup median / floor ..20"),
    ],
)
def test_one_form(text: str, written: str) -> None:
    assert write(parse(text)) == written


def test_white_space_between_the_parts_is_free() -> None:
    spaced = (
        "\tbox : startup { cache = miss , cpu=2 } . create p95 @ 4 / closed-10s / p95 @ 1 / docker : 0.5 .. 1.5 x\n"
    )
    tight = "box:startup{cache=miss,cpu=2}.create p95@4/closed-10s/p95@1/docker:0.5..1.5x"
    assert parse(spaced) == parse(tight)


def test_names_are_those_that_series_may_have() -> None:
    budget = parse("my.Box-2:größe_1+x{image=python_3.12-ab,ä=1}.boot.kernel median ..1s")
    assert (budget.provider, budget.operation, budget.phase) == ("my.Box-2", "größe_1+x", "boot.kernel")
    assert budget.variants == (("image", "python_3.12-ab"), ("ä", "1"))


@pytest.mark.parametrize(
    ("text", "shape", "over"),
    [
        ("startup median@4/burst..30ms", "burst", ()),
        ("startup median@4/rate-0.5..30ms", "rate-0.5", ()),
        ("startup median@4/stagger-50ms ..30ms", "stagger-50ms", ()),
        ("startup median@4/burst: ..3", None, (Reference("series", provider="burst"),)),
        ("startup median@4/rate-5: ..3", None, (Reference("series", provider="rate-5"),)),
        ("startup median@4/burst/floor: ..3", "burst", (Reference("series", provider="floor"),)),
    ],
)
def test_a_shape_is_no_provider(text: str, shape: str | None, over: tuple[Reference, ...]) -> None:
    budget = parse(text)
    assert (budget.levels, budget.shape, budget.over) == ((4,), shape, over)
    assert parse(write(budget)) == budget


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("median < 10ms", "median ..10ms"),
        ("median .5ms..", "median 0.5ms.."),
        ("p99.9 ..1s", "p99.9 ..1s"),
        (".create p95 ..30ms @16", ".create p95 ..30ms @16"),
        ("median@100/median@1 ..1.2", "median@100 / median@1 ..1.2"),
        ("exec median ..1s", "exec median ..1s"),
    ],
)
def test_at_a_test_the_operation_may_be_its_own(text: str, written: str) -> None:
    budget = parse(text, own=True)
    assert write(budget) == written
    assert budget.operation == ("exec" if "exec" in text else None)


@pytest.mark.parametrize("series", ["median", "max", "median.create", "p99.9", "median{a=1}", "box:success"])
def test_an_operation_may_be_called_like_a_statistic(series: str) -> None:
    for own in (False, True):
        budget = parse(f"{series} p95 ..1s", own=own)
        assert budget.operation in ("median", "max", "p99", "success")
        assert write(budget) == f"{series} p95 ..1s"


FLAT = "one above the line: median@100 / median@1"
NO_STATISTIC = "is no statistic: there are median, p95 and other percentiles from p1 to p99.9, success, throughput"


@pytest.mark.parametrize(
    ("text", "at", "token", "said"),
    [
        ("", 0, "", "there is no budget"),
        (" \n", 2, "", "there is no budget"),
        ("; median ..1s", 0, ";", "a budget begins with an operation"),
        ("docker: @1", 8, "@", "an operation is missing after the provider"),
        ("startup", 7, "", "the statistic is missing"),
        ("median ..1s", 0, "median", "the operation is missing before 'median'"),
        ("startup medain ..1s", 8, "medain", f"'medain' {NO_STATISTIC}"),
        ("startup Median ..1s", 8, "Median", "is written 'median'"),
        ("startup median-5ms..", 8, "median-5ms", "is no statistic"),
        ("startup mean ..1s", 8, "mean", "'mean' is not judged: take median"),
        ("startup avg ..1s", 8, "avg", "take median"),
        ("startup min ..1s", 8, "min", "take p5"),
        ("startup max ..1s", 8, "max", "take p99"),
        ("startup stdev ..1s", 8, "stdev", "take p95"),
        ("startup rps ..1s", 8, "rps", "take throughput"),
        ("startup p100 ..1s", 8, "p100", "take p99"),
        ("startup p0 ..1s", 8, "p0", "take p1"),
        ("startup p99.99 ..1s", 8, "p99.99", "from p1 to p99.9"),
        ("startup p0.5 ..1s", 8, "p0.5", "from p1 to p99.9"),
        ("startup p95.12345 ..1s", 8, "p95.12345", "3 decimals"),
        # limits
        ("startup median", 14, "", "the limit is missing: write for example ..52ms, 44ms..52ms or < 52ms"),
        ("startup success @1", 18, "", "the limit is missing: write for example 99%.., >= 99% or = 100%"),
        ("startup median <", 16, "", "the limit is missing"),
        ("startup median < much", 17, "much", "is no number"),
        ("startup median ..inf", 17, "inf", "is no limit"),
        ("startup median ..-5ms", 17, "-5ms", "is no limit"),
        ("startup median 52ms", 15, "52ms", "alone is no limit: write for example ..52ms, 44ms..52ms or < 52ms"),
        ("startup median ..52", 17, "52", "has no unit, and needs one for median: ns, us, ms, s or min"),
        ("startup median < 52", 17, "52", "ns, us, ms, s or min"),
        ("startup median ..5%", 17, "5%", "ns, us, ms, s or min"),
        ("startup median ..5MS", 17, "5MS", "unit 'MS', which does not fit median"),
        ("startup median 44..5h", 15, "44", "has no unit"),
        ("startup median ..1,5ms", 17, "1,5ms", "is no number with a unit"),
        ("startup median ..1_000ms", 17, "1_000ms", "is no number with a unit"),
        ("startup median 44ms-52ms", 15, "44ms-52ms", "44ms..52ms"),
        ("startup median 44...52ms", 17, "...", "a range has two dots"),
        ("startup success ..5ms", 18, "5ms", "%, or a share of 1"),
        ("startup success ..101%", 18, "101%", "a share is at most 100%"),
        ("startup success 0.9..100%", 16, "0.9", "has no %"),
        ("startup throughput ..5ms", 21, "5ms", "/s or /min"),
        ("startup throughput >= 20", 22, "20", "/s or /min"),
        ("startup median / floor ..5ms", 25, "5ms", "a plain number"),
        ("startup median / floor 90..110%", 23, "90", "has no %"),
        ("startup median 52ms..44ms", 15, "52ms", "is not below '44ms'"),
        ("startup median 52ms..52ms", 15, "52ms", "is not below"),
        ("startup median = 5ms", 15, "=", "for success = 100% only"),
        ("startup success = 99%", 16, "=", "for success = 100% only"),
        ("startup median == 5ms", 15, "==", "is no comparison"),
        ("startup median > 44ms < 52ms", 22, "<", "a limit on both sides is a range"),
        ("startup median 52 \t ms", 15, "52 \t ms", r"'52 \t ms' alone is no limit"),
        ("startup median ..1e999s", 17, "1e999s", "too large"),
        # levels and shapes
        ("startup median ..1s @0", 21, "0", "from 1 to 10000"),
        ("startup median ..1s @10001", 21, "10001", "from 1 to 10000"),
        ("startup median ..1s @1,1", 23, "1", "level 1 is given twice"),
        ("startup median ..1s @1,", 23, "", "a level is missing"),
        ("startup median ..1s @all", 21, "all", "a level is missing"),
        ("startup median@1 ..1s @2", 22, "@", "given twice"),
        ("startup median ..1s @1 @2", 23, "@", "given twice"),
        ("startup median ..1s @1/spike", 23, "spike", "is no load shape: there are burst, closed-100"),
        ("startup median ..1s @1/", 23, "", "a load shape is missing"),
        ("startup median@1/closed ..1s", 17, "closed", "is no load shape"),
        ("startup median ..1s more", 20, "more", "comes after the end"),
        ("startup median ..1s ;", 20, ";", "comes after the end"),
        # ratios
        ("startup median ..20ms / floor", 22, "/", "stands before the limit"),
        ("startup median /", 16, "", "what it is divided by is missing"),
        ("startup median / docker ..2", 17, "docker", "a provider with a colon, docker:"),
        ("startup median@2/p95@1 ..2", 17, "p95", "p95 is another statistic than median"),
        ("startup median@2/median ..2", 24, "..", "a level is missing"),
        ("startup median@1,2/@1 ..2", 19, "@1", FLAT),
        ("startup median / @1 ..2 @2", 17, "@1", FLAT),
        ("startup median@1/@1 ..2", 17, "@1", "level 1 is the one above the line"),
        ("startup median / floor / floor ..2", 25, "floor", "one too many"),
        ("startup median@2 / @1 / @3 ..2", 24, "@3", "a level comes first, and once"),
        ("startup median@2 / floor / @1 ..2", 27, "@1", "a level comes first, and once"),
        ("startup median@2 / @1 / baseline ..2", 24, "baseline", "one too many"),
        ("startup median@2 / @1 / floor / docker: ..2", 32, "docker:", "one too many"),
        ("startup success / floor ..1", 16, "/", "is not divided"),
        # variants
        ("startup{} median ..1s", 8, "}", "a variant's name is missing"),
        ("startup{miss} median ..1s", 12, "}", "'miss' has no value"),
        ("startup{a=} median ..1s", 10, "}", "a variant's value is missing"),
        ("startup{a=1,a=2} median ..1s", 12, "a", "'a' is given twice"),
        ("startup{a=py:3} median ..1s", 12, ":", "',' or '}' is missing after 'a=py'"),
        ("startup{a=1", 11, "", "',' or '}' is missing after 'a=1'"),
        ("x" * 501, 500, "", "at most 500 characters"),
    ],
)
def test_a_mistake_names_its_place_and_an_example(text: str, at: int, token: str, said: str) -> None:
    with pytest.raises(BudgetError) as raised:
        parse(text)
    error = raised.value
    assert (error.at, error.token) == (at, token)
    assert said in error.message
    assert (
        str(error)
        == f"{error.message} (at character {at + 1}); write for example {'startup median 44ms..52ms @1,16'!r}"
    )
    assert str(error).isprintable()


@pytest.mark.parametrize(
    ("text", "token", "said"),
    [
        ("medain ..1s", "medain", "'medain' is no statistic"),
        ("mean ..1s", "mean", "take median"),
        ("startup medain ..1s", "medain", "'medain' is no statistic"),
        ("..1s", "..", "a budget begins with an operation"),
        (".create ..30ms", "..", "the statistic is missing"),
        ("median", "", "the limit is missing"),
    ],
)
def test_a_mistake_at_a_test(text: str, token: str, said: str) -> None:
    with pytest.raises(BudgetError, match=r"write for example 'median 44ms\.\.52ms @1,16'") as raised:
        parse(text, own=True)
    assert raised.value.token == token
    assert said in raised.value.message


def test_a_text_that_is_too_long_in_its_own_form_is_refused_at_once() -> None:
    """What a run shows of a budget can be given to another."""
    name = "x" * 452
    longer = f"{name} p50@9/p50@2/floor .001..0.1234567891234567x"
    assert len(longer) <= 500
    assert len(write(parse(longer.replace(name, "x")))) + len(name) - 1 > 500
    with pytest.raises(BudgetError, match="at most 500 characters"):
        parse(longer)


def test_an_error_can_be_copied() -> None:
    with pytest.raises(BudgetError) as raised:
        parse("startup medain ..1s")
    assert str(copy.copy(raised.value)) == str(raised.value)
