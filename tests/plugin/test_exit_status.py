"""Exit statuses: 0; 1 something is wrong; 4 usage; 5 nothing was measured."""

from __future__ import annotations

import pytest

from .conftest import Suite, clean


@pytest.fixture
def one(suite: Suite) -> Suite:
    suite.one_bench()
    return suite


def test_all_is_well(one: Suite) -> None:
    clean(one.run(), 0)


FAILURES = [
    ("create=0,error:no room,...", "no room"),
    ("exec=0,0,error:broken,...", "broken"),
    ("create=reject:quota", "3 rejected(quota) of 3"),
    ("exec=0,0,lost,...", "lost its connection"),
    ("exec=0,0,exit:3,...", "exit code 3"),
]


@pytest.mark.parametrize(("script", "told"), FAILURES)
def test_a_failed_operation(one: Suite, script: str, told: str) -> None:
    result = one.run(f"--sandbox-option=fake.{script}")
    text = clean(result, 1)
    result.assert_outcomes(failed=1)
    assert told in text
    one.assert_nothing_left()


def test_some_rejections_are_shown_and_fail_nothing(one: Suite) -> None:
    """A limit is no fault: they are counted apart."""
    text = clean(one.run("--sandbox-option=fake.create=0,reject:quota,0"), 0)
    assert "1 rejected(quota) of 3" in text


def test_a_leak(one: Suite, workers_always: tuple[str, ...]) -> None:
    """The tests pass, and still a sandbox may cost money."""
    result = one.run("--sandbox-option=fake.destroy=0,0,stuck", *workers_always)
    text = clean(result, 1)
    result.assert_outcomes(passed=1)
    (line,) = [line for line in result.outlines if "still running" in line]
    assert line.startswith("fake fake-")
    assert "sandbox leaks" in text


def test_a_destroy_that_lies_once_is_made_good_at_the_end(one: Suite) -> None:
    clean(one.run("--sandbox-option=fake.destroy=lie,0"), 0)
    assert len({call["sandbox"] for call in one.calls("destroy")}) == len(one.calls("destroy")) - 1 == 3


def test_a_destroy_that_always_lies_is_found_out(one: Suite) -> None:
    text = clean(one.run("--sandbox-option=fake.destroy=lie", "--sandbox-samples=1"), 1)
    assert "sandbox leaks" in text
    assert "still lists it" in text


def test_a_destroy_that_hangs_ends_at_its_deadline(one: Suite) -> None:
    text = clean(one.run("--sandbox-option=fake.destroy=hang", "--sandbox-timeout=0.2", "--sandbox-samples=1"), 1)
    assert "sandbox leaks" in text
    assert "the deadline was 0.2 s" in text


def test_a_destroy_that_fails_once_is_no_leak(one: Suite) -> None:
    clean(one.run("--sandbox-option=fake.destroy=error:busy,0"), 0)
    one.assert_nothing_left()


def test_a_list_of_what_is_left_that_cannot_be_had(one: Suite) -> None:
    text = clean(one.run("--sandbox-option=fake.owned=error:no"), 1)
    assert "what is left could not be listed" in text


def test_a_regression(one: Suite) -> None:
    clean(one.run("--benchmark-save=base"), 0)
    result = one.run("--benchmark-compare", "--benchmark-compare-fail=median:50%", "--sandbox-option=fake.exec=0.02")
    text = clean(result, 1)
    result.assert_outcomes(passed=1)
    assert "sandbox regressions" in text
    assert "fake:exec@1/burst: median" in text


def test_nothing_selected(one: Suite) -> None:
    clean(one.run("-k", "nothing"), 5)


def test_a_failing_ordinary_test_beside(one: Suite) -> None:
    one.write(test_plain="def test_plain(): raise ValueError('x')")
    result = one.run()
    assert result.ret == 1
    result.assert_outcomes(passed=1, failed=1)


def test_all_benches_missing_and_ordinary_tests_passed(one: Suite, workers: tuple[str, ...]) -> None:
    """Nothing of what was to be measured was: that the other tests passed does not hide it."""
    one.write(test_plain="def test_plain(): pass")
    result = one.run("--sandbox-option=fake.missing=gone", *workers)
    clean(result, 5)
    result.assert_outcomes(passed=1, skipped=1)


@pytest.mark.parametrize("where", ["create", "exec", "destroy", "owned", "aclose", "preflight"])
def test_a_bug_of_the_adapter_is_told_and_not_thrown(one: Suite, where: str) -> None:
    result = one.run(f"--sandbox-option=fake.{where}=raise:KeyError")
    text = clean(result, {"aclose": 0, "preflight": 5}.get(where, 1))
    assert f"scripted bug of fake in {where}" in text


@pytest.mark.parametrize("where", ["write_file", "pause", "resume", "round_trip", "run_once"])
def test_a_bug_of_the_adapter_in_one_operation_fails_only_its_tests(suite: Suite, where: str) -> None:
    suite.init()
    result = suite.run("benches", f"--sandbox-option=fake.{where}=raise:KeyError")
    text = clean(result, 1)
    assert f"scripted bug of fake in {where}" in text
    assert result.parseoutcomes()["passed"] >= 9
    suite.assert_nothing_left()
