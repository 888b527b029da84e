"""Single calls into an adapter that does what none should: outside of a block, where no supervisor of lanes is."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from pytest_sandboxbench.errors import OperationTimeout, SandboxError
from pytest_sandboxbench.load.deadlines import Pulse, bounded, describe, tamed
from pytest_sandboxbench.load.guard import GuardedProvider
from pytest_sandboxbench.load.preflight import ask
from pytest_sandboxbench.load.watchdog import LoopBlocked, Watchdog
from pytest_sandboxbench.model import Owner, SandboxSpec
from pytest_sandboxbench.providers.fake import factory
from pytest_sandboxbench.providers.registry import Registry

from .faulty import Odd, Unsayable

OWNER = Owner("20260101-000000-aaaaaa", "here", 1, "1")


def guarded(timeout_s: float, **script: str) -> GuardedProvider:
    pulse = Pulse(timeout_s, rest=lambda: None)
    return GuardedProvider(factory("p", script), owner=OWNER, spec=SandboxSpec(), timeout_s=timeout_s, pulse=pulse)


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit("x"), Odd("x"), asyncio.CancelledError("x")])
def test_what_no_adapter_should_raise_is_its_failure(error: BaseException) -> None:
    async def adapter() -> None:
        raise error

    with pytest.raises(SandboxError) as caught:
        asyncio.run(bounded("create", adapter(), 5))
    assert caught.value.outcome == "failed"
    assert type(error).__name__ in str(caught.value) or "cancelled the operation by itself" in str(caught.value)


def test_an_interrupt_out_of_an_adapter_cancels_what_runs_and_lets_it_clean_up() -> None:
    cleaned = []

    async def adapter() -> None:
        raise KeyboardInterrupt

    async def main() -> None:
        try:
            await bounded("create", adapter(), 5)
        finally:
            await asyncio.sleep(0.01)
            cleaned.append(True)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert cleaned


@pytest.mark.parametrize("error", [SystemExit(3), Odd("x"), asyncio.CancelledError("x"), GeneratorExit()])
def test_where_nothing_is_awaited_a_cancellation_is_the_adapters_too(error: BaseException) -> None:
    with pytest.raises(SandboxError), tamed("capabilities"):
        raise error


def test_a_coroutine_that_is_thrown_away_says_nothing(recwarn: pytest.WarningsRecorder) -> None:
    async def adapter() -> None:
        await asyncio.get_running_loop().create_future()

    async def call() -> None:
        with tamed("exec", awaits=True):
            await adapter()

    async def main() -> Coroutine[Any, Any, None]:
        coroutine = call()
        coroutine.send(None)
        return coroutine

    asyncio.run(main()).close()
    gc.collect()
    assert not recwarn.list


def test_an_error_that_cannot_be_printed_is_described() -> None:
    assert describe(Unsayable()) == "Unsayable: (it cannot be printed: ValueError)"


CALLS: dict[str, Callable[[GuardedProvider], Awaitable[object]]] = {
    "create": lambda provider: provider.create(),
    "round_trip": lambda provider: provider.round_trip(),
    "run_once": lambda provider: provider.run_once(["true"]),
}


@pytest.mark.parametrize(
    "operation", ["create", *(pytest.param(other, marks=pytest.mark.full) for other in ("round_trip", "run_once"))]
)
def test_a_call_that_swallows_its_cancellation_is_left_behind(operation: str) -> None:
    async def main() -> float:
        provider = guarded(0.2, **{operation: "swallow:3"})
        started = time.monotonic()
        with pytest.raises(OperationTimeout, match="did not stop when it was cancelled"):
            await CALLS[operation](provider)
        took_s = time.monotonic() - started
        await asyncio.sleep(3.1 - took_s)  # it ends in peace
        return took_s

    assert asyncio.run(main()) < 2.5


def test_a_call_that_hangs_is_not_said_to_have_swallowed_anything() -> None:
    async def main() -> None:
        with pytest.raises(OperationTimeout) as caught:
            await guarded(0.2, create="hang").create()
        assert "did not stop" not in str(caught.value)

    asyncio.run(main())


def test_a_preflight_that_blocks_is_interrupted_in_the_middle_of_a_run_too() -> None:
    async def main() -> float:
        watchdog = Watchdog()
        with watchdog.watching():
            started = time.monotonic()
            answer = await ask(Registry(None, [("fake", "preflight", "block:20")]), "fake")
            assert not answer.ready
            assert watchdog._due is None, "afterwards the outer one expects what it expected before"
            return time.monotonic() - started

    assert asyncio.run(main()) < 10


def test_the_outer_watchdog_goes_on() -> None:
    async def main() -> None:
        outer, inner = Watchdog(), Watchdog()
        with outer.watching():
            with inner.watching():
                inner.expect(time.monotonic() + 100)
            outer.expect(time.monotonic() + 0.1)
            with pytest.raises(LoopBlocked):
                time.sleep(20)  # noqa: ASYNC251 -- blocking the loop is the point

    asyncio.run(main())


def test_a_provider_whose_capabilities_cannot_be_read_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> None:
        raise SystemExit(3)

    monkeypatch.setattr("pytest_sandboxbench.providers.fake.FakeProvider.capabilities", property(broken))
    answer = asyncio.run(ask(Registry(None), "fake"))
    assert not answer.ready
    assert "SystemExit" in answer.reason


def test_a_factory_that_exits_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_name: str, _options: object) -> None:
        raise SystemExit(3)

    monkeypatch.setattr("pytest_sandboxbench.providers.fake.factory", broken)
    answer = asyncio.run(ask(Registry(None), "fake"))
    assert "it cannot be loaded" in answer.reason


def test_a_watchdog_without_a_thread_leaves_the_signal_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(_thread: object) -> None:
        raise RuntimeError("can't start new thread")

    async def main() -> None:
        with Watchdog().watching():
            raise AssertionError("it watches")

    number = signal.SIGRTMIN + 5
    before = signal.getsignal(number)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(RuntimeError, match="thread"):
            asyncio.run(main())
    assert signal.getsignal(number) == before
