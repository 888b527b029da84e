"""How many requests the lanes of one process may still begin in a round, each booked before it begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..clock import now_ns
from .shapes import Shape

__all__ = ["Requests"]


class Requests:
    """What the lanes of this process share in a round. One request is one life of a lane.

    The lanes draw from one number, and no lane has a share of its own: so all of them are busy until the last request
    was begun. With shares, a lane that was stalled would work alone at the end, and what it measures then would not be
    the level. Between processes, which cannot share a number without talking, it is dealt out (``Shape.share``).

    ``book`` writes so many creates down and says whether it could; ``unbook`` takes back what never came to be.
    """

    def __init__(
        self,
        shape: Shape,
        level: int,
        lanes: Sequence[int],
        book: Callable[[int], bool],
        unbook: Callable[[int], None],
    ) -> None:
        self._lasts_ns = shape.lasts_ns
        self._left = shape.share(level, lanes)
        self._book = book
        self._unbook = unbook
        self._begun = 0
        first = len(lanes) if self._left is None else self._left
        self._booked = first if first and book(first) else 0
        self._books = self._booked > 0
        self.again = shape.kind == "closed"
        """Whether a lane begins again when it ends."""

    def are_left(self, released_ns: int | None) -> bool:
        """Whether one more may be begun now, in a round that was released then, or is yet to be."""
        if self._left is not None:
            return self._left > 0
        return self._lasts_ns is None or released_ns is None or now_ns() < released_ns + self._lasts_ns

    def begin(self) -> int:
        """One more begins. Returns how many of its creates are in the ledger: 1, or 0 where it must see to that."""
        if self._left is not None:
            self._left -= 1
        self._begun += 1
        if not self._booked and self._books:
            # Nobody knows how many there will be. Twice as many each time: it is written while others are timed.
            self._books = self._book(self._begun)
            self._booked = self._begun if self._books else 0
        if not self._booked:
            return 0
        self._booked -= 1
        return 1

    def close(self) -> None:
        """None is begun any more; those that were booked and never begun are taken back."""
        self._left = 0
        if self._booked:
            self._unbook(self._booked)
            self._booked = 0
