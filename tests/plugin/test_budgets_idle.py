"""Budgets that a run cannot judge, whatever it measures: a mistake on the command line, told of a file."""

from __future__ import annotations

import pytest

from .conftest import Suite, clean, errors

FEW = "--sandbox-samples=6"
LACKING = [
    ("startup median / baseline ..1.2", (), "no saved run to compare with was named: add --benchmark-compare"),
    ("startup median / floor ..20", ("--sandbox-floor=none",), "there is no floor with --sandbox-floor none"),
]

MARKED = """
    import pytest

    @pytest.mark.sandbox_bench("startup")
    @pytest.mark.sandbox_budget({budgets})
    async def test_startup(sandbox_bench):
        await sandbox_bench.measure()
"""


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
    suite.write(test_marked=MARKED.format(budgets="'median / baseline ..1.2', 'median ..10s'"))
    text = clean(suite.run(FEW, *workers_always), 0)
    assert "pass: 1" in text
    assert "not in this run: no saved run to compare with was named" in text


def test_the_first_run_of_all_has_nothing_to_compare_with(starts: Suite) -> None:
    """The job that saves what the next one compares with passes, and does not say that anything held."""
    budget = "--sandbox-budget=startup median / baseline ..1.2"
    assert "inconclusive: 1" in clean(starts.run(FEW, "--benchmark-compare", budget, "-W", "ignore:Can't compare"), 0)


@pytest.mark.parametrize("budget", [".craete median ..1us", "startup{x=1} median ..1us"])
def test_at_a_test_what_does_not_exist_fails(suite: Suite, budget: str, workers: tuple[str, ...]) -> None:
    suite.write(test_marked=MARKED.format(budgets=f"{budget!r}, 'median ..10s'"))
    text = clean(suite.run(FEW, *workers), 1)
    assert "1 failed, 1 passed" in text
    assert "matches no series: 'startup' has no " in text
    assert "(marker at test_marked.py::test_startup)" in text


@pytest.mark.parametrize("budget", ["median ..1us @16", "bubblewarp:startup median ..1us"])
def test_at_a_test_what_this_run_lacks_is_told(suite: Suite, budget: str, workers_always: tuple[str, ...]) -> None:
    suite.write(test_marked=MARKED.format(budgets=repr(budget)))
    assert "not in this run: matches no series: " in clean(suite.run(FEW, *workers_always), 0)
    clean(suite.run(FEW, "--sandbox-strict", *workers_always), 1)


@pytest.mark.parametrize("table", ["[tool.sandboxbench]\nbudget = ['x']\n", "[tool.sandboxbench.bugdets]\n"])
def test_a_misspelled_key_is_a_mistake(starts: Suite, table: str) -> None:
    (starts.path / "pyproject.toml").write_text(table)
    (told,) = errors(starts.run(FEW))
    assert "is not known here; there are budgets and providers: did you mean 'budgets'?" in told


@pytest.mark.parametrize(
    ("options", "budget", "reason"),
    [
        ((), "startup median / fake: ..9", "no other provider was measured with startup to divide by that of 'fake'"),
        ((), "startup median / docker: ..9", "no provider 'docker' was measured with startup to divide by"),
        ((), "startup median@2 / median@1 ..9", "startup was measured at 1 lane, not at 2"),
        (("--sandbox-concurrency=2",), "startup median@2 / median@1 ..9", "startup was measured at 2 lanes, not at 1"),
    ],
)
def test_what_it_would_be_divided_by(starts: Suite, options: tuple[str, ...], budget: str, reason: str) -> None:
    result = starts.run(FEW, *options, f"--sandbox-budget={budget}")
    clean(result, 4)
    (told,) = errors(result)
    assert f"matches no series: {reason}" in told
    (starts.path / "pyproject.toml").write_text(f'[tool.sandboxbench]\nbudgets = ["{budget}"]\n')
    assert f"not in this run: matches no series: {reason}" in clean(starts.run(FEW, *options), 0)
    clean(starts.run(FEW, *options, "--sandbox-strict"), 1)


