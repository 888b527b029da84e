"""Case 2: a worker that dies takes nothing with it: not its samples, its sandboxes, or the benches after it."""

from __future__ import annotations

import pytest

from pytest_sandboxbench.cli import main
from tests.plugin.conftest import Suite, printed

# The dying one is in its fourth round; each worker has LANES of the lanes.
DEADLY = """
    import os

    import pytest

    WORKER = os.environ["PYTEST_XDIST_WORKER"]

    async def nothing(sandbox):
        pass

    async def test_1(sandbox_bench):
        await sandbox_bench.measure(nothing)

    async def test_deadly(sandbox_bench):
        acts = 0

        async def act(sandbox):
            nonlocal acts
            acts += 1
            if WORKER == "{dying}" and acts > 3 * {lanes}:
                os._exit(9)
        await sandbox_bench.measure(act)

    async def test_2(sandbox_bench):
        await sandbox_bench.measure(nothing)

    async def test_3(sandbox_bench):
        await sandbox_bench.measure(nothing)
"""
FULL = pytest.mark.full
FOR_GOOD = ("--max-worker-restart=0",)


@pytest.mark.parametrize(
    ("level", "dying", "restarts"),
    [
        pytest.param(1, "gw0", FOR_GOOD, id="alone"),
        pytest.param(4, "gw1", FOR_GOOD, id="follower"),
        pytest.param(4, "gw0", FOR_GOOD, id="leader", marks=FULL),
        pytest.param(1, "gw0", (), id="alone-replaced", marks=FULL),
        pytest.param(4, "gw1", (), id="follower-replaced", marks=FULL),
        pytest.param(4, "gw0", (), id="leader-replaced", marks=FULL),
    ],
)
def test_a_worker_that_exits(
    suite: Suite, capsys: pytest.CaptureFixture[str], level: int, dying: str, restarts: tuple[str, ...]
) -> None:
    suite.write(test_two=DEADLY.format(dying=dying, lanes=-(-level // 2)))
    result = suite.run_apart(
        "-n",
        "2",
        *restarts,
        "--sandbox-samples=10",
        f"--sandbox-concurrency={level}",
        "--benchmark-json=o.json",
        f"--sandbox-option=fake.state_dir={suite.path / 'state'}",
    )
    text = printed(result)
    assert "INTERNALERROR" not in text
    assert result.ret == 1, text
    assert result.parseoutcomes() == {"passed": 3, "failed": 1}

    whole = {f"fake:{name}@{level}/burst": 10 * level for name in ("1", "2", "3")}
    measured = suite.series()
    deadly = measured.pop(f"fake:deadly@{level}/burst")
    assert measured == whole
    # Of the round in which it died the other worker's lanes are there.
    assert 3 * level <= deadly <= 3 * level + (level - -(-level // 2))
    rounds = {benchmark["fullname"]: benchmark["stats"]["rounds"] for benchmark in suite.json("o.json")}
    assert whole.items() <= rounds.items()

    named = [line for line in text.splitlines() if f"{dying} ended (exit 9)" in line and line[:6] != "FAILED"]
    assert len(named) == 1, text
    assert "test_two" in named[0]
    assert "test_deadly" in named[0]
    assert f"INTERRUPTED: test_two::test_deadly@{level} did not run to the end" in text
    blocks = {block["id"]: block["complete"] for block in suite.header()["blocks"]}
    assert blocks == {f"test_two::test_{name}@{level}": name != "deadly" for name in ("1", "deadly", "2", "3")}
    assert suite.header()["complete"] is False
    suite.assert_nothing_left()

    capsys.readouterr()
    assert main(["report", "--partial", str(suite.folder)]) == 0
    shown = capsys.readouterr().out
    assert f" {deadly} " in shown
    assert f"INTERRUPTED: test_two::test_deadly@{level} did not run to the end" in shown
