"""Case 5: a lock is found where there is one, its phase named, and not where the CPUs are the limit or nothing is."""

from __future__ import annotations

import re

import pytest

from tests.plugin.conftest import Suite, clean

# How busy the CPUs of the host are is not for other programs of this machine to decide.
CPUS = """
    import time

    from pytest_sandboxbench import run_header

    def cpu_ticks():
        total = time.monotonic_ns() // 1000
        return int(total * {share}), total

    run_header.cpu_ticks = cpu_ticks
"""

SWEEP = (
    "benches/test_startup.py",
    "--concurrency=1,4,16",
    "--sandbox-samples=8",
    "--sandbox-option=fake.create=0.02",
)
LOCK = "--sandbox-option=fake.lock=serial"

BURN = """
    import pytest

    async def test_burn(sandbox_bench):
        async def burn(sandbox):
            await sandbox.exec(["python3", "-c", "sum(range(4_000_000))"])

        await sandbox_bench.measure(burn)
"""


def finding(suite: Suite, *arguments: str) -> tuple[str, str]:
    """The verdict on the provider, and the sentence that goes with it."""
    text = " ".join(clean(suite.run(*arguments), 0).split())
    found = re.search(r"(?:fake|null): (flat|grows|serialised|cpu bound|unknown): (.*?) records: ", text)
    assert found, text
    return found[1], found[2]


def shared(suite: Suite) -> str:
    """The lock is one for all workers."""
    return f"--sandbox-option=fake.state_dir={suite.path / 'shared'}"


def test_a_lock_is_found_and_its_phase_named(benches: Suite, workers: tuple[str, ...]) -> None:
    benches.pytester.makeconftest(CPUS.format(share=0.05))
    verdict, sentence = finding(benches, *SWEEP, LOCK, shared(benches), *workers)
    assert verdict == "serialised"
    assert "phase create grows" in sentence


def test_no_lock_is_found_where_there_is_none(benches: Suite, workers: tuple[str, ...]) -> None:
    benches.pytester.makeconftest(CPUS.format(share=0.05))
    verdict, _ = finding(benches, *SWEEP, shared(benches), *workers)
    assert verdict != "serialised"


def test_where_the_cpus_are_busy_nothing_is_called_a_lock(benches: Suite) -> None:
    benches.pytester.makeconftest(CPUS.format(share=0.95))
    verdict, _ = finding(benches, *SWEEP, LOCK, shared(benches))
    assert verdict != "serialised"


@pytest.mark.parametrize("limit", ["max_live=1", "create_rate=50"])
def test_our_own_limit_is_not_called_a_lock(benches: Suite, limit: str) -> None:
    benches.pytester.makeconftest(CPUS.format(share=0.05))
    verdict, sentence = finding(benches, *SWEEP, f"--sandbox-option=fake.limiter_{limit}")
    assert verdict != "serialised"
    assert limit != "max_live=1" or "what serialises is our own limit (limiter=ours)" in sentence


@pytest.mark.full
def test_work_that_takes_the_cpus_is_not_called_a_lock(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.write(test_burn=BURN)
    sweep = ("--sandbox-concurrency=1,4,16", "--sandbox-samples=6", "--sandbox-provider=null")
    verdict, sentence = finding(suite, "test_burn.py", *sweep, *workers)
    assert verdict in ("cpu bound", "grows"), sentence
