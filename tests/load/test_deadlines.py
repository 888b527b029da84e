"""Deadlines hold whatever an adapter does, and what it left is destroyed before the next turn."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
import time
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any, cast

import pytest

from pytest_sandboxbench.errors import OperationTimeout
from pytest_sandboxbench.load.deadlines import Guard, Pulse, bounded
from pytest_sandboxbench.load.guard import GuardedSandbox
from pytest_sandboxbench.load.lanes import Lane
from pytest_sandboxbench.load.watchdog import LoopBlocked, Watchdog
from pytest_sandboxbench.model import Output, SandboxRef
from pytest_sandboxbench.providers.protocol import Sandbox

from .blocks import GIVEN_UP_S, TIMEOUT_S, Notes, block, fake, life, measure, run, seconds

FOREVER = "1e6"


def test_a_command_that_hangs_times_out_and_the_next_turn_runs() -> None:
    provider = fake(exec="0,hang,0,0")
    notes = asyncio.run(run(block("exec", rounds=2), provider))
    assert notes.outcomes("exec") == ["timeout", "ok"]
    assert TIMEOUT_S <= seconds(notes.of("exec")[0]) <= TIMEOUT_S * 1.3 + 0.1
    assert f"the deadline was {TIMEOUT_S:g} s" in notes.error("exec")
    assert notes.leaks == []
    assert provider.calls["destroy"] == 2
    assert provider.live == ()


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("hang", ""),
        (f"swallow:{FOREVER}", "did not stop when it was cancelled"),
        ("block:20", "blocked the event loop"),
    ],
)
@pytest.mark.parametrize("operation", ["create", "exec", "destroy"])
def test_what_never_comes_back_is_given_up(operation: str, word: str, said: str) -> None:
    """In each timed operation of a life, and one lane's fault never stops the run."""
    span = {"create": "startup", "exec": "startup", "destroy": "destroy"}[operation]
    provider = fake(**{operation: f"{word},0"})
    started = time.monotonic()
    notes = asyncio.run(run(block("start", rounds=2), provider))
    assert notes.outcomes(span) == ["timeout", "ok"]
    assert TIMEOUT_S <= seconds(notes.of(span)[0]) <= GIVEN_UP_S * 1.5
    assert said in notes.error(span)
    assert operation in notes.error(span)
    assert provider.live == ()
    assert notes.leaks == []
    assert time.monotonic() - started < 4, "neither the run nor the end of the loop waits for the call"


@pytest.mark.parametrize("word", ["hang", f"swallow:{FOREVER}", "block:20"])
def test_a_destroy_at_the_end_of_a_turn_has_the_same_deadline(word: str) -> None:
    """Here the destroy is no operation of the life: it is called when the life is over, where no lane watches it."""
    provider = fake(destroy=f"{word},0")
    started = time.monotonic()
    notes = asyncio.run(run(block("exec", rounds=2), provider))
    assert notes.outcomes("exec") == ["ok", "ok"]
    assert [left.ref.id for left in notes.leaks] == list(provider.live)
    assert len(notes.leaks) == 1
    assert "destroy" in notes.leaks[0].reason
    assert time.monotonic() - started < 4


def test_destroys_that_hang_are_waited_for_together() -> None:
    started = time.monotonic()
    notes = measure("exec", level=16, destroy="hang")
    assert len(notes.leaks) == 16
    assert time.monotonic() - started < 8 * TIMEOUT_S


def test_sixteen_lanes_that_hang() -> None:
    provider = fake(exec="16x0,16xhang,0")
    notes = asyncio.run(run(block("exec", level=16, rounds=2), provider))
    assert notes.outcomes("exec") == ["timeout"] * 16 + ["ok"] * 16
    assert provider.live == ()


