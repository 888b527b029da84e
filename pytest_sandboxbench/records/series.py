"""A series in memory: what the samples of one key come to, fed row by row from a live run or from disk."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..model import SeriesKey
from .generator import SPAWN_QUEUE, Bin, Generator, Lanes, of_several_lanes, pack_act
from .rejections import QUEUE, Rejections
from .schema import Row, parse_key

__all__ = ["Series", "SeriesTable", "asked_rows", "block_of", "row_of_key"]

_KEPT_ERRORS = 3
_LONGEST_ERROR = 4000  # what we write ourselves is shorter
_LONGEST_OUTCOME = 60
_LATEST_NS = 1 << 62  # some 146 years


class Series:
    """Latencies by round, outcomes, and the wall time of each round; warm-ups are counted, never mixed in.

    ``rounds`` maps a round's number to the latencies (ns) of its successful samples (none, when all failed),
    ``phases`` a phase's name to all its durations (ns), ``queues`` holds how long our own start took (ns),
    ``rejections`` what limits did.
    """

    __slots__ = (
        "_edges",
        "_lags",
        "_lanes",
        "_places",
        "errors",
        "key",
        "outcomes",
        "phases",
        "queues",
        "rejections",
        "rounds",
        "warmups",
    )

    def __init__(self, key: SeriesKey) -> None:
        self.key = key
        self.rounds: dict[int, list[int]] = {}
        self.outcomes: Counter[str] = Counter()
        self.errors: list[str] = []
        self.phases: dict[str, array[int]] = {}
        self.queues = array("q")
        self._lags: array[int] | None = None  # as long as no adapter reports a queue of its own: the queues
        self.rejections = Rejections()
        self.warmups = 0
        self._edges: dict[int, list[int]] = {}  # by round: first due, last end, its place among the rounds
        self._places = array("I")  # that of each success, in the order in which they came, as in ``phases``
        self._lanes = Lanes() if of_several_lanes(key) else None

    def add(self, row: Row) -> None:
        """Take one sample in. ``ValueError`` for times that are none."""
        if not 0 <= row.scheduled_ns <= row.started_ns <= row.ended_ns < _LATEST_NS:
            raise ValueError(
                f"times out of order: {_times(scheduled=row.scheduled_ns, started=row.started_ns, ended=row.ended_ns)}"
            )
        if row.warmup:
            self.warmups += 1
            return
        outcome, number, scheduled, ended = row.outcome, row.round, row.scheduled_ns, row.ended_ns
        if len(outcome) > _LONGEST_OUTCOME:
            raise ValueError(f"an outcome of {len(outcome)} characters")
        self.outcomes[outcome] += 1
        edges = self._edges.get(number)
        if edges is None:
            edges = self._edges[number] = [scheduled, ended, len(self._edges)]
            self.rounds[number] = []
        else:
            if scheduled < edges[0]:
                edges[0] = scheduled
            if ended > edges[1]:
                edges[1] = ended
        if self._lanes is not None:
            self._lanes.add(pack_act(edges[2], scheduled, row.started_ns, ended, outcome == "ok"))
        if outcome == "ok":
            self.rounds[number].append(ended - scheduled)
            self._places.append(edges[2])
            self.queues.append(row.started_ns - scheduled)
            if self._lags is not None:
                self._lags.append(self.queues[-1])
            for name, (start, end) in row.phases.items():
                if not -_LATEST_NS < start <= end < _LATEST_NS:
                    raise ValueError(f"times out of order in phase {name[:60]!r}: {_times(start=start, end=end)}")
                durations = self.phases.get(name)
                if durations is None:
                    durations = self.phases[name] = array("q")
                durations.append(end - start)
                if name == SPAWN_QUEUE:
                    if self._lags is None:
                        self._lags = self.queues[:]
                    self._lags[-1] = min(self._lags[-1] + end - start, _LATEST_NS)
            if QUEUE in row.phases:
                self.rejections.serve(ended - scheduled, row.phases)
            return
        if len(self.errors) < _KEPT_ERRORS:
            self.errors.append(row.error[:_LONGEST_ERROR])
        if outcome.startswith("rejected"):
            self.rejections.reject(outcome, edges[2], scheduled, ended, row.phases)

    @property
    def latencies(self) -> list[int]:
        """All successful latencies in nanoseconds, in the order of the rounds."""
        return [latency for number in sorted(self.rounds) for latency in self.rounds[number]]

    @property
    def attempts(self) -> int:
        return sum(self.outcomes.values())

    @property
    def ok(self) -> int:
        return self.outcomes["ok"]

    @property
    def rejected(self) -> int:
        return sum(count for outcome, count in self.outcomes.items() if outcome.startswith("rejected"))

    @property
    def failed(self) -> int:
        return self.attempts - self.ok - self.rejected

    @property
    def wall_s(self) -> float:
        """Seconds from release to last end, summed over the rounds."""
        return sum(last - first for first, last, _ in self._edges.values()) / 1e9

    @property
    def walls_ns(self) -> dict[int, int]:
        """A round's number -> nanoseconds from its release to its last end, failures included."""
        return {number: last - first for number, (first, last, _) in self._edges.items()}

    def successes(self) -> list[tuple[int, int]]:
        """By round: how many acts succeeded, of how many. Of several lanes; of one, each act is a round."""
        return [(sum(ok), len(ok)) for _, _, _, ok in (() if self._lanes is None else self._lanes.by_round())]

    def phase_rounds(self, name: str) -> dict[int, list[int]] | None:
        """A round's number -> the durations (ns) of a phase; rounds without one are left out.

        None for a phase that not every success has: whose its durations are is not kept.
        """
        durations = self.phases.get(name)
        if durations is None or len(durations) != len(self._places):
            return None
        numbers = list(self._edges)
        found: dict[int, list[int]] = {}
        for place, duration in zip(self._places, durations, strict=True):
            found.setdefault(numbers[place], []).append(duration)
        return found

    @property
    def lags(self) -> array[int]:
        """The queues, with what an adapter calls :data:`~.generator.SPAWN_QUEUE` added: all the load generator's."""
        return self.queues if self._lags is None else self._lags

    def generator(self) -> Generator | None:
        """What the load generator did, by round; computed anew each time. None for the bursts of one lane."""
        return self._lanes.generator() if self._lanes is not None else None

    def arrivals(self) -> list[tuple[int, list[int]]]:
        """By round: when the last lane started, and when each one ended that was not rejected; ns. Of several lanes."""
        found = []
        for place, (_, starts, ends, _) in enumerate(() if self._lanes is None else self._lanes.by_round()):
            accepted = Counter(ends) - self.rejections.ends(place)
            found.append((max(starts), sorted(accepted.elements())))
        return found

    def ramp(self, bins: int = 5) -> list[Bin]:
        """Latencies by when a lane was due after its release; see :meth:`.Lanes.ramp`."""
        return self._lanes.ramp(bins) if self._lanes is not None else []


