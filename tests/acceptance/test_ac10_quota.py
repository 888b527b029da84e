"""Case 10: a quota lets through what it allows; the rest is told so, once, and stays out of the latencies."""

from __future__ import annotations

import re
from collections import Counter

from tests.plugin.conftest import Suite, clean


def outcomes(suite: Suite, operation: str) -> Counter[str]:
    return Counter(sample["outcome"] for sample in suite.samples() if f":{operation}@" in sample["series"])


def test_twenty_of_forty(benches: Suite, workers: tuple[str, ...]) -> None:
    result = benches.run(
        "benches/test_startup.py::test_startup",
        "--concurrency=40",
        "--sandbox-samples=1",
        "--sandbox-option=fake.create=0.05",
        "--sandbox-option=fake.max_live=20",
        f"--sandbox-option=fake.state_dir={benches.path / 'shared'}",
        "--benchmark-json=out.json",
        *workers,
    )
    text = clean(result, 0)
    assert outcomes(benches, "startup") == {"ok": 20, "rejected(quota)": 20}
    assert len(benches.calls("create")) == 40, "nothing was tried again"
    assert len(benches.calls("destroy")) == 20

    (benchmark,) = benches.json()
    assert benchmark["stats"]["rounds"] == 20
    assert benchmark["stats"]["min"] >= 0.05, "no rejection among the latencies"
    facts = benchmark["extra_info"]["sandboxbench"]
    assert facts["outcomes"] == {"ok": 20, "rejected(quota)": 20}
    assert facts["rejections_median_ns"]["rejected(quota)"] < benchmark["stats"]["median"] * 1e9
    assert facts["limiter"] is None, "it was the provider's"

    (shown,) = re.findall(r"^  fake +(\d+) .* (\d+(?:\.\d+)?) %", text, re.MULTILINE)
    assert shown == ("20", "50.0")
    (rejected,) = re.findall(r"^    rejected\(quota\) +(\d+) +\d", text, re.MULTILINE)
    assert rejected == "20"


def test_each_reason_has_a_row_of_its_own(benches: Suite) -> None:
    result = benches.run(
        "benches/test_startup.py::test_startup",
        "--concurrency=9",
        "--sandbox-samples=1",
        "--sandbox-option=fake.create=4x0.05,3x0.01+reject:quota,2x0.02+reject:queue",
    )
    text = clean(result, 0)
    assert outcomes(benches, "startup") == {"ok": 4, "rejected(quota)": 3, "rejected(queue)": 2}
    rows = re.findall(r"^    (rejected\(\w+\)) +(\d+) +([\d.]+) ms", text, re.MULTILINE)
    assert [(reason, n) for reason, n, _ in rows] == [("rejected(queue)", "2"), ("rejected(quota)", "3")]
    assert float(rows[0][2]) >= 20
    assert float(rows[1][2]) >= 10


def test_with_nothing_but_rejections_the_bench_fails(benches: Suite) -> None:
    result = benches.run("benches/test_startup.py::test_startup", "--sandbox-option=fake.create=reject:capacity")
    text = clean(result, 1)
    assert "3 rejected(capacity) of 3" in text
    assert len(benches.calls("create")) == 3
