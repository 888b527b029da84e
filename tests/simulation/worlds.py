"""Where samples come from whose true quantiles are known: mixtures of log-normal modes, that rounds may share."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from pytest_sandboxbench.model import SeriesKey
from pytest_sandboxbench.records.series import Series

__all__ = ["SCALE_NS", "World", "series_of"]

SCALE_NS = 50_000_000
"""The median of a mode of 1."""

_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class World:
    """``lanes`` latencies a round. All spreads are standard deviations of logarithms.

    ``modes``    share and place of each; ``shared``: a round as a whole is in one of them, not each lane by itself
    ``spread``   within a mode, of lanes; ``between``: of rounds
    """

    name: str
    spread: float
    between: float = 0.0
    modes: Sequence[tuple[float, float]] = ((1.0, 1.0),)
    shared: bool = False
    lanes: int = 1

    def draw(self, rng: random.Random, rounds: int) -> list[list[int]]:
        """Latencies in ns, by round."""
        places, weights = [math.log(place) for _, place in self.modes], [share for share, _ in self.modes]
        found = []
        for _ in range(rounds):
            effect = rng.gauss(0.0, self.between) if self.between else 0.0
            count = 1 if self.shared else self.lanes
            modes = rng.choices(places, weights, k=count) if len(places) > 1 else places * count
            modes = modes * (self.lanes // count)
            found.append([round(SCALE_NS * math.exp(mode + effect + rng.gauss(0.0, self.spread))) for mode in modes])
        return found

    def quantile(self, q: float) -> float:
        """The true one of all latencies, in ns."""
        spread = math.hypot(self.spread, self.between)
        low, high = -10.0, 10.0
        for _ in range(80):
            middle = (low + high) / 2
            below = sum(share * _NORMAL.cdf((middle - math.log(place)) / spread) for share, place in self.modes)
            low, high = (middle, high) if below < q else (low, middle)
        return SCALE_NS * math.exp(low)


def series_of(rounds: Sequence[list[int]], *, lanes: int = 1, provider: str = "p") -> Series:
    """As if each had been measured; made at once, since to feed it row by row would take most of the time."""
    series = Series(SeriesKey(provider, "startup", level=lanes))
    series.rounds = dict(enumerate(rounds))
    series.outcomes["ok"] = sum(map(len, rounds))
    return series
