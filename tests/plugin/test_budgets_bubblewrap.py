"""Budgets on real sandboxes: with a delay before bubblewrap itself each form of them breaks, and holds without it."""

from __future__ import annotations

import shlex
import sys

import pytest

from pytest_sandboxbench.providers.bubblewrap_host import find_bwrap

from ..providers.conftest import bubblewrap_ready
from .conftest import Suite, settled

__all__ = ["bubblewrap_ready"]  # a fixture

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap"),
    pytest.mark.usefixtures("bubblewrap_ready"),
]

DELAY_S = 0.4
STARTS = """
    import pytest

    @pytest.mark.sandbox_bench("startup")
    async def test_startup(sandbox_bench):
        await sandbox_bench.measure()
"""
# What a start takes here is 10 to 100 ms, by the machine and what else it does.
SLOW = [
    "startup median ..0.3s",
    "startup median 1us..0.3s",
    "startup p75 ..0.3s",
    "startup.create median ..0.3s",
    "startup throughput 3/s..",
    "startup median / floor ..8",
    "startup median / other: ..4",
    "startup median / baseline ..4",
]
FLAT = "startup median@4 / median@1 ..2.5"


@pytest.fixture
def starts(suite: Suite) -> Suite:
    suite.write(test_starts=STARTS)
    suite.pytester.makepyprojecttoml('[tool.sandboxbench.providers.other]\nkind = "bubblewrap"\n')
    return suite


def started(suite: Suite, *arguments: str, before: str = "") -> pytest.RunResult:
    """A run on a bubblewrap that begins with this command."""
    program = suite.path / "bwrap"
    program.write_text(f'#!/bin/sh\n{before}\nexec {shlex.quote(find_bwrap(None))} "$@"\n')
    program.chmod(0o755)
    return suite.bare("--sandbox-provider=bubblewrap", f"--sandbox-option=bubblewrap.bwrap={program}", *arguments)


@pytest.mark.parametrize(
    "budget", [pytest.param(one, marks=[] if one in SLOW[:1] else [pytest.mark.full]) for one in SLOW]
)
def test_a_delay_is_caught(starts: Suite, budget: str, workers: tuple[str, ...]) -> None:
    usual: tuple[str, ...] = (f"--sandbox-samples={14 if 'p75' in budget else 8}", "--sandbox-warmup=1")
    if "other" in budget:
        usual += ("--sandbox-provider=bubblewrap,other",)
    if "baseline" in budget:
        assert started(starts, *usual, "--benchmark-save=base").ret == 0
        usual += ("--benchmark-compare",)
    usual += (f"--sandbox-budget={'bubblewrap:' if 'other' in budget else ''}{budget}", *workers)
    assert "pass: 1" in settled(lambda: started(starts, *usual, "--sandbox-strict"), 0)
    text = settled(lambda: started(starts, *usual, before=f"sleep {DELAY_S}"), 1)
    assert "budget: " in text
    assert "1 failed" in text


@pytest.mark.full
def test_a_crowd_that_delays_itself_is_caught(starts: Suite, workers: tuple[str, ...]) -> None:
    """First each start takes as long; then each takes longer by the square of how many there are at once."""
    usual = ("--sandbox-concurrency=1,4", "--sandbox-samples=8", "--sandbox-warmup=1", f"--sandbox-budget={FLAT}")
    alike = settled(lambda: started(starts, *usual, *workers, "--sandbox-strict", before="sleep 0.2"), 0)
    assert "pass: 1" in alike
    crowd = starts.path / "crowd"
    crowd.mkdir()
    before = f"""cd {shlex.quote(str(crowd))} && touch $$ && sleep 0.1
        set -- $(ls | wc -l) "$@" && sleep $(($1 * $1 / 10)).$(($1 * $1 % 10)) && shift && rm $$ && cd "$OLDPWD" """
    text = settled(lambda: started(starts, *usual, *workers, before=before), 1)
    assert f"FAILED budgets::{FLAT} [bubblewrap]" in text
    assert "what grew most: create" in text
