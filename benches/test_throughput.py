"""Many programs, each in a sandbox of its own: as fast as they come, and more of them than there is room for."""

from __future__ import annotations

import pytest

from pytest_sandboxbench.bench import SandboxBench
from pytest_sandboxbench.load.guard import GuardedProvider
from pytest_sandboxbench.stats.overload import beyond, crowds


@pytest.mark.parametrize("concurrency", [4], ids=["c4"])
@pytest.mark.sandbox_bench("cold_run", samples=1, warmup=0, shape="closed-100")
async def test_sustained(sandbox_bench: SandboxBench) -> None:
    """100 runs, always 4 of them under way: how many a second, and how long each takes."""
    await sandbox_bench.measure()


@pytest.mark.parametrize("concurrency", [60], ids=["c60"])
@pytest.mark.sandbox_bench("cold_run", samples=3, warmup=0, shape="burst")
async def test_overload(sandbox_bench: SandboxBench, sandbox_provider: GuardedProvider) -> None:
    """60 runs at one instant, more than there is room for: what is taken in fits, and the others are told so."""
    name, capacity = sandbox_provider.name, sandbox_provider.capacity
    if capacity is None:
        limits = sandbox_provider.limits
        why = f"nothing limits how many {name} accepts at once"
        if limits.max_live is not None:
            why = f"{name} rejects nothing, any number may wait under its max_live"
        pytest.skip(
            f"{why}: --sandbox-option {name}.max_live={limits.max_live or 4} --sandbox-option {name}.max_queued=16"
        )
    if capacity >= sandbox_bench.level:
        pytest.skip(f"{name} has room for {capacity}: {sandbox_bench.level} at once are no overload")
    measured = await sandbox_bench.measure()
    for series in measured.series:
        for crowd in beyond(crowds(series.arrivals()), capacity):
            pytest.fail(
                f"{series.key}: {name} has room for {capacity}, and {crowd.inside} were inside at once: of "
                f"{crowd.accepted} accepted, {crowd.finished} were over when the last one came",
                pytrace=False,
            )
