"""Case 13: a command that hangs ends at its deadline, its sandbox is destroyed, the next test runs."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Suite, clean


@pytest.mark.parametrize("how", ["hang", "swallow", "block"])
def test_a_hanging_command(benches: Suite, how: str) -> None:
    """``swallow`` ignores that it is cancelled, ``block`` holds the whole event loop."""
    result = benches.run(
        "benches",
        "-k",
        "test_exec or test_round_trip",
        "--sandbox-samples=1",
        "--sandbox-timeout=1",
        f"--sandbox-option=fake.exec=0,0,{how}",
        "-v",
    )
    text = clean(result, 1)
    assert result.parseoutcomes() == {"passed": 1, "failed": 1, "deselected": 15}
    assert "test_round_trip[fake-c1] PASSED" in text
    (sample,) = [sample for sample in benches.samples() if sample["series"].startswith("fake:exec")]
    assert sample["outcome"] == "timeout"
    limit = 1.3 if how == "hang" else 1.9  # what ignores its deadline is given some grace before it is abandoned
    assert 1.0 <= (sample["ended_ns"] - sample["started_ns"]) / 1e9 <= limit
    assert "1 timeout of 1" in text
    assert "the deadline was 1 s; --sandbox-timeout sets it" in text
    benches.assert_nothing_left()


def test_under_xdist(benches: Suite) -> None:
    arguments = ("-k", "test_exec or test_round_trip", "--sandbox-samples=1", "--sandbox-timeout=1", "-n", "2")
    result = benches.run("benches", *arguments, "--sandbox-option=fake.exec=0,0,hang")
    clean(result, 1)
    assert result.parseoutcomes() == {"passed": 1, "failed": 1}
    benches.assert_nothing_left()
