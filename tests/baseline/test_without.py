"""Runs in which pytest-benchmark is blocked, or its session never came to be."""

from __future__ import annotations

import subprocess
import sys

from .conftest import Bench, no_traceback


def test_blocked(bench: Bench, workers: tuple[str, ...]) -> None:
    result = bench.run("-p", "no:benchmark", "-W", "error", *workers)
    assert result.ret == 0
    no_traceback(result)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["baseline samples: {}"])


def test_the_session_is_missing(bench: Bench) -> None:
    """As under another benchmark plugin that puts itself in its place."""
    bench.pytester.makepyfile(
        thief="import pytest\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_sessionstart(session):\n"
        "    bs = session.config.__dict__.pop('_benchmarksession')\n"
        "    session.config.pluginmanager.unregister(bs)\n"
        "    session.config.pluginmanager.unregister(name='benchmark')\n"
    )
    bench.pytester.syspathinsert()
    result = bench.run_apart("-p", "thief", "--benchmark-compare")
    assert result.ret == 0
    no_traceback(result)


def test_loaded_by_its_module(bench: Bench) -> None:
    result = bench.run("-p", "no:benchmark", "-p", "pytest_benchmark.plugin", "--benchmark-json=out.json")
    assert result.ret == 0
    assert len(bench.read("out.json")["benchmarks"]) == 2


def test_the_bridge_is_cheap_to_import() -> None:
    heavy = ("pytest_benchmark", "statistics", "asyncio", "pytest_sandboxbench.model")
    code = (
        "import pytest, sys; before = set(sys.modules)\n"
        "import pytest_sandboxbench.baseline.bridge, pytest_sandboxbench.baseline.hooks\n"
        f"print([name for name in {heavy} if name in set(sys.modules) - before])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
