"""Our limits on an instance: what waits, what is turned away, what is booked, and when a place is free again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pytest_sandboxbench.errors import CreateFailed, OperationTimeout
from pytest_sandboxbench.load.admission import Admission, TurnedAway
from pytest_sandboxbench.load.deadlines import Pulse
from pytest_sandboxbench.load.desk import LocalDesk, Slots
from pytest_sandboxbench.load.guard import GuardedProvider
from pytest_sandboxbench.load.lanes import Lane
from pytest_sandboxbench.model import Sample, SandboxRef, SandboxSpec
from pytest_sandboxbench.providers.fake import FakeProvider
from pytest_sandboxbench.providers.limits import Limits

from .blocks import OWNER, TIMEOUT_S, Notes, block, fake, life, run, seconds


def admission(patience_s: float = 5.0, **limits: Any) -> Admission:
    known = {"fake": Limits(**limits)}
    return Admission(LocalDesk(Slots(known, int(patience_s * 1e9))), known, patience_s)


def measure(scenario: Any, level: int, provider: FakeProvider, limits: Admission, **plan: Any) -> Notes:
    return asyncio.run(run(block(scenario, level=level, **{"timeout_s": 5, **plan}), provider, admission=limits))


def guarded(provider: FakeProvider, limits: Admission | None, timeout_s: float = 5) -> GuardedProvider:
    pulse = Pulse(timeout_s)
    return GuardedProvider(
        provider, owner=OWNER, spec=SandboxSpec(), timeout_s=timeout_s, pulse=pulse, admission=limits
    )


def waits(samples: list[Sample]) -> list[float]:
    return [(end - start) / 1e9 for s in samples for start, end in [s.phases.get("queue", (0, 0))]]


def most_at_once(provider: FakeProvider) -> int:
    """How many creates and sandboxes there were at once, as the provider saw it."""
    begins = [(start, 1) for op, _, start, _ in provider.log if op in ("create", "run_once")]
    ends = [(end, -1) for op, _, _, end in provider.log if op == "destroy"]
    there = most = 0
    for _at, change in sorted(begins + ends):
        there += change
        most = max(most, there)
    return most


@pytest.mark.parametrize("one_shot", [True, False])
def test_creates_wait_for_room_and_the_wait_is_in_the_latency_under_its_own_name(one_shot: bool) -> None:
    provider = fake(create=0.05, one_shot=one_shot)
    notes = measure("cold_run", 6, provider, admission(max_live=2))
    for operation in ("cold_run", "cold_run_total"):
        samples = notes.of(operation)
        assert notes.outcomes(operation) == ["ok"] * 6
        assert sum(wait == 0 for wait in waits(samples)) == 2, "the first two found room"
        assert min(sorted(waits(samples))[4:]) >= 0.09, "the last two waited for two others"
        served = [seconds(s) - wait for s, wait in zip(samples, waits(samples), strict=True)]
        assert min(served) >= 0.049
        assert max(served) < 0.05 + min(sorted(waits(samples))[4:])
        assert all(s.phases["queue"][0] >= s.released_ns for s in samples if "queue" in s.phases)
    assert most_at_once(provider) == 2


def test_one_more_than_may_wait_is_turned_away_and_the_provider_never_sees_it() -> None:
    provider = fake(create=0.05)
    notes = measure("cold_run", 60, provider, admission(max_live=4, max_queued=16))
    assert sorted(notes.outcomes("cold_run")) == ["ok"] * 20 + ["rejected(queue)"] * 40
    assert provider.calls["run_once"] == 20
    assert most_at_once(provider) == 4
    away = [s for s in notes.samples if s.outcome != "ok"]
    assert all("turned_away" in s.phases for s in away), "a rejection by us can be told from the provider's own"
    error = notes.error("cold_run")
    assert "max_live = 4, max_queued = 16" in error
    assert "the provider was not asked" in error


def test_a_rejection_by_the_provider_is_not_taken_for_ours() -> None:
    notes = measure("cold_run", 8, fake(create=0.02, max_live=2), admission(max_live=6))
    rejected = [s for s in notes.of("cold_run") if s.outcome == "rejected(quota)"]
    assert rejected
    assert all("turned_away" not in s.phases for s in rejected)


@pytest.mark.parametrize("name", ["start", "exec", "files", "pause"])
def test_lanes_beyond_the_limit_come_in_waves(name: str) -> None:
    """Their sandboxes cannot be held for a common release: it would never come."""
    provider = fake(create=0.02)
    notes = measure(name, 7, provider, admission(max_live=3))
    assert {s.outcome for s in notes.samples} == {"ok"}
    assert len(notes.samples) % 7 == 0
    assert most_at_once(provider) == 3
    assert provider.live == ()


def test_the_rate_spreads_creates_and_books_it() -> None:
    provider = fake()
    notes = measure("start", 5, provider, admission(create_rate=20, max_live=9))
    assert max(waits(notes.of("startup"))) == 0, "a second's worth may begin at once"
    provider = fake()
    notes = measure("start", 3, provider, admission(create_rate=0.9, max_live=9), rounds=1)
    assert sorted(waits(notes.of("create"))) == pytest.approx([0, 1 / 0.9, 2 / 0.9], abs=0.3)


def test_waiting_for_us_is_not_the_providers_time() -> None:
    """Three times the deadline of an operation, and nobody is late."""
    provider = fake(create=TIMEOUT_S * 0.5)
    notes = measure("cold_run", 8, provider, admission(max_live=1), timeout_s=TIMEOUT_S)
    assert notes.outcomes("cold_run") == ["ok"] * 8
    assert max(waits(notes.of("cold_run"))) > 3 * TIMEOUT_S


def test_a_wait_has_an_end() -> None:
    async def live(lane: Lane) -> None:
        for _ in range(2):
            await lane.create()
        async with lane.timed("act"):
            pass

    notes = measure(life(live), 1, fake(), admission(0.1, max_live=1))
    assert notes.outcomes("act") == ["rejected(queue)"]
    assert "no room within 0.1 s" in notes.error("act")
    assert seconds(notes.of("act")[0]) >= 0.1
    assert "turned_away" in notes.of("act")[0].phases


def test_two_waits_in_one_span_have_two_names() -> None:
    async def live(lane: Lane) -> None:
        async with lane.timed("act", together=False):
            for _ in range(2):
                await lane.destroy(await lane.create())

    notes = measure(life(live), 2, fake(create=0.02), admission(max_live=1))
    assert {name for s in notes.of("act") for name in s.phases} == {"queue", "queue_2"}


def test_a_phase_of_the_provider_called_queue_gets_another_name() -> None:
    provider = fake(create_phases="queue:0.01,boot:0.01")
    (sample,) = measure("start", 1, provider, admission(max_live=1)).of("startup")
    assert {"provider_queue", "boot"} <= sample.phases.keys()
    assert "queue" not in sample.phases
    (sample,) = asyncio.run(run(block("start"), provider)).of("startup")
    assert "queue" in sample.phases


# -- when a place is free again


async def fails(provider: GuardedProvider, error: type[Exception]) -> str:
    with pytest.raises(error) as caught:
        await provider.create()
    return str(caught.value)


def test_a_create_that_made_nothing_takes_no_place() -> None:
    async def main() -> None:
        provider = guarded(fake(create="error,reject:capacity,0"), admission(0.1, max_live=1))
        await fails(provider, CreateFailed)
        with pytest.raises(Exception, match="capacity"):
            await provider.create()
        await provider.create()
        await fails(provider, TurnedAway)

    asyncio.run(main())


def test_a_create_that_may_have_made_something_keeps_its_place_until_somebody_has_looked() -> None:
    async def main() -> None:
        limits = admission(0.1, max_live=1)
        provider = guarded(fake(create="hang,0"), limits, timeout_s=0.1)
        await fails(provider, OperationTimeout)
        assert "1 of the places are those of creates of which nobody knows" in await fails(provider, TurnedAway)
        limits.cleared("fake")
        limits.cleared("fake")
        await provider.create()
        await fails(provider, TurnedAway)

    asyncio.run(main())


def test_a_destroy_frees_a_place_once_whoever_asks_for_it() -> None:
    async def main() -> None:
        limits = admission(0.05, max_live=2)
        inner = fake()
        one, other = guarded(inner, limits), guarded(inner, limits)
        first, _second = await one.create(), await one.create()
        await fails(other, TurnedAway)
        await other.destroy(first)
        await one.destroy(first)
        await other.create()
        await fails(other, TurnedAway)
        assert await one.destroy_all() == []
        assert len([await other.create()]) == 1
        await fails(other, TurnedAway)

    asyncio.run(main())


def test_what_cannot_be_destroyed_counts() -> None:
    async def main() -> None:
        provider = guarded(fake(destroy="stuck"), admission(0.05, max_live=1))
        await provider.create()
        assert len(await provider.destroy_all()) == 1
        await fails(guarded(fake(), provider._admission), TurnedAway)

    asyncio.run(main())


def test_who_is_cancelled_while_it_waits_leaves_no_trace() -> None:
    async def main() -> None:
        limits = admission(max_live=1, create_rate=1)
        provider = guarded(fake(), limits)
        made = await provider.create()
        tasks = [asyncio.create_task(provider.create()) for _ in range(3)]
        await asyncio.sleep(0.01)
        tasks[0].cancel()
        await provider.destroy(made)
        await asyncio.sleep(0.01)
        tasks[1].cancel()  # it has room, and waits for its turn by the rate
        await asyncio.gather(*tasks[:2], return_exceptions=True)
        await tasks[2]
        assert len(provider.live) == 1
        assert limits.unsure.get("fake", []) == []

    asyncio.run(main())


def test_the_end_of_a_lane_while_it_waits_makes_nothing() -> None:
    async def main() -> None:
        inner, limits = fake(), admission(max_live=1)
        first, late = guarded(inner, limits), guarded(inner, limits)
        made = await first.create()
        task = asyncio.create_task(late.create())
        await asyncio.sleep(0.01)
        await late.destroy_all()
        await first.destroy(made)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert inner.calls["create"] == 1
        await first.create()

    asyncio.run(main())


def test_an_instance_without_limits_asks_nobody() -> None:
    async def main() -> None:
        limits = Admission(LocalDesk(Slots({}, 0)), {}, 0)
        provider = guarded(fake(), limits)
        await provider.create()
        assert provider.limits == Limits()
        assert limits.held == {}
        limits.gone(SandboxRef("fake", "x"))

    asyncio.run(main())


# -- what is accepted


@pytest.mark.parametrize(
    ("ours", "theirs", "capacity"),
    [
        ({}, {}, None),
        ({"max_live": 4, "max_queued": 16}, {}, 20),
        ({"max_live": 4}, {}, None),
        ({"create_rate": 4.0}, {}, None),
        ({}, {"max_live": 20}, 20),
        ({}, {"max_live": 4, "max_queued": 16}, 20),
        ({"max_live": 4, "max_queued": 16}, {"max_live": 10}, 10),
        ({"max_live": 4}, {"max_live": 10}, 10),
    ],
)
def test_capacity(ours: dict[str, Any], theirs: dict[str, Any], capacity: int | None) -> None:
    assert guarded(fake(**theirs), admission(**ours)).capacity == capacity
