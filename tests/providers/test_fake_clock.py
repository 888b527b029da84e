"""The event loop whose time jumps."""

from __future__ import annotations

import asyncio
import time

import pytest

from pytest_sandboxbench.clock import now_ns
from pytest_sandboxbench.providers.fake_clock import VirtualLoop, loop_ns, run_virtual

from .scripted import create, fake


def test_virtual_time_jumps_and_is_exact() -> None:
    async def test() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        start, start_ns = loop.time(), loop.now_ns()
        slow, fast = await asyncio.gather(asyncio.sleep(3600, "slow"), asyncio.sleep(60, "fast"))
        assert (slow, fast) == ("slow", "fast")
        return loop.time() - start, (loop.now_ns() - start_ns) / 1e9

    start_ns = now_ns()
    assert list(run_virtual(test())) == pytest.approx([3600, 3600], abs=1e-6)
    assert (now_ns() - start_ns) / 1e9 < 1


def test_virtual_time_stands_still_while_code_runs() -> None:
    async def test() -> None:
        start_ns = loop_ns()
        time.sleep(0.002)  # noqa: ASYNC251
        await asyncio.sleep(0)
        assert loop_ns() == start_ns

    run_virtual(test())


def test_a_virtual_deadline_of_a_minute_passes_at_once() -> None:
    async def test() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await asyncio.get_running_loop().create_future()

    run_virtual(test())


def test_a_virtual_loop_waits_for_threads_when_no_timer_runs() -> None:
    async def test() -> int:
        return await asyncio.to_thread(lambda: 7)

    assert run_virtual(test()) == 7


def test_on_an_ordinary_loop_it_takes_real_time() -> None:
    start_ns = now_ns()
    provider = fake(create=0.02)
    asyncio.run(create(provider))

    assert 0.02 <= (now_ns() - start_ns) / 1e9 < 1
    assert start_ns <= provider.log[0][2] < provider.log[0][3] <= now_ns()


def test_outside_a_loop_it_is_the_ordinary_clock() -> None:
    before = now_ns()

    assert before <= loop_ns() <= now_ns()
