"""The blocks of a session: which tests are views on which, and what each came to. The first that runs measures it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from .load.barrier import ALONE, Aborted
from .load.coordinator import Bench
from .load.deadlines import describe
from .load.gang_worker import worker_hooks
from .load.operations import OPERATIONS, Scenario, shown_operations
from .markers import read
from .naming import block_id, is_coroutine, level, measures, shape, variants
from .records.schema import Row
from .records.series import Series, SeriesTable
from .stash import SERIES, VERDICTS

if TYPE_CHECKING:
    from .load.block import Block
    from .load.member import Member
    from .session import BenchSession

__all__ = ["Blocks", "provider_name"]


def provider_name(node: pytest.Item) -> str:
    name: str = node.callspec.params["sandbox_provider"]  # type: ignore[attr-defined]
    return name


class Blocks:
    """One object a process, like the session that it belongs to."""

    def __init__(self, session: BenchSession) -> None:
        self._session = session
        self._members: dict[str, list[pytest.Item]] = {}
        self._measured: dict[str, list[Series]] = {}
        self._cut: dict[str, str] = {}
        self._owners: dict[tuple[Any, ...], str] = {}
        self._judged: dict[str, tuple[Block, bytes]] = {}

    def group(self, ours: Sequence[pytest.Item]) -> None:
        """Which tests are views on one block. ``UsageError`` for one that cannot measure."""
        for item in ours:
            if not measures(item):
                continue
            if not is_coroutine(item):
                name = getattr(item, "originalname", item.name)
                raise pytest.UsageError(
                    f"{item.nodeid}: sandbox_bench is awaited, so the test is a coroutine: write `async def {name}`"
                )
            self._members.setdefault(block_id(item), []).append(item)

    @property
    def members(self) -> Mapping[str, Sequence[pytest.Item]]:
        """The tests of each block, by its id."""
        return self._members

    @property
    def benches(self) -> list[Bench]:
        """What a gang must know of the tests that measure."""
        return [Bench(item.nodeid, level(item), id_) for id_, members in self._members.items() for item in members]

    async def measure(
        self, node: pytest.Item, lanes: int, scenario: Scenario, operations: Sequence[str]
    ) -> list[Series]:
        """The series of this test's provider; the first test of a block that gets here measures all of it."""
        measuring = self._session.measuring
        assert measuring is not None
        provider, id_ = provider_name(node), block_id(node)
        lacking = measuring.lacks(provider, scenario)
        if lacking:
            pytest.skip(f"{provider} {lacking}")
        if id_ not in self._measured or self._part is not None:
            await self._run(node, id_, lanes, scenario)
        if measuring.admission.used_up and scenario.sandboxes:
            most = f"--sandbox-max-sandboxes {measuring.admission.most}"
            pytest.fail(f"{id_} was cut short: as many sandboxes as {most} allows were made", pytrace=False)
        found = [s for s in self._measured[id_] if s.key.provider == provider and s.key.operation in operations]
        node.stash[SERIES] = [str(series.key) for series in found]
        if (budgets := self._session.budgets) is not None and id_ in self._judged and self._leads:
            node.stash[VERDICTS] = budgets.judge(node, provider, operations, *self._judged[id_])
        if id_ in self._cut:
            pytest.fail(f"{id_} was cut short: {self._cut[id_]}; the records hold the rounds until then", pytrace=False)
        return found

    async def _run(self, node: pytest.Item, id_: str, lanes: int, scenario: Scenario) -> None:
        measuring = self._session.measuring
        assert measuring is not None
        self._claim(node, id_, lanes, scenario)
        members = self._members.get(id_, [node])
        marks = [read(member) for member in members]
        block = await measuring.plan(
            id_,
            scenario,
            lanes,
            list(dict.fromkeys(provider_name(member) for member in members)),
            samples=max((m.samples for m in marks if m.samples is not None), default=None),
            warmup=max((m.warmup for m in marks if m.warmup is not None), default=None),
            variants=variants(node),
            shape=shape(node),
        )
        asked: dict[str, list[str]] = {}
        views = []
        for member, mark in zip(members, marks, strict=True):
            # A scenario of somebody's own is shown as a whole.
            operations = shown_operations(mark.operation or "") or scenario.operations
            asked.setdefault(provider_name(member), []).extend(operations)
            views.append((member, provider_name(member), operations))
        budgets = self._session.budgets
        if budgets is not None and any(map(budgets.about, members)):
            from .budgets.looks import schedule

            most = measuring.most_rounds(block)
            block = replace(block, plan=replace(block.plan, more=schedule(block.plan.rounds, most)[1:]))
            self._judged[id_] = block, b""

        def enough(others: bytes) -> bool:
            return budgets is None or budgets.enough(views, block, measuring.last_block + others)

        if self._part is not None:
            await self._run_together(self._part, block, asked, enough)
            return
        try:
            await measuring.run(block, asked, enough=enough)
        except BaseException as error:
            self._cut[id_] = describe(error)
            raise
        finally:
            keys = self._session.absorb(measuring.last_block)
            self._keep(block, measuring.last_block)
            self._measured[id_] = [series for key in keys if (series := self._session.results.get(key)) is not None]
            self._session.news.tell()

    def _keep(self, block: Block, rows: bytes) -> None:
        """The samples of a block that has budgets: they are looked at as they were when it could have ended."""
        if block.id in self._judged:
            self._judged[block.id] = self._judged[block.id][0], rows

    @property
    def _leads(self) -> bool:
        return self._part is None or self._part.rank == 0

    @property
    def _part(self) -> Member | None:
        hooks = worker_hooks(self._session.config)
        return None if hooks is None else hooks.member

    async def _run_together(
        self, part: Member, block: Block, asked: Mapping[str, Sequence[str]], enough: Callable[[bytes], bool]
    ) -> None:
        """As one of a gang. Rank 0 has all samples in the end, the others their own.

        Whether the block was measured before only the controller knows: this process may have had no part in it, or not
        have led it.
        """
        plan: Mapping[str, Any] = {}
        why = ""
        try:
            plan = await part.begin(_plan_of(block))
        except Aborted as error:
            why = str(error)
        if why:  # nothing of it was measured: the next of its views may have more luck
            pytest.fail(f"{block.id} was not measured: {why}", pytrace=False)
        if part.known is not None:
            rows, why = part.known
            if part.rank == 0:
                self._measured[block.id] = _series(rows)
                self._keep(block, rows)
            self._measured.setdefault(block.id, [])
        else:
            rows, why = await self._drive(part, block, plan, asked, enough)
            self._measured[block.id] = _series(rows)
            self._keep(block, rows)
        if why:
            self._cut[block.id] = why

    async def _drive(
        self,
        part: Member,
        block: Block,
        plan: Mapping[str, Any],
        asked: Mapping[str, Sequence[str]],
        enough: Callable[[bytes], bool],
    ) -> tuple[bytes, str]:
        """Measure a share of the block's lanes: what came of it, and why it was cut short, if it was."""
        measuring = self._session.measuring
        assert measuring is not None
        rows, why = b"", ""
        try:
            block = await measuring.follow(block, plan)
            try:
                await measuring.run(block, asked, ALONE if part.size == 1 else part, enough)
            finally:
                rows = measuring.last_block
                self._session.news.tell()
        except Aborted as error:
            why = str(error)
        return rows + await part.end(why), why

    def _claim(self, node: pytest.Item, id_: str, lanes: int, scenario: Scenario) -> None:
        """No two benches of somebody's own give one series: their samples would be mixed."""
        for operation in scenario.operations:
            if operation in OPERATIONS:
                continue
            owner = self._owners.setdefault((operation, variants(node), lanes, shape(node)), id_)
            if owner != id_:
                pytest.fail(
                    f"{operation!r} is measured by {owner.rpartition('@')[0]} already: give this one its own name, "
                    f'@pytest.mark.sandbox_bench("another_{operation}")',
                    pytrace=False,
                )


def _series(rows: bytes) -> list[Series]:
    table = SeriesTable()
    for row in msgspec.json.Decoder(Row).decode_lines(rows):
        table.add(row)
    return list(table)


def _plan_of(block: Block) -> dict[str, Any]:
    return {
        "providers": list(block.providers),
        "floor": block.floor,
        "rounds": block.plan.rounds,
        "warmup": block.plan.warmup,
        "more": list(block.plan.more),
    }
