"""Which tests of a suite end otherwise with the plugin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from .sides import SIDES, Run, Side

__all__ = ["Comparison", "compare"]

_AGAIN = 3
_MOST_AGAIN = 60  # more that differ are no accident


@dataclass(frozen=True, slots=True)
class Comparison:
    """``differing``: test id to what it did without and with the plugin. ``flaky`` differed once, and then not."""

    without: Run
    ours: Run
    differing: dict[str, tuple[str, str]]
    flaky: tuple[str, ...]

    @property
    def problem(self) -> str:
        """Why nothing can be said, or what differs; empty when all is well."""
        if sum(outcome == "passed" for outcome in self.without.outcomes.values()) < len(self.without.outcomes) / 2:
            return f"without the plugin most tests did not pass:\n{self.without.tail}"
        if not self.differing and not self.flaky and self.without.status != self.ours.status:
            return (
                f"exit status {self.without.status} without the plugin, {self.ours.status} with it:\n{self.ours.tail}"
            )
        return "\n".join(f"{test}: without the plugin {a}, with it {b}" for test, (a, b) in self.differing.items())

    @property
    def failed_on_both(self) -> list[str]:
        failed = [test for test, outcome in self.without.outcomes.items() if "failed" in outcome]
        return [test for test in failed if self.ours.outcomes.get(test) == self.without.outcomes[test]]

    def __str__(self) -> str:
        counts: dict[str, int] = {}
        for outcome in self.without.outcomes.values():
            counts[outcome] = counts.get(outcome, 0) + 1
        told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
        return f"{told} without the plugin; {len(self.differing)} differ with it, {len(self.flaky)} at first only"


def compare(sides: Sequence[Side], arguments: Sequence[str]) -> Comparison:
    """Run both sides at the same time, so that what the machine does falls on both alike.

    A test that differs counts when it differs in each of three more runs, on its own with the others that differed.
    """
    without, ours = _both(sides, arguments)
    first = differing = _differing(without, ours)
    for _ in range(_AGAIN):
        if not differing or len(differing) > _MOST_AGAIN:
            break
        again = _differing(*_both(sides, tuple(differing)), only=differing)
        differing = {test: pair for test, pair in differing.items() if test in again}
    return Comparison(without, ours, differing, tuple(test for test in first if test not in differing))


def _both(sides: Sequence[Side], arguments: Sequence[str]) -> tuple[Run, Run]:
    with ThreadPoolExecutor(len(SIDES)) as pool:
        without, ours = pool.map(lambda side: side.run(*arguments), sides)
    return without, ours


def _differing(without: Run, ours: Run, only: Iterable[str] | None = None) -> dict[str, tuple[str, str]]:
    tests = only if only is not None else dict.fromkeys([*without.outcomes, *ours.outcomes])
    pairs = {test: (without.outcomes.get(test, "not run"), ours.outcomes.get(test, "not run")) for test in tests}
    return {test: pair for test, pair in pairs.items() if pair[0] != pair[1]}