@pytest.mark.parametrize("name", ["RuntimeError", "ValueError", "OSError", "StopAsyncIteration"])
def test_a_bug_in_an_adapter_is_a_failed_sample(name: str) -> None:
    provider = fake(exec=f"0,raise:{name},0")
    notes = asyncio.run(run(block("exec", rounds=2), provider))
    assert notes.outcomes("exec") == ["failed", "ok"]
    assert notes.error("exec") == f"{name}: scripted bug of fake in exec"
    assert provider.live == ()


@pytest.mark.parametrize("word", ["swallow:0.6", "block:0.5"])
def test_an_answer_after_the_deadline_is_a_timeout(word: str) -> None:
    """Late, and as if nothing had been: neither a success of 0.5 s where 0.3 are allowed, nor a lost sandbox."""
    provider = fake(create=f"{word},0")
    notes = asyncio.run(run(block("start", rounds=2), provider))
    assert notes.outcomes("startup") == ["timeout", "ok"]
    assert provider.live == ()
    assert notes.leaks == []


def test_a_sandbox_that_comes_after_the_end_of_its_lane_is_destroyed() -> None:
    provider = fake(create="swallow:1,0")

    async def main() -> Notes:
        notes = await run(block("start"), provider)
        assert provider.calls["destroy"] == 0
        await asyncio.sleep(0.6)
        return notes

    notes = asyncio.run(main())
    assert notes.outcomes("startup") == ["timeout"]
    assert provider.calls["create"] == provider.calls["destroy"] == 1
    assert provider.calls["exec"] == 0, "a life that was given up does not go on"
    assert provider.live == ()


def test_own_code_of_a_life_has_a_deadline_too() -> None:
    async def live(lane: Lane) -> None:
        await lane.sandbox()
        async with lane.timed("act"):
            await asyncio.sleep(30)

    provider = fake()
    notes = asyncio.run(run(block(life(live)), provider))
    assert notes.outcomes("act") == ["timeout"]
    assert notes.error("act").startswith("the operation passed its deadline")
    assert provider.live == ()


def test_own_code_that_blocks_is_interrupted() -> None:
    async def live(lane: Lane) -> None:
        async with lane.timed("act"):
            time.sleep(20)  # noqa: ASYNC251 -- blocking the loop is the point

    notes = measure(life(live))
    assert notes.outcomes("act") == ["timeout"]


def test_an_adapter_that_tries_again_after_any_error_is_interrupted_all_the_same() -> None:
    async def live(lane: Lane) -> None:
        async with lane.timed("act"):
            for _ in range(5):
                try:
                    time.sleep(5)  # noqa: ASYNC251
                except Exception:
                    continue

    started = time.monotonic()
    assert measure(life(live)).outcomes("act") == ["timeout"]
    assert time.monotonic() - started < 4


def test_an_adapter_that_catches_everything_is_interrupted_again() -> None:
    async def live(lane: Lane) -> None:
        async with lane.timed("act"):
            for _ in range(3):
                try:
                    time.sleep(20)  # noqa: ASYNC251
                except BaseException:
                    continue

    started = time.monotonic()
    notes = measure(life(live))
    assert len(notes.of("act")) == 1
    assert time.monotonic() - started < 8


def test_an_operation_that_cancels_itself_is_a_failure() -> None:
    async def live(lane: Lane) -> None:
        async with lane.timed("act"):
            raise asyncio.CancelledError

    assert measure(life(live), level=2).outcomes("act") == ["failed", "failed"]


def test_a_deadline_of_its_own_may_be_longer() -> None:
    """One lane is over at once, the other waits longer than the usual deadline, as it said: nobody disturbs it."""

    async def live(lane: Lane) -> None:
        sandbox = await lane.sandbox()
        async with lane.timed("act"):
            if lane.index:
                await sandbox.exec(["sleep", "1.5"], deadline_s=5)

    notes = measure(life(live), level=2)
    assert notes.outcomes("act") == ["ok", "ok"]


def test_the_watchdog_leaves_signals_and_threads_as_they_were() -> None:
    number = signal.SIGRTMIN + 5
    before, threads = signal.getsignal(number), threading.active_count()
    measure("start")
    assert signal.getsignal(number) == before
    assert threading.active_count() == threads


