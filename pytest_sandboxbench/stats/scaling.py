"""What becomes of a series as the level rises: flat, held up by the CPU, or by something that lets one pass at a time.

Judged by what was measured at the lowest and the highest level. A lock is claimed only where nothing else explains the
growth: with 100 lanes on 2 CPUs a bare ``true`` takes 45 times as long as one, and no lock is in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from pytest_sandboxbench.stats.digits import number
from pytest_sandboxbench.stats.intervals import FEWEST_ROUNDS, Interval, ratio_of_intervals

__all__ = ["BUSY", "FLAT", "GENERATOR", "IDLE", "LIMITER", "Finding", "Level", "Verdict", "examine"]

Verdict = Literal["flat", "cpu bound", "serialised", "grows", "unknown"]

FLAT = 1.25
"""Up to this ratio a latency, or a throughput, is the same: medians of the same code differ by 1.11 to 1.14 between
runs, and a second run of the same should not change the verdict."""

BUSY = 0.7
"""From this share on the CPUs were busy. Not 1: a turn also holds waits, for the release and for what is torn down."""

IDLE = 0.5
"""Up to this share they were idle: of 2 CPUs one is free. Above it a queue may be one for the CPU."""

SURELY_IDLE = 0.25
"""Up to this share they were idle in the timed region as well, if that is a third of its turn: then ``BUSY`` CPUs in it
would have made 0.23 of the whole. Only above it a floor that grows by as large a factor speaks against a lock."""

ONE_AT_A_TIME = (0.5, 1.5)
"""How many acts were in service on average for it to be called one: nearer to one than to two, or to none. It is the
throughput times the service time of one alone, the utilisation law of Denning & Buzen, "The Operational Analysis of
Queueing Network Models", ACM Computing Surveys 10 (1978)."""

LINEAR = 1 / 3
"""Of n lanes in a queue for one server the median one waits for n / 2 others, in a closed loop for n. Less than a third
of that is not growth with the number of lanes."""

MOST = 0.5
"""A phase is named when it accounts for at least this share of the growth; phases may lie inside each other."""

GENERATOR = "generator"
"""Stands for a phase where the growth is the load generator's own lag."""

LIMITER = "limiter=ours"
"""The same where it is the wait for room under our own limits: a limit lets few in at a time, as a lock does."""

_SPAWN_QUEUE = "spawn_queue"
_MOST_NAMED = 3
_MOST_ROUNDS = 1000


@dataclass(frozen=True, slots=True)
class Level:
    """What was measured at one level. Times share one unit, whichever it is.

    ``median``            of the latencies, by :func:`percentile_interval` of their rounds
    ``throughput``        successful acts a second of the wall time of their rounds; None where not known
    ``phases``            name -> median duration
    ``floor``             the floor's median at this level, ``floor_throughput`` its acts a second
    ``busy``              share (0..1) of the host's CPU time that was used during its rounds
    ``cpus``              how many CPUs that is a share of
    ``lag``               median of how long an act waited for the load generator itself
    ``held``              what the median owes to waits under our own limits; None where they had no part in it
    """

    lanes: int
    median: Interval
    throughput: float | None = None
    phases: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    floor: float | None = None
    floor_throughput: float | None = None
    busy: float | None = None
    cpus: int | None = None
    lag: float | None = None
    held: float | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """What the levels show.

    ``growth``      latency at the highest level over that at the lowest, with its interval; None without two levels
    ``lanes``       the lowest and the highest level
    ``at_once``     how many acts were in service at the highest level; None unless the lowest is one lane
    ``phases``      what accounts for the growth, most of it first; :data:`GENERATOR` for the load generator's lag,
                    :data:`LIMITER` for our own limits
    ``text``        the verdict and its numbers in one sentence; names of phases in it are as they were given

    ``flat``        the whole interval of the growth lies below :data:`FLAT`
    ``cpu bound``   it grows; the CPUs became busy, or it grows as the floor does and nothing says they were idle
    ``serialised``  it grows with the number of lanes, one act is in service at a time, and the CPUs were idle
    ``grows``       it grows, and neither is proved
    ``unknown``     there are too few levels or rounds
    """

    verdict: Verdict
    text: str
    lanes: tuple[int, int]
    growth: Interval | None = None
    at_once: float | None = None
    phases: tuple[str, ...] = ()


