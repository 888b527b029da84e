"""Case 3: 7 rounds and 2 warm-ups are exactly 9 creates and 9 destroys: each costs money somewhere."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Suite, clean


@pytest.mark.parametrize(
    ("name", "create"),
    [
        ("test_startup", "create"),
        ("test_exec", "create"),
        ("test_pause", "create"),
        ("test_cold_run_total", "run_once"),
    ],
)
def test_rounds_and_warm_ups(benches: Suite, name: str, create: str) -> None:
    own = {"test_cold_run_total": "test_cold_run.py", "test_startup": "test_startup.py"}
    path = own.get(name, "test_lifecycle.py")
    result = benches.run(f"benches/{path}::{name}", "--sandbox-samples=7", "--sandbox-warmup=2")
    clean(result, 0)
    assert len(benches.calls(create)) == len(benches.calls("destroy")) == 9
    assert [sample.get("warmup", False) for sample in benches.samples()].count(True) * 7 == 2 * sum(
        benches.series().values()
    )


def test_all_tests_of_a_block_together(benches: Suite, workers_always: tuple[str, ...]) -> None:
    chosen = "test_startup or test_create or test_first_exec or test_destroy"
    result = benches.run("benches", "-k", chosen, "--sandbox-samples=7", "--sandbox-warmup=2", *workers_always)
    clean(result, 0)
    result.assert_outcomes(passed=4, deselected=0 if workers_always else 13)
    assert len(benches.calls("create")) == len(benches.calls("destroy")) == 9


def test_under_load_each_lane_counts(benches: Suite) -> None:
    arguments = ("-k", "test_startup", "--sandbox-samples=7", "--sandbox-warmup=2", "--concurrency=4")
    clean(benches.run("benches", *arguments), 0)
    assert len(benches.calls("create")) == len(benches.calls("destroy")) == 36


def test_reported_rounds_are_those_made(benches: Suite) -> None:
    arguments = ("-k", "test_startup", "--sandbox-samples=7", "--sandbox-warmup=2", "--benchmark-json=out.json")
    clean(benches.run("benches", *arguments), 0)
    (benchmark,) = benches.json()
    assert benchmark["stats"]["rounds"] == 7
    assert benchmark["extra_info"]["sandboxbench"]["warmup_rounds"] == 2
