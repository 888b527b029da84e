"""The grammar: what is read, how it is written back, and what a mistake is answered with."""

from __future__ import annotations

import math

import pytest

from pytest_sandboxbench.budgets.grammar import BudgetError, parse, write
from pytest_sandboxbench.budgets.model import Budget, Reference

MS = 1e6


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
        ("startup p99.9 ..0.5min", Budget("startup", "p99.9", high=30e9)),
        ("startup median 44..52ms", Budget("startup", "median", 44 * MS, 52 * MS)),
        ("startup median ..7µs", Budget("startup", "median", high=7000.0)),
        ("startup median ..7μs", Budget("startup", "median", high=7000.0)),
        ("startup success >= 99%", Budget("startup", "success", low=0.99)),
        ("startup success 0.99..", Budget("startup", "success", low=0.99)),
        ("startup success 0.000144..100%", Budget("startup", "success", 1.44e-06, 1.0)),
        ("startup success 1.4404151695290859e-06..1", Budget("startup", "success", 1.4404151695290859e-06, 1.0)),
        ("0.:startup median ..1s", Budget("startup", "median", high=1000 * MS, provider="0.")),
        ("startup success = 100%", Budget("startup", "success", 1.0, 1.0)),
        (
            "startup throughput >= 20/s @4/closed-100",
            Budget("startup", "throughput", low=20.0, levels=(4,), shape="closed-100"),
        ),
        (
            "startup median ..7us @4/stagger-0.05s",
            Budget("startup", "median", high=7000.0, levels=(4,), shape="stagger-50ms"),
        ),
        ("startup throughput 1200/min..", Budget("startup", "throughput", low=20.0)),
        (
            "startup median@100 / median@1 ..1.2",
            Budget("startup", "median", high=1.2, levels=(100,), over=(Reference("level", 1),)),
        ),
        (
            "startup p95 @100/@1 < 120%",
            Budget("startup", "p95", high=1.2, levels=(100,), over=(Reference("level", 1),)),
        ),
        (
            "startup median @100 / @1 / floor ..1.5x",
            Budget("startup", "median", high=1.5, levels=(100,), over=(Reference("level", 1), Reference("floor"))),
        ),
        (
            "startup median / docker: ..0.5 @1,16",
            Budget("startup", "median", high=0.5, levels=(1, 16), over=(Reference("series", provider="docker"),)),
        ),
        ("startup median / baseline ..1.1", Budget("startup", "median", high=1.1, over=(Reference("baseline"),))),
    ],
)
def test_what_is_read_is_written_back(text: str, budget: Budget) -> None:
    assert parse(text) == budget
    assert parse(write(budget)) == budget


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("startup   median<52ms", "startup median ..52ms"),
        ("startup median 0.044s..0.052s @16,1", "startup median 44ms..52ms @1,16"),
        ("startup median @100/@1 < 1.2", "startup median@100 / median@1 ..1.2"),
        ("startup success 0.99..1.0", "startup success 99%..100%"),
        ("startup median / floor ..2000%", "startup median / floor ..20"),
    ],
)
def test_one_form(text: str, written: str) -> None:
    assert write(parse(text)) == written


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("median < 10ms", "median ..10ms"),
        (".create p95 ..30ms @16", ".create p95 ..30ms @16"),
        ("median@100/median@1 ..1.2", "median@100 / median@1 ..1.2"),
        ("exec median ..1s", "exec median ..1s"),
    ],
)
def test_at_a_test_the_operation_may_be_its_own(text: str, written: str) -> None:
    assert write(parse(text, own=True)) == written


@pytest.mark.parametrize(
    ("text", "token", "said"),
    [
        ("", "", "there is no budget"),
        ("startup", "", "the statistic is missing"),
        ("median ..1s", "median", "the operation is missing"),
        ("startup medain ..1s", "medain", "is no statistic"),
        ("startup mean ..1s", "mean", "take median"),
        ("startup max ..1s", "max", "take p99"),
        ("startup p100 ..1s", "p100", "take p99"),
        ("startup median", "", "the limit is missing"),
        ("startup median 52ms", "52ms", "a limit is a range"),
        ("startup median ..52", "52", "ns, us, ms, s or min"),
        ("startup median ..5%", "5%", "ns, us, ms, s or min"),
        ("startup success ..5ms", "5ms", "% or a share of 1"),
        ("startup success ..101%", "101%", "too large"),
        ("startup throughput ..5ms", "5ms", "/s or /min"),
        ("startup median / floor ..5ms", "5ms", "a plain number"),
        ("startup median 52ms..44ms", "52ms", "is not below"),
        ("startup median = 5ms", "=", "for success = 100% only"),
        ("startup median ..1s @0", "@0", "from 1 to 10000"),
        ("startup median ..1s @1,1", "@1,1", "no different levels"),
        ("startup median@1 ..1s @2", "@2", "given twice"),
        ("startup median ..1s more", "more", "after the end"),
        ("startup median / foo ..2", "foo", "nothing to divide by"),
        ("startup median@2/p95@1 ..2", "p95", "another statistic"),
        ("startup median@1,2/@1 ..2", "/", "one above the line"),
        ("startup median@1/@1 ..2", "/", "one above the line"),
        ("startup median / @1 ..2", "/", "one above the line"),
        ("startup median / floor / floor ..2", "/", "once more at most"),
        ("startup success / floor ..1", "/", "is not divided"),
        ("startup{miss} median ..1s", "startup{miss}", "no variant"),
        ("startup{a=1,a=2} median ..1s", "startup{a=1,a=2}", "given twice"),
        ("startup median ..1s @4/stagger-5", "@4/stagger-5", "is no load shape"),
        ("startup median ..1s ;", ";", "no part of a budget"),
        ("startup median ..1e999s", "1e999s", "too large"),
        ("startup median ..1sec", "1sec", "'1sec' is no limit"),
        ("startup median -1ms..", "-1ms", "'-1ms' is no limit"),
        (
            "startup.create throughput 1/s..",
            "startup.create",
            "throughput is one of whole operations: leave .create out",
        ),
        ("startup.create success 99%..", "startup.create", "success is one of whole operations"),
        ("docker:startup median / docker: ..2", "/", "docker is not divided by itself"),
        ("startup.create median / baseline ..2", "/", "no phase and no throughput"),
        ("startup throughput / baseline 0.5..", "/", "no phase and no throughput"),
        ("x" * 501, "", "at most 500 characters"),
    ],
)
def test_a_mistake_names_its_place_and_an_example(text: str, token: str, said: str) -> None:
    with pytest.raises(BudgetError) as raised:
        parse(text)
    error = raised.value
    assert error.token == token
    assert error.text[error.at :].startswith(token)
    assert said in str(error)
    assert "startup median 44ms..52ms" in str(error)
    assert "\n" not in str(error)
