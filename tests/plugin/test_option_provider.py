"""``--sandbox-provider``, and its mistakes."""

from __future__ import annotations

import pytest

from .conftest import Suite, clean, errors, printed


def test_the_chosen_provider_is_measured_and_stands_in_the_ids(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.one_bench()
    result = suite.run("-v", *workers)
    clean(result, 0)
    result.assert_outcomes(passed=1)
    assert "test_exec[fake-c1]" in result.stdout.str()
    assert suite.series() == {"fake:exec@1/burst": 3}


@pytest.mark.parametrize("extra", [(), ("-n", "2"), ("--collect-only",)], ids=["plain", "xdist", "collect-only"])
def test_an_unknown_one_is_one_message(suite: Suite, extra: tuple[str, ...]) -> None:
    suite.one_bench()
    result = suite.bare("--sandbox-provider=nope", *extra)
    clean(result, 4)
    (error,) = errors(result)
    assert "unknown provider 'nope'; there are: " in error
    assert "fake" in error


@pytest.mark.parametrize(
    ("value", "told"),
    [("fake,fake", "provider 'fake' is given twice"), (" , ", "names no provider; write for example bubblewrap,null")],
)
def test_other_mistakes(suite: Suite, value: str, told: str) -> None:
    suite.one_bench()
    result = suite.bare(f"--sandbox-provider={value}")
    assert clean(result, 4).count(told) == 1


def test_several_take_turns_in_one_block(suite: Suite) -> None:
    suite.pytester.makepyprojecttoml("[tool.sandboxbench.providers.other]\nkind = 'fake'\n")
    suite.one_bench()
    result = suite.run("--sandbox-provider=fake,other", "--sandbox-samples=8", "-v")
    clean(result, 0)
    result.assert_outcomes(passed=2)
    assert suite.series() == {"fake:exec@1/burst": 8, "other:exec@1/burst": 8}
    turns = [sample["series"].partition(":")[0] for sample in suite.samples()]
    assert turns != ["fake"] * 8 + ["other"] * 8
    assert all({turns[i], turns[i + 1]} == {"fake", "other"} for i in range(0, 16, 2))
    (block,) = suite.header()["blocks"]
    assert block["providers"] == ["fake", "other"]


def test_the_ini_key(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.ini("sandbox_provider = fake", "sandbox_samples = 2", "sandbox_warmup = 0")
    suite.one_bench()
    result = suite.bare(*workers)
    clean(result, 0)
    assert suite.series() == {"fake:exec@1/burst": 2}


def test_the_command_line_beats_the_ini_key(suite: Suite) -> None:
    suite.ini("sandbox_provider = nope", "sandbox_samples = 1")
    suite.one_bench()
    clean(suite.run(), 0)
    assert suite.series() == {"fake:exec@1/burst": 3}


def test_a_mistake_in_the_ini_file_names_the_file_and_the_key(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.ini("sandbox_samples = many")
    suite.one_bench()
    result = suite.bare("--sandbox-provider=fake", *workers)
    text = clean(result, 4)
    assert text.count("sandbox_samples: 'many' is not a whole number from 1 on") == 1
    assert "tox.ini" in text


def test_a_mistake_in_an_ini_file_does_not_touch_other_runs(suite: Suite) -> None:
    suite.ini("sandbox_samples = many", "sandbox_concurrency = few")
    suite.write(test_plain="def test_plain(): pass")
    result = suite.bare()
    clean(result, 0)


def test_an_unknown_one_in_the_ini_file(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.ini("sandbox_provider = nope")
    suite.one_bench()
    text = clean(suite.bare(*workers), 4)
    assert text.count("unknown provider 'nope'") == 1


def test_a_run_without_benches_is_not_touched(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.write(test_plain="def test_plain(): pass\ndef test_more(): pass")
    result = suite.run(*workers)
    result.assert_outcomes(passed=2)
    assert "sandbox" not in printed(result).partition("plugins:")[2].partition("\n")[2]
    assert not (suite.path / ".sandboxbench").exists()
