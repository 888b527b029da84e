"""The plugin's hooks, each a few lines that delegate. Loaded in every pytest run: imports nothing heavy."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pytest

from . import fixtures, hookspecs, markers, options
from .fixtures import concurrency, sandbox, sandbox_bench, sandbox_factory, sandbox_provider
from .stash import HEARD, SESSION, WISHES

if TYPE_CHECKING:
    from collections.abc import Generator

    from .budgets.evidence import Evidence
    from .budgets.model import Placed, Verdict

__all__ = ["concurrency", "sandbox", "sandbox_bench", "sandbox_factory", "sandbox_provider"]

_FIXTURES_ASYNC = "sandboxbench-fixtures"
_SUITES = "pytest_sandboxbench.benches"


def pytest_addoption(parser: pytest.Parser) -> None:
    options.add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(parser: pytest.Parser, args: list[str]) -> Generator[None, Any, Any]:
    # The suites' conftest adds the short options, but with --pyargs it is loaded too late to be asked.
    result = yield
    if "--pyargs" in args and any(arg.startswith(_SUITES) for arg in args):
        options.add_short_options(parser)
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    for line in markers.MARKERS:
        config.addinivalue_line("markers", line)
    # Our fixtures name their loop's scope, so the default does not matter here; who installed this plugin did not
    # choose pytest-asyncio, and would get five lines about it in every process of every run.
    warnings.filterwarnings("ignore", 'The configuration option "asyncio_default_fixture_loop_scope"')
    from .baseline import bridge

    config.stash[WISHES] = bridge.take_over(config)
    config.pluginmanager.register(_Results(config), "sandboxbench-results")
    if not hasattr(config, "workerinput") and config.getoption("dist", "no") != "no":
        _join_xdist(config)
    if any(map(config.getoption, ("sandbox_provider", "sandbox_option", "sandbox_budget"))):
        from .session import session_of

        session_of(config).check()


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | pytest.ExitCode | None:
    if not (config.option.sandbox_budgets or config.option.sandbox_plan):
        return None
    from . import listing, planning

    return listing.main(config, planning.show if config.option.sandbox_plan else listing.show)


def _join_xdist(config: pytest.Config) -> None:
    from .load.gang import ControllerHooks, Heard

    def shared() -> Any:
        from .identity import share

        return share(config)

    def collected(ours: bool) -> None:
        from .baseline.bridge import check_collection

        check_collection(config, ours=ours)
        if ours:
            from .session import session_of

            session_of(config).termination.install()

    def silence_s() -> float:
        # Twice the deadline of an operation: one that ends at its deadline, and is cleaned up after.
        return 2.0 * float(options.get(config, "timeout")) + 5.0

    def slots() -> Any:
        from .session import session_of

        return session_of(config).slots()

    heard = config.stash[HEARD] = Heard()
    hooks = ControllerHooks(config, shared, collected, heard, silence_s, slots)
    config.pluginmanager.register(hooks, "sandboxbench-gang")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if not fixtures.used_by(metafunc.definition):
        return
    from .session import session_of

    manager = metafunc.config.pluginmanager
    if not manager.hasplugin(_FIXTURES_ASYNC):
        from . import fixtures_async

        manager.register(fixtures_async, _FIXTURES_ASYNC)
    session_of(metafunc.config).parametrize(metafunc)


# Innermost, so that pytest-asyncio, which wraps the same hook, finds the marker.
@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_pycollect_makeitem(collector: pytest.Collector) -> Generator[None, Any, Any]:
    made = yield
    if made and (session := collector.config.stash.get(SESSION, None)) is not None:
        session.adopt(made if isinstance(made, list) else [made])
    return made


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # Also in a run without benches of ours: pytest-benchmark's own way was taken over.
    from .baseline import bridge

    bridge.mark_items(config, items, fixtures.used_by)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    if (benches := session.config.stash.get(SESSION, None)) is not None:
        benches.group(session.items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if (session := item.config.stash.get(SESSION, None)) is not None:
        session.attach(item, report)
    return report


@pytest.hookimpl(trylast=True)
def pytest_sandboxbench_check(placed: Placed, evidence: Evidence) -> Verdict:
    from .budgets.judging import judge

    return judge(placed, evidence)


def _inconclusive(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """A test that passed although a budget of its could not be decided has a letter of its own."""
    said = getattr(report, "sandboxbench", None) or {}
    undecided = any(verdict["outcome"] == "inconclusive" for verdict in said.get("verdicts", ()))
    return ("inconclusive", "I", "INCONCLUSIVE") if undecided and report.when == "call" and report.passed else None


class _Results:
    """Where results are shown: the controller of xdist, or the only process."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        if (session := self._config.stash.get(SESSION, None)) is not None:
            session.cleaner.warning(warning_message)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        payload = getattr(report, "sandboxbench", None)
        if payload is not None and not payload.get("own") and not hasattr(self._config, "workerinput"):
            from .session import session_of

            session_of(self._config).receive(report, payload)

    # Once everybody else has seen that a test is over: what is reported now stands after it.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_logfinish(self) -> Generator[None, Any, Any]:
        result = yield
        benches = self._config.stash.get(SESSION, None)
        if benches is not None and not hasattr(self._config, "workerinput"):
            benches.test_is_over()
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        return _inconclusive(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        if (session := self._config.stash.get(SESSION, None)) is not None:
            session.termination.came(excinfo.value)

    # Innermost: what ends the tests' fixtures is inside, the terminal's summary is not.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Generator[None, Any, Any]:
        benches = self._config.stash.get(SESSION, None)
        if benches is None:
            return (yield)
        return (yield from benches.finish(session, exitstatus))

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        benches = self._config.stash.get(SESSION, None)
        # A worker has a terminal too, which nobody sees.
        if benches is not None and not hasattr(self._config, "workerinput"):
            from .report.terminal import write_summary

            write_summary(terminalreporter, benches)