def examine(levels: Iterable[Level]) -> Finding:
    """Compare the highest with the lowest of one or more levels; those between are not looked at.

    Raises ``ValueError`` for no level at all.
    """
    ordered = sorted(levels, key=lambda level: level.lanes)
    if not ordered:
        raise ValueError("a finding needs at least one level")
    pair = _Pair(ordered[0], ordered[-1])
    low, top = pair.low, pair.top
    if low.lanes == top.lanes:
        return pair.unknown(f"only level {low.lanes} was measured, and it takes two")
    short = next((level for level in (low, top) if level.median.units < FEWEST_ROUNDS), None)
    if short is not None:
        rounds = f"{short.median.units} round{'s' * (short.median.units != 1)}"
        return pair.unknown(f"level {short.lanes} has {rounds}, and it takes {FEWEST_ROUNDS} at each")
    if not (low.median.estimate > 0 and top.median.estimate > 0):
        return pair.unknown("a median is no time at all")
    growth = ratio_of_intervals(top.median, low.median)
    if growth.high <= FLAT:
        return pair.finding("flat", growth)
    if growth.low <= 1.0:
        return pair.unknown(f"{pair.numbers(growth)}: neither flat nor growing, {_more_rounds(growth)}", growth)
    return pair.finding(pair.cause(growth), growth)


@dataclass(frozen=True, slots=True)
class _Pair:
    """The lowest and the highest level."""

    low: Level
    top: Level

    def finding(self, verdict: Verdict, growth: Interval) -> Finding:
        phases = () if verdict == "flat" else tuple(self.growing())
        said = [f"{verdict}: {self.numbers(growth)}"]
        floor = self.floor_growth
        if floor is not None and verdict in ("cpu bound", "grows"):
            said.append(f"the floor takes {number(floor)}×")
        at_once = self.at_once
        if verdict == "grows" and at_once is not None and at_once > ONE_AT_A_TIME[1]:
            said.append(f"{number(at_once)} are in service at a time")
        if phases:
            said.append(_named(phases))
        return Finding(verdict, "; ".join(said), (self.low.lanes, self.top.lanes), growth, at_once, phases)

    def unknown(self, why: str, growth: Interval | None = None) -> Finding:
        return Finding("unknown", f"unknown: {why}", (self.low.lanes, self.top.lanes), growth)

    def numbers(self, growth: Interval) -> str:
        """The growth, the throughput and the CPU in words."""
        low, top = self.low, self.top
        alone = "1 lane does" if low.lanes == 1 else f"{low.lanes} lanes do"
        text = (
            f"{top.lanes} lanes take {number(growth.estimate)}× ({_bound(growth.low)}-{_bound(growth.high)}) "
            f"{'one lane' if low.lanes == 1 else f'{low.lanes} lanes'}'{'s' * (low.lanes == 1)} time"
        )
        change = self.throughput_growth
        if change is not None and top.throughput is not None and low.throughput is not None:
            same = 1 / FLAT <= change <= FLAT
            text += f" at {number(top.throughput)}/s, " + (
                f"as {alone} ({number(low.throughput)}/s)" if same else f"where {alone} {number(low.throughput)}/s"
            )
        if top.busy is None:
            return f"{text}, CPU use unknown"
        cpus = "CPUs are" if top.cpus is None else "the CPU is" if top.cpus == 1 else f"{top.cpus} CPUs are"
        text += f", while {cpus} {100 * top.busy:.0f} % busy"
        if top.busy >= BUSY and not self.became_busy and low.busy is not None:
            text += f" (with {low.lanes} lane{'s' * (low.lanes != 1)} {100 * low.busy:.0f} %)"
        return text

    def cause(self, growth: Interval) -> Verdict:
        busy = self.top.busy
        floor_tells = self.grows_with_the_floor() or self.grows_as_the_floor(growth)
        if busy is None or busy > IDLE:
            return "cpu bound" if floor_tells or self.became_busy else "grows"
        if busy <= SURELY_IDLE:
            floor_tells = self.grows_with_the_floor()
        if floor_tells or self.own_growth():
            return "grows"
        return "serialised" if self.one_at_a_time() else "grows"

    @property
    def became_busy(self) -> bool:
        """Whether the CPUs were busy at the highest level only: where they were at both, others may have used them."""
        low, top = self.low.busy, self.top.busy
        return top is not None and top >= BUSY and (low is None or low < BUSY)

    def grows_with_the_floor(self) -> bool:
        """Whether the floor grows by as much time: then the rest of the act does not grow at all."""
        if self.top.floor is None or self.low.floor is None:
            return False
        return self.top.median.estimate - self.low.median.estimate <= (self.top.floor - self.low.floor) * FLAT

    def grows_as_the_floor(self, growth: Interval) -> bool:
        """Whether the floor grows by as large a factor, and its throughput does not rise more.

        What waits for the CPU loses no throughput, or gains as the floor does while there are CPUs left; behind a lock
        latency may grow like the floor's by chance, but throughput stays.
        """
        floor, change, floor_change = self.floor_growth, self.throughput_growth, self.floor_throughput_growth
        if floor is None or floor <= FLAT:
            return False
        if change is not None and floor_change is not None and change * FLAT < floor_change:
            return False
        # Half as much is still the CPU: the rest of the act may be waiting that does not grow.
        return growth.low <= floor * FLAT and growth.high * 2 >= floor

    def one_at_a_time(self) -> bool:
        """Whether one act at a time was in service, as a whole or in a phase that accounts for the growth."""
        change = self.throughput_growth
        if self.low.lanes != 1 or change is None:
            return False
        alone = self.low.median.estimate
        parts = [(alone, self.top.median.estimate)]
        parts += [(self.low.phases.get(name, 0.0), self.top.phases[name]) for name in self.growing()]
        return any(
            ONE_AT_A_TIME[0] <= change * service / alone <= ONE_AT_A_TIME[1]
            and taken - service >= LINEAR * (self.top.lanes - 1) * service
            for service, taken in parts
        )

    def growing(self) -> list[str]:
        """The phases that account for most of the growth, the widest first."""
        grown = self.top.median.estimate - self.low.median.estimate
        if grown <= 0:
            return []
        if own := self.own_growth():
            return [own]
        found = [(self._by(name), name) for name in self.top.phases if name != _SPAWN_QUEUE]
        most = sorted((one for one in found if one[0] >= MOST * grown), key=lambda one: (-one[0], one[1]))
        return [name for _, name in most[:_MOST_NAMED]]

    def own_growth(self) -> str:
        """What of this program accounts for most of the growth; empty where that is the provider's."""
        grown = self.top.median.estimate - self.low.median.estimate
        lag = (self.top.lag or 0.0) - (self.low.lag or 0.0)
        if self.top.lag is None and _SPAWN_QUEUE in self.top.phases:
            lag = self._by(_SPAWN_QUEUE)
        held = (self.top.held or 0.0) - (self.low.held or 0.0)
        if grown <= 0 or lag + held < MOST * grown:
            return ""
        return LIMITER if held > lag else GENERATOR

    def _by(self, phase: str) -> float:
        return self.top.phases[phase] - self.low.phases.get(phase, 0.0)

    @property
    def at_once(self) -> float | None:
        """How many acts were in service at the highest level, when one lane alone has one in service."""
        return self.throughput_growth if self.low.lanes == 1 else None

    @property
    def throughput_growth(self) -> float | None:
        return _ratio(self.top.throughput, self.low.throughput)

    @property
    def floor_growth(self) -> float | None:
        return _ratio(self.top.floor, self.low.floor)

    @property
    def floor_throughput_growth(self) -> float | None:
        return _ratio(self.top.floor_throughput, self.low.floor_throughput)


