"""The hooks by which the bridge accompanies pytest-benchmark's session. Registered by `bridge.take_over`."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_sandboxbench.baseline.asked import is_worker, table_wanted

if TYPE_CHECKING:
    from pytest_sandboxbench.baseline.bridge import BridgeState, Regression

__all__ = ["BridgeHooks"]

_NAMED = 5

_Groups = list[tuple[str | None, list[dict[str, Any]]]]


class BridgeHooks:
    """One object per run. In a run without series of ours, each hook leaves things as they are."""

    def __init__(self, config: pytest.Config, state: BridgeState) -> None:
        self.config = config
        self.state = state

    @property
    def benchmark(self) -> Any:
        return getattr(self.config, "_benchmarksession", None)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Load the baselines: pytest-benchmark would have done so while it was configured."""
        if self.state.compare:
            self.config.option.benchmark_compare = self.state.compare
            if self.benchmark is not None:
                self.benchmark.compare = self.state.compare
                _load(self.benchmark)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Turn regressions into an exit status. pytest-benchmark has saved and compared: its part is a wrapper."""
        state, benchmark = self.state, self.benchmark
        if not state.keys or is_worker(self.config):
            return
        state.other_regressions, benchmark.performance_regressions = benchmark.performance_regressions, []
        if benchmark.compare_fail and not benchmark.compared_mapping:
            # `check_collection` refuses this earlier; pytest-benchmark would raise in the middle of the summary.
            benchmark.compare_fail = None
            state.mistake = "--benchmark-compare-fail was given, and no saved run was there to compare with"
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
            return
        if benchmark.compare_fail:
            saved = {fullname for results in benchmark.compared_mapping.values() for fullname in results}
            state.not_compared = sorted(state.keys - saved, key=_natural)
        failed = state.regressions or state.other_regressions or len(state.not_compared) == len(state.keys)
        if failed and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None, object, object]:
        """Keep our series out of pytest-benchmark's table unless it was asked for; say what regressed."""
        benchmark = self.benchmark
        if not self.state.keys:
            return (yield)
        groups: _Groups | None = benchmark.groups
        if groups and not table_wanted(self.config):
            if benchmark.histogram and not benchmark.quiet:  # it is drawn while a table is written
                benchmark.groups = self._part(groups, ours=True)
                benchmark.display(_Nowhere())
            benchmark.groups = self._part(groups, ours=False)
        try:
            return (yield)
        finally:
            benchmark.groups = groups
            self._write_regressions(terminalreporter)

    @pytest.hookimpl(wrapper=True, optionalhook=True)
    def pytest_benchmark_group_stats(
        self, benchmarks: list[dict[str, Any]], group_by: str
    ) -> Generator[None, _Groups, _Groups]:
        """Groups in the order of numbers (1, 16, 50, 100), also where an ordinary benchmark lacks the parameter."""
        if not any(self._is_ours(result) for result in benchmarks):
            return (yield)
        names = [word.removeprefix("param:") for word in group_by.split(",") if word.startswith("param:")]
        for result in benchmarks:
            result["params"] = {**dict.fromkeys(names, "-"), **(result["params"] or {})}
        groups = yield
        return sorted(groups, key=lambda group: _natural(group[0] or ""))

    @pytest.hookimpl(optionalhook=True)
    def pytest_benchmark_update_machine_info(self, machine_info: dict[str, Any]) -> None:
        if self.state.keys:
            _drop_volatile(machine_info)

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_benchmark_compare_machine_info(
        self, machine_info: dict[str, Any], compared_benchmark: dict[str, Any]
    ) -> None:
        """The CPU's clock of the moment is no fact about the machine: without this every comparison warns."""
        _drop_volatile(machine_info)
        _drop_volatile(compared_benchmark.get("machine_info", {}))

    def _is_ours(self, result: dict[str, Any]) -> bool:
        return result["fullname"] in self.state.keys

    def _part(self, groups: _Groups, *, ours: bool) -> _Groups:
        parts = [(name, [r for r in results if self._is_ours(r) is ours]) for name, results in groups]
        return [(name, results) for name, results in parts if results]

    def _write_regressions(self, terminal: pytest.TerminalReporter) -> None:
        state = self.state
        if state.regressions:
            terminal.section("sandbox regressions", red=True, bold=True)
            for regression in state.regressions:
                terminal.write_line(describe(regression), red=True)
        if state.other_regressions:
            terminal.section("benchmark regressions", red=True, bold=True)
            for name, text in state.other_regressions:
                terminal.write_line(f"{name} - {text}", red=True)
        if state.not_compared:
            self._write_not_compared(terminal, state.not_compared, len(state.keys))
        if state.mistake:
            terminal.write_line(f"ERROR: {state.mistake}", red=True)

    @staticmethod
    def _write_not_compared(terminal: pytest.TerminalReporter, keys: Sequence[str], published: int) -> None:
        """pytest-benchmark leaves out what a saved run lacks: after a change of names its gate would pass for ever."""
        nothing = len(keys) == published
        terminal.section("not compared", red=nothing, yellow=not nothing, bold=True)
        names = ", ".join(keys[:_NAMED]) + (f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else "")
        if nothing:
            text = f"ERROR: --benchmark-compare-fail judged nothing: the saved run has no series of this run: {names}"
        else:
            lacking = f"{len(keys)} of {published} series, which the saved run lacks: {names}"
            text = f"--benchmark-compare-fail did not judge {lacking}"
        terminal.write_line(text, red=nothing, yellow=not nothing)


