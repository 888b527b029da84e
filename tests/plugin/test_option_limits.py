"""``--sandbox-option NAME.max_live=N`` and its like: our limits, over all workers, and never silently."""

from __future__ import annotations

from collections import Counter

import pytest

from .conftest import Suite, clean

OVERLOAD = "benches/test_throughput.py::test_overload"
OURS = ("--sandbox-option=fake.limiter_max_live=4", "--sandbox-option=fake.limiter_max_queued=16")


@pytest.fixture
def benches(suite: Suite) -> Suite:
    suite.init()
    return suite


def most_at_once(suite: Suite) -> int:
    """Creates and sandboxes at one instant, as the provider's log has them."""
    changes = [(call["start_ns"], 1) for call in (*suite.calls("create"), *suite.calls("run_once"))]
    changes += [(call["end_ns"], -1) for call in suite.calls("destroy")]
    there = most = 0
    for _at, change in sorted(changes):
        there += change
        most = max(most, there)
    return most


def test_they_hold_over_all_workers_and_say_so(benches: Suite, workers_always: tuple[str, ...]) -> None:
    options = ("--sandbox-samples=2", "--sandbox-option=fake.create=0.05", "--benchmark-json=out.json")
    text = clean(benches.run(OVERLOAD, *options, *OURS, *workers_always), 0)
    outcomes = Counter(
        (sample["round"], sample["outcome"]) for sample in benches.samples() if "run@" in sample["series"]
    )
    assert outcomes == {(number, what): n for number in (0, 1) for what, n in (("ok", 20), ("rejected(queue)", 40))}
    assert len(benches.calls("run_once")) == 40, "the provider was not asked for more"
    assert most_at_once(benches) == 4
    benches.assert_nothing_left()

    assert benches.header()["providers"]["fake"]["limiter"] == {"max_live": 4, "max_queued": 16}
    (benchmark,) = benches.json()
    told = benchmark["extra_info"]["sandboxbench"]["limiter"]
    assert (told["by"], told["rejected"], told["waves"]) == ("ours", 80, True)
    assert told["waited"] >= 32
    assert told["median_without_wait_ns"] < benchmark["stats"]["median"] * 1e9
    assert "limiter=ours (max_live=4, max_queued=16): fake:cold_run @60: " in text
    assert "80 of 80 rejections are ours" in " ".join(text.split())


def test_waves_of_a_bench_whose_lanes_hold_sandboxes(benches: Suite, workers: tuple[str, ...]) -> None:
    chosen = ("-k", "test_startup or test_exec or test_destroy", "--concurrency=6", "--sandbox-samples=2")
    options = ("--sandbox-option=fake.limiter_max_live=2", "--sandbox-option=fake.create=0.02")
    text = clean(benches.run("benches", *chosen, *options, *workers), 0)
    assert {sample["outcome"] for sample in benches.samples()} == {"ok"}
    assert most_at_once(benches) == 2
    assert "fake:exec @6: never more than 2 lanes had a sandbox" in " ".join(text.split())


def test_a_rate_spreads_the_creates_of_all_workers(benches: Suite, workers: tuple[str, ...]) -> None:
    options = ("--sandbox-option=fake.limiter_create_rate=4", "--concurrency=8", "--sandbox-samples=1")
    clean(benches.run("benches/test_startup.py", *options, *workers), 0)
    begins = sorted(call["start_ns"] for call in benches.calls("create"))
    assert len(begins) == 8
    assert all(later - first > 0.7e9 for first, later in zip(begins, begins[4:], strict=False))


def test_sandboxes_outside_of_blocks_count(suite: Suite) -> None:
    suite.write(
        test_two="""
        from pytest_sandboxbench.errors import Rejected
        import pytest

        async def test_two(sandbox, sandbox_factory, sandbox_provider):
            with pytest.raises(Rejected, match="max_live = 1 here; no room within 0.2 s"):
                await sandbox_factory()
            await sandbox_provider.destroy(sandbox)
            await sandbox_factory()

        async def test_again(sandbox):
            pass
        """
    )
    result = suite.run("--sandbox-option=fake.limiter_max_live=1", "--sandbox-timeout=0.2")
    clean(result, 0)
    result.assert_outcomes(passed=2)
    assert len(suite.calls("create")) == 3


def test_where_they_had_no_part_in_it_nothing_is_said(benches: Suite) -> None:
    options = ("--concurrency=4", "--sandbox-option=fake.limiter_max_live=4", "--benchmark-json=out.json")
    text = clean(benches.run("benches/test_startup.py", *options), 0)
    assert "limiter=ours" not in text
    (benchmark,) = benches.json()
    assert benchmark["extra_info"]["sandboxbench"]["limiter"] is None


@pytest.mark.parametrize("option", ["fake.limiter_max_live=0", "null.max_queued=2"])
def test_a_bad_one_is_a_mistake(suite: Suite, option: str) -> None:
    suite.one_bench()
    text = clean(suite.run(f"--sandbox-option={option}", "--sandbox-provider=fake,null"), 4)
    assert "write for example --sandbox-option " in text
    assert suite.calls("create") == []
