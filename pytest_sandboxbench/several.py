"""Budgets on several series: judged where results are shown, each as soon as the last of its series was reported.

So is what every budget of the session came to: which applied to nothing, and why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import options
from .baseline.bridge import baseline_samples
from .bench import complaints
from .budgeting import check, reached
from .budgets.evidence import Evidence, evidence_of
from .budgets.grammar import write
from .budgets.looks import confidence
from .budgets.matching import Unmatched, matches, unmatched
from .budgets.model import Placed, Verdict
from .budgets.plain import from_plain
from .records.series import Series
from .results import emit

if TYPE_CHECKING:
    from .session import BenchSession

__all__ = ["Several"]


class Several:
    """One object a process. ``verdicts`` are all that are known, in the order in which they came."""

    def __init__(self, session: BenchSession) -> None:
        self._session = session
        self._marked: dict[str, Placed] = {}
        self._reported: dict[str, list[str]] = {}
        self._done: set[tuple[str, str]] = set()
        self._names: set[str] = set()
        self.verdicts: list[Verdict] = []
        self.failed = False
        self.unmatched: list[Unmatched] = []

    def hear(self, nodeid: str, payload: Mapping[str, Any]) -> None:
        """What a test said on its report: which series it showed, and what came of budgets."""
        for key in payload["series"]:
            self._reported.setdefault(key, []).append(nodeid)
        self.verdicts += from_plain(payload.get("verdicts", ()), Verdict)
        for placed in from_plain(payload.get("budgets", ()), Placed):
            self._marked.setdefault(f"{placed.where} {write(placed.budget)}", placed)

    def judge(self) -> None:
        """Those whose series are complete by now. To be called when a test is over."""
        if not self._reported:
            return
        for placed in [placed for placed in self._all() if placed.budget.of_several]:
            for series in list(self._session.results):
                evidence = self._evidence(placed, series)
                if evidence is not None and (place := (placed.where + write(placed.budget), str(series.key))):
                    if place in self._done:
                        continue
                    self._done.add(place)
                    self._emit(placed, evidence)

    def end(self, *, whole: bool) -> None:
        """All series are known, if the run came to its end: what no series was found for is told, or fails."""
        if not whole or not self._reported:
            return
        session = self._session
        shown = [series for series in session.results if str(series.key) in self._reported]
        judged = {(v.placed.where, write(v.placed.budget)) for v in self.verdicts}
        idle = [p for p in self._all() if (p.where, write(p.budget)) not in judged]
        strict = options.strict(session.config)
        for one in unmatched(idle, shown):
            if one.mistaken or strict or one.placed.where == "--sandbox-budget":
                self.failed = True
                said = f"{one.reason}\n  budget: {write(one.placed.budget)}  ({one.placed.where})"
                emit(session.config, self._name(one.placed, ""), said)
            else:
                self.unmatched.append(one)

    def _all(self) -> list[Placed]:
        budgets = self._session.budgets
        return [*([] if budgets is None else budgets.placed), *self._marked.values()]

    def _evidence(self, placed: Placed, series: Series) -> Evidence | None:
        """Of a series that the budget is about; None as long as something that it needs was not reported."""
        budget, results = placed.budget, self._session.results
        if str(series.key) not in self._reported or not matches(budget, series.key):
            return None
        block = self._block(series)
        sure = 0.95
        if all(over.kind in ("floor", "series") for over in budget.over):
            looks: Sequence[int] = block.get("looks") or [max(series.rounds, default=0) + 1]
            sure = confidence(reached(looks, [series]), len(looks))
        samples = None
        if any(over.kind == "baseline" for over in budget.over):
            samples = baseline_samples(self._session.config).get(str(series.key))
        found = evidence_of(budget, series, results, block.get("floor"), confidence=sure, baseline=samples)
        for over in budget.over:
            if over.kind == "level" and (found.below is None or str(found.below.series.key) not in self._reported):
                return None
        wanted = next((over.provider for over in budget.over if over.kind == "series"), None)
        if wanted is not None and (found.other is None or wanted == series.key.provider):
            return None
        return found

    def _block(self, series: Series) -> Mapping[str, Any]:
        key = series.key
        return next(
            (
                block
                for block in self._session.header.get("blocks", [])
                if (block["level"], block["shape"]) == (key.level, key.shape)
                and key.operation in block["operations"]
                and key.provider in block["providers"]
                and block["variants"].items() <= dict(key.variants).items()
            ),
            {},
        )

    def _emit(self, placed: Placed, evidence: Evidence) -> None:
        session = self._session
        name = self._name(placed, str(evidence.series.key))
        try:
            verdict = check(session.config, placed, evidence)
        except Exception as error:  # of somebody's own hook: this run has sandboxes to destroy
            self.failed = True
            emit(session.config, name, f"pytest_sandboxbench_check raised {error!r} for {placed.where}")
            return
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
