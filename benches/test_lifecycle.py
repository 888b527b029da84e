"""The life of a sandbox: create, work, pause, end. What exactly each span covers stands above its row in the table."""

from __future__ import annotations

import pytest

from pytest_sandboxbench.bench import SandboxBench


@pytest.mark.sandbox_bench("create")
async def test_create(sandbox_bench: SandboxBench) -> None:
    """The provider's create call alone; whether the sandbox answers is ``first_exec``."""
    await sandbox_bench.measure()


@pytest.mark.sandbox_bench("first_exec")
async def test_first_exec(sandbox_bench: SandboxBench) -> None:
    """From the end of create until the first command returned 0."""
    await sandbox_bench.measure()


@pytest.mark.sandbox_bench("exec")
async def test_exec(sandbox_bench: SandboxBench) -> None:
    """One ``true`` in a warm sandbox."""
    await sandbox_bench.measure()


@pytest.mark.sandbox_bench("write_file")
async def test_write_file(sandbox_bench: SandboxBench) -> None:
    """1 MiB into a new file."""
    await sandbox_bench.measure()


@pytest.mark.sandbox_bench("read_file")
async def test_read_file(sandbox_bench: SandboxBench) -> None:
    """The same 1 MiB back."""
    await sandbox_bench.measure()


@pytest.mark.sandbox_bench("pause")
async def test_pause(sandbox_bench: SandboxBench) -> None:
    """Until the provider says paused; what is kept is part of the series' name."""
    await sandbox_bench.measure()


@pytest.mark.sandbox_bench("resume")
async def test_resume(sandbox_bench: SandboxBench) -> None:
    """Until the provider says running; afterwards it is proved that memory came back."""
    await sandbox_bench.measure()


@pytest.mark.sandbox_bench("resume_to_first_exec")
async def test_resume_to_first_exec(sandbox_bench: SandboxBench) -> None:
    """Until the first command after the resume returned 0."""
    await sandbox_bench.measure()


@pytest.mark.sandbox_bench("destroy")
async def test_destroy(sandbox_bench: SandboxBench) -> None:
    """Until the provider says gone."""
    await sandbox_bench.measure()


@pytest.mark.sandbox_bench("round_trip")
async def test_round_trip(sandbox_bench: SandboxBench) -> None:
    """The cheapest call to the provider: no operation can be faster."""
    await sandbox_bench.measure()
