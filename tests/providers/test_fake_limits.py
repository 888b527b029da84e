"""Phases, locks and limits of the scripted provider."""

from __future__ import annotations

import asyncio

import pytest

from pytest_sandboxbench.errors import (
    CreateFailed,
    Rejected,
    SandboxError,
    Unsupported,
)
from pytest_sandboxbench.providers.fake import FakeProvider
from pytest_sandboxbench.providers.fake_clock import run_virtual

from .scripted import create, failure, fake, on_virtual_clock, pausable, run, seconds

# Phases and locks


@on_virtual_clock
async def test_phases_lie_one_after_another_inside_the_operation() -> None:
    provider = fake(create_phases="boot:0.03,agent:0.02", create="0.01", resume_phases="restore:0.2")
    sandbox = await pausable(provider)

    _, _, start_ns, end_ns = provider.log[-1]
    assert end_ns - start_ns == pytest.approx(60_000_000, abs=1000)
    (boot, agent) = (sandbox.phases()[name] for name in ("boot", "agent"))
    assert start_ns == boot[0] < boot[1] == agent[0] < agent[1] < end_ns
    assert boot[1] - boot[0] == pytest.approx(30_000_000, abs=1000)
    assert agent[1] - agent[0] == pytest.approx(20_000_000, abs=1000)

    await run(sandbox, "true")
    assert sandbox.phases() == {}, "phases are those of the last operation"
    await sandbox.pause(kind="memory", deadline_s=1)
    await sandbox.resume(deadline_s=1)
    assert list(sandbox.phases()) == ["restore"]


@on_virtual_clock
async def test_a_script_that_fails_does_so_after_the_phases() -> None:
    error = await failure(create(fake(create_phases="boot:0.03", create="error")))

    assert error.after_s == pytest.approx(0.03)


async def makespan(provider: FakeProvider, lanes: int) -> float:
    return await seconds(asyncio.gather(*(create(provider) for _ in range(lanes))))


@on_virtual_clock
async def test_a_lock_lets_creates_pass_one_at_a_time() -> None:
    assert await makespan(fake(create=0.02), 16) == pytest.approx(0.02, abs=1e-4)
    assert await makespan(fake(create=0.02, lock="serial"), 16) == pytest.approx(0.32, abs=1e-4)
    assert await makespan(fake(create=0.02, lock="serial", lock_width=4), 16) == pytest.approx(0.08, abs=1e-4)
    assert await makespan(fake(create=0.02, lock_on="create"), 16) == pytest.approx(0.02, abs=1e-4)
    assert await makespan(fake(create=0.02, lock="serial", lock_on="exec"), 16) == pytest.approx(0.02, abs=1e-4)


@on_virtual_clock
async def test_two_operations_share_the_lock() -> None:
    provider = fake(create=0.5, round_trip=0.5, lock="serial", lock_on="create,round_trip")

    assert await seconds(asyncio.gather(create(provider), provider.round_trip())) == pytest.approx(1.0)


@on_virtual_clock
async def test_a_lock_on_a_phase_shows_in_that_phase_alone() -> None:
    provider = fake(create_phases="boot:0.02,agent:0.02", lock="serial", lock_on="create.boot")
    sandboxes = await asyncio.gather(*(create(provider) for _ in range(5)))

    longest = {
        name: max(sandbox.phases()[name][1] - sandbox.phases()[name][0] for sandbox in sandboxes) / 1e9
        for name in ("boot", "agent")
    }
    assert longest == pytest.approx({"boot": 0.1, "agent": 0.02}, abs=1e-4)


@on_virtual_clock
async def test_the_wait_for_a_whole_operations_lock_is_a_phase_beside_its_phases() -> None:
    provider = fake(create_phases="boot:0.02", lock="serial")
    _, second = await asyncio.gather(create(provider), create(provider))

    waited = second.phases()["lock_wait"]
    assert waited[1] - waited[0] == pytest.approx(20_000_000, abs=1000)


@on_virtual_clock
async def test_a_cancelled_waiter_frees_its_place() -> None:
    provider = fake(create="0.5", lock="serial", max_live=2)
    first, second = (asyncio.ensure_future(create(provider)) for _ in range(2))
    await asyncio.sleep(0.1)
    second.cancel()
    await asyncio.gather(first, second, return_exceptions=True)

    assert await seconds(create(provider)) == pytest.approx(0.5)


