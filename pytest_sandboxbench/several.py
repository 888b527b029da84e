"""Budgets on several series: judged where results are shown, each as soon as the last of its series was reported.

So is what every budget of the session came to: which applied to nothing, and why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from . import options
from .baseline.bridge import baseline_samples, saves
from .bench import complaints
from .budgeting import check, lacks, last_failed, reached
from .budgets.evidence import Evidence, evidence_of
from .budgets.grammar import write
from .budgets.looks import confidence
from .budgets.matching import Unmatched, applies, idle_levels, unmatched
from .budgets.model import Placed, Verdict
from .budgets.plain import from_plain
from .budgets.sources import OPTION
from .budgets.wording import describe
from .records.series import Series, block_of
from .results import emit

if TYPE_CHECKING:
    from .session import BenchSession

__all__ = ["Several"]


class Several:
    """One object a process. ``verdicts`` are all that are known, in the order in which they came."""

    def __init__(self, session: BenchSession) -> None:
        self._session = session
        self._marked: dict[Placed, None] = {}
        self._reported: dict[str, list[str]] = {}
        self._done: set[tuple[Placed, str]] = set()
        self._names: set[str] = set()
        self.verdicts: list[Verdict] = []
        self.failed = False
        self.unmatched: list[Unmatched] = []

    def hear(self, nodeid: str, payload: Mapping[str, Any]) -> None:
        """What a test said on its report: which series it showed, and what came of budgets."""
        for key in payload["series"]:
            self._reported.setdefault(key, []).append(nodeid)
        self.verdicts += from_plain(payload.get("verdicts", ()), Verdict)
        self._marked.update(dict.fromkeys(from_plain(payload.get("budgets", ()), Placed)))

    def judge(self) -> None:
        """Those whose series are complete by now. To be called when a test is over."""
        if not self._reported:
            return
        config = self._session.config
        for placed in [placed for placed in self._all() if placed.budget.of_several and not lacks(config, placed)]:
            for key in [key for key in self._reported if (placed, key) not in self._done]:
                series = self._session.results.get(key)
                evidence = None if series is None else self._evidence(placed, series)
                if evidence is not None:
                    self._done.add((placed, key))
                    self._emit(placed, evidence)

    def end(self, *, whole: bool) -> None:
        """All series are known, if the run came to its end: what no series was found for is told, or fails."""
        if not whole or not self._reported:
            return
        session = self._session
        shown = [series for series in session.results if str(series.key) in self._reported]
        judged = {verdict.placed for verdict in self.verdicts}
        idle = [placed for placed in self._all() if placed not in judged]
        strict = options.strict(session.config)
        parts = idle_levels([placed for placed in self._all() if placed in judged], shown)
        for one in [*self._idle(idle, shown), *parts]:
            by_option = one.placed.where == OPTION and one not in parts and not last_failed(session.config)
            if one.mistaken or by_option or (strict and not self._is_first(one.placed)):
                self.failed = True
                told = write(one.placed.budget)
                verdict = Verdict("fail", one.placed, told, reason=one.reason)
                self.verdicts.append(verdict)
                emit(session.config, self._name(one.placed, ""), describe(verdict), verdicts=[verdict])
            else:
                self.unmatched.append(one)

    def _idle(self, placed: Sequence[Placed], shown: Sequence[Series]) -> Iterator[Unmatched]:
        """Why each of these has no verdict, of those that could have had one."""
        lacking = {one: why for one in placed if (why := lacks(self._session.config, one))}
        yield from (Unmatched(one, why, mistaken=False) for one, why in lacking.items())
        found = unmatched([one for one in placed if one not in lacking], shown)
        yield from found
        told = {*lacking, *(one.placed for one in found)}
        for one in placed:
            if one not in told and one.budget.of_several:
                yield Unmatched(one, "what it is divided by was not measured beside it", mistaken=False)

    def _is_first(self, placed: Placed) -> bool:
        """The first run of all saves what the next one compares with, and has nothing to compare with itself."""
        return saves(self._session.config) and any(over.kind == "baseline" for over in placed.budget.over)

    @cached_property
    def _baseline(self) -> Mapping[str, Sequence[float]]:
        return baseline_samples(self._session.config)

    def _all(self) -> list[Placed]:
        budgets = self._session.budgets
        return [*([] if budgets is None else budgets.placed), *self._marked]

    def _evidence(self, placed: Placed, series: Series) -> Evidence | None:
        """Of a series that was reported and the budget is about; None as long as something that it needs was not."""
        budget, results = placed.budget, self._session.results
        if not applies(budget, series):
            return None
        block = block_of(self._session.header, series.key)
        sure = 0.95
        if all(over.kind in ("floor", "series") for over in budget.over):
            looks: Sequence[int] = block.get("looks") or [max(series.rounds, default=0) + 1]
            sure = confidence(reached(looks, [series]), len(looks))
        samples = None
        if any(over.kind == "baseline" for over in budget.over):
            samples = self._baseline.get(str(series.key))
        found = evidence_of(budget, series, results, block.get("floor"), confidence=sure, baseline=samples)
        for over in budget.over:
            if over.kind == "level" and (found.below is None or str(found.below.series.key) not in self._reported):
                return None
        wanted = next((over.provider for over in budget.over if over.kind == "series"), None)
        if wanted is not None and (found.other is None or wanted == series.key.provider):
            return None
        return found

    def _emit(self, placed: Placed, evidence: Evidence) -> None:
        session = self._session
        name = self._name(placed, str(evidence.series.key))
        verdict = check(session.config, placed, evidence)
        self.verdicts.append(verdict)
        failure = "\n".join(complaints([verdict], strict=options.strict(session.config)))
        self.failed = self.failed or bool(failure)
        tests = [nodeid for key in verdict.keys for nodeid in self._reported.get(key, ())]
        emit(session.config, name, failure, verdicts=[verdict], tests=tests)

    def _name(self, placed: Placed, key: str) -> str:
        """A name that no other has: of the budget, with the provider or the whole key where it is about several."""
        text = write(placed.budget)
        candidates = [text] if placed.budget.provider is not None or not key else [f"{text} [{key.partition(':')[0]}]"]
        candidates += [f"{text} [{key or placed.where}]"]
        name = next((name for name in candidates if name not in self._names), f"{text} [{key} {len(self._names)}]")
        self._names.add(name)
        return name
