"""The start of a sandbox and its phases; ``--concurrency 1,16,50,100`` shows how it grows with the lanes."""

from __future__ import annotations

import pytest

from pytest_sandboxbench.bench import SandboxBench


@pytest.mark.sandbox_bench("startup")
async def test_startup(sandbox_bench: SandboxBench) -> None:
    """Time to interactive: from before create until the first command returned 0."""
    await sandbox_bench.measure()
