"""Case 9: a broken budget or a failed comparison ends a run as its user sees it: told, totals printed, status 1."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Suite, printed

SLOWER = "--sandbox-option=fake.create=0.2"
FAST = "--sandbox-option=fake.create=0.01"


@pytest.mark.parametrize(
    ("arguments", "section"),
    [
        (["--sandbox-budget=startup median ..1ms"], "sandbox budgets"),
        (["--sandbox-budget=startup median / baseline ..1.5", "--benchmark-compare"], "sandbox budgets"),
        (["--benchmark-compare", "--benchmark-compare-fail=median:10%"], "sandbox regressions"),
    ],
    ids=["budget", "baseline budget", "compare-fail"],
)
def test_it_is_told_and_ends_with_1(suite: Suite, arguments: list[str], section: str, workers: tuple[str, ...]) -> None:
    suite.write(
        test_one="""
        import pytest

        @pytest.mark.sandbox_bench("startup")
        async def test_startup(sandbox_bench):
            await sandbox_bench.measure()
        """
    )
    assert suite.run_apart(FAST, "--sandbox-samples=8", "--benchmark-save=base").ret == 0
    result = suite.run_apart(SLOWER, "--sandbox-samples=8", *arguments, *workers)
    text = printed(result)
    assert result.ret == 1, text
    assert section in text
    assert "passed" in result.outlines[-1] or "failed" in result.outlines[-1]
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text
