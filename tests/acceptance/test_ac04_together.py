"""Case 4: the lanes of all workers start at one instant; one that never arrives is named, and nobody waits for it."""

from __future__ import annotations

import re
import time

import pytest

from tests.plugin.conftest import Suite, clean, printed

LANES = """
    import os
    import signal

    import pytest

    @pytest.mark.sandbox_bench("exec")
    async def test_exec(sandbox_bench):
        await sandbox_bench.measure()
"""
NEVER_ARRIVES = """
    import os
    import signal

    async def nothing(sandbox):
        pass

    async def test_stopped(sandbox_bench):
        acts = 0

        async def act(sandbox):
            nonlocal acts
            acts += 1
            if os.environ["PYTEST_XDIST_WORKER"] == "{stopped}" and acts == 2:
                os.kill(os.getpid(), signal.SIGSTOP)
        await sandbox_bench.measure(act)

    async def test_next(sandbox_bench):
        await sandbox_bench.measure(nothing)
"""


@pytest.mark.parametrize("number", [4, pytest.param(8, marks=pytest.mark.full)])
def test_all_lanes_start_at_one_instant(suite: Suite, number: int) -> None:
    suite.write(test_lanes=LANES)
    result = suite.run("-n", str(number), f"--sandbox-concurrency={number}", "--sandbox-option=fake.exec=0.3")
    text = clean(result, 0)
    assert len(list(suite.folder.glob("samples-gw*.jsonl"))) == number
    for round_ in range(3):
        lanes = [sample for sample in suite.samples() if sample["round"] == round_]
        assert sorted(sample["lane"] for sample in lanes) == list(range(number))
        assert len({sample["scheduled_ns"] for sample in lanes}) == 1
        assert all(sample["started_ns"] >= sample["scheduled_ns"] for sample in lanes)
    (row,) = re.findall(r"^  fake  .*$", text, re.MULTILINE)
    assert f" {number}/{number}" in row


@pytest.mark.full
@pytest.mark.parametrize(
    ("stopped", "restarts"),
    [
        pytest.param("gw3", (), id="follower"),
        pytest.param("gw0", (), id="leader"),
        pytest.param("gw3", ("--max-worker-restart=0",), id="for-good"),
    ],
)
def test_one_that_never_arrives(suite: Suite, stopped: str, restarts: tuple[str, ...]) -> None:
    suite.write(test_two=NEVER_ARRIVES.format(stopped=stopped))
    began = time.monotonic()
    result = suite.run_apart(
        "-n",
        "4",
        "--sandbox-concurrency=4",
        "--sandbox-timeout=1",
        f"--sandbox-option=fake.state_dir={suite.path / 'state'}",
        *restarts,
    )
    text = printed(result)
    assert time.monotonic() - began < 45, "7 s of silence, and the start of the workers"
    assert "INTERNALERROR" not in text
    assert result.ret == 1, text
    assert result.parseoutcomes() == {"passed": 1, "failed": 1}
    assert f"{stopped} gave no sign of life for 7 s while" in text
    kept = suite.series()
    assert kept["fake:next@4/burst"] == 12
    assert 4 <= kept["fake:stopped@4/burst"] < 12
    suite.assert_nothing_left()
