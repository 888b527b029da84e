"""Keys and samples come back from their text as they went in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_sandboxbench.model import Sample, SeriesKey
from pytest_sandboxbench.records.read import read_run
from pytest_sandboxbench.records.schema import Row, encode, lines, parse_key
from pytest_sandboxbench.records.series import SeriesTable

from .written import folder, sample

WORD = st.from_regex(r"[A-Za-z0-9_+ ~é-]{1,12}", fullmatch=True)
VALUE = st.from_regex(r"[A-Za-z0-9_.+/:@ -]{0,12}", fullmatch=True)
PROVIDER = st.from_regex(r"[A-Za-z0-9][\w.-]{0,12}", fullmatch=True)

KEYS = st.builds(
    SeriesKey,
    provider=PROVIDER,
    operation=WORD,
    variants=st.lists(st.tuples(WORD, VALUE), max_size=3, unique_by=lambda pair: pair[0]).map(
        lambda pairs: tuple(sorted(pairs))
    ),
    phase=st.just("") | WORD,
    level=st.integers(1, 10_000),
    shape=st.sampled_from(["burst", "closed", "rate"]),
)

TIMES = st.lists(st.integers(0, 1 << 60), min_size=4, max_size=4).map(sorted)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    scheduled, released, started, ended = draw(TIMES)
    return Sample(
        key=draw(KEYS),
        round=draw(st.integers(-5, 1000)),
        lane=draw(st.integers(0, 1000)),
        turn=draw(st.integers(0, 10_000)),
        scheduled_ns=scheduled,
        released_ns=released,
        started_ns=started,
        ended_ns=ended,
        outcome=draw(st.sampled_from(["ok", "failed", "timeout", "rejected(quota)"])),
        path=draw(st.sampled_from(["cold", "pool", "snapshot"])),
        sandbox=draw(TEXT),
        warmup=draw(st.booleans()),
        phases=draw(st.dictionaries(TEXT, TIMES.map(lambda t: (t[0], t[1])), max_size=3)),
        error=draw(TEXT),
    )


def decode(row: Row, origin_ns: int) -> Sample:
    """The inverse of ``encode``, as a reader of the records would write it."""
    released = row.scheduled_ns if row.released_ns is None else row.released_ns
    return Sample(
        parse_key(row.series),
        row.round,
        row.lane,
        row.turn,
        row.scheduled_ns + origin_ns,
        released + origin_ns,
        row.started_ns + origin_ns,
        row.ended_ns + origin_ns,
        row.outcome,
        row.path,
        row.sandbox,
        row.warmup,
        {name: (start + origin_ns, end + origin_ns) for name, (start, end) in row.phases.items()},
        row.error,
    )


@given(KEYS)
def test_a_key_comes_back_from_its_text(key: SeriesKey) -> None:
    assert parse_key(str(key)) == key


@pytest.mark.parametrize(
    "text",
    [
        "",
        "startup",
        "fake:startup",
        "fake:startup@1",
        "fake:startup@x/burst",
        "fake:startup@01/burst",
        "fake:startup@9999999999/burst",
        "fake:@1/burst",
        ":startup@1/burst",
        "fake:startup{}@1/burst",
        "fake:startup{a}@1/burst",
        "fake:startup{a=1,}@1/burst",
        "fake:startup{a=1@1/burst",
        "fake:startup@1/burst\n",
        "fa\x1b[31mke:startup@1/burst",
        "fake:start‮up@1/burst",
        "f" * 2000 + ":startup@1/burst",
    ],
)
def test_what_is_no_key_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="one looks like bubblewrap:startup@1/burst") as caught:
        parse_key(text)
    assert len(str(caught.value)) < 400


@given(samples(), st.integers(0, 1 << 60))
def test_a_sample_comes_back_from_its_line(one: Sample, origin_ns: int) -> None:
    line = lines([encode(one, origin_ns)])
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert decode(msgspec.json.decode(line, type=Row), origin_ns) == one


def test_text_that_is_no_text_can_be_written() -> None:
    """A file name of foreign bytes in an error, an id from a broken SDK."""
    row = encode(sample(error="no file \udcff", sandbox="\ud800", outcome="failed"), 0)
    line = msgspec.json.decode(lines([row]), type=Row)
    assert (line.error, line.sandbox) == ("no file \\udcff", "\\ud800")


def test_a_line_is_readable_without_this_package() -> None:
    line = json.loads(lines([encode(sample(ms=2, round=3, phases={"boot": (5, 7)}), 0)]))
    assert line == {
        "series": "fake:startup@1/burst",
        "round": 3,
        "lane": 0,
        "turn": 3,
        "scheduled_ns": 4_000_000_000,
        "started_ns": 4_000_001_000,
        "ended_ns": 4_002_000_000,
        "outcome": "ok",
        "phases": {"boot": [5, 7]},
    }


def test_a_series_keeps_what_its_samples_say(tmp_path: Path) -> None:
    written = [
        sample(ms=10, round=0, lane=0, level=2),
        sample(ms=30, round=0, lane=1, level=2, phases={"boot": (10, 25)}, path="pool"),
        sample(ms=20, round=1, lane=0, level=2),
        sample(ms=900, round=1, lane=1, level=2, outcome="timeout", error="late"),
        sample(ms=5, round=2, lane=0, level=2, outcome="rejected(quota)", error="full"),
        sample(ms=5, round=2, lane=1, level=2, outcome="failed", error="broken"),
        sample(ms=1, round=-1, level=2, warmup=True),
        sample(ms=1, round=-1, level=2, warmup=True, outcome="failed"),
    ]
    run = read_run(folder(tmp_path, *written))
    series = run.series.get("fake:startup@2/burst")
    assert series is not None
    assert series.latencies == [10_000_000, 30_000_000, 20_000_000]
    assert series.rounds == {0: [10_000_000, 30_000_000], 1: [20_000_000], 2: []}
    assert (series.attempts, series.ok, series.rejected, series.failed, series.warmups) == (6, 3, 1, 2, 2)
    assert series.errors == ["late", "full", "broken"]
    assert list(series.phases["boot"]) == [15]
    assert series.wall_s == pytest.approx(0.03 + 0.9 + 0.005)
    assert list(series.queues) == [1000, 1000, 1000]


def test_latency_is_counted_from_when_it_was_due() -> None:
    table = SeriesTable()
    table.add(encode(sample(at=1000, ms=2, started_ns=900_000), 0))
    (series,) = table
    assert series.latencies == [2_000_000]
    assert list(series.queues) == [899_000]


@pytest.mark.parametrize(
    "times",
    [
        {"ended_ns": 1},
        {"started_ns": 1},
        {"scheduled_ns": 1 << 63},
        {"ended_ns": 1 << 63},
        {"phases": {"a": (2, 1)}},
        {"phases": {"a": (0, 1 << 70)}},
    ],
)
def test_times_that_are_none_are_refused(times: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="times out of order"):
        SeriesTable().add(encode(sample(**times), 0))


def test_a_line_has_nothing_that_a_terminal_obeys() -> None:
    said = "\x1b[2J\x7f\x9b31m\u202e\u2028\ufeff é 沙箱"
    line = lines([encode(sample(outcome="failed", error=said, sandbox=said), 0)]).decode()
    assert line.removesuffix("\n").isprintable()
    assert "é 沙箱" in line
    assert json.loads(line)["error"] == json.loads(line)["sandbox"] == said
