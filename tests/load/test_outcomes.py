"""What becomes of errors: typed outcomes, no failure left out, none written as 0 ms."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from pytest_sandboxbench.errors import ExecFailed, OperationTimeout, Rejected, TransportLost, UsageError
from pytest_sandboxbench.load.deadlines import describe, outcome
from pytest_sandboxbench.load.lanes import Lane
from pytest_sandboxbench.load.operations import SCENARIOS

from .blocks import Notes, block, fake, life, measure, run, seconds


@pytest.mark.parametrize(
    ("step", "wanted"),
    [
        ("error:broken", "failed"),
        ("lost", "failed"),
        ("timeout", "timeout"),
        ("gone", "failed"),
        ("exit:1", "failed"),
        ("reject:rate", "rejected(rate)"),
    ],
)
def test_errors_become_outcomes(step: str, wanted: str) -> None:
    notes = measure("exec", exec=f"0,{step}")
    assert notes.outcomes("exec") == [wanted]
    assert notes.error("exec")


@pytest.mark.parametrize("limit", ["quota", "capacity", "rate", "queue"])
def test_rejections_say_which_limit(limit: str) -> None:
    notes = measure("start", create=f"0.02+reject:{limit}")
    assert {s.outcome for s in notes.samples} == {f"rejected({limit})"}
    assert seconds(notes.of("startup")[0]) >= 0.02


def test_a_quota_lets_through_what_it_allows_and_nothing_is_tried_again() -> None:
    provider = fake(create="0.05", max_live=20)
    notes = asyncio.run(run(block("start", level=40, timeout_s=5), provider))
    assert sorted(notes.outcomes("startup")) == ["ok"] * 20 + ["rejected(quota)"] * 20
    assert provider.calls["create"] == 40
    assert provider.live == ()


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_preparation_that_fails_fails_every_operation_that_was_not_reached(name: str) -> None:
    """Each operation has as many attempts as there were lives, and no failure reads as 0 ms."""
    step = "0.02+error:no room"
    settings = {"round_trip": step} if name == "round_trip" else {"create": step}
    notes = measure(name, level=3, **settings)
    for operation in SCENARIOS[name].operations:
        assert notes.outcomes(operation) == ["failed"] * 3, operation
        assert all(seconds(s) >= 0.02 for s in notes.of(operation))
        assert all("no room" in s.error for s in notes.of(operation))


def test_what_fails_in_the_preparation_fails_the_series_of_those_that_succeed() -> None:
    """One series, not one for the successes and another without variants for the failures."""
    notes = asyncio.run(run(block("pause", rounds=4), fake(create="0,error,0,error")))
    assert {str(s.key) for s in notes.of("pause")} == {"fake:pause{kind=memory}@1/burst"}
    assert notes.outcomes("pause") == ["ok", "failed", "ok", "failed"]


def test_the_failing_phase_fails_and_the_one_before_it_does_not() -> None:
    notes = measure("start", create="0.02", exec="0.02+error:broken")
    assert notes.outcomes("create") == ["ok"]
    assert notes.outcomes("first_exec") == notes.outcomes("startup") == notes.outcomes("destroy") == ["failed"]
    assert seconds(notes.of("create")[0]) >= 0.02
    assert seconds(notes.of("startup")[0]) >= 0.04


def test_a_failing_destroy_is_a_failed_sample_and_a_leak() -> None:
    provider = fake(destroy="stuck")
    notes = asyncio.run(run(block("start"), provider))
    assert notes.outcomes("startup") == ["ok"]
    assert notes.outcomes("destroy") == ["failed"]
    assert [left.ref.id for left in notes.leaks] == list(provider.live)
    assert "still running" in notes.leaks[0].reason


def test_leaks_of_all_lanes_are_told_with_their_provider() -> None:
    notes = measure("exec", level=4, destroy="stuck,0,raise,error:no")
    assert len(notes.leaks) == 3
    assert {left.ref.provider for left in notes.leaks} == {"fake"}
    assert sum("RuntimeError" in left.reason for left in notes.leaks) == 1


def test_a_destroy_that_finds_the_sandbox_gone_is_done() -> None:
    notes = measure("start", destroy="gone")
    assert notes.outcomes("destroy") == ["ok"]
    assert notes.leaks == []


def test_a_check_after_the_last_region_fails_the_last_sample() -> None:
    async def live(lane: Lane) -> None:
        async with lane.timed("first"):
            pass
        async with lane.timed("second"):
            pass
        assert lane.index, "the result is wrong"

    notes = measure(life(live, "first", "second"), level=2)
    assert notes.outcomes("first") == ["ok", "ok"]
    assert notes.outcomes("second") == ["failed", "ok"]
    assert "the result is wrong" in notes.error("second")


def test_a_life_that_times_nothing_is_no_success() -> None:
    async def live(lane: Lane) -> None:
        await lane.sandbox()

    notes = measure(life(live))
    assert notes.outcomes("act") == ["failed"]
    assert "without timing act" in notes.error("act")


@pytest.mark.parametrize("name", ["a:b", "a{b}", "a@1", "a/b", "a b\n", "sqlite.wal.insert", "", "\x1b[31m"])
def test_an_operation_that_cannot_stand_in_a_key_is_refused_with_an_example(name: str) -> None:
    async def live(lane: Lane) -> None:
        async with lane.timed(name):
            pass

    notes = measure(life(live))
    assert notes.outcomes("act") == ["failed"]
    assert "cannot name a series" in notes.error("act")


@pytest.mark.parametrize("value", ["a,b", "a}b", "", "a/b@c"])
def test_so_is_a_variant(value: str) -> None:
    async def live(lane: Lane) -> None:
        async with lane.timed("act", variants={"cache": value}):
            pass

    notes = measure(life(live))
    wanted = "failed" if value in ("a,b", "a}b") else "ok"
    assert notes.outcomes("act") == [wanted]


def test_variants_of_block_and_region_stand_in_one_order() -> None:
    async def live(lane: Lane) -> None:
        async with lane.timed("act", variants={"cache": "hit"}):
            pass

    notes = measure(life(live))
    assert str(notes.samples[0].key) == "fake:act{cache=hit}@1/burst"


def test_errors_are_one_line_of_bounded_length_that_can_be_written() -> None:
    assert describe(ExecFailed("exec", said="a\nb\r\n\tc")) == "exec failed: a b c"
    assert describe(ValueError("x")) == "ValueError: x"
    assert len(describe(ValueError("x" * 10_000))) == len("ValueError: ") + 1800
    assert describe(OSError("\udcff")).encode() == b"OSError: \\udcff"
    assert describe(TransportLost("exec", sandbox="s", after_s=0.5)) == "exec on s lost its connection after 0.5 s"


def test_outcomes_of_foreign_errors() -> None:
    assert outcome(TimeoutError()) == outcome(OperationTimeout("exec")) == "timeout"
    assert outcome(ValueError()) == outcome(asyncio.CancelledError()) == "failed"
    assert outcome(Rejected("create", "rate")) == "rejected(rate)"


# -- interruption


async def _interrupted(scenario: str, after_s: float, **settings: str) -> Notes:
    provider, notes = fake(**settings), Notes()
    task = asyncio.create_task(run(block(scenario, level=4, rounds=3, timeout_s=5), provider, notes=notes))
    await asyncio.sleep(after_s)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert provider.live == ()
    assert {sandbox for op, sandbox, _, _ in provider.log if op == "destroy"} == {
        sandbox for op, sandbox, _, _ in provider.log if op == "exec"
    }
    return notes


def test_an_interrupted_run_destroys_everything_and_hands_on_what_it_measured() -> None:
    """In the second round: the first is whole, what was under way is no sample, and no failure of the provider."""
    notes = asyncio.run(_interrupted("exec", 0.4, exec="12x0,hang"))
    assert notes.outcomes("exec") == ["ok"] * 4
    assert notes.told[-1] == ("", 3, 3)


def test_what_a_lane_had_measured_before_the_interruption_is_kept() -> None:
    notes = asyncio.run(_interrupted("start", 0.25, destroy="4x0.5,0"))
    assert notes.outcomes("startup") == ["ok"] * 4
    assert notes.of("destroy") == []


def test_the_interruption_of_a_create_leaves_nothing() -> None:
    provider, notes = fake(create="0.2"), Notes()

    async def main() -> None:
        task = asyncio.create_task(run(block("start", level=4), provider, notes=notes))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert provider.live == ()
    assert notes.samples == []


def test_an_error_of_somebody_elses_code_says_how_far_it_had_come() -> None:
    """In the file that we called, not in what that called: the adapter's author looks there."""
    with pytest.raises(ValueError, match="Expecting") as caught:
        json.loads("{")
    told = describe(caught.value)
    line = told.rpartition("line ")[2].rstrip(")")
    assert told.endswith(f"(test_outcomes.py, line {line})")
    assert "json.loads(" in Path(__file__).read_text().splitlines()[int(line) - 1]
    assert describe(UsageError("no such setting")) == "no such setting"
