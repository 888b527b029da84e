"""A folder with a suite of benches, ways to run pytest on it, and what the scripted provider and the records say."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

# A run in this process drops the modules that it loaded; extension modules do not like to be loaded twice.
import pytest_sandboxbench.bench
import pytest_sandboxbench.fixtures_async
import pytest_sandboxbench.providers.fake
import pytest_sandboxbench.report.terminal  # noqa: F401
from pytest_sandboxbench.cli import main

__all__ = ["Suite", "clean", "printed", "settled"]

PLAIN = pytest.param((), id="plain")
XDIST = pytest.param(("-n", "2"), id="xdist")
XDIST_IN_FULL = pytest.param(("-n", "2"), id="xdist", marks=pytest.mark.full)

# Plugins of the environment that are slow to load and have no part in this.
LEAN = ("-p", "no:hypothesispytest", "-p", "no:anyio", "-p", "no:platformdirs")
INI = "[pytest]\nasyncio_default_fixture_loop_scope = function\n"

ONE_BENCH = """
    import pytest

    @pytest.mark.sandbox_bench("exec")
    async def test_exec(sandbox_bench):
        await sandbox_bench.measure()
"""


class Suite:
    """The folder. ``run`` measures the scripted provider, three rounds and no warm-up unless the arguments say more."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        self.log = self.path / "calls.jsonl"

    def write(self, **files: str) -> None:
        self.pytester.makepyfile(**files)

    def one_bench(self) -> None:
        self.write(test_one=ONE_BENCH)

    def ini(self, *lines: str) -> None:
        """More lines for the ini file."""
        self.pytester.makeini(INI + "".join(f"{line}\n" for line in lines))

    def init(self) -> None:
        """The shipped suites, as a user gets them."""
        assert main(["init", str(self.path / "benches")]) == 0

    @property
    def usual(self) -> tuple[str, ...]:
        log = f"--sandbox-option=fake.log={self.log}"
        return ("--sandbox-provider=fake", "--sandbox-samples=3", "--sandbox-warmup=0", log)

    def run(self, *arguments: str) -> pytest.RunResult:
        """In this process, where that does no harm: a fifth of the time."""
        self.log.unlink(missing_ok=True)
        return self.pytester.runpytest_inprocess(*LEAN, *self.usual, *arguments)

    def bare(self, *arguments: str) -> pytest.RunResult:
        """The same without our options."""
        return self.pytester.runpytest_inprocess(*LEAN, *arguments)

    def run_apart(self, *arguments: str, timeout: float = 60) -> pytest.RunResult:
        """In a process of its own, as a user runs it."""
        self.log.unlink(missing_ok=True)
        command = self.command(*self.usual, *arguments)
        return self.pytester.run(*command, timeout=timeout)

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "pytest", *LEAN, *arguments]

    # -- what came of it

    def calls(self, operation: str) -> list[dict[str, Any]]:
        """Calls of the scripted provider, from its log."""
        if not self.log.exists():
            return []
        calls = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [call for call in calls if call["op"] == operation]

    def assert_nothing_left(self) -> None:
        """Every sandbox that was made is destroyed."""
        made = {
            call["sandbox"] for name in ("create", "run_once") for call in self.calls(name) if call["outcome"] == "ok"
        }
        gone = {call["sandbox"] for call in self.calls("destroy") if call["outcome"] == "ok"}
        assert made - gone == set()

    @property
    def folders(self) -> list[Path]:
        return sorted(path.parent for path in self.path.glob(".sandboxbench/*/run.json"))

    @property
    def folder(self) -> Path:
        (only,) = self.folders
        return only

    def header(self) -> dict[str, Any]:
        header: dict[str, Any] = json.loads((self.folder / "run.json").read_text())
        return header

    def samples(self, folder: Path | None = None) -> list[dict[str, Any]]:
        paths = sorted((folder or self.folder).glob("samples*.jsonl"))
        return [json.loads(line) for path in paths for line in path.read_text().splitlines()]

    def series(self) -> dict[str, int]:
        """Series key -> number of its samples that are no warm-ups."""
        found: dict[str, int] = {}
        for sample in self.samples():
            found[sample["series"]] = found.get(sample["series"], 0) + (not sample.get("warmup", False))
        return found

    def json(self, name: str = "out.json") -> list[dict[str, Any]]:
        benchmarks: list[dict[str, Any]] = json.loads((self.path / name).read_text())["benchmarks"]
        return benchmarks


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    # A suite that runs under xdist would hand these on, and pytest-benchmark then thinks that it is in a worker.
    for name in [name for name in os.environ if name.startswith(("PYTEST_", "SANDBOXBENCH_"))]:
        if name != "PYTEST_DEBUG_TEMPROOT":
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("XDG_STATE_HOME", str(pytester.path / ".state"))
    made = Suite(pytester)
    made.ini()
    return made


@pytest.fixture(params=[PLAIN, XDIST_IN_FULL])
def workers(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Without xdist, and with it in a full run only: processes take most of the time of all tests."""
    chosen: tuple[str, ...] = request.param
    return chosen


@pytest.fixture(params=[PLAIN, XDIST])
def workers_always(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The same for one test of each thing that crosses from worker to controller."""
    chosen: tuple[str, ...] = request.param
    return chosen


def printed(result: pytest.RunResult) -> str:
    return result.stdout.str() + result.stderr.str()


def clean(result: pytest.RunResult, status: int) -> str:
    """The run ended with this status, and whatever went wrong was told without a traceback. Returns the output."""
    text = printed(result)
    for word in ("Traceback", "INTERNALERROR", "never awaited", "unraisable"):
        assert word not in text, text
    assert result.ret == status, text
    return text


def settled(run: Callable[[], pytest.RunResult], status: int) -> str:
    """``clean`` of a run that compares times, or of the second or third: others use the machine, and a verdict that
    the machine stood still for a tenth of a second is right. A verdict that is wrong is wrong three times."""
    for _ in range(2):
        if (result := run()).ret == status:
            return clean(result, status)
    return clean(run(), status)


def errors(result: pytest.RunResult) -> Sequence[str]:
    """What pytest says is wrong, one line each."""
    return [line for line in (*result.outlines, *result.errlines) if line.startswith("ERROR: ")]
