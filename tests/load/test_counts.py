"""How much is measured, in which order, and that nothing of it stays."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from itertools import groupby

import pytest

from pytest_sandboxbench.clock import now_ns
from pytest_sandboxbench.load.guard import GuardedSandbox
from pytest_sandboxbench.load.lanes import Lane
from pytest_sandboxbench.model import Sample

from .blocks import Notes, block, fake, life, run


@pytest.mark.parametrize("level", [1, 4])
def test_rounds_and_warmups_are_counted_exactly(level: int) -> None:
    provider = fake()
    notes = asyncio.run(run(block("start", level=level, rounds=7, warmup=2), provider))
    assert provider.calls["create"] == provider.calls["destroy"] == 9 * level
    assert provider.live == ()
    samples = [s for s in notes.samples if s.key.operation == "startup"]
    assert Counter(s.warmup for s in samples) == {False: 7 * level, True: 2 * level}
    assert sorted({s.round for s in samples}) == list(range(-2, 7))
    assert all(s.warmup == (s.round < 0) for s in samples)


def test_one_life_gives_each_operation_one_sample() -> None:
    notes = asyncio.run(run(block("start", rounds=3), fake()))
    assert {op: len(notes.of(op)) for op in ("startup", "create", "first_exec", "destroy")} == dict.fromkeys(
        ("startup", "create", "first_exec", "destroy"), 3
    )


def _order(samples: list[Sample]) -> list[list[str]]:
    """The providers of each round, in the order of their turns."""
    by_turn = sorted({(s.round, s.turn, s.key.provider) for s in samples})
    return [[name for _, _, name in turns] for _, turns in groupby(by_turn, key=lambda turn: turn[0])]


def _interleaved(seed: int) -> Notes:
    names = ("a", "b", "c")
    what = block("round_trip", *names, rounds=10, warmup=2, seed=seed)
    return asyncio.run(run(what, *(fake(name) for name in names)))


def test_every_round_has_each_provider_once_in_an_order_of_its_own() -> None:
    rounds = _order(_interleaved(1).samples)
    assert len(rounds) == 12
    assert all(sorted(names) == ["a", "b", "c"] for names in rounds)
    assert len({tuple(names) for names in rounds}) > 2


def test_the_order_is_the_seeds() -> None:
    first, again, other = (_order(_interleaved(seed).samples) for seed in (1, 1, 2))
    assert first == again != other


def test_turns_are_numbered_as_they_ran() -> None:
    notes = _interleaved(1)
    starts = [(s.turn, s.started_ns) for s in notes.samples]
    assert [turn for turn, _ in starts] == list(range(36))
    assert starts == sorted(starts, key=lambda pair: pair[1])


def test_progress_goes_from_nothing_to_all() -> None:
    notes = _interleaved(1)
    assert [done for _, done, _ in notes.told] == list(range(37))
    assert {planned for _, _, planned in notes.told} == {36}


def test_a_time_limit_ends_a_block_after_whole_rounds() -> None:
    provider, other = fake(round_trip="0.05"), fake("other")
    what = block("round_trip", "fake", "other", rounds=1000, max_time_s=0.3)
    notes = asyncio.run(run(what, provider, other))
    counts = Counter(s.key.provider for s in notes.samples)
    assert counts["fake"] == counts["other"]
    assert 2 <= counts["fake"] <= 7
    assert notes.told[-1] == ("", 2000, 2000), "the line of progress ends with the block"


def test_min_rounds_hold_against_the_time_limit() -> None:
    what = block("round_trip", rounds=20, warmup=2, max_time_s=0.001, min_rounds=5)
    notes = asyncio.run(run(what, fake(round_trip="0.01")))
    assert len(notes.of("round_trip")) == 5


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_rests_in_a_turn_and_is_as_before_after_it(enabled: bool) -> None:
    seen = []

    async def live(lane: Lane) -> None:
        async with lane.timed("act"):
            seen.append(gc.isenabled())
        raise ValueError("a life may fail")

    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        asyncio.run(run(block(life(live), rounds=2), fake()))
        assert gc.isenabled() == enabled
        assert seen == [False, False]
    finally:
        (gc.enable if before else gc.disable)()


def test_what_looks_before_timing_is_in_no_sample() -> None:
    looks = []

    async def look(name: str, sandbox: GuardedSandbox) -> None:
        looks.append((name, sandbox.id, now_ns()))
        await asyncio.sleep(0.05)

    notes = asyncio.run(run(block("exec", rounds=2), fake(), before_timing=look))
    assert [name for name, _, _ in looks] == ["fake", "fake"]
    for sample, (_, sandbox, at) in zip(notes.of("exec"), looks, strict=True):
        assert sample.sandbox == sandbox
        assert sample.started_ns >= at + 45_000_000
        assert sample.latency_ns < 45_000_000


def test_samples_are_handed_on_turn_by_turn() -> None:
    notes = asyncio.run(run(block("start", level=2, rounds=3), fake()))
    assert [len(turn) for turn in notes.turns] == [8, 8, 8]


def test_samples_say_which_sandbox_and_how_it_was_served() -> None:
    notes = asyncio.run(run(block("start", rounds=2), fake(path="pool,cold")))
    assert [s.path for s in notes.of("startup")] == ["pool", "cold"]
    assert [s.path for s in notes.of("create")] == ["pool", "cold"]
    assert len({s.sandbox for s in notes.of("startup")}) == 2
    assert all(s.sandbox for s in notes.of("destroy"))
