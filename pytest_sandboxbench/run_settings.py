"""How much is measured in a run, and how, as a person chose it."""

from __future__ import annotations

from dataclasses import dataclass

from .load.shapes import default_rounds, parse_shape

__all__ = ["Settings"]

_MORE = 4


@dataclass(frozen=True, slots=True)
class Settings:
    """What a person chose; None is the default, which may depend on the providers of a block."""

    rounds: int | None = None
    warmup: int | None = None
    seed: int | None = None
    timeout_s: float = 60.0
    max_time_s: float | None = None
    min_rounds: int = 1
    floor: str = "auto"
    most_rounds: int | None = None
    max_sandboxes: int | None = None
    quick: bool = False
    """One round, no warm-up, no floor: does it work at all?"""

    def rounds_of(self, shape: str, level: int, samples: int | None, *, hosted: bool) -> int:
        """How many rounds a block has; ``samples`` is what its tests want."""
        rounds = self.rounds or samples or default_rounds(parse_shape(shape), level, hosted)
        return 1 if self.quick else max(rounds, self.min_rounds)

    def warmups_of(self, warmup: int | None) -> int:
        """How many rounds come before those; ``warmup`` is what its tests want."""
        wanted = self.warmup if self.warmup is not None else 1 if warmup is None else warmup
        return 0 if self.quick else wanted

    def most(self, planned: int, *, hosted: bool) -> int:
        """How many rounds may be measured until a budget is decided that ``planned`` rounds leave open."""
        if self.most_rounds is not None:
            return self.most_rounds
        # Who said how many wants so many; and a cloud sends a bill for each.
        return planned if self.rounds or self.quick or hosted else _MORE * planned
