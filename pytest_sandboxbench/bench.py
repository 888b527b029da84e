"""What ``sandbox_bench`` is: it runs the block that a test belongs to, once, and shows the test's own series of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

import pytest

from . import options
from .errors import UsageError
from .load.guard import GuardedSandbox
from .load.lanes import Lane
from .load.operations import Scenario, command_scenario, shown_operations
from .markers import NAME, read
from .naming import own_name, scenario
from .records.series import Series
from .records.untrusted import harmless
from .stash import VERDICTS

if TYPE_CHECKING:
    from .blocks import Blocks
    from .budgets.model import Verdict

__all__ = ["Measurement", "SandboxBench", "complaints"]


_MANY_TIMEOUTS = 3


class Measurement:
    """What a bench gets back: the series of its provider, the first of them in short.

    Latencies are seconds here, as everywhere where pytest users meet them.
    """

    def __init__(self, series: Sequence[Series]) -> None:
        self.series = tuple(series)

    @property
    def latencies_s(self) -> list[float]:
        """All successful latencies of the first series, in the order measured."""
        return [ns / 1e9 for ns in self.series[0].latencies] if self.series else []

    @property
    def median_s(self) -> float:
        from .stats import median

        return median(sorted(self.latencies_s))

    @property
    def success_rate(self) -> float:
        return self.series[0].ok / self.series[0].attempts if self.series and self.series[0].attempts else 0.0


class SandboxBench:
    """The fixture's value. A test awaits exactly one of ``measure``, ``run`` and ``measure_command``, once."""

    def __init__(self, blocks: Blocks, node: pytest.Item, level: int) -> None:
        self._blocks = blocks
        self._node = node
        self.level = level
        self.used = False

    async def measure(
        self,
        act: Callable[[GuardedSandbox], Awaitable[object]] | None = None,
        *,
        operation: str | None = None,
    ) -> Measurement:
        """Time the built-in operation of the marker, or ``act``: a coroutine function that takes a ready sandbox.

        Each sample of ``act`` gets a sandbox of its own, made before and destroyed after, outside of the timed region;
        an exception in it, a failed ``assert`` for instance, is a failed sample.
        """
        name = operation or read(self._node).operation
        if act is None:
            if name is None:
                _refuse('measure() needs a function, or the marker: @pytest.mark.sandbox_bench("startup")')
            try:
                return await self._view(scenario(self._node.config, name), shown_operations(name))
            except UsageError as error:
                _refuse(f"{error}; or give measure() a function of yours")
        name = self._checked(name or own_name(self._node))

        async def live(lane: Lane) -> None:
            sandbox = await lane.sandbox()
            async with lane.timed(name):
                await act(sandbox)

        return await self._view(Scenario(name, (name,), live, "exec", own=True), (name,))

    async def run(self, live: Callable[[Lane], Awaitable[None]], *operations: str) -> Measurement:
        """Time a life of your own: ``live(lane)`` opens ``lane.timed(operation)`` for each of ``operations``."""
        names = tuple(self._checked(name) for name in operations or (own_name(self._node),))
        return await self._view(Scenario(own_name(self._node), names, live, own=True), names)

    async def measure_command(self, argv: Sequence[str]) -> Measurement:
        """Time a cold run of a command: a new sandbox, its output and exit code 0. The command is part of the key."""
        return await self._view(command_scenario(list(argv)), ("cold_run",))

    async def _view(self, scenario: Scenario, operations: Sequence[str]) -> Measurement:
        if self.used:
            _refuse("a test measures once: write a second test, or run() with two operations")
        self.used = True
        series = await self._blocks.measure(self._node, self.level, scenario, operations)
        verdicts = self._node.stash.get(VERDICTS, [])
        if verdicts:
            from .results import properties

            self._node.user_properties += properties(verdicts)
        # Somebody said how many may fail, and it is proved that no more do.
        allowed = {verdict.series for verdict in verdicts if _allows_failures(verdict)}
        broken = [_complaint(one) for one in series if not one.ok or (one.failed and str(one.key) not in allowed)]
        broken += complaints(verdicts, strict=options.strict(self._node.config))
        if broken:
            pytest.fail("\n".join(broken), pytrace=False)
        return Measurement(series)

    @staticmethod
    def _checked(name: str) -> str:
        if shown_operations(name):
            _refuse(
                f"{name!r} is built in, with a span of its own: give yours another name, "
                f'@pytest.mark.sandbox_bench("my_{name}")'
            )
        if not NAME.fullmatch(name):
            _refuse(f"{name!r} is not a name for an operation: letters, digits, '_', '+' and '-'")
        return name


def _refuse(message: str) -> NoReturn:
    pytest.fail(message, pytrace=False)


def _allows_failures(verdict: Verdict) -> bool:
    budget = verdict.placed.budget
    return verdict.outcome == "pass" and budget.statistic == "success" and budget.low > 0


def complaints(verdicts: Sequence[Verdict], *, strict: bool) -> list[str]:
    """Why budgets fail a test, in words; nothing where they hold. An inconclusive one fails it only if ``strict``."""
    if not verdicts:
        return []
    from .budgets.wording import describe

    failing = ("fail", "inconclusive") if strict else ("fail",)
    return [describe(verdict) for verdict in verdicts if verdict.outcome in failing]


def _complaint(series: Series) -> str:
    from .report.table import describe_row, row_of  # no worker computes statistics unless something failed

    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(series.outcomes.items()) if outcome != "ok")
    cause = f"\n  first: {harmless(series.errors[0], 600)}" if series.errors else ""
    kept = f"\n  the others: {describe_row(row_of(series))}" if series.ok else ""
    if series.outcomes.get("timeout", 0) >= _MANY_TIMEOUTS:
        cause += (
            "\n  each waited for its deadline: --sandbox-timeout shortens it, --sandbox-max-seconds ends a block early"
        )
    return f"{series.key}: {counts or 'nothing measured'} of {series.attempts}{cause}{kept}"
