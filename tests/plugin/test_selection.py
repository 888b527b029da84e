"""``-k``, ``--lf``, ``-x``, ``--co``, ``--deselect``: a block is measured once, whatever is chosen of it."""

from __future__ import annotations

import pytest

from pytest_sandboxbench.cli import main

from .conftest import Suite, clean, printed

START = ("startup", "create", "first_exec", "destroy")


@pytest.fixture
def benches(suite: Suite) -> Suite:
    suite.init()
    return suite


def shown(text: str) -> list[str]:
    """Operations that have a row in the table."""
    table = text.partition("operation  ")[2].partition("interval: ")[0].splitlines()[1:]
    return [line.partition(":")[0] for line in table if not line.startswith("  ")]


def test_a_block_is_measured_once_for_all_its_tests(benches: Suite, workers_always: tuple[str, ...]) -> None:
    chosen = "startup or create or first_exec or destroy"
    result = benches.run("benches", "-k", chosen, "--sandbox-warmup=1", *workers_always)
    clean(result, 0)
    assert result.parseoutcomes()["passed"] == 5  # resume_to_first_exec is one more
    assert benches.series() | {f"fake:{name}@1/burst": 3 for name in START} == benches.series()
    assert len(benches.calls("create")) == len(benches.calls("destroy")) == 8


def test_one_test_of_a_block_lives_the_same_life(benches: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    text = clean(benches.run("benches", "-k", "test_create"), 0)
    assert shown(text) == ["create"]
    assert benches.series() == {f"fake:{name}@1/burst": 3 for name in START}
    capsys.readouterr()
    assert main(["report", "--width=120", str(benches.folder)]) == 0
    assert shown(capsys.readouterr().out) == ["create"]
    assert main(["report", "--width=120", "--all", str(benches.folder)]) == 0
    assert shown(capsys.readouterr().out) == list(START)


@pytest.mark.parametrize(
    "how",
    [
        ("benches/test_lifecycle.py::test_create",),
        (
            "benches",
            "--deselect",
            "benches/test_cold_run.py",
            "--deselect",
            "benches/test_lifecycle.py::test_pause",
            "-k",
            "create or pause",
        ),
    ],
)
def test_by_id_and_by_deselecting(benches: Suite, how: tuple[str, ...]) -> None:
    assert shown(clean(benches.run(*how), 0)) == ["create"]


def test_collect_only_measures_nothing(benches: Suite, workers: tuple[str, ...]) -> None:
    result = benches.run("benches", "--collect-only", "-q", *workers)
    text = clean(result, 0)
    if not workers:
        assert "benches/test_startup.py::test_startup[fake-c1]" in text
    assert benches.calls("create") == benches.calls("preflight") == []
    assert not (benches.path / ".sandboxbench").exists()


def test_nothing_selected(benches: Suite, workers: tuple[str, ...]) -> None:
    clean(benches.run("benches", "-k", "no_such_test", *workers), 5)
    assert benches.calls("preflight") == []


BROKEN = "--sandbox-option=fake.destroy=0,error:no,..."


def test_last_failed(benches: Suite) -> None:
    first = benches.run("benches", "-k", "startup or destroy", BROKEN)
    clean(first, 1)
    assert first.parseoutcomes() == {"passed": 1, "failed": 1, "deselected": 15}
    again = benches.run("benches", "--lf")
    clean(again, 0)
    assert again.parseoutcomes()["passed"] == 1
    assert shown(printed(again)) == ["destroy"]


FAILING = "--sandbox-option=fake.create=error:no"


@pytest.mark.parametrize(
    ("how", "status", "failed"), [(("-x",), 1, 1), (("--maxfail=2",), 1, 2), (("-x", "-n", "2"), 2, 1)]
)
def test_an_early_end(benches: Suite, how: tuple[str, ...], status: int, failed: int) -> None:
    """xdist has a status of its own for it."""
    result = benches.run("benches", *how, FAILING, "--sandbox-option=fake.run_once=0")
    text = clean(result, status)
    assert result.parseoutcomes()["failed"] == failed
    assert shown(text)[0] == "startup"
    benches.assert_nothing_left()


def test_a_test_of_another_file_that_shows_the_same_operation_is_the_same_block(benches: Suite) -> None:
    benches.one_bench()
    result = benches.run("benches", "test_one.py", "-k", "test_exec", "--benchmark-json=out.json")
    clean(result, 0)
    result.assert_outcomes(passed=2, deselected=16)
    assert benches.series() == {"fake:exec@1/burst": 3}


def test_a_random_order_measures_the_same(benches: Suite) -> None:
    benches.pytester.makeconftest("def pytest_collection_modifyitems(items): items.reverse()")
    result = benches.run("benches", "-k", "startup or create", "-v")
    clean(result, 0)
    assert benches.series() == {f"fake:{name}@1/burst": 3 for name in START}


def test_running_one_test_twice_by_its_id(benches: Suite) -> None:
    one = "benches/test_lifecycle.py::test_create"
    clean(benches.run(one, one, "--benchmark-json=out.json"), 0)
    assert [b["fullname"] for b in benches.json()] == ["fake:create@1/burst"]