def test_below_the_line_it_must_be_the_same_series(starts: Suite, workers: tuple[str, ...]) -> None:
    """Level 1 was measured, and not in the shape of what is above the line."""
    starts.write(
        test_more="""
        import pytest

        @pytest.mark.sandbox_bench("startup", shape="closed-8")
        @pytest.mark.parametrize("concurrency", [4])
        async def test_closed(sandbox_bench):
            await sandbox_bench.measure()
        """
    )
    budget = "--sandbox-budget=startup median@4/closed-8 / median@1 ..9"
    text = clean(starts.run(FEW, budget, *workers), 4)
    assert "startup was measured at 1 lane in another shape, variant or provider only" in text


def test_a_level_of_several_that_was_not_measured_is_told(starts: Suite, workers_always: tuple[str, ...]) -> None:
    budget = "--sandbox-budget=startup median ..10s @1,16"
    text = clean(starts.run(FEW, budget, *workers_always), 0)
    assert "pass: 1" in text
    assert "not in this run: startup was measured at 1 lane, not at 16" in text
    text = clean(starts.run(FEW, budget, "--sandbox-strict", *workers_always), 1)
    assert "1 failed, 1 passed" in text


def test_a_test_of_ones_own_beside_it_hides_no_mistake(starts: Suite) -> None:
    starts.write(
        test_own="""
        async def test_mine(sandbox_bench):
            async def act(sandbox):
                await sandbox.exec(["true"])
            await sandbox_bench.measure(act)
        """
    )
    clean(starts.run(FEW, "--sandbox-budget=startup median / docker: ..9"), 4)
    assert not starts.calls("create")
    text = clean(starts.run(FEW, "--sandbox-budget=statrup median ..9s"), 1)
    assert "no operation 'statrup' was measured" in text


def test_those_that_failed_last_run_again_whatever_the_others_are_about(starts: Suite) -> None:
    arguments = (FEW, "--sandbox-concurrency=1,2", "--sandbox-budget=startup median ..1us @1")
    other = "--sandbox-budget=startup median ..10s @2"
    clean(starts.run(*arguments, other), 1)
    text = clean(starts.run(*arguments, other, "--lf"), 1)
    assert "rerun previous 1 failure" in text
    assert "not in this run: matches no series: startup was measured at 1 lane, not at 2" in text


@pytest.mark.parametrize(("budget", "status"), [(">= 50%", 0), (">= 99%", 1), ("<= 100%", 1)])
def test_failures_are_allowed_where_it_is_proved_that_no_more_happen(starts: Suite, budget: str, status: int) -> None:
    failing = "--sandbox-option=fake.exec=9x0,error,..."
    clean(starts.run("--sandbox-samples=20", failing, f"--sandbox-budget=startup success {budget}"), status)


def test_the_run_that_saves_the_first_baseline_passes_with_strict(starts: Suite) -> None:
    (starts.path / "pyproject.toml").write_text(
        '[tool.sandboxbench]\nbudgets = ["startup median / baseline ..99", "startup median ..10s"]\n'
    )
    text = clean(starts.run(FEW, "--sandbox-strict", "--benchmark-save=base"), 0)
    assert "not in this run: no saved run to compare with was named" in text
    clean(starts.run(FEW, "--sandbox-strict", "--benchmark-compare=0001"), 0)


def test_the_list_says_what_would_not_be_judged(starts: Suite) -> None:
    (starts.path / "pyproject.toml").write_text(
        '[tool.sandboxbench]\nbudgets = ["startup median / docker: ..1", "startup median ..1s @1,16"]\n'
    )
    text = clean(starts.run("--sandbox-budgets"), 0)
    assert "not judged, or not wholly:\n  startup median / docker: ..1: matches no series: no provider" in text
    assert "\n  startup median ..1s @1,16: startup was measured at 1 lane, not at 16\n" in text


def test_an_idle_one_that_fails_is_told_where_all_are(starts: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    summary = starts.path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    text = clean(starts.run(FEW, "--sandbox-budget=startup.craete median ..1s"), 1)
    assert "fail: 1\n  startup.craete median ..1s: matches no series: " in text
    assert "::error title=sandbox budget" in text
    assert "| fail | startup.craete median ..1s" in summary.read_text()
