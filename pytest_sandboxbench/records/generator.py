"""What the load generator itself did in a series: when lanes really began, and how many were under way at once."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from operator import gt, sub
from struct import Struct
from typing import NamedTuple

from ..model import SeriesKey

__all__ = ["SPAWN_QUEUE", "Bin", "Generator", "Lanes", "in_flight", "of_several_lanes", "pack_act"]

SPAWN_QUEUE = "spawn_queue"
"""The phase in which an act waited for the adapter's own threads or loop before anything was asked of the sandbox."""


_FIELDS = 5

pack_act = Struct(f"={_FIELDS}q").pack
"""Of the place of its round among the rounds, of when it was due, started and ended (ns), of whether it succeeded."""


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
    """The times of every act of a series, failed ones included: 40 bytes each, looked at only when somebody asks."""

    __slots__ = ("_acts", "add")

    def __init__(self) -> None:
        self._acts = array("q")
        # What ``pack_act`` made. A third of the time of five appends: a report may read a million of them.
        self.add = self._acts.frombytes

    def generator(self) -> Generator | None:
        """None as long as there is no act."""
        found = Generator(array("q"), array("d"), array("I"))
        for due, starts, ends, _ in self.by_round():
            waits = sorted(map(sub, starts, due))
            found.spreads.append(waits[-1] - waits[0])
            found.queues.append(_middle(waits))
            found.achieved.append(in_flight(starts, ends))
        return found if found.spreads else None

    def ramp(self, bins: int) -> list[Bin]:
        """Latencies by when a lane was due after its release, in ``bins`` equal parts of the latest such time.

        Lanes that are due at even steps fall into the bins evenly. One bin where all were due at once.
        """
        offsets, values = array("q"), array("q")
        latest = 0
        for due, _, ends, ok in self.by_round():
            first = min(due)
            latest = max(latest, max(due) - first)
            for at, ended, good in zip(due, ends, ok, strict=True):
                if good:
                    offsets.append(at - first)
                    values.append(ended - at)
        count = bins if latest else 1
        edges = [latest * i // count for i in range(count + 1)]
        found = [Bin(first, last, []) for first, last in pairwise(edges)]
        for offset, value in zip(offsets, values, strict=True):
            found[min(count - 1, offset * count // (latest or 1))].latencies.append(value)
        for one in found:
            one.latencies.sort()
        return found

    def by_round(self) -> Iterator[tuple[array[int], ...]]:
        """When the acts of each round were due, started and ended, and whether they succeeded."""
        places, *columns = (self._acts[i::_FIELDS] for i in range(_FIELDS))
        if any(map(gt, places, places[1:])):  # several processes measured: those of a round lie apart
            order = sorted(range(len(places)), key=places.__getitem__)
            columns = [array("q", map(column.__getitem__, order)) for column in columns]
        counts = Counter(places)
        ends = [0, *accumulate(counts[place] for place in sorted(counts))]
        for first, last in pairwise(ends):
            yield tuple(column[first:last] for column in columns)


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
