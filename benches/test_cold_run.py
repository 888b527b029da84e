"""A whole program in a new sandbox, output read and exit code known."""

from __future__ import annotations

import shlex

import pytest

from pytest_sandboxbench import options
from pytest_sandboxbench.bench import SandboxBench


@pytest.mark.sandbox_bench("cold_run")
async def test_cold_run(sandbox_bench: SandboxBench) -> None:
    """``python3 -c 'print(1)'``, without the removal of the sandbox."""
    await sandbox_bench.measure()


@pytest.mark.sandbox_bench("cold_run_total")
async def test_cold_run_total(sandbox_bench: SandboxBench) -> None:
    """The same, with the removal."""
    await sandbox_bench.measure()


@pytest.mark.sandbox_bench("cold_run_unseen")
async def test_cold_run_unseen(sandbox_bench: SandboxBench) -> None:
    """A program that is new each time: a provider that warms up the well-known one shows here."""
    await sandbox_bench.measure()


async def test_command(sandbox_bench: SandboxBench, request: pytest.FixtureRequest) -> None:
    """Your own: ``--sandbox-command 'node -e 1'``."""
    command = options.get(request.config, "command")
    if not command:
        pytest.skip("times a command of yours: --sandbox-command 'node -e 1'")
    await sandbox_bench.measure_command(shlex.split(command))
