"""What the load generator itself did in a series: when lanes really began, and how many were under way at once."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from ..model import SeriesKey

__all__ = ["SPAWN_QUEUE", "Bin", "Generator", "Lanes", "in_flight", "of_several_lanes"]

SPAWN_QUEUE = "spawn_queue"
"""The phase in which an act waited for the adapter's own threads or loop before anything was asked of the sandbox."""


class Bin(NamedTuple):
    """Lanes due ``first_ns`` to ``last_ns`` after the release: ascending latencies (ns), of those that succeeded."""

    first_ns: int
    last_ns: int
    latencies: list[int]


class Generator(NamedTuple):
    """What the generator did, by round, in the order in which the rounds came.

    ``spreads``   ns from the first lane's start to the last's, each counted from when that lane was due
    ``queues``    ns, the median of the lanes' waits for their own start
    ``achieved``  the most lanes that were in flight at one instant
    """

    spreads: array[int]
    queues: array[float]
    achieved: array[int]

    @property
    def spread_ns(self) -> float:
        """The median over the rounds."""
        return _middle(sorted(self.spreads))

    @property
    def worst_spread_ns(self) -> int:
        return max(self.spreads)

    @property
    def queue_ns(self) -> float:
        """The median over the rounds."""
        return _middle(sorted(self.queues))

    @property
    def achieved_range(self) -> tuple[int, int]:
        """The least and the most of all rounds."""
        return min(self.achieved), max(self.achieved)


class Lanes:
    """The times of every act of a series, failed ones included: 29 bytes each, looked at only when somebody asks."""

    __slots__ = ("due", "ends", "ok", "rounds", "starts")

    def __init__(self) -> None:
        self.rounds = array("I")
        self.due = array("q")
        self.starts = array("q")
        self.ends = array("q")
        self.ok = array("b")

    def add(self, place: int, due: int, started: int, ended: int, ok: bool) -> None:
        """One act of the round that came ``place``-th; times in ns with ``due <= started <= ended``."""
        self.rounds.append(place)
        self.due.append(due)
        self.starts.append(started)
        self.ends.append(ended)
        self.ok.append(ok)

    def generator(self) -> Generator | None:
        """None as long as there is no act."""
        if not self.rounds:
            return None
        found = Generator(array("q"), array("d"), array("I"))
        for acts in self._by_round():
            starts = [self.starts[i] for i in acts]
            waits = sorted(self.starts[i] - self.due[i] for i in acts)
            found.spreads.append(waits[-1] - waits[0])
            found.queues.append(_middle(waits))
            found.achieved.append(in_flight(starts, [self.ends[i] for i in acts]))
        return found

    def ramp(self, bins: int) -> list[Bin]:
        """Latencies by when a lane was due after its release, in ``bins`` equal parts of the latest such time.

        Lanes that are due at even steps fall into the bins evenly. One bin where all were due at once.
        """
        offsets, values = array("q"), array("q")
        latest = 0
        for acts in self._by_round():
            first = min(self.due[i] for i in acts)
            for i in acts:
                latest = max(latest, self.due[i] - first)
                if self.ok[i]:
                    offsets.append(self.due[i] - first)
                    values.append(self.ends[i] - self.due[i])
        count = bins if latest else 1
        # A lane later than the last edge does not exist, so that the last bin is as wide as the others.
        edges = [latest * i // count for i in range(count + 1)]
        found = [Bin(first, last, []) for first, last in pairwise(edges)]
        for offset, value in zip(offsets, values, strict=True):
            found[min(count - 1, offset * count // (latest or 1))].latencies.append(value)
        for one in found:
            one.latencies.sort()
        return found

    def _by_round(self) -> Iterator[Sequence[int]]:
        """The places of each round's acts. Where several processes measured, those of a round lie apart."""
        place = self.rounds.__getitem__
        order: Sequence[int] = range(len(self.rounds))
        if any(later < earlier for earlier, later in pairwise(self.rounds)):
            order = sorted(order, key=place)
        for _, acts in groupby(order, key=place):
            yield list(acts)


def in_flight(starts: Sequence[int], ends: Sequence[int]) -> int:
    """The most acts that were under way at one instant; each from its start up to, not including, its end.

    >>> in_flight([0, 1, 5], [5, 2, 6])
    2
    """
    if not starts:
        return 0
    if max(starts) < min(ends):  # a burst, nearly always
        return len(starts)
    over = sorted(ends)
    return max(begun - bisect_right(over, start) for begun, start in enumerate(sorted(starts), 1))


def of_several_lanes(key: SeriesKey) -> bool:
    """Whether lanes can have waited for each other: one lane of a burst is let go by itself."""
    return (key.level, key.shape) != (1, "burst")


def _middle(ascending: Sequence[float]) -> float:
    count = len(ascending)
    return (ascending[(count - 1) // 2] + ascending[count // 2]) / 2
