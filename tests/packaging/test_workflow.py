"""The workflow in docs/: each command of it runs, in order, for somebody who copied it and installed the wheel."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from ..providers.conftest import bubblewrap_ready
from .conftest import ROOT
from .test_installs import Installed, install

__all__ = ["bubblewrap_ready", "install"]  # fixtures

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("bubblewrap_ready")]

GATE = "measure, judge budgets, compare with the baseline or make it"

PROJECT = """
[tool.sandboxbench]
budgets = ["startup median ..10s", "startup median / floor ..200"]
"""
FASTER = "[pytest]\naddopts = --sandbox-samples=6 -k 'startup or exec'\nasyncio_default_fixture_loop_scope = function\n"


class Job:
    """Its steps in a folder, as the runner takes them: in order, and after a failure only those that always run."""

    def __init__(self, folder: Path, scripts: Path) -> None:
        self.folder = folder
        workflow = yaml.safe_load((ROOT / "docs" / "sandboxes.yml").read_text(encoding="utf-8"))
        self.steps = workflow["jobs"]["latency"]["steps"]
        kept = {key: value for key, value in os.environ.items() if key in {"HOME", "LANG", "TMPDIR"}}
        kept |= {key: value for key, value in os.environ.items() if key.startswith("PIP_") or key.endswith("_proxy")}
        self.environment = kept | {
            "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
            "XDG_STATE_HOME": str(folder / "state"),
            "GITHUB_ACTIONS": "true",
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        }

    def run(self) -> tuple[list[str], str]:
        """Names of the steps that failed, and all that was printed."""
        failed: list[str] = []
        printed = ""
        for step in self.steps:
            if "run" not in step or step["run"].startswith("sudo "):  # another's machine
                continue
            if failed and step.get("if") != "always()":
                continue
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=self.folder,
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=300,
                check=False,
            )
            printed += done.stdout
            if done.returncode != 0:
                failed.append(step["name"])
        return failed, printed


@pytest.fixture
def job(install: Callable[[str], Installed], tmp_path: Path) -> Job:
    made = Job(tmp_path, install("wheel").bin)
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "pytest.ini").write_text(FASTER)
    command = [str(install("wheel").bin / "sandboxbench"), "init", "benches"]
    subprocess.run(command, cwd=tmp_path, env=made.environment, check=True, timeout=60, capture_output=True)
    return made


def test_it_makes_a_baseline_then_holds_the_next_run_against_it_and_fails_where_a_budget_breaks(job: Job) -> None:
    failed, printed = job.run()
    assert failed == [], printed
    assert [path.name for path in job.folder.glob(".benchmarks/*/*.json")] == ["0001_baseline.json"]
    assert (job.folder / "sandboxes.xml").exists()
    names = [entry["name"] for entry in json.loads((job.folder / "latency.json").read_text())]
    assert "bubblewrap:startup@1/burst median" in names

    # A baseline ten times as fast: whatever is measured now is a regression.
    (saved,) = job.folder.glob(".benchmarks/*/0001_*.json")
    original = saved.read_text()
    baseline = json.loads(original)
    for benchmark in baseline["benchmarks"]:
        benchmark["stats"]["median"] /= 10
    saved.write_text(json.dumps(baseline))
    failed, printed = job.run()
    assert failed == [GATE]
    assert "median" in printed[printed.index("regressions") :]

    saved.unlink()  # a new baseline
    (job.folder / "pyproject.toml").write_text(PROJECT.replace("..10s", "..1us"))
    failed, printed = job.run()
    assert failed == [GATE]
    assert "::error title=" in printed
    assert "is above 1 µs" in (job.folder / "summary.md").read_text()
