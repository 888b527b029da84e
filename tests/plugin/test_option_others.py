"""``--sandbox-option``, ``--sandbox-command``, ``--sandbox-strict``."""

from __future__ import annotations

import pytest

from .conftest import Suite, clean, errors

TWO = "--sandbox-provider=fake,other"
ABSENT = "--sandbox-option=other.missing=its daemon sleeps"
CURE = "--sandbox-option=other.cure=wake it"


@pytest.fixture
def two(suite: Suite) -> Suite:
    suite.pytester.makepyprojecttoml("[tool.sandboxbench.providers.other]\nkind = 'fake'\n")
    suite.one_bench()
    return suite


def test_a_setting_reaches_the_provider_and_the_records(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.one_bench()
    clean(suite.run("--sandbox-option=fake.exec=0.02", *workers), 0)
    assert min(sample["ended_ns"] - sample["started_ns"] for sample in suite.samples()) >= 20e6
    assert suite.header()["providers"]["fake"]["options"]["exec"] == "0.02"


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("fake", "'fake' is not NAME.KEY=VALUE; write for example bubblewrap.memory_mib=512"),
        ("fake.bogus=1", "provider 'fake' has no setting 'bogus'; it has: "),
        ("nope.x=1", "unknown provider 'nope'; there are: "),
        ("fake.jitter=much", "provider 'fake': setting jitter = 'much' is not a number; write for example "),
        ("fake.vcpus=much", "provider 'fake': setting vcpus = 'much' is not a number or none"),
    ],
)
def test_mistakes(suite: Suite, option: str, told: str) -> None:
    suite.one_bench()
    assert clean(suite.run(f"--sandbox-option={option}"), 4).count(told) == 1


def test_a_mistake_in_a_table_of_pyproject(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makepyprojecttoml("[tool.sandboxbench.providers.other]\nkind = 'fake'\nbogus = 1\n")
    suite.one_bench()
    result = suite.bare("--sandbox-provider=other", *workers)
    clean(result, 4)
    assert "provider 'other' has no setting 'bogus'" in errors(result)[0]


def test_a_broken_table_of_pyproject(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makepyprojecttoml("[tool.sandboxbench.providers]\nother = 1\n")
    suite.one_bench()
    result = suite.bare(*workers)
    clean(result, 4)
    assert "[tool.sandboxbench.providers.other] must be a table" in errors(result)[0]


def test_a_broken_table_does_not_touch_other_runs(suite: Suite) -> None:
    suite.pytester.makepyprojecttoml("[tool.sandboxbench.providers]\nother = 1\n")
    suite.write(test_plain="def test_plain(): pass")
    clean(suite.bare(), 0)


def test_a_command_of_ones_own(suite: Suite) -> None:
    suite.init()
    result = suite.run(
        "benches", "-k", "command", "--sandbox-command=mytool --all 'a b'", "--sandbox-option=fake.commands=mytool"
    )
    clean(result, 0)
    result.assert_outcomes(passed=1, deselected=16)
    key = "{command=mytool_--all_a_b_-7713a8e2}@1/burst"
    assert set(suite.series()) == {f"fake:cold_run{key}", f"fake:cold_run_total{key}"}


def test_a_command_that_the_sandbox_lacks_fails_and_says_so(suite: Suite) -> None:
    suite.init()
    text = clean(suite.run("benches", "-k", "command", "--sandbox-command=mytool"), 1)
    assert "run_once ['mytool'] (exit code 127)" in text
    suite.assert_nothing_left()


def test_a_command_that_cannot_be_read(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.init()
    text = clean(suite.run("benches", "-k", "command", "--sandbox-command=echo 'open", *workers), 4)
    assert text.count("--sandbox-command") == 1


def test_a_missing_provider_beside_one_that_ran_is_a_skip_with_its_cure(two: Suite, workers: tuple[str, ...]) -> None:
    result = two.run(TWO, ABSENT, CURE, "-rs", *workers)
    text = clean(result, 0)
    result.assert_outcomes(passed=1, skipped=1)
    assert "other is not ready: its daemon sleeps. wake it" in text
    assert "sandbox providers that are not ready" in text
    assert two.series() == {"fake:exec@1/burst": 3}


def test_strict_makes_it_a_failure(two: Suite, workers: tuple[str, ...]) -> None:
    result = two.run(TWO, ABSENT, CURE, "--sandbox-strict", *workers)
    text = clean(result, 1)
    assert result.parseoutcomes()["passed"] == 1
    assert "other is not ready: its daemon sleeps. wake it" in text


def test_strict_in_the_ini_file(two: Suite) -> None:
    two.ini("sandbox_strict = true")
    clean(two.run(TWO, ABSENT), 1)


def test_all_missing_is_nothing_measured(two: Suite, workers: tuple[str, ...]) -> None:
    result = two.run(TWO, ABSENT, "--sandbox-option=fake.missing=gone", *workers)
    text = clean(result, 5)
    result.assert_outcomes(skipped=2)
    assert "fake: gone. Remove the setting fake.missing." in text
    assert "sandbox benchmarks" not in text.partition("plugins:")[2]


def test_all_missing_and_strict_is_a_failure(two: Suite) -> None:
    clean(two.run(TWO, ABSENT, "--sandbox-option=fake.missing=gone", "--sandbox-strict"), 1)


def test_one_operation_that_a_provider_cannot_do_is_a_skip(suite: Suite) -> None:
    suite.init()
    result = suite.run("benches", "-k", "pause or round", "--sandbox-option=fake.pause_kinds=none", "-rs")
    text = clean(result, 0)
    assert "fake cannot pause" in text
    assert result.parseoutcomes()["skipped"] == 1