def describe(regression: Regression) -> str:
    """One line: ``bubblewrap:startup@16/burst: median 4.1 ms -> 6.2 ms (+51.2 %), allowed +10 %, baseline 0001_x``."""
    if not regression.field:
        return f"{regression.key}: {regression.text}"
    now, before = regression.now, regression.before
    change = f" ({(now / before - 1) * 100:+.1f} %)" if before else ""
    allowed = f"+{regression.allowed:g} %" if regression.relative else f"+{_time(regression.allowed)}"
    return (
        f"{regression.key}: {regression.field} {_time(before)} -> {_time(now)}{change}, "
        f"allowed {allowed}, baseline {regression.baseline}"
    )


def _time(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"


def _load(benchmark: Any) -> None:
    from pytest_sandboxbench.baseline.entry import PytestBenchmarkWarning, hand_over
    from pytest_sandboxbench.baseline.saved import compared_files, read_saved
    from pytest_sandboxbench.errors import UsageError

    compare = benchmark.compare
    try:
        files = compared_files(benchmark)
        for path in files:
            hand_over(benchmark.storage, path, read_saved(path))
        if compare is True and files:  # or all that were ever saved would be read, for the sake of the last one
            benchmark.compare = str(files[0])
        benchmark.handle_loading()
    except (
        PytestBenchmarkWarning,
        UsageError,
    ) as told:  # a warning under -W error: a traceback would tell nothing more
        raise pytest.UsageError(str(told)) from None
    except ValueError as error:  # its storage cannot name a file outside of the working directory
        raise pytest.UsageError(f"--benchmark-compare={compare}: {error}") from None
    finally:
        benchmark.compare = compare


def _drop_volatile(machine_info: dict[str, Any]) -> None:
    cpu: dict[str, Any] = machine_info.get("cpu") or {}
    for name in [name for name in cpu if name.startswith("hz_actual")]:
        del cpu[name]


def _natural(text: str) -> list[tuple[bool, int, str]]:
    """A sort key in which "@16" comes before "@100".

    >>> sorted(["@100", "@16", "@1", "x"], key=_natural)
    ['@1', '@16', '@100', 'x']
    """
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in re.split(r"(\d+)", text)]


class _Nowhere:
    """A terminal that forgets."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None
