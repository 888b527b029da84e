"""The blocks of a session: which tests are views on which, and what each came to. The first that runs measures it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from .load.barrier import ALONE, Aborted
from .load.coordinator import Bench
from .load.gang_worker import worker_hooks
from .load.operations import OPERATIONS, Scenario, shown_operations
from .markers import read
from .naming import block_id, is_coroutine, measures, shape, variants
from .records.series import Series
from .stash import SERIES

if TYPE_CHECKING:
    from .load.block import Block
    from .load.member import Member
    from .session import BenchSession

__all__ = ["Blocks", "provider_name"]


def provider_name(node: pytest.Item) -> str:
    name: str = node.callspec.params["sandbox_provider"]  # type: ignore[attr-defined]
    return name


def _level(node: pytest.Item) -> int:
    return int(node.callspec.params.get("concurrency", 1))  # type: ignore[attr-defined]


class Blocks:
    """One object a process, like the session that it belongs to."""

    def __init__(self, session: BenchSession) -> None:
        self._session = session
        self._members: dict[str, list[pytest.Item]] = {}
        self._measured: dict[str, list[str]] = {}
        self._cut: dict[str, str] = {}
        self._owners: dict[tuple[Any, ...], str] = {}

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
    def benches(self) -> list[Bench]:
        """What a gang must know of the tests that measure."""
        return [Bench(item.nodeid, _level(item), id_) for id_, members in self._members.items() for item in members]

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
        if id_ not in self._measured:
            await self._run(node, id_, lanes, scenario)
        results = self._session.results
        found = [series for key in self._measured[id_] if (series := results.get(key)) is not None]
        found = [s for s in found if s.key.provider == provider and s.key.operation in operations]
        node.stash[SERIES] = [str(series.key) for series in found]
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
        for member, mark in zip(members, marks, strict=True):
            # A scenario of somebody's own is shown as a whole.
            operations = shown_operations(mark.operation or "") or scenario.operations
            asked.setdefault(provider_name(member), []).extend(operations)
        hooks = worker_hooks(self._session.config)
        part = None if hooks is None else hooks.member
        if part is None:
            try:
                await measuring.run(block, asked)
            finally:
                self._measured[id_] = self._session.absorb(measuring.last_block)
                self._session.news.tell()
        else:
            await self._run_together(part, block, asked)

    async def _run_together(self, part: Member, block: Block, asked: Mapping[str, Sequence[str]]) -> None:
        """As one of a gang. Rank 0 has all samples in the end, the others their own."""
        measuring = self._session.measuring
        assert measuring is not None
        rows = b""
        try:
            plan = await part.begin(_plan_of(block))
            if part.known is not None:
                rows, why = part.known
                if why:
                    self._cut[block.id] = why
            else:
                block = await measuring.follow(block, plan)
                try:
                    await measuring.run(block, asked, ALONE if part.size == 1 else part)
                finally:
                    rows = measuring.last_block
                    self._measured[block.id] = []  # so that nothing runs it once more, whatever comes now
                    self._session.news.tell()
        except Aborted as error:
            self._cut[block.id] = str(error)
        if part.known is None:
            rows += await part.end(self._cut.get(block.id, ""))
        self._measured[block.id] = self._session.absorb(rows)

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


def _plan_of(block: Block) -> dict[str, Any]:
    return {
        "providers": list(block.providers),
        "floor": block.floor,
        "rounds": block.plan.rounds,
        "warmup": block.plan.warmup,
    }
