"""Budgets in a run: each form with a fault that breaks it and without one, with and without workers."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from .conftest import Suite, clean, settled

STARTS = """
    import pytest

    @pytest.mark.sandbox_bench("startup")
    async def test_startup(sandbox_bench):
        await sandbox_bench.measure()
"""
CREATE = "--sandbox-option=fake.create=0.02"
MANY = "--sandbox-samples=8"


@pytest.fixture
def starts(suite: Suite) -> Suite:
    suite.write(test_starts=STARTS)
    return suite


# On one series: the test's own result


@pytest.mark.parametrize(
    ("budget", "broken"),
    [
        ("startup median ..10s", False),
        ("startup median ..10ms", True),
        ("startup median 10ms..10s", False),
        ("startup median 1s..10s", True),
        ("fake:startup.create median ..10s @1/burst", False),
        ("startup.create median ..10ms", True),
        ("startup p90 ..10ms", True),
        ("startup success = 100%", False),
        ("startup success 1%..", False),
        ("startup throughput 1/s..", False),
        ("startup throughput 100/s..", True),
    ],
)
def test_a_budget_fails_the_test_that_shows_the_series(starts: Suite, budget: str, broken: bool) -> None:
    text = clean(starts.run(MANY, CREATE, f"--sandbox-budget={budget}"), int(broken))
    if broken:
        assert "budget: " in text
        assert "(--sandbox-budget)" in text
        assert "FAILED test_starts.py::test_startup[fake-c1]" in text
    else:
        assert "pass: 1" in text


def test_the_message_says_all(starts: Suite, workers: tuple[str, ...]) -> None:
    text = clean(starts.run(MANY, CREATE, "--sandbox-budget=startup median 0ms..1us", *workers), 1)
    (line,) = [line for line in text.splitlines() if line.startswith("startup on fake at 1 lane: median ")]
    for part in (" ms (", " .. ", "95 %", "8 samples", "is above 1 µs"):
        assert part in line
    assert "budget: startup median 0s..1us (--sandbox-budget)" in text
    assert "create" in text
    assert "1 failed" in text


def test_with_several_workers_it_is_judged_on_the_samples_of_all(starts: Suite) -> None:
    several = ("-n", "3", "--sandbox-concurrency=6", MANY, "--sandbox-option=fake.create=0.05")
    text = clean(starts.run(*several, "--sandbox-budget=startup median ..1ms", "--sandbox-budget=startup p50 ..10s"), 1)
    assert "8 rounds, 48 samples" in text
    assert "1 failed" in text
    assert "pass: 1" in text


def test_a_failed_sample_is_allowed_where_a_success_budget_says_how_many(starts: Suite) -> None:
    failing = "--sandbox-option=fake.create=0,0,0,error:no,0"
    assert "1 failed of 8" in clean(starts.run(MANY, failing), 1)
    clean(starts.run(MANY, failing, "--sandbox-budget=startup success 20%.."), 0)
    clean(starts.run(MANY, failing, "--sandbox-budget=startup success = 100%"), 1)


# Where they stand


def test_a_marker_needs_no_operation(suite: Suite, workers: tuple[str, ...]) -> None:
    marked = STARTS.replace(
        "    @pytest.mark.s", '    @pytest.mark.sandbox_budget("median ..1us", "p50 ..9s")\n    @pytest.mark.s'
    )
    suite.write(test_marked=marked)
    text = clean(suite.run(MANY, *workers), 1)
    assert "budget: startup median ..1us (marker at test_marked.py::test_startup)" in text
    assert "fail: 1" in text
    assert "pass: 1" in text


def test_files_and_hooks(starts: Suite) -> None:
    (starts.path / "pyproject.toml").write_text(
        '[tool.sandboxbench.budgets]\nstartup = ["median ..1us", "median ..9s"]\n'
    )
    (starts.path / "more.toml").write_text('budgets = ["startup median ..2us"]\n')
    starts.pytester.makeconftest('def pytest_sandboxbench_budgets(config): return ["startup median ..3us"]')
    text = clean(starts.run(MANY, "--sandbox-budget-file=more.toml"), 1)
    for where in (
        "pyproject.toml: [tool.sandboxbench] budgets, startup, entry 1",
        "more.toml",
        "hook pytest_sandboxbench_budgets",
    ):
        assert where in text
    assert "fail: 3" in text
    assert "pass: 1" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--sandbox-budget=startup medain ..1s"], "'medain' is no statistic"),
        (["--sandbox-budget-file=not-there.toml"], "No such file"),
        (["--sandbox-budget-file=bad.toml"], "'budget' is not known here"),
    ],
)
def test_a_mistake_ends_the_run_before_anything_is_measured(starts: Suite, arguments: list[str], said: str) -> None:
    (starts.path / "bad.toml").write_text('budget = "startup median ..1s"\n')
    assert said in clean(starts.run(*arguments), 4)
    assert not starts.calls("create")


def test_a_mistake_under_xdist(starts: Suite) -> None:
    (starts.path / "bad.toml").write_text('budgets = ["startup median"]\n')
    assert "the limit is missing" in clean(starts.run("-n", "2", "--sandbox-budget-file=bad.toml"), 4)


def test_a_marker_about_another_operation_than_its_test_shows_is_a_mistake(
    suite: Suite, workers: tuple[str, ...]
) -> None:
    """It would never be judged, and always hold."""
    mark = '@pytest.mark.sandbox_budget("exec median ..1us")'
    suite.write(test_marked=STARTS.replace("    @pytest", f"    {mark}\n    @pytest"))
    text = clean(suite.run(*workers), 4)
    assert "ERROR: marker at test_marked.py::test_startup: 'exec median ..1us' matches no series" in text
    assert not suite.calls("create")
    suite.write(
        test_marked="""
        import pytest

        @pytest.mark.sandbox_budget("other median ..1us", "median ..9s")
        async def test_own(sandbox_bench):
            async def act(sandbox):
                await sandbox.exec(["true"])

            await sandbox_bench.measure(act)
        """
    )
    text = clean(suite.run(MANY, *workers), 1)
    assert "no operation 'other' was measured; there is own" in text
    assert "pass: 1" in text


def test_a_file_that_the_ini_names_lies_beside_it(starts: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    (starts.path / "limits.toml").write_text('budgets = ["startup median ..9s"]\n')
    starts.ini("sandbox_budget_file = limits.toml")
    monkeypatch.chdir(starts.pytester.mkdir("elsewhere"))
    text = clean(starts.run(MANY, f"--rootdir={starts.path}", f"-c={starts.path / 'tox.ini'}", str(starts.path)), 0)
    assert "pass: 1" in text


# Undecided


def test_an_undecided_one_passes_with_a_letter_of_its_own(starts: Suite, workers: tuple[str, ...]) -> None:
    nine = ("--sandbox-samples=9", "--sandbox-budget=startup p95 < 1s", *workers)
    text = clean(starts.run(*nine), 0)
    assert "p95 needs 20 samples, have 9" in text
    assert "1 inconclusive" in text
    assert "inconclusive: 1" in text
    assert "p95 needs 20 samples, have 9" in clean(starts.run(*nine, "--sandbox-strict"), 1)


def test_more_rounds_until_it_is_decided(starts: Suite, workers_always: tuple[str, ...]) -> None:
    """A p80 takes 18 samples and more: the third look has them, and nothing is measured beyond it."""
    budget = ("--sandbox-budget=startup p80 ..10s", "--sandbox-samples=8", "--sandbox-max-samples=100")
    text = clean(starts.run(*budget, *workers_always), 0)
    assert "pass: 1" in text
    assert starts.series()["fake:startup@1/burst"] == 32


def test_as_many_as_were_allowed_and_no_more(starts: Suite, workers: tuple[str, ...]) -> None:
    """Half of the values lie on either side of the limit, however many there are."""
    starts.write(test_starts=STARTS.replace('"startup"', '"startup", samples=6'))
    two = "--sandbox-option=fake.create=0.05,0.25,..."
    arguments = ("--sandbox-budget=startup median ..150ms", "--sandbox-max-samples=20", two)
    text = clean(starts.bare(*starts.usual[:1], *starts.usual[2:], *arguments, *workers), 0)
    assert "inconclusive: 1" in text
    assert starts.series()["fake:startup@1/burst"] == 20


@pytest.mark.parametrize("budget", ["startup p99 ..10s", "startup median / floor ..5"])
def test_no_more_where_they_could_decide_nothing(starts: Suite, budget: str) -> None:
    """Too many would be needed; or there is nothing to divide by."""
    clean(starts.run("--sandbox-samples=8", "--sandbox-max-samples=100", f"--sandbox-budget={budget}"), 0)
    assert starts.series()["fake:startup@1/burst"] == 8


def test_who_says_how_many_gets_so_many(starts: Suite) -> None:
    clean(starts.run("--sandbox-samples=4", "--sandbox-budget=startup p99 ..10s"), 0)
    assert starts.series()["fake:startup@1/burst"] == 4


# On several series: results of their own

# Long enough that a busy machine makes no difference.
LONG = "--sandbox-option=fake.create=0.06"
GROWS = ("--sandbox-concurrency=1,8", LONG, MANY)
FLAT = "--sandbox-budget=startup median@8 / median@1 ..2.5"  # 4.5 behind a lock


def lock(suite: Suite) -> tuple[str, ...]:
    return ("--sandbox-option=fake.lock=serial", f"--sandbox-option=fake.state_dir={suite.path / 'shared'}")


def test_flatness(starts: Suite, workers: tuple[str, ...]) -> None:
    text = settled(lambda: starts.run(*GROWS, FLAT, "--sandbox-strict", *workers), 0)
    assert "3 passed" in text
    text = settled(lambda: starts.run(*GROWS, FLAT, *lock(starts), *workers), 1)
    assert "FAILED budgets::startup median@8 / median@1 ..2.5 [fake]" in text
    assert "1 failed, 2 passed" in text
    assert "what grew most: create" in text


def test_it_has_a_case_in_junit(starts: Suite, workers: tuple[str, ...]) -> None:
    settled(lambda: starts.run(*GROWS, FLAT, *lock(starts), "--junitxml=out.xml", *workers), 1)
    suites = ElementTree.parse(starts.path / "out.xml").getroot()
    cases = {case.get("classname"): case for case in suites.iter("testcase")}
    assert len(list(suites.iter("testcase"))) == 3
    (said,) = [p.get("value") or "" for p in cases["budgets"].iter("property") if p.get("name") == "sandbox_budget"]
    assert said.startswith("fail: startup on fake at 8 lanes")
    assert cases["budgets"].find("failure") is not None


def test_it_stops_a_run_that_stops_at_a_failure(starts: Suite, workers: tuple[str, ...]) -> None:
    starts.write(test_then=STARTS.replace("startup", "exec"))
    text = settled(lambda: starts.run(*GROWS, FLAT, *lock(starts), "-x", *workers), 2 if workers else 1)
    assert "stopping after 1 failures" in text
    assert "test_then.py::" not in text


def test_after_it_failed_the_tests_of_its_series_run_again(starts: Suite) -> None:
    starts.write(test_then=STARTS.replace("startup", "exec"))
    settled(lambda: starts.run(*GROWS, FLAT, *lock(starts)), 1)
    text = settled(lambda: starts.run(*GROWS, FLAT, "--lf", "--sandbox-strict"), 0)
    assert "2 deselected" in text or "run-last-failure: rerun previous 2 failures" in text
    assert "3 passed" in text
    assert "no previously failed tests" in settled(lambda: starts.run(*GROWS, "--lf"), 0)


def test_over_the_floor_and_over_another_provider(starts: Suite) -> None:
    starts.pytester.makepyprojecttoml('[tool.sandboxbench.providers.slow]\nkind = "fake"\ncreate = "0.2"\n')
    both = ("--sandbox-provider=slow,fake", CREATE, MANY)
    text = clean(starts.run(*both, "--sandbox-budget=slow:startup median / fake: ..1.5"), 1)
    assert "FAILED budgets::slow:startup median / fake: ..1.5" in text
    clean(starts.run(*both, "--sandbox-budget=slow:startup median / fake: ..90"), 0)
    text = clean(starts.run(*both, "--sandbox-budget=slow:startup median / docker: ..5"), 4)
    assert "no provider 'docker' was measured with startup to divide by; there are slow, fake" in text


def test_over_a_baseline(starts: Suite, workers: tuple[str, ...]) -> None:
    budget = "--sandbox-budget=startup median / baseline ..1.5"
    clean(starts.run(MANY, CREATE, "--benchmark-save=base"), 0)
    settled(lambda: starts.run(MANY, CREATE, "--benchmark-compare", budget, *workers), 0)
    text = clean(starts.run(MANY, "--sandbox-option=fake.create=0.2", "--benchmark-compare", budget, *workers), 1)
    assert "FAILED budgets::startup median / baseline ..1.5 [fake]" in text


# About nothing


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ("strartup median ..1s", "no operation 'strartup' was measured; there is startup: did you mean 'startup'?"),
        ("startup median ..1s @16", "at 1 lane, not at 16"),
        ("docker:startup median ..1s", "'docker'"),
    ],
)
def test_one_that_applies_to_nothing_ends_the_run_before_it_measures(
    starts: Suite, budget: str, said: str, workers: tuple[str, ...]
) -> None:
    text = " ".join(clean(starts.run(f"--sandbox-budget={budget}", *workers), 4).split())
    assert "ERROR: --sandbox-budget: " in text
    assert said in text
    assert not starts.calls("create")


def test_a_bench_of_ones_own_may_measure_anything(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.write(
        test_own="""
        async def test_own(sandbox_bench):
            async def life(lane):
                sandbox = await lane.sandbox()
                async with lane.timed("first"):
                    await sandbox.exec(["true"])
                async with lane.timed("second"):
                    await sandbox.exec(["true"])

            await sandbox_bench.run(life, "first", "second")
        """
    )
    assert "pass: 1" in clean(suite.run(MANY, "--sandbox-budget=second median ..9s", *workers), 0)
    text = clean(suite.run(MANY, "--sandbox-budget=third median ..9s", *workers), 1)
    assert "FAILED budgets::third median ..9s" in text
    assert "no operation 'third' was measured" in text


def test_a_phase_that_is_not_there_fails(starts: Suite) -> None:
    (starts.path / "pyproject.toml").write_text('[tool.sandboxbench]\nbudgets = ["startup.craete median ..1s"]\n')
    text = clean(starts.run(MANY), 1)
    assert "craete" in text
    assert "create" in text


def test_a_phase_is_judged_where_it_is(starts: Suite, workers: tuple[str, ...]) -> None:
    starts.pytester.makepyprojecttoml(
        '[tool.sandboxbench.providers.vm]\nkind = "fake"\ncreate_phases = ["boot:0.05"]\n'
    )
    both = ("--sandbox-provider=vm,fake", MANY, *workers)
    text = clean(starts.run(*both, "--sandbox-budget=startup.boot median ..9s"), 0)
    assert "2 passed" in text
    assert "pass: 1" in text
    text = clean(starts.run(*both, "--sandbox-budget=startup.boot median ..1ms"), 1)
    assert "1 failed, 1 passed" in text
    assert "FAILED test_starts.py::test_startup[vm-c1]" in text


def test_one_of_a_file_may_be_about_another_run(starts: Suite) -> None:
    (starts.path / "pyproject.toml").write_text('[tool.sandboxbench]\nbudgets = ["exec median ..1s"]\n')
    assert "not in this run: " in clean(starts.run(MANY), 0)
    clean(starts.run(MANY, "--sandbox-strict"), 1)


# Hooks, and the list


def test_a_hook_decides(starts: Suite, workers: tuple[str, ...]) -> None:
    starts.pytester.makeconftest(
        """
        from dataclasses import replace
        from pytest_sandboxbench.budgets.judging import judge

        def pytest_sandboxbench_check(placed, evidence):
            return replace(judge(placed, evidence), outcome="pass")
        """
    )
    assert "pass: 1" in clean(starts.run(MANY, "--sandbox-budget=startup median ..1us", *workers), 0)


def test_the_list_says_what_applies_to_what(starts: Suite, workers: tuple[str, ...]) -> None:
    (starts.path / "pyproject.toml").write_text('[tool.sandboxbench]\nbudgets = ["exec median ..1s"]\n')
    text = clean(starts.run("--sandbox-budgets", "--sandbox-budget=startup median ..1s @1", *workers), 0)
    assert "fake:startup@1/burst\n  startup median ..1s @1  --sandbox-budget" in text
    assert "apply to no series of these tests:\n  exec median ..1s" in text
    assert not starts.calls("create")


def test_a_hook_brings_a_provider(starts: Suite, workers: tuple[str, ...]) -> None:
    starts.pytester.makeconftest(
        """
        def pytest_sandboxbench_providers(config):
            return {"mine": "pytest_sandboxbench.providers.fake:factory"}
        """
    )
    assert "1 passed" in clean(starts.run("--sandbox-provider=mine", *workers), 0)
    assert "mine:startup@1/burst" in starts.series()


@pytest.mark.parametrize("given", ['{"fake": "other:factory"}', '{"a b": "x:y"}', '{"mine": "no colon"}'])
def test_a_hook_that_brings_none_is_told(starts: Suite, given: str) -> None:
    starts.pytester.makeconftest(f"def pytest_sandboxbench_providers(config): return {given}")
    assert "ERROR: provider " in clean(starts.run(), 4)


def test_a_hook_that_raises_fails_what_it_was_asked(starts: Suite, workers: tuple[str, ...]) -> None:
    starts.pytester.makeconftest("def pytest_sandboxbench_check(placed): raise LookupError('no opinion')")
    flat = ("--sandbox-concurrency=1,2", MANY, "--sandbox-budget=startup median@2 / median@1 ..9")
    text = clean(starts.run(*flat, *workers), 1)
    assert "startup on fake at 2 lanes: pytest_sandboxbench_check raised LookupError('no opinion')" in text
    starts.assert_nothing_left()


def test_a_hook_that_returns_no_verdict_fails_the_test(starts: Suite, workers: tuple[str, ...]) -> None:
    starts.pytester.makeconftest("def pytest_sandboxbench_check(placed): return 'pass'")
    text = clean(starts.run(MANY, "--sandbox-budget=startup median ..9s", *workers), 1)
    assert "startup on fake at 1 lane: pytest_sandboxbench_check returned 'pass', which is no Verdict" in text


def test_where_benchmarks_are_disabled_nothing_is_judged(starts: Suite) -> None:
    text = clean(starts.run("--benchmark-disable", "--sandbox-budget=startup median ..1us"), 0)
    assert "1 passed" in text
