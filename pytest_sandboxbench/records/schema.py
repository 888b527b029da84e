"""How a sample is written: one flat JSON object a line, named so that a stranger can read it.

A folder of records holds

``run.json``        the header: schema version, facts of host, providers and guests, the definitions of the spans, and
                    the blocks that were planned; rewritten as a whole whenever one of them becomes known
``samples*.jsonl``  the samples, appended as they happen (one file a process)

Times in a sample are nanoseconds since ``origin_monotonic_ns`` of the header. Fields that hold their usual value are
left out.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Iterable, Mapping

import msgspec

from ..model import Sample, SeriesKey
from .redaction import hide, hide_values
from .untrusted import writable

__all__ = ["SCHEMA", "Row", "encode", "key_text", "lines", "parse_key"]

SCHEMA = 1

_UNSAFE = re.compile(r"[^\w.+-]+")
_LONGEST_NAME = 60

# What JSON may hold as it is and a terminal obeys: DEL, C1, and what turns the direction of writing.
_OBEYED = re.compile("[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")

_KEY = re.compile(
    r"(?P<provider>[^:{}@/]+):(?P<operation>[^:{}@/]+?)(?:\{(?P<variants>[^{}]*)\})?(?:\.(?P<phase>[^:{}@/]+))?"
    r"@(?P<level>\d{1,9})/(?P<shape>[^:{}@/]+)"
)

_LONGEST_KEY = 1000


class Row(msgspec.Struct, omit_defaults=True, frozen=True, gc=False):
    """A sample on disk and on the wire. ``released_ns`` is left out where it equals ``scheduled_ns`` (every burst)."""

    series: str
    round: int
    lane: int
    turn: int
    scheduled_ns: int
    started_ns: int
    ended_ns: int
    outcome: str
    released_ns: int | None = None
    path: str = "cold"
    sandbox: str = ""
    warmup: bool = False
    phases: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    error: str = ""


def encode(sample: Sample, origin_ns: int, secrets: Collection[str] = ()) -> Row:
    """A sample with its times counted from the origin of the run, and without these secrets in what others wrote."""

    def told(text: str) -> str:
        text = writable(text)
        return hide_values(text, secrets) if secrets else text

    same = sample.released_ns == sample.scheduled_ns
    return Row(
        series=str(sample.key),
        round=sample.round,
        lane=sample.lane,
        turn=sample.turn,
        scheduled_ns=sample.scheduled_ns - origin_ns,
        started_ns=sample.started_ns - origin_ns,
        ended_ns=sample.ended_ns - origin_ns,
        outcome=sample.outcome,
        released_ns=None if same else sample.released_ns - origin_ns,
        path=told(sample.path),
        sandbox=told(sample.sandbox),
        warmup=sample.warmup,
        phases={told(name): (start - origin_ns, end - origin_ns) for name, (start, end) in sample.phases.items()},
        error=hide(sample.error, secrets) if sample.error else "",
    )


def lines(rows: Iterable[Row]) -> bytes:
    """Rows as JSON lines, in which nothing stands that a terminal would obey: somebody will read them with ``less``."""
    text = msgspec.json.Encoder().encode_lines(rows)
    if text.isascii() and b"\x7f" not in text:
        return text
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text.decode()).encode()


def key_text(text: str) -> str:
    """A variant's name or value as it may stand in a series key; two that differ stay different."""
    safe = _UNSAFE.sub("_", text)[:_LONGEST_NAME]
    return safe if safe == text and text else f"{safe}-{zlib.crc32(text.encode(errors='backslashreplace')):08x}"


def parse_key(text: str) -> SeriesKey:
    """The inverse of ``str(SeriesKey)``; ``ValueError`` for anything else.

    >>> parse_key("docker:environment_ready{cache=miss}.install@16/burst").phase
    'install'
    """
    match = _KEY.fullmatch(text) if len(text) <= _LONGEST_KEY and text.isprintable() else None
    if match is None:
        raise _no_key(text)
    parts: Mapping[str, str | None] = match.groupdict()
    variants = []
    for pair in (parts["variants"] or "").split(","):
        name, found, value = pair.partition("=")
        if found:
            variants.append((name, value))
    key = SeriesKey(
        str(parts["provider"]),
        str(parts["operation"]),
        tuple(variants),
        parts["phase"] or "",
        int(parts["level"] or 1),
        str(parts["shape"]),
    )
    if str(key) != text:  # empty braces, a variant without a value, 01 lanes: one series must not have two names
        raise _no_key(text)
    return key


def _no_key(text: str) -> ValueError:
    return ValueError(f"not a series key: {text[:200]!r}; one looks like bubblewrap:startup@1/burst")
