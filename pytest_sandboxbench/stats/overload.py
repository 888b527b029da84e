"""Whether a system took in more than it has room for: who was accepted, and not over when the last one came."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Crowd", "beyond", "crowds"]


@dataclass(frozen=True, slots=True)
class Crowd:
    """One round: so many were ``accepted``, and so many of them had ``finished`` when the last request came."""

    accepted: int
    finished: int

    @property
    def inside(self) -> int:
        """How many were inside at once, at least, when the last request came: running, or waiting for it."""
        return self.accepted - self.finished


def crowds(rounds: Iterable[tuple[float, Sequence[float]]]) -> list[Crowd]:
    """The crowd of each round, from the instant of its last request and those at which the accepted ones ended.

    An end at that very instant is before it: the place may have been free.

    >>> crowds([(3.0, [2.0, 3.0, 5.0, 9.0])])
    [Crowd(accepted=4, finished=2)]
    """
    return [Crowd(len(ends), sum(end <= last for end in ends)) for last, ends in rounds]


def beyond(found: Sequence[Crowd], capacity: int) -> list[Crowd]:
    """Those in which more were inside than there is room for, waiting room included."""
    return [crowd for crowd in found if crowd.inside > capacity]
