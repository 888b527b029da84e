"""Case 8: of two benches with budgets one breaks, and the message says everything that one needs to know."""

from __future__ import annotations

import re

from tests.plugin.conftest import Suite, clean

TWO = """
    import pytest

    @pytest.mark.sandbox_budget("median < {first}")
    @pytest.mark.sandbox_bench("startup")
    async def test_tight(sandbox_bench):
        await sandbox_bench.measure()

    @pytest.mark.sandbox_budget("median < 10s")
    @pytest.mark.sandbox_bench("create")
    async def test_wide(sandbox_bench):
        await sandbox_bench.measure()
"""
SLOW = ("--sandbox-option=fake.create=0.1", "--sandbox-samples=8")


def test_one_of_two_budgets_breaks(suite: Suite, workers_always: tuple[str, ...]) -> None:
    suite.write(test_two=TWO.format(first="10ms"))
    text = clean(suite.run(*SLOW, *workers_always), 1)
    assert "1 failed, 1 passed" in text
    (found,) = re.findall(r"^startup on fake at 1 lane: .*", text, re.MULTILINE)
    assert re.fullmatch(
        r"startup on fake at 1 lane: median 1\d\d ms \(1\d\d .. \d+, 95 %, 8 samples\) is above 10 ms", found
    )
    assert "budget: startup median ..10ms (marker at test_two.py::test_tight)" in text


def test_neither_breaks_where_both_are_wide(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.write(test_two=TWO.format(first="10s"))
    assert "2 passed" in clean(suite.run(*SLOW, *workers), 0)