def test_the_watchdog_respects_a_signal_that_is_somebody_elses() -> None:
    number = signal.SIGRTMIN + 5
    previous = signal.signal(number, signal.SIG_IGN)
    try:
        assert measure("start").outcomes("startup") == ["ok"]
        assert signal.getsignal(number) == signal.SIG_IGN
    finally:
        signal.signal(number, previous)


def test_in_another_thread_than_the_main_one_there_is_no_watchdog_and_all_else_works() -> None:
    out: list[Any] = []
    thread = threading.Thread(target=lambda: out.append(measure("exec", exec="0,hang").outcomes("exec")))
    thread.start()
    thread.join(10)
    assert out == [["timeout"]]


def test_a_loop_that_only_waits_is_never_interrupted() -> None:
    async def main() -> None:
        watchdog = Watchdog()
        with watchdog.watching():
            watchdog.expect(time.monotonic() - 1)
            await asyncio.sleep(1)
            with pytest.raises(LoopBlocked):
                time.sleep(10)  # noqa: ASYNC251

    asyncio.run(main())


def test_the_watchdog_sleeps_through_a_later_deadline_and_wakes_for_a_nearer_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between two turns nothing is expected; the next turn's deadline must not cost a switch to another thread."""

    async def main() -> None:
        watchdog = Watchdog()
        with watchdog.watching():
            watchdog.expect(time.monotonic() + 60)
            await asyncio.sleep(0.1)
            woken: list[bool] = []
            with monkeypatch.context() as patched:
                patched.setattr(watchdog._changed, "set", lambda: woken.append(True))
                watchdog.rest()
                watchdog.expect(time.monotonic() + 61)
                assert woken == []
            watchdog.rest()
            watchdog.expect(time.monotonic() + 0.1)
            with pytest.raises(LoopBlocked):
                time.sleep(10)  # noqa: ASYNC251

    asyncio.run(main())


def test_bounded_leaves_a_call_behind() -> None:
    async def stubborn() -> None:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                pass

    async def main() -> str:
        with pytest.raises(Exception, match="did not stop when it was cancelled") as caught:
            await bounded("aclose", stubborn(), 0.1)
        return str(caught.value)

    started = time.monotonic()
    assert asyncio.run(main()).startswith("aclose passed its deadline after 0.2")
    assert time.monotonic() - started < 2


def test_nothing_is_said_of_what_was_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    """Neither "exception was never retrieved" nor "task was destroyed but it is pending", in asyncio's debug mode."""

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()  # what earlier tests left is their own affair

    async def main() -> None:
        provider = fake(exec=f"0,swallow:0.9,0,swallow:{FOREVER},0", destroy="0.05+error,hang,0")
        await run(block("exec", rounds=3), provider)
        await asyncio.sleep(0.5)

    asyncio.run(main(), debug=True)
    gc.collect()
    said = [r.getMessage() for r in caplog.records if r.name == "asyncio" and "Executing" not in r.getMessage()]
    assert [text for text in said if "Using selector" not in text] == []


def test_closing_a_stream_has_a_deadline_too() -> None:
    class Clinging:
        ref = SandboxRef("clinging", "1")

        async def stream(self, argv: Sequence[str], **_: Any) -> AsyncIterator[Output]:
            try:
                yield Output("stdout", b"one")
            finally:
                await asyncio.sleep(float(FOREVER))

    async def main() -> None:
        sandbox = GuardedSandbox(cast("Sandbox", Clinging()), Guard(Pulse(TIMEOUT_S), TIMEOUT_S), TIMEOUT_S)
        pieces = sandbox.stream(["yes"])
        async for _piece in pieces:
            break
        with pytest.raises(OperationTimeout, match="closing a stream"):
            await cast("AsyncGenerator[Output, None]", pieces).aclose()

    started = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - started < GIVEN_UP_S
