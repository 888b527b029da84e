"""Case 1: results with workers are those without, and nothing is seen of pytest-benchmark switching itself off."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Suite, clean

FOUR = """
    import pytest

    @pytest.mark.sandbox_bench("exec")
    async def test_exec(sandbox_bench):
        await sandbox_bench.measure()

    @pytest.mark.sandbox_bench("write_file")
    async def test_write_file(sandbox_bench):
        await sandbox_bench.measure()

    @pytest.mark.sandbox_bench("startup")
    async def test_startup(sandbox_bench):
        await sandbox_bench.measure()

    async def test_own(sandbox_bench):
        async def act(sandbox):
            await sandbox.exec(["true"])
        await sandbox_bench.measure(act)
"""
OPERATIONS = ("exec", "write_file", "startup", "own")


@pytest.mark.parametrize("strict", [(), pytest.param(("-W", "error"), marks=pytest.mark.full)], ids=["usual", "-W"])
def test_four_benches_of_five_rounds(suite: Suite, strict: tuple[str, ...]) -> None:
    suite.write(test_four=FOUR)
    result = suite.run_apart(
        "-n", "2", "--sandbox-samples=5", "--sandbox-concurrency=1,4", "--benchmark-json=o.json", *strict
    )
    text = clean(result, 0)
    assert result.parseoutcomes() == {"passed": 8}
    assert "automatically disabled" not in text
    assert "warning" not in text.lower()

    found = {benchmark["fullname"]: benchmark for benchmark in suite.json("o.json")}
    assert {key: benchmark["stats"]["rounds"] for key, benchmark in found.items()} == {
        f"fake:{operation}@{level}/burst": 5 * level for operation in OPERATIONS for level in (1, 4)
    }
    assert all(len(benchmark["stats"]["data"]) == benchmark["stats"]["rounds"] for benchmark in found.values())

    workers = {(block["scenario"], block["level"]): block["workers"] for block in suite.header()["blocks"]}
    assert len(workers) == 8
    assert {level: number for (_, level), number in workers.items()} == {1: 1, 4: 2}
    suite.assert_nothing_left()
