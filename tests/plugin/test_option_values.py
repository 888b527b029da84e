"""``--sandbox-samples``, ``-warmup``, ``-max-seconds``, ``-seed``, ``-timeout``: what they do, and their mistakes."""

from __future__ import annotations

import time

import pytest

from .conftest import Suite, clean, errors


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("--sandbox-samples=0", "'0' is not a whole number from 1 on; write for example 20"),
        ("--sandbox-samples=2.5", "'2.5' is not a whole number from 1 on"),
        ("--sandbox-warmup=-1", "'-1' is not a whole number from 0 on"),
        ("--sandbox-max-seconds=0", "'0' is not a number of seconds above 0; write for example 30 or 0.5"),
        ("--sandbox-max-seconds=nan", "'nan' is not a number of seconds above 0"),
        ("--sandbox-seed=x", "'x' is not a whole number from 0 on"),
        ("--sandbox-timeout=inf", "'inf' is not a number of seconds above 0"),
        ("--sandbox-concurrency=0", "'0' is not a list of different numbers of lanes from 1 to 10000"),
        ("--sandbox-concurrency=4,4", "'4,4' is not a list of different numbers of lanes"),
        ("--sandbox-concurrency=1;4", "write for example 1,16,50,100"),
    ],
)
def test_mistakes_name_the_value_and_an_example(suite: Suite, option: str, told: str) -> None:
    text = clean(suite.bare(option), 4)
    assert text.count(told) == 1
    assert f"argument {option.partition('=')[0]}" in text


def test_samples_and_warmups_are_counted_exactly(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.one_bench()
    clean(suite.run("--sandbox-samples=7", "--sandbox-warmup=2", *workers), 0)
    assert suite.series() == {"fake:exec@1/burst": 7}
    assert [sample.get("warmup", False) for sample in suite.samples()] == [True] * 2 + [False] * 7
    assert len(suite.calls("create")) == len(suite.calls("destroy")) == 9


def test_max_seconds_ends_a_block_early(suite: Suite) -> None:
    suite.one_bench()
    result = suite.run("--sandbox-samples=1000", "--sandbox-max-seconds=0.3", "--sandbox-option=fake.exec=0.05")
    clean(result, 0)
    assert 1 <= suite.series()["fake:exec@1/burst"] <= 4
    suite.assert_nothing_left()


def test_the_seed_gives_the_order_of_the_turns(suite: Suite) -> None:
    suite.pytester.makepyprojecttoml("[tool.sandboxbench.providers.other]\nkind = 'fake'\n")
    suite.one_bench()
    orders: list[list[str]] = []
    for seed in ("7", "7", "8"):
        records = f"r{len(orders)}"
        arguments = ("--sandbox-provider=fake,other", "--sandbox-samples=20", f"--sandbox-seed={seed}")
        clean(suite.run(*arguments, f"--sandbox-records={records}"), 0)
        orders.append([sample["series"] for sample in suite.samples(suite.path / records)])
    assert orders[0] == orders[1] != orders[2]


def test_a_drawn_seed_is_recorded(suite: Suite) -> None:
    suite.one_bench()
    clean(suite.run(), 0)
    assert isinstance(suite.header()["seed"], int)


def test_the_timeout_is_the_deadline_of_one_operation(suite: Suite) -> None:
    suite.one_bench()
    started = time.monotonic()
    result = suite.run("--sandbox-timeout=0.3", "--sandbox-samples=1", "--sandbox-option=fake.exec=0,0,hang")
    assert time.monotonic() - started < 3
    text = clean(result, 1)
    assert "the deadline was 0.3 s; --sandbox-timeout sets it" in text
    (sample,) = suite.samples()
    assert sample["outcome"] == "timeout"
    assert 0.3e9 <= sample["ended_ns"] - sample["started_ns"] < 0.6e9
    suite.assert_nothing_left()


@pytest.mark.parametrize(
    ("ini", "key", "number"),
    [
        ("sandbox_samples = 4\nsandbox_warmup = 0", "fake:exec@1/burst", 4),
        ("sandbox_samples = 2\nsandbox_warmup = 0\nsandbox_concurrency = 2", "fake:exec@2/burst", 4),
        ("sandbox_samples = 500\nsandbox_warmup = 0\nsandbox_max_seconds = 0.0001", "fake:exec@1/burst", 1),
    ],
)
def test_ini_keys(suite: Suite, ini: str, key: str, number: int) -> None:
    suite.ini("sandbox_provider = fake", ini)
    suite.one_bench()
    clean(suite.bare(), 0)
    assert suite.series() == {key: number}


def test_ini_keys_in_pyproject_may_be_lists(suite: Suite) -> None:
    (suite.path / "tox.ini").unlink()
    suite.pytester.makepyprojecttoml(
        "[tool.pytest.ini_options]\n"
        "sandbox_provider = ['fake']\nsandbox_concurrency = '1,2'\nsandbox_samples = '1'\nsandbox_warmup = '0'\n"
        "asyncio_default_fixture_loop_scope = 'function'\n"
    )
    suite.one_bench()
    clean(suite.bare(), 0)
    assert suite.series() == {"fake:exec@1/burst": 1, "fake:exec@2/burst": 2}


@pytest.mark.parametrize("key", ["warmup", "max_seconds", "seed", "timeout", "concurrency"])
def test_each_ini_key_is_checked_before_anything_runs(suite: Suite, key: str) -> None:
    suite.ini(f"sandbox_{key} = wrong")
    suite.one_bench()
    result = suite.bare("--sandbox-provider=fake")
    clean(result, 4)
    (error,) = errors(result)
    assert f"sandbox_{key}: 'wrong' is not a" in error
