"""A folder with two tests whose series are literal numbers, and a way to run pytest on it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PLAIN = pytest.param((), id="plain")
XDIST = pytest.param(("-n", "2"), id="xdist")
XDIST_IN_FULL = pytest.param(("-n", "2"), id="xdist", marks=pytest.mark.full)

# Ours, because the conftest below plays its part; the others, because each process would spend a second on them.
BLOCKED = ("-p", "no:sandboxbench", "-p", "no:hypothesispytest", "-p", "no:asyncio", "-p", "no:anyio")

# What the plugin does, with numbers in place of measuring.
PLUGIN = """
import time

import pytest
from pytest_sandboxbench.baseline import bridge
from pytest_sandboxbench.model import SeriesKey

LATENCIES = {
    ("bubblewrap", 1): [4_100_000, 3_900_000, 4_000_000, 4_300_000, 4_700_001],
    ("bubblewrap", 16): [9_000_000, 8_000_000, 10_000_000],
    ("bubblewrap", 100): [50_000_000, 40_000_000, 60_000_000],
    ("null", 1): [1_000_000, 1_100_000, 1_050_000],
    ("null", 16): [2_000_000, 2_100_000, 2_050_000],
    ("null", 100): [20_000_000, 21_000_000, 20_500_000],
}

def pytest_addoption(parser):
    parser.addoption("--factor", type=float, default=1.0)
    parser.addoption("--no-samples", action="store_true")
    parser.addoption("--late", action="store_true", help="nobody calls check_collection")

def is_ours(item):
    return item.name.startswith("test_startup[")

class Controller:
    def __init__(self, config):
        self.config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report):
        if hasattr(self.config, "workerinput") or not getattr(report, "series", None):
            return
        provider, level = report.series
        factor = self.config.getoption("factor") if provider == "bubblewrap" else 1
        latencies = [round(ns * factor) for ns in LATENCIES[provider, level]]
        bridge.publish(self.config, bridge.PublishedSeries(
            name=report.nodeid.split("::")[-1],
            key=SeriesKey(provider, "startup", (("cache", "miss"),), level=level),
            latencies_ns=[] if self.config.getoption("no_samples") else latencies,
            extra_info={"success_rate": 0.75, "interval_ns": (3_900_000, float("inf")), "isolation": {"b", "a"}},
            figures={"p95": 0.0047, "success_rate": 0.75},
        ))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node, ids):
        if not self.config.getoption("late"):
            bridge.check_collection(self.config, ours=any("test_startup[" in name for name in ids))

    def pytest_terminal_summary(self, terminalreporter):
        samples = bridge.baseline_samples(self.config)
        terminalreporter.write_line(f"baseline samples: {samples}")

@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    print("wishes:", bridge.take_over(config))
    config.pluginmanager.register(Controller(config))

def pytest_collection_modifyitems(config, items):
    bridge.mark_items(config, items, is_ours)
    if not hasattr(config, "workerinput") and not config.getoption("late"):
        bridge.check_collection(config, ours=any(map(is_ours, items)))

@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_generate_machine_info():
    # The real one takes a second, and has the clock of the moment in it too.
    return {"node": "here", "cpu": {"count": 2, "hz_actual": [time.time_ns(), 0], "hz_actual_friendly": "?"}}

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "call" and is_ours(item):
        report.series = (item.callspec.params["provider"], item.callspec.params["level"])
    return report
"""

SUITE = """
import pytest

@pytest.mark.parametrize(("provider", "level"), [
    pytest.param(provider, level, id=f"{provider}-c{level}")
    for provider in ("bubblewrap", "null") for level in LEVELS
])
def test_startup(provider, level):
    pass
"""

ORDINARY = """
def test_add(benchmark):
    assert benchmark.pedantic(sum, [[1, 2]], rounds=3) == 3
"""


class Bench:
    """The folder. ``run`` is pytest in this process, where that does no harm: a fifth of the time."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester

    def run(self, *arguments: str) -> pytest.RunResult:
        return self.pytester.runpytest_inprocess(*BLOCKED, *arguments)

    def run_apart(self, *arguments: str) -> pytest.RunResult:
        """In a process of its own, as a user runs it."""
        return self.pytester.runpytest_subprocess(*BLOCKED, *arguments)

    def add_ordinary(self, text: str = ORDINARY) -> None:
        self.pytester.makepyfile(test_ordinary=text)

    def levels(self, *levels: int) -> None:
        self.pytester.makepyfile(test_sandbox=SUITE.replace("LEVELS", repr(levels)))

    def saved(self) -> list[Path]:
        return sorted(self.pytester.path.glob(".benchmarks/*/*.json"))

    def read(self, path: Path | str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.pytester.path / path).read_text())
        return document

    def edit(self, path: Path, change: Callable[[dict[str, Any]], None]) -> None:
        document = self.read(path)
        change(document)
        path.write_text(json.dumps(document))


@pytest.fixture
def bench(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Bench:
    # A suite that runs under xdist would hand these to pytest-benchmark, which then thinks it is in a worker.
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    pytester.makeconftest(PLUGIN)
    bench = Bench(pytester)
    bench.levels(1)
    return bench


@pytest.fixture(params=[PLAIN, XDIST_IN_FULL])
def workers(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Without xdist, and with it in a full run only."""
    chosen: tuple[str, ...] = request.param
    return chosen


@pytest.fixture(params=[PLAIN, XDIST])
def workers_always(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Without and with xdist, always."""
    chosen: tuple[str, ...] = request.param
    return chosen


def printed(result: pytest.RunResult) -> str:
    return result.stdout.str() + result.stderr.str()


def no_traceback(result: pytest.RunResult) -> None:
    text = printed(result)
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text