def _ratio(top: float | None, low: float | None) -> float | None:
    return top / low if top and low else None


def _named(phases: tuple[str, ...]) -> str:
    if phases == (GENERATOR,):
        return "what grows is the queue of this program, not of the sandbox"
    if phases == (LIMITER,):
        return f"what serialises is our own limit ({LIMITER}), not the sandbox"
    *first, last = phases
    return f"phases {', '.join(first)} and {last} grow" if first else f"phase {last} grows"


def _bound(value: float) -> str:
    return number(value) if math.isfinite(value) else "…"


def _more_rounds(growth: Interval) -> str:
    """How many rounds it would take: the interval narrows with the root of their number."""
    near = growth.estimate <= math.sqrt(FLAT)
    reached, wanted = (growth.high, FLAT / growth.estimate) if near else (1 / growth.low, growth.estimate)
    distance = math.log(reached / growth.estimate) if near else math.log(growth.estimate * reached)
    if not math.isfinite(distance) or wanted <= 1:
        return "more rounds are needed"
    rounds = math.ceil(growth.units * (distance / math.log(wanted)) ** 2)
    if rounds > _MOST_ROUNDS:
        return "and no number of rounds that one would wait for would tell"
    return f"about {max(rounds, growth.units + 1)} rounds would tell"
