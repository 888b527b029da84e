"""What ``sandbox_bench`` is: it runs the block that a test belongs to, once, and shows the test's own series of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import pytest

from .load.guard import GuardedSandbox
from .load.lanes import Lane
from .load.operations import Scenario, command_scenario, scenario_of, shown_operations
from .records.series import Series
from .report.table import describe_row, row_of
from .report.text import harmless

if TYPE_CHECKING:
    from .session import BenchSession

__all__ = ["Measurement", "SandboxBench"]


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

    def __init__(self, session: BenchSession, node: pytest.Item, level: int) -> None:
        self._session = session
        self._node = node
        self.level = level

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
        if act is None:
            name = operation or self._session.mark(self._node).operation
            if name is None:
                raise pytest.UsageError(
                    f"{self._node.nodeid}: measure() needs a function, or the marker: "
                    '@pytest.mark.sandbox_bench("startup")'
                )
            return await self._view(scenario_of(name), shown_operations(name))
        name = operation or self._session.mark(self._node).operation or _test_name(self._node)

        async def live(lane: Lane) -> None:
            sandbox = await lane.sandbox()
            async with lane.timed(name):
                await act(sandbox)

        return await self._view(Scenario(name, (name,), live, "exec"), (name,))

    async def run(self, live: Callable[[Lane], Awaitable[None]], *operations: str) -> Measurement:
        """Time a life of your own: ``live(lane)`` opens ``lane.timed(operation)`` for each of ``operations``."""
        names = operations or (_test_name(self._node),)
        return await self._view(Scenario(_test_name(self._node), names, live), names)

    async def measure_command(self, argv: Sequence[str], label: str) -> Measurement:
        """Time a cold run of a command: a new sandbox, its output and exit code 0."""
        return await self._view(command_scenario(list(argv), label), ("cold_run",))

    async def _view(self, scenario: Scenario, operations: Sequence[str]) -> Measurement:
        series = await self._session.measure(self._node, self.level, scenario, operations)
        broken = [one for one in series if one.failed or not one.ok]
        if broken:
            pytest.fail("\n".join(_complaint(one) for one in broken), pytrace=False)
        return Measurement(series)


def _complaint(series: Series) -> str:
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(series.outcomes.items()) if outcome != "ok")
    cause = f"\n  first: {harmless(series.errors[0], 600)}" if series.errors else ""
    kept = f"\n  the others: {describe_row(row_of(series))}" if series.ok else ""
    return f"{series.key}: {counts or 'nothing measured'} of {series.attempts}{cause}{kept}"


def _test_name(node: pytest.Item) -> str:
    name = getattr(node, "originalname", None) or node.name
    return str(name).removeprefix("test_")
