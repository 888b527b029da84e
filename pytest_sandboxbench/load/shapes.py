"""Load shapes: how the lanes of a round are let go, when each is due, and how many requests they make."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from ..clock import NS_PER_S

__all__ = ["BURST", "EXAMPLES", "Shape", "default_rounds", "parse_shape"]

EXAMPLES = "burst, closed-100, closed-10s, rate-20, stagger-50ms"

_LONGEST_S = 3600
_MOST_REQUESTS = 1_000_000
_HIGHEST_RATE = 10_000
_NS_PER_MS = 1_000_000
_STEP_NS = 1_000  # a microsecond: no shorter time can be kept

_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12})?")
_TIME = re.compile(r"([0-9.]+)(ms|s)")


@dataclass(frozen=True, slots=True)
class Shape:
    """How the lanes of a round are let go. ``str`` gives the one spelling that stands in series keys.

    ``burst``    all at one instant, one request each
    ``closed``   all at one instant; each begins again when it ends, until ``requests`` were begun by all lanes
                 together, or until ``lasts_ns`` after the release
    ``rate``     open loop: lane k is due k / ``per_s`` seconds after the release, whatever became of those before it
    ``stagger``  lane k is due k times ``apart_ns`` after the release
    """

    kind: Literal["burst", "closed", "rate", "stagger"] = "burst"
    requests: int | None = None
    lasts_ns: int | None = None
    per_s: float = 0.0
    apart_ns: int = 0

    def __str__(self) -> str:
        if self.kind == "closed":
            return f"closed-{self.requests if self.lasts_ns is None else _time(self.lasts_ns)}"
        if self.kind == "rate":
            return f"rate-{_plain(Decimal(repr(self.per_s)))}"
        return f"stagger-{_time(self.apart_ns)}" if self.kind == "stagger" else "burst"

    def due_ns(self, lane: int) -> int:
        """How long after the release this lane begins, in nanoseconds. Counted from there, so no rounding adds up."""
        if self.kind == "rate":
            return round(lane * NS_PER_S / self.per_s)
        return lane * self.apart_ns

    def share(self, level: int, lanes: Iterable[int]) -> int | None:
        """How many requests these of ``level`` lanes make in a round. None: as many as fit into the time.

        Lane k of L stands for N // L of N requests, and for one of the rest where k is below N % L: so processes that
        drive lanes of one round need not talk to each other, and none has more than its lanes' due.
        """
        if self.lasts_ns is not None:
            return None
        if self.requests is None:
            return len(list(lanes))
        each, rest = divmod(self.requests, level)
        return sum(each + (lane < rest) for lane in lanes)

    def lacks(self, level: int) -> str:
        """Why it cannot be had with so many lanes; empty when it can."""
        if self.requests is not None and self.requests < level:
            return f"{self} is fewer requests than the {level} lanes that are to be kept busy"
        return ""


BURST = Shape()


def parse_shape(text: str) -> Shape:
    """Read a shape as a person writes it. ``ValueError`` with what is allowed and an example.

    >>> str(parse_shape("stagger-0.05s"))
    'stagger-50ms'
    """
    kind, found, value = text.partition("-")
    if text == "burst":
        return BURST
    if found and kind == "closed":
        lasts_ns = _read_time(value)
        if lasts_ns is not None:
            return Shape("closed", lasts_ns=lasts_ns)
        requests = _read_number(value)
        if requests is not None and requests == int(requests) and 1 <= requests <= _MOST_REQUESTS:
            return Shape("closed", requests=int(requests))
        raise _wrong(
            text,
            f"closed-N makes N requests in a round, from 1 to {_MOST_REQUESTS}, and closed-TIME those that are begun "
            f"within a time like 10s or 500ms, of at most {_LONGEST_S} s",
            "closed-100",
        )
    if found and kind == "rate":
        rate = _read_number(value)
        if rate is not None and Decimal("0.001") <= rate <= _HIGHEST_RATE and rate == round(rate, 3):
            return Shape("rate", per_s=float(rate))
        raise _wrong(text, f"rate-N is N arrivals a second, from 0.001 to {_HIGHEST_RATE}, 3 decimals", "rate-20")
    if found and kind == "stagger":
        apart_ns = _read_time(value)
        if apart_ns is not None:
            return Shape("stagger", apart_ns=apart_ns)
        raise _wrong(
            text,
            f"stagger-TIME lets the lanes go that far apart, like 50ms or 0.5s, of at most {_LONGEST_S} s",
            "stagger-50ms",
        )
    if text in ("closed", "rate", "stagger"):
        example = next(word for word in EXAMPLES.split(", ") if word.startswith(text))
        raise _wrong(text, f"{text} needs its number", example)
    raise _wrong(text, f"the shapes are {EXAMPLES}", "closed-100")


def default_rounds(shape: Shape, level: int, hosted: bool) -> int:
    """How many rounds are measured where nobody says otherwise.

    One lane that is let go once is a unit of its own: 60, since an upper bound for a 95th percentile needs 59. A burst
    of several lanes: 20. The other shapes last longer: 6, the least of which an exact 95 % interval of a median can be
    made. A hosted provider costs money and has quotas: 10 at most; fewer than 6 would cost, too, and show no interval.
    """
    alone = shape.kind != "closed" and level == 1
    rounds = 60 if alone else 20 if shape.kind == "burst" else 6
    return min(10, rounds) if hosted else rounds


def _wrong(text: str, allowed: str, example: str) -> ValueError:
    return ValueError(f"{text[:100]!r} is no load shape: {allowed}; write for example {example}")


def _read_number(text: str) -> Decimal | None:
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def _read_time(text: str) -> int | None:
    """Nanoseconds: whole microseconds, more than none."""
    match = _TIME.fullmatch(text)
    number = _read_number(match[1]) if match else None
    if match is None or number is None:
        return None
    ns = number * (_NS_PER_MS if match[2] == "ms" else NS_PER_S)
    return int(ns) if ns % _STEP_NS == 0 and _STEP_NS <= ns <= _LONGEST_S * NS_PER_S else None


def _time(ns: int) -> str:
    """Whole seconds, or milliseconds: no time has two spellings."""
    return f"{ns // NS_PER_S}s" if ns % NS_PER_S == 0 else f"{_plain(Decimal(ns) / _NS_PER_MS)}ms"


def _plain(number: Decimal) -> str:
    """Without an exponent, and without zeros that say nothing."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
