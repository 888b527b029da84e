"""The budgets of a session: where they stand, which tests they are about, and what came of them.

Those on one series are judged where their test runs, in its call phase, after rank 0 of a gang has the samples of all.
Those on several are judged where results are shown (``several.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
import pytest

from . import options
from .baseline.bridge import compares
from .budgets.evidence import Evidence, evidence_of
from .budgets.grammar import write
from .budgets.looks import confidence
from .budgets.matching import Unmatched, applies, unmatched
from .budgets.model import Placed, Verdict
from .budgets.sources import OPTION, from_marker, from_option, read_file
from .errors import UsageError
from .load.operations import shown_operations
from .markers import BUDGET, read
from .model import SeriesKey
from .naming import level, own_name, scenario, shape, variants
from .records.schema import Row
from .records.series import Series, SeriesTable
from .records.untrusted import harmless

if TYPE_CHECKING:
    from .load.block import Block

__all__ = ["Budgets", "check", "expected_keys", "lacks", "last_failed", "reached"]


class Budgets:
    """One object a process, like the session that it belongs to."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @cached_property
    def placed(self) -> list[Placed]:
        """All but those of markers. ``pytest.UsageError`` for a text that is no budget."""
        config = self._config
        try:
            found = from_option(config.getoption("sandbox_budget"))
            if file := options.get(config, "budget-file"):
                typed = config.getoption("sandbox_budget_file") is not None
                found += read_file((config.invocation_params.dir if typed else config.rootpath) / file)
            project = config.rootpath / "pyproject.toml"
            if project.is_file():
                found += read_file(project, inside=("tool", "sandboxbench"))
            for texts in config.hook.pytest_sandboxbench_budgets(config=config):
                found += from_option(texts, where="hook pytest_sandboxbench_budgets")
        except UsageError as error:
            raise pytest.UsageError(str(error)) from None
        return found

    def marked(self, item: pytest.Item) -> list[Placed]:
        """Those of a test's markers; their operation is the test's own where they name none. ``pytest.UsageError``."""
        own, found = read(item).operation or own_name(item), []
        for marker in item.iter_markers(BUDGET):
            try:
                found += from_marker(marker.args, marker.kwargs, f"marker at {item.nodeid.partition('[')[0]}")
            except UsageError as error:
                raise pytest.UsageError(str(error)) from None
        return [replace(one, budget=replace(one.budget, operation=one.budget.operation or own)) for one in found]

    def about(self, item: pytest.Item) -> list[Placed]:
        """All that may be about a test."""
        return self.marked(item) + self.placed

    def check_option(self) -> None:
        """``pytest.UsageError`` for a budget of the command line that the rest of it makes idle."""
        for placed in self.placed:
            if placed.where == OPTION and (reason := lacks(self._config, placed)):
                raise pytest.UsageError(f"{OPTION}: {write(placed.budget)!r} cannot be judged: {reason}")

    def check(self, items: Sequence[pytest.Item]) -> None:
        """``pytest.UsageError`` for one that is about none of these tests, or, of a marker, not about its own.

        Those of the command line and of markers, as far as that is known before the tests run: a bench of somebody's
        own may measure what it likes.
        """
        known = [item for item in items if shown_operations(read(item).operation or "")]
        for item in known:
            for one in self._astray(item, [Series(key) for key in expected_keys(item)]):
                raise pytest.UsageError(f"{one.placed.where}: {write(one.placed.budget)!r} {one.reason}")
        if last_failed(self._config):
            return
        keys = [key for item in known for key in expected_keys(item)]
        operations = {key.operation for key in keys}
        whole = len(known) == len(items)
        about = [p for p in self.placed if p.where == OPTION and (whole or p.budget.operation in operations)]
        for one in unmatched(about, [Series(key) for key in dict.fromkeys(keys)]) if keys else ():
            raise pytest.UsageError(f"{OPTION}: {write(one.placed.budget)!r} {one.reason}")

    def judge(
        self, item: pytest.Item, provider: str, operations: Sequence[str], block: Block, rows: bytes
    ) -> list[Verdict]:
        """The verdicts on one series each of a test, which shows these operations of its provider.

        ``rows`` are the samples of its whole block. They are looked at as often as the block was, and the first verdict
        that is not inconclusive stands.
        """
        about = [
            placed for placed in self.about(item) if not placed.budget.of_several and not lacks(self._config, placed)
        ]
        if not about:
            return []
        tables = _tables(rows, block.plan.looks)
        shown = [s for s in tables[-1] if s.key.provider == provider and s.key.operation in operations]
        astray = [
            Verdict("fail", one.placed, str(shown[0].key), reason=one.reason) for one in self._astray(item, shown)
        ]
        return [*astray, *self._judged(about, shown, block, tables)]

    def _astray(self, item: pytest.Item, shown: Sequence[Series]) -> list[Unmatched]:
        """Budgets of a test's markers that are about another operation than it shows: they would never be judged."""
        operations = {series.key.operation for series in shown}
        marked = [placed for placed in self.marked(item) if placed.budget.operation not in operations]
        return unmatched(marked, shown) if shown else []

    def enough(self, views: Iterable[tuple[pytest.Item, str, Sequence[str]]], block: Block, rows: bytes) -> bool:
        """Whether more rounds could decide nothing: budgets are decided, or cannot be by as many as the block may take.

        A view is a test, its provider and the operations that it shows.
        """
        tables = _tables(rows, block.plan.looks)
        for item, provider, operations in views:
            about = [placed for placed in self.about(item) if _in_one_block(placed) and not lacks(self._config, placed)]
            shown = [s for s in tables[-1] if s.key.provider == provider and s.key.operation in operations]
            judged = self._judged(about, shown, block, tables)
            if any(_may_be_decided(verdict, block.plan.looks[-1]) for verdict in judged):
                return False
        return True

    def _judged(
        self, about: Sequence[Placed], shown: Sequence[Series], block: Block, tables: Sequence[SeriesTable]
    ) -> Iterator[Verdict]:
        """``tables`` hold what was measured at each look that the block came to."""
        looks = len(block.plan.looks)
        for placed in about:
            for key in [series.key for series in shown if applies(placed.budget, series)]:
                found: Verdict | None = None
                for look, table in enumerate(tables, 1):
                    series = table.get(key)
                    if series is not None and (found is None or found.outcome == "inconclusive"):
                        sure = confidence(look, looks)
                        evidence = evidence_of(placed.budget, series, table, block.floor, confidence=sure)
                        found = check(self._config, placed, evidence)
                if found is not None:
                    yield found


