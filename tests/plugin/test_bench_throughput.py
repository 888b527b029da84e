"""The shipped benches of throughput and overload, on systems that keep what they say, and on one that does not."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from .conftest import Suite, clean

OVERLOAD = "benches/test_throughput.py::test_overload"
SANDBIN = ("--sandbox-option=fake.max_live=4", "--sandbox-option=fake.max_queued=16")
"""4 running and 16 queued."""


@pytest.fixture
def benches(suite: Suite) -> Suite:
    suite.init()
    return suite


def rounds(suite: Suite) -> list[Counter[str]]:
    found: dict[int, Counter[str]] = {}
    for sample in suite.samples():
        if ":cold_run@60/burst" in sample["series"]:
            found.setdefault(sample["round"], Counter())[sample["outcome"]] += 1
    return list(found.values())


def test_a_hundred_runs_at_four_lanes(benches: Suite, workers: tuple[str, ...]) -> None:
    chosen = ("benches/test_throughput.py", "-k", "sustained", "--sandbox-option=fake.create=0.01")
    result = benches.run(*chosen, *workers)
    text = clean(result, 0)
    assert set(benches.series().items()) == {
        ("fake:cold_run@4/closed-100", 300),
        ("fake:cold_run_total@4/closed-100", 300),
    }
    assert len(benches.calls("run_once")) == len(benches.calls("destroy")) == 300
    assert "cold_run @4/closed-100" in text
    (rate,) = re.findall(r"^  fake +300 .* ([\d.]+)/s", text, re.MULTILINE)
    assert float(rate) < 400, "four lanes at 100 a second each, at most"


def test_twenty_of_sixty_are_accepted_by_four_running_and_sixteen_queued(benches: Suite) -> None:
    result = benches.run(OVERLOAD, "--sandbox-samples=2", "--sandbox-option=fake.create=0.05", *SANDBIN)
    text = clean(result, 0)
    result.assert_outcomes(passed=1)
    assert rounds(benches) == [{"ok": 20, "rejected(queue)": 40}] * 2
    assert len(benches.calls("run_once")) == 120
    benches.assert_nothing_left()
    result.stdout.re_match_lines([r"  fake +40 .*33\.3 %", r"    rejected\(queue\) +80 +\d"])
    assert "limiter=ours" not in text, "it was the system's"


def test_a_quota_without_a_queue(benches: Suite) -> None:
    options = ("--sandbox-option=fake.max_live=4", "--sandbox-option=fake.create=0.05", "--sandbox-samples=1")
    clean(benches.run(OVERLOAD, *options), 0)
    assert rounds(benches) == [{"ok": 4, "rejected(quota)": 56}]


def test_a_system_that_takes_in_more_than_it_says_is_caught(benches: Suite) -> None:
    """It says that 3 creates wait, and lets 16."""
    benches.write(
        conftest="""
        from pytest_sandboxbench.providers.fake import FakeProvider

        FakeProvider.max_queued = property(lambda self: 3)
        """
    )
    result = benches.run_apart(OVERLOAD, "--sandbox-samples=1", "--sandbox-option=fake.create=0.05", *SANDBIN)
    text = clean(result, 1)
    result.assert_outcomes(failed=1)
    assert "fake has room for 7, and 20 were inside at once: of 20 accepted, 0 were over when the last one came" in text


def test_what_was_accepted_and_fails_is_a_failure(benches: Suite) -> None:
    result = benches.run(
        OVERLOAD, "--sandbox-samples=1", "--sandbox-option=fake.create=19x0.05,0.05+error:no disk", *SANDBIN
    )
    text = clean(result, 1)
    assert "1 failed, 40 rejected(queue) of 60" in text
    assert "no disk" in text


def test_where_nothing_limits_it_says_what_to_set(benches: Suite) -> None:
    result = benches.run(OVERLOAD, "-rs")
    text = clean(result, 5)
    result.assert_outcomes(skipped=1)
    assert "--sandbox-option fake.max_live=4 --sandbox-option fake.max_queued=16" in text
    assert benches.calls("run_once") == []


def test_where_there_is_room_for_all_it_is_no_overload(benches: Suite) -> None:
    result = benches.run(OVERLOAD, "-rs", "--sandbox-option=fake.max_live=60")
    text = clean(result, 5)
    assert "fake has room for 60: 60 at once are no overload" in text