def _times(**times: int) -> str:
    """For a message: a number of five thousand digits cannot even be printed."""
    return ", ".join(f"{name} {at if abs(at) < 1 << 64 else 'beyond all clocks'}" for name, at in times.items())


class SeriesTable:
    """All series of a run, in the order in which they came."""

    def __init__(self) -> None:
        self._series: dict[str, Series] = {}

    def add(self, row: Row) -> None:
        text = row.series
        series = self._series.get(text)
        if series is None:
            series = self._series[text] = Series(parse_key(text))
        series.add(row)

    def get(self, key: SeriesKey | str) -> Series | None:
        return self._series.get(str(key))

    def __iter__(self) -> Iterator[Series]:
        return iter(self._series.values())

    def __len__(self) -> int:
        return len(self._series)


def row_of_key(key: SeriesKey) -> SeriesKey:
    """The row of a table that a series stands in: a provider's kind of pause is known only when it has paused."""
    return replace(key, variants=tuple(v for v in key.variants if v[0] != "kind"))


def block_of(header: Mapping[str, Any], key: SeriesKey) -> Mapping[str, Any]:
    """The block of a header in which a series was measured; empty for one that is not there."""
    return next(
        (
            block
            for block in header.get("blocks", [])
            if key.provider in block["providers"]
            and (block["level"], block["shape"]) == (key.level, key.shape)
            and key.operation in block["operations"]
            and block["variants"].items() <= dict(key.variants).items()
        ),
        {},
    )


def asked_rows(header: Mapping[str, Any]) -> dict[SeriesKey, None]:
    """The rows that a person asked for, in the order of the blocks of a header."""
    rows: dict[SeriesKey, None] = {}
    for block in header.get("blocks", []):
        variants = tuple(sorted(block["variants"].items()))
        for provider, operations in block["asked"].items():
            for operation in operations:
                rows[SeriesKey(provider, operation, variants, "", block["level"], block["shape"])] = None
    return rows