def expected_keys(item: pytest.Item) -> list[SeriesKey]:
    """The series that a test will show, as far as that is known before it runs."""
    named = read(item).operation or ""
    operations = shown_operations(named)
    inside = variants(item) + (scenario(item.config, named).variants if operations else ())
    where = (tuple(sorted(inside)), "", level(item), shape(item))
    provider = item.callspec.params["sandbox_provider"]  # type: ignore[attr-defined]
    return [SeriesKey(provider, operation, *where) for operation in operations or (named or own_name(item),)]


def check(config: pytest.Config, placed: Placed, evidence: Evidence) -> Verdict:
    """What the hook says, or its default. A hook of somebody's own that raises, or returns no verdict, is a failure."""
    try:
        verdict = config.hook.pytest_sandboxbench_check(config=config, placed=placed, evidence=evidence)
        if isinstance(verdict, Verdict):
            return verdict
        reason = f"pytest_sandboxbench_check returned {verdict!r}, which is no Verdict"
    except Exception as error:
        reason = f"pytest_sandboxbench_check raised {error!r}"
    from .session import session_of  # which makes what is made of these

    reason = session_of(config).cleaner.text(reason)
    return Verdict("fail", placed, str(evidence.series.key), reason=harmless(reason, 2000))


def last_failed(config: pytest.Config) -> bool:
    """Whether the person asked for what failed last only, and so not for what every budget is about."""
    return bool(config.getoption("lf", False))


def lacks(config: pytest.Config, placed: Placed) -> str:
    """What the whole run lacks for a budget, so that it is judged for no series, in words; empty for nothing.

    A baseline belongs to the controller: a worker does not know whether there is one.
    """
    for over in placed.budget.over:
        if over.kind == "floor" and options.get(config, "floor") == "none":
            return "there is no floor with --sandbox-floor none"
        if over.kind == "baseline" and not compares(config) and not hasattr(config, "workerinput"):
            return "no saved run to compare with was named: add --benchmark-compare"
    return ""


def reached(looks: Sequence[int], table: Iterable[Series]) -> int:
    """How many looks a block came to, from the rounds that it has; at least one."""
    rounds = max((max(series.rounds, default=-1) + 1 for series in table), default=0)
    return next((number for number, upto in enumerate(looks, 1) if upto >= rounds), len(looks))


def _may_be_decided(verdict: Verdict, most: int) -> bool:
    """Whether an undecided one can be decided within so many rounds. Without an interval there is nothing to narrow."""
    return verdict.outcome == "inconclusive" and verdict.interval is not None and verdict.needs <= most


def _in_one_block(placed: Placed) -> bool:
    return all(over.kind in ("floor", "series") for over in placed.budget.over)


def _tables(rows: bytes, looks: Sequence[int]) -> list[SeriesTable]:
    """What was measured by each look that a block came to; the last has all of it."""
    whole = _table(rows, looks[-1])
    return [*(_table(rows, upto) for upto in looks[: reached(looks, whole) - 1]), whole]


def _table(rows: bytes, rounds: int) -> SeriesTable:
    table = SeriesTable()
    for row in msgspec.json.Decoder(Row).decode_lines(rows):
        if row.round < rounds:
            table.add(row)
    return table
