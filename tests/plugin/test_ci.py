"""What a run on GitHub leaves for whoever reads its log and its summary."""

from __future__ import annotations

import json

import pytest

from pytest_sandboxbench.cli import main

from .conftest import Suite, clean

BUDGETS = ("--sandbox-budget=exec median ..1ns", "--sandbox-budget=exec p99 ..1s", "--sandbox-samples=8")


def test_a_run_on_github(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.one_bench()
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(suite.path / "summary.md"))
    lines = clean(suite.run(*BUDGETS), 1).splitlines()
    (error,) = [line for line in lines if line.startswith("::error ")]
    assert "is above 1 ns" in error
    assert "%0Abudget: exec median ..1ns (--sandbox-budget)" in error
    assert [line for line in lines if line.startswith("::warning ")]
    summary = (suite.path / "summary.md").read_text()
    assert "| fail | exec on fake at 1 lane" in summary
    assert "    operation" in summary


def test_elsewhere_nothing_of_it_is_printed(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    suite.one_bench()
    assert "::error" not in clean(suite.run(*BUDGETS), 1)


def test_the_file_of_github_action_benchmark(suite: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    suite.one_bench()
    clean(suite.run("--sandbox-samples=8"), 0)
    capsys.readouterr()
    assert main(["report", str(suite.folder), "--format", "github-action-benchmark"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert entry["name"] == "fake:exec@1/burst median"
    assert entry["unit"] == "ms"
    assert 0 < entry["value"] < 1000
    assert entry["extra"].startswith("n=8")
