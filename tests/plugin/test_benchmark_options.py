"""pytest-benchmark's options on our benches: they mean what its users expect."""

from __future__ import annotations

import pytest

from .conftest import Suite, clean, printed

ORDINARY = "def test_add(benchmark): assert benchmark.pedantic(sum, [[1, 2]], rounds=3) == 3"


@pytest.fixture
def mixed(suite: Suite) -> Suite:
    suite.one_bench()
    suite.write(test_plain="def test_plain(): pass", test_ordinary=ORDINARY)
    return suite


def measured(suite: Suite) -> int:
    return sum(suite.series().values())


def test_disable_runs_each_act_once_and_publishes_nothing(mixed: Suite, workers: tuple[str, ...]) -> None:
    result = mixed.run("--benchmark-disable", "--benchmark-json=out.json", "-W", "ignore", *workers)
    clean(result, 0)
    result.assert_outcomes(passed=3)
    assert measured(mixed) == 1
    path = mixed.path / "out.json"
    assert not path.exists() or not path.read_text()


def test_only(mixed: Suite, workers: tuple[str, ...]) -> None:
    result = mixed.run("--benchmark-only", *workers)
    clean(result, 0)
    result.assert_outcomes(passed=2, skipped=1)
    assert measured(mixed) == 3


def test_skip(mixed: Suite, workers: tuple[str, ...]) -> None:
    result = mixed.run("--benchmark-skip", *workers)
    clean(result, 0)
    result.assert_outcomes(passed=1, skipped=2)
    assert mixed.calls("preflight") == []


def test_skip_and_nothing_else_there(suite: Suite) -> None:
    suite.one_bench()
    clean(suite.run("--benchmark-skip"), 0)


def test_only_and_nothing_of_ours_under_xdist_is_refused(suite: Suite) -> None:
    """As without this plugin."""
    suite.write(test_ordinary=ORDINARY)
    text = clean(suite.run("--benchmark-only", "-n", "1"), 4)
    assert "Can't have both --benchmark-only and --benchmark-disable" in text


@pytest.mark.parametrize(
    ("option", "number"),
    [("--benchmark-min-rounds=9", 9), ("--benchmark-min-rounds=2", 3), ("--benchmark-min-rounds=3", 3)],
)
def test_min_rounds_is_a_lower_bound(suite: Suite, option: str, number: int) -> None:
    suite.one_bench()
    clean(suite.run(option), 0)
    assert measured(suite) == number


def test_max_time(suite: Suite) -> None:
    suite.one_bench()
    slow = "--sandbox-option=fake.exec=0.05"
    clean(suite.run("--benchmark-max-time=0.2", "--sandbox-samples=500", slow), 0)
    assert 1 <= measured(suite) <= 4


def test_min_rounds_is_stronger_than_max_time(suite: Suite) -> None:
    suite.one_bench()
    slow = "--sandbox-option=fake.exec=0.02"
    options = ("--benchmark-max-time=0.01", "--benchmark-min-rounds=6", "--sandbox-samples=500")
    clean(suite.run(*options, slow), 0)
    assert measured(suite) == 6


@pytest.mark.parametrize(
    ("options", "warmups"),
    [
        (["--benchmark-warmup=on"], 1),
        (["--benchmark-warmup=on", "--benchmark-warmup-iterations=4"], 4),
        (["--benchmark-warmup=off"], 0),
        (["--benchmark-warmup=on", "--sandbox-warmup=2"], 2),
    ],
)
def test_warmup(suite: Suite, options: list[str], warmups: int) -> None:
    suite.one_bench()
    log = f"--sandbox-option=fake.log={suite.log}"
    clean(suite.bare("--sandbox-provider=fake", "--sandbox-samples=3", log, *options), 0)
    assert len(suite.calls("create")) == 3 + warmups


def test_our_table_stands_for_theirs_and_theirs_for_ordinary_benchmarks(mixed: Suite) -> None:
    text = clean(mixed.run(), 0)
    assert text.count("exec: before the command") == 1
    assert "test_add" in text
    assert "test_exec[fake-c1]" not in text


def test_their_table_when_it_is_asked_for(mixed: Suite) -> None:
    text = clean(mixed.run("--benchmark-columns=median,rounds", "--benchmark-group-by=param:concurrency"), 0)
    assert "test_exec[fake-c1]" in text


def test_saving_and_comparing_across_providers_compares_only_the_same(suite: Suite) -> None:
    suite.pytester.makepyprojecttoml("[tool.sandboxbench.providers.other]\nkind = 'fake'\n")
    suite.one_bench()
    clean(suite.run("--benchmark-save=base"), 0)
    text = clean(suite.run("--sandbox-provider=other", "--benchmark-compare"), 0)
    assert "0001_base)" not in text
    text = clean(suite.run("--sandbox-provider=other", "--benchmark-compare", "--benchmark-compare-fail=min:1%"), 1)
    assert "judged nothing: the saved run has no series of this run: other:exec@1/burst" in text


@pytest.mark.parametrize("option", ["--benchmark-compare-fail=min:5%", "--benchmark-compare=0007"])
def test_what_cannot_work_is_told_before_anything_is_measured(
    suite: Suite, option: str, workers: tuple[str, ...]
) -> None:
    suite.one_bench()
    result = suite.run(option, *workers)
    text = printed(result)
    assert result.ret == 4
    assert "INTERNALERROR" not in text
    assert suite.calls("create") == []


def test_only_holds_in_a_run_without_benches_of_ours(suite: Suite) -> None:
    """pytest-benchmark's own way is taken over for the whole run."""
    suite.write(test_others="def test_plain(): pass\n\ndef test_benchmark(benchmark): benchmark(len, [])\n")
    suite.bare("--benchmark-only").assert_outcomes(passed=1, skipped=1)
