"""What a sandbox holds before a pause, on real processes: set, seen, and missed when it is gone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pytest_sandboxbench.load.state import State
from tests.plugin.conftest import Suite, clean, suite

__all__ = ["suite"]


def run(argv: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def test_memory_is_held_and_summed_up(tmp_path: Path) -> None:
    state = State(held_mib=20)
    pid, first = run(state.hold(), tmp_path).stdout.split()
    try:
        again, resident = run(state.hold_again(pid), tmp_path).stdout.split()
        assert again == first
        assert 20 <= int(resident) < 100
    finally:
        run(["kill", pid], tmp_path)
    assert run(state.hold_again(pid), tmp_path).returncode != 0, "a process that is gone"


def test_two_processes_hold_different_memory(tmp_path: Path) -> None:
    sums = set()
    for _ in range(2):
        pid, found = run(State(held_mib=1).hold(), tmp_path).stdout.split()
        run(["kill", pid], tmp_path)
        sums.add(found)
    assert len(sums) == 2


def test_a_file_is_written_and_read_back(tmp_path: Path) -> None:
    state = State(written_mib=3)
    written = run(state.write(), tmp_path).stdout
    assert written.split()[1] == str(3 << 20)
    assert run(state.read(), tmp_path).stdout == written
    (tmp_path / "sandboxbench-written").write_bytes(b"other")
    assert run(state.read(), tmp_path).stdout != written


def test_its_name_in_a_series() -> None:
    assert State().variants == ()
    assert not State()
    assert State(650, 100).variants == (("held", "650MiB"), ("written", "100MiB"))


@pytest.mark.parametrize("provider", ["bubblewrap", "null"])
def test_before_a_real_pause(suite: Suite, provider: str) -> None:
    suite.write(
        test_one="""
        import pytest

        @pytest.mark.sandbox_bench("pause")
        async def test_pause(sandbox_bench):
            await sandbox_bench.measure()
        """
    )
    arguments = (f"--sandbox-provider={provider}", "--sandbox-samples=1", "--sandbox-warmup=0", "--sandbox-floor=none")
    clean(suite.bare(*arguments, "--sandbox-held=10", "--sandbox-written=2"), 0)
    (series,) = [key for key in suite.series() if ":pause{" in key]
    assert series.startswith(f"{provider}:pause{{held=10MiB,kind=")
    assert ",written=2MiB}" in series


def test_a_budget_is_about_the_state_as_well(suite: Suite) -> None:
    suite.write(
        test_one="""
        import pytest

        @pytest.mark.sandbox_bench("pause")
        @pytest.mark.sandbox_budget("pause{held=1MiB} median ..60s")
        async def test_pause(sandbox_bench):
            await sandbox_bench.measure()
        """
    )
    arguments = ("--sandbox-provider=bubblewrap", "--sandbox-samples=6", "--sandbox-floor=none")
    clean(suite.bare(*arguments, "--sandbox-held=1", "--sandbox-strict"), 0)
    clean(suite.bare(*arguments, "--sandbox-strict"), 1)
