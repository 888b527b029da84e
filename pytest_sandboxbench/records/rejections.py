"""What limits did to the samples of a series: how fast each rejection came, and what waited for a place with us."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping

__all__ = ["QUEUE", "TURNED_AWAY", "Rejections", "is_our_wait"]

QUEUE = "queue"
"""The phase in which a create waited for our own limits; ``queue_2`` and so on where a span has several."""

TURNED_AWAY = "turned_away"
"""The phase of a sample that was rejected by our own limits: the provider was never asked."""

_WAIT = re.compile(rf"{QUEUE}(?:_\d+)?")

_FIELDS = 3


def is_our_wait(phase: str) -> bool:
    """Of an instance with limits of ours: whether a phase is the wait for them."""
    return _WAIT.fullmatch(phase) is not None


class Rejections:
    """Fed by the series. ``ours`` is how many rejections were by our own limits, ``waited`` how many successes waited.

    A phase called ``queue`` is ours only where the instance has limits of ours: elsewhere a provider may mean its own.
    """

    __slots__ = ("_acts", "_waits", "ours")

    def __init__(self) -> None:
        self.ours = 0
        self._acts: dict[str, array[int]] = {}  # by outcome: the place of its round, when it was due, and its end
        self._waits = array("q")  # latency and wait, in turn

    def reject(self, outcome: str, place: int, due: int, ended: int, phases: Iterable[str]) -> None:
        """One rejection in the round that came ``place``-th; times in nanoseconds."""
        self.ours += TURNED_AWAY in phases
        self._acts.setdefault(outcome, array("q")).extend((place, due, ended))

    def serve(self, latency: int, phases: Mapping[str, tuple[int, int]]) -> None:
        """One success with phases; nanoseconds."""
        wait = sum(end - start for name, (start, end) in phases.items() if is_our_wait(name))
        if wait:
            self._waits.extend((latency, min(wait, latency)))

    @property
    def latencies(self) -> dict[str, list[int]]:
        """Outcome -> nanoseconds until each rejection, ascending. Outcomes in alphabetical order."""
        found = {}
        for outcome in sorted(self._acts):
            acts = self._acts[outcome]
            found[outcome] = sorted(end - due for due, end in zip(acts[1::_FIELDS], acts[2::_FIELDS], strict=True))
        return found

    @property
    def waited(self) -> int:
        return len(self._waits) // 2

    def without_waits(self, latencies: Iterable[int]) -> list[int]:
        """These latencies of the successes with the waits taken out, ascending; nanoseconds."""
        kept = Counter(latencies)
        kept.subtract(self._waits[::2])
        served = [latency - wait for latency, wait in zip(self._waits[::2], self._waits[1::2], strict=True)]
        return sorted([*kept.elements(), *served])

    def ends(self, place: int) -> Counter[int]:
        """When the rejections of the round that came ``place``-th ended, in nanoseconds."""
        return Counter(
            end
            for acts in self._acts.values()
            for at, end in zip(acts[::_FIELDS], acts[2::_FIELDS], strict=True)
            if at == place
        )
