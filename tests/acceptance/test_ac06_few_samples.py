"""Case 6: with 9 samples there is no 95th percentile to show."""

from __future__ import annotations

import pytest

from pytest_sandboxbench.cli import main
from tests.plugin.conftest import Suite, clean


def cells(text: str) -> dict[str, str]:
    """The row of the only series, by the titles of its columns; the interval and the range are one word each."""
    lines = text.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("operation "))
    titles = lines[head].replace("95 % interval", "interval").split()[1:]
    row = next(line for line in lines[head:] if line.startswith("  fake "))
    values = row.replace(" %", "%").replace(" ms", "ms").replace(" µs", "µs").replace(" s", "s").split()[1:]
    return dict(zip(titles, values, strict=True))


@pytest.mark.parametrize(("samples", "shown"), [(9, False), (19, False), (20, True)])
def test_p95(benches: Suite, capsys: pytest.CaptureFixture[str], samples: int, shown: bool) -> None:
    arguments = ("-k", "test_exec", f"--sandbox-samples={samples}", "--benchmark-json=out.json")
    text = clean(benches.run("benches", *arguments), 0)
    capsys.readouterr()
    assert main(["report", "--width=120", str(benches.folder)]) == 0
    for table in (text, capsys.readouterr().out):
        row = cells(table)
        assert row["n"] == str(samples)
        assert (row["p95"] != "n/a") == shown
        assert row["median"] != "n/a"
        assert "p95 is shown from n = 20, p99 from n = 100" in table
    assert ("p95" in benches.json()[0]["stats"]) == shown


def test_five_samples_have_a_median_and_no_interval(benches: Suite) -> None:
    row = cells(clean(benches.run("benches", "-k", "test_exec", "--sandbox-samples=5"), 0))
    assert (row["interval"], row["p95"]) == ("n/a", "n/a")
    assert cells(clean(benches.run("benches", "-k", "test_exec", "--sandbox-samples=6"), 0))["interval"] != "n/a"
