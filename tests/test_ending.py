"""An end that is interrupted: once it goes on, twice it stops, whatever Ctrl-C does in this process."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable

import pytest

from pytest_sandboxbench.ending import to_its_end
from pytest_sandboxbench.termination import Termination


def send(after_s: float, number: int = signal.SIGINT) -> Callable[[], object]:
    return lambda: asyncio.get_running_loop().call_later(after_s, os.kill, os.getpid(), number)


def ended(limit_s: float, *signals: Callable[[], object], interrupted: bool = False) -> tuple[list[str], float]:
    """What the work did, and how long it took until ``KeyboardInterrupt`` came."""
    done: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(limit_s)
            done.append("all")
        finally:
            done.append("over")

    async def main() -> None:
        for signal_ in signals:
            signal_()
        await to_its_end(work(), interrupted=interrupted)

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    return done, time.monotonic() - started


def test_the_first_interrupt_waits() -> None:
    done, took_s = ended(0.5, send(0.1))
    assert done == ["all", "over"]
    assert took_s >= 0.5


def test_one_after_another_does_not() -> None:
    done, took_s = ended(30, send(0.1), interrupted=True)
    assert done == ["over"]
    assert took_s < 5


def test_two_do_not() -> None:
    done, took_s = ended(30, send(0.1), send(0.3))
    assert done == ["over"]
    assert took_s < 5


def test_what_goes_wrong_in_it_is_raised() -> None:
    async def broken() -> None:
        raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        asyncio.run(to_its_end(broken()))


@pytest.mark.parametrize("ignored", [False, True], ids=["", "ctrl-c-ignored"])
def test_sigterm_cancels_what_runs_and_lets_it_clean_up(ignored: bool) -> None:
    cleaned: list[bool] = []

    async def main() -> None:
        send(0.1, signal.SIGTERM)()
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.01)
            cleaned.append(True)

    termination = Termination()
    before = signal.getsignal(signal.SIGINT)
    if ignored:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    termination.install()
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            asyncio.run(main())
    finally:
        termination.uninstall()
        signal.signal(signal.SIGINT, before)
    assert cleaned
    assert termination.number == signal.SIGTERM
    termination.came(caught.value)
    assert termination.interrupts == 1


def test_the_second_one_is_known_from_where_it_was_raised() -> None:
    async def main() -> None:
        send(0.1)()
        send(0.3)()
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.6)

    with pytest.raises(KeyboardInterrupt) as caught:
        asyncio.run(main())
    termination = Termination()
    termination.came(caught.value)
    assert termination.interrupts == 2


def test_what_comes_before_the_end_begins_is_counted() -> None:
    termination = Termination()
    termination.install()
    try:
        termination.came(KeyboardInterrupt())
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        assert termination.interrupts == 3
        termination.ending()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        termination.uninstall()
