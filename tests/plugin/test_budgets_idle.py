"""Budgets that a run cannot judge, whatever it measures: a mistake on the command line, told of a file."""

from __future__ import annotations

import pytest

from .conftest import Suite, clean, errors

FEW = "--sandbox-samples=6"
LACKING = [
    ("startup median / baseline ..1.2", (), "no saved run to compare with was named: add --benchmark-compare"),
    ("startup median / floor ..20", ("--sandbox-floor=none",), "there is no floor with --sandbox-floor none"),
]


@pytest.fixture
def starts(suite: Suite) -> Suite:
    suite.write(
        test_starts="""
        import pytest

        @pytest.mark.sandbox_bench("startup")
        async def test_startup(sandbox_bench):
            await sandbox_bench.measure()
        """
    )
    return suite


@pytest.mark.parametrize(("budget", "options", "reason"), LACKING, ids=["baseline", "floor"])
def test_on_the_command_line_nothing_is_measured(
    starts: Suite, budget: str, options: tuple[str, ...], reason: str, workers: tuple[str, ...]
) -> None:
    result = starts.run(FEW, f"--sandbox-budget={budget}", *options, *workers)
    clean(result, 4)
    (told,) = errors(result)
    assert told == f"ERROR: --sandbox-budget: {budget!r} cannot be judged: {reason}"
    assert not starts.calls("create")


@pytest.mark.parametrize(("budget", "options", "reason"), LACKING, ids=["baseline", "floor"])
def test_of_a_file_it_is_told(
    starts: Suite, budget: str, options: tuple[str, ...], reason: str, workers: tuple[str, ...]
) -> None:
    (starts.path / "pyproject.toml").write_text(f'[tool.sandboxbench]\nbudgets = ["{budget}"]\n')
    text = clean(starts.run(FEW, *options, *workers), 0)
    assert f"not in this run: {reason}  (pyproject.toml: [tool.sandboxbench] budgets" in text
    assert "inconclusive" not in text
    clean(starts.run(FEW, *options, "--sandbox-strict", *workers), 1)


def test_at_a_test_it_is_told(suite: Suite, workers_always: tuple[str, ...]) -> None:
    suite.write(
        test_marked="""
        import pytest

        @pytest.mark.sandbox_bench("startup")
        @pytest.mark.sandbox_budget("median / baseline ..1.2", "median ..10s")
        async def test_startup(sandbox_bench):
            await sandbox_bench.measure()
        """
    )
    text = clean(suite.run(FEW, *workers_always), 0)
    assert "pass: 1" in text
    assert "not in this run: no saved run to compare with was named" in text


def test_the_first_run_of_all_has_nothing_to_compare_with(starts: Suite) -> None:
    """The job that saves what the next one compares with passes, and does not say that anything held."""
    budget = "--sandbox-budget=startup median / baseline ..1.2"
    assert "inconclusive: 1" in clean(starts.run(FEW, "--benchmark-compare", budget, "-W", "ignore:Can't compare"), 0)
