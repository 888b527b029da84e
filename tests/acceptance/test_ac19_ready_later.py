"""Case 19: a create that returns before the sandbox answers is not a start; one that never answers is an error."""

from __future__ import annotations

import statistics

from tests.plugin.conftest import Suite, clean

LATER = ("--sandbox-option=fake.create=0.1", "--sandbox-option=fake.ready_after=0.8")


def test_startup_holds_the_wait_and_create_does_not(benches: Suite) -> None:
    arguments = ("-k", "test_startup or test_create or test_first_exec", "--sandbox-samples=2")
    clean(benches.run("benches", *arguments, *LATER, "--benchmark-json=out.json"), 0)
    medians = {b["params"]["operation"]: statistics.median(b["stats"]["data"]) for b in benches.json()}
    assert 0.1 <= medians["create"] <= 0.15
    assert 0.8 <= medians["startup"] <= 1.0
    assert abs(medians["startup"] - medians["create"] - medians["first_exec"]) < 0.01


def test_never_ready(benches: Suite) -> None:
    options = ("--sandbox-samples=1", "--sandbox-timeout=0.5", "--sandbox-option=fake.ready_after=never")
    text = clean(benches.run("benches", "-k", "test_startup or test_round_trip", *options), 1)
    assert "the deadline was 0.5 s; --sandbox-timeout sets it" in text
    assert "first command (attempt " in text
    attempt = int(text.partition("first command (attempt ")[2].partition(")")[0])
    assert attempt > 10
    assert "found the sandbox not ready after 0." in text
    benches.assert_nothing_left()


def test_the_row_of_one_that_never_answers_says_so(benches: Suite) -> None:
    options = ("--sandbox-samples=1", "--sandbox-timeout=0.3", "--sandbox-option=fake.ready_after=never")
    clean(benches.run("benches", "-k", "test_create", *options), 0)
    outcomes = {s["series"].partition("@")[0]: s["outcome"] for s in benches.samples()}
    assert outcomes["fake:create"] == "ok"
    assert outcomes["fake:startup"] == outcomes["fake:first_exec"] == "failed"