def test_the_lock_serves_several_event_loops_in_turn() -> None:
    provider = fake(create=0.02, lock="serial")

    for _ in range(2):
        assert run_virtual(makespan(provider, 3)) == pytest.approx(0.06, abs=1e-4)


# Limits


async def outcomes(provider: FakeProvider, lanes: int) -> list[str]:
    results = await asyncio.gather(*(create(provider) for _ in range(lanes)), return_exceptions=True)
    return [result.outcome if isinstance(result, SandboxError) else "ok" for result in results]


@on_virtual_clock
async def test_beyond_max_live_creates_are_rejected_at_once() -> None:
    provider = fake(create=0.05, max_live=20)

    assert await outcomes(provider, 40) == ["ok"] * 20 + ["rejected(quota)"] * 20
    rejected = [end - start for _, sandbox, start, end in provider.log if not sandbox]
    assert len(rejected) == 20
    assert set(rejected) == {0}
    assert "max_live = 20" in str(await failure(create(provider)))


@on_virtual_clock
async def test_a_destroyed_sandbox_and_a_failed_create_make_room() -> None:
    provider = fake(max_live=1, create="error,0")
    assert isinstance(await failure(create(provider)), CreateFailed)
    sandbox = await create(provider)
    assert isinstance(await failure(create(provider)), Rejected)
    await provider.destroy(sandbox.ref, deadline_s=1)

    await create(provider)


@on_virtual_clock
async def test_a_rejection_takes_reject_delay() -> None:
    provider = fake(max_live=0, reject_delay=0.3)

    error = await failure(create(provider))
    assert error.outcome == "rejected(quota)"
    assert error.after_s == pytest.approx(0.3)


@on_virtual_clock
async def test_creates_wait_for_room_in_order_and_the_line_is_limited() -> None:
    provider = fake(max_live=1, max_queued=2)
    first = await create(provider)
    done: list[int] = []

    async def queued(number: int) -> None:
        sandbox = await create(provider)
        done.append(number)
        await asyncio.sleep(1)
        await provider.destroy(sandbox.ref, deadline_s=1)

    waiting = [asyncio.ensure_future(queued(number)) for number in range(2)]
    await asyncio.sleep(5)
    assert (await failure(create(provider))).outcome == "rejected(queue)"
    assert done == []
    await provider.destroy(first.ref, deadline_s=1)
    assert await seconds(asyncio.gather(*waiting)) == pytest.approx(2, abs=0.01)
    assert done == [0, 1]


@on_virtual_clock
async def test_who_stops_waiting_leaves_the_line() -> None:
    provider = fake(max_live=1, max_queued=1)
    first = await create(provider)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(create(provider), 1)
    waiting = asyncio.ensure_future(create(provider))
    await asyncio.sleep(1)
    await provider.destroy(first.ref, deadline_s=1)

    await waiting


@on_virtual_clock
async def test_creates_beyond_the_rate_are_rejected() -> None:
    provider = fake(create_rate=5)
    assert (await outcomes(provider, 8)).count("rejected(rate)") == 3
    await asyncio.sleep(0.5)
    assert await outcomes(provider, 1) == ["rejected(rate)"]
    await asyncio.sleep(0.6)
    assert (await outcomes(provider, 8)).count("ok") == 5

    slow = fake(create_rate=0.5)
    assert await outcomes(slow, 2) == ["ok", "rejected(rate)"]
    await asyncio.sleep(1.9)
    assert await outcomes(slow, 1) == ["rejected(rate)"]
    await asyncio.sleep(0.2)
    assert await outcomes(slow, 1) == ["ok"]


@on_virtual_clock
async def test_a_limit_that_is_not_enforced_is_an_error_or_is_told() -> None:
    provider = fake(limits="pids")

    assert isinstance(await failure(create(provider, vcpus=1, pids=5)), Unsupported)
    assert provider.live == ()
    sandbox = await create(provider, vcpus=1, pids=5, memory_mib=64, allow_unenforced=True)
    assert sandbox.unenforced == {"vcpus", "memory_mib"}
    assert (await create(provider, pids=5)).unenforced == frozenset()


@on_virtual_clock
async def test_paths_are_told_in_turn() -> None:
    provider = fake(path="2xpool,cold")

    assert [(await create(provider)).path for _ in range(4)] == ["pool", "pool", "cold", "cold"]
    assert (await create(fake())).path == "cold"
