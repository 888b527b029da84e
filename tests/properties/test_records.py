"""Records of any samples: cut at any byte, damaged anywhere, they are read as far as they are whole, or refused."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_sandboxbench.errors import UsageError
from pytest_sandboxbench.model import Sample
from pytest_sandboxbench.records.read import Run, read_run
from pytest_sandboxbench.records.redaction import HIDDEN, hide, hide_arguments
from pytest_sandboxbench.records.schema import Row, encode, lines, parse_key
from pytest_sandboxbench.records.series import SeriesTable
from pytest_sandboxbench.records.spool import write_header

from ..records.written import HEADER, folder, sample

KEYS = [parse_key(f"fäke-{n}:act{{kind=x}}.boot@{n}/burst") for n in (1, 2)] + [parse_key("null:exec@1/burst")]
TIMES = st.tuples(*[st.integers(0, 1 << 40)] * 4).map(sorted)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    """Of few series, so that some share one; the names and values of a key are no matter here."""
    scheduled, released, started, ended = draw(TIMES)
    return Sample(
        draw(st.sampled_from(KEYS)),
        round=draw(st.integers(-2, 3)),
        lane=draw(st.integers(0, 3)),
        turn=draw(st.integers(0, 99)),
        scheduled_ns=scheduled,
        released_ns=released,
        started_ns=started,
        ended_ns=ended,
        outcome=draw(st.sampled_from(["ok", "failed", "timeout", "rejected(quota)"])),
        warmup=draw(st.booleans()),
        phases=draw(st.dictionaries(TEXT, st.just((released, ended)), max_size=2)),
        error=draw(TEXT),
    )


SOME = st.lists(samples(), min_size=1, max_size=4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=4,
)


def content(table: SeriesTable) -> dict[str, tuple[Any, ...]]:
    return {
        str(one.key): (one.rounds, one.outcomes, one.errors, one.phases, one.queues, one.warmups, one.wall_s)
        for one in table
    }


def expected(rows: Sequence[bytes]) -> dict[str, tuple[Any, ...]]:
    """What is in these lines, read one by one."""
    table = SeriesTable()
    for row in rows:
        table.add(msgspec.json.decode(row, type=Row))
    return content(table)


def how_many(table: SeriesTable) -> int:
    return sum(one.attempts + one.warmups for one in table)


def try_to_read(path: Path) -> tuple[Run | None, str]:
    """A run, or what is wrong with it: one line that names the place."""
    try:
        return read_run(path), ""
    except UsageError as error:
        said = str(error)
    assert said.isprintable()
    assert str(path) in said
    assert len(said) < 1000 + len(str(path))
    return None, said


def test_cut_at_any_byte_what_comes_before_is_read_as_it_was_written(tmp_path: Path) -> None:
    @given(SOME, st.integers(0, 1000) | st.integers(-2, 2), st.integers(0, 3))
    @settings(max_examples=150)
    def check(written: list[Sample], cut: int, line: int) -> None:
        rows = [lines([encode(one, 0)]) for one in written]
        whole = b"".join(rows)
        ends = list(itertools.accumulate(map(len, rows)))
        size = max(0, min(len(whole), ends[line % len(ends)] - cut))
        there = sum(end - 1 <= size for end in ends)  # a line that lacks nothing but its end is whole
        path = folder(tmp_path) / "samples.jsonl"
        path.write_bytes(whole[:size])
        run, said = try_to_read(tmp_path)
        if run is None:
            assert there == 0
            assert "no samples in" in said
        else:
            assert content(run.series) == expected(rows[:there])
            assert run.torn == (size not in (0, *ends, *(end - 1 for end in ends)))

    check()


def test_with_any_byte_changed_a_line_is_named_or_no_sample_is_lost(tmp_path: Path) -> None:
    """A digit that became another is a valid number: no reader could see that. But the samples are all there."""

    @given(SOME, st.integers(min_value=0), st.integers(1, 255))
    @settings(max_examples=120)
    def check(written: list[Sample], at: int, change: int) -> None:
        path = folder(tmp_path) / "samples.jsonl"
        data = bytearray(lines(encode(one, 0) for one in written))
        at %= len(data)
        number = data[:at].count(b"\n") + 1
        data[at] ^= change
        path.write_bytes(data)
        run, said = try_to_read(tmp_path)
        if run is not None:
            # Without its end, the last line may be one that was not finished.
            assert how_many(run.series) + run.torn == len(written)
            assert run.torn <= (number == len(written))
        else:
            # A new end in a line, or its own one gone: then the rest of it is a line too.
            named = re.search(r"samples\.jsonl, line (\d+): not a sample: ", said)
            assert (int(named[1]) == number) if named else "no samples in" in said and len(written) == 1

    check()


def test_a_line_of_anything_is_named(tmp_path: Path) -> None:
    row = json.loads(lines([encode(sample(phases={"boot": (5, 7)}), 0)]))
    changed = st.tuples(st.sampled_from([*row, "released_ns", "error", "novelty"]), JSON).map(
        lambda change: json.dumps({**row, change[0]: change[1]}).encode()
    )
    garbage = st.binary(max_size=40).map(lambda data: data.replace(b"\n", b""))

    @given(SOME, st.integers(0, 6), garbage | JSON.map(lambda value: json.dumps(value).encode()) | changed)
    @settings(max_examples=120)
    def check(written: list[Sample], at: int, line: bytes) -> None:
        rows = [lines([encode(one, 0)]) for one in written]
        rows.insert(at, line + b"\n")
        at = min(at, len(written)) + 1
        path = folder(tmp_path) / "samples.jsonl"
        path.write_bytes(b"".join(rows))
        run, said = try_to_read(tmp_path)
        if run is None:
            assert f"{path}, line {at}: not a sample: " in said
        else:
            assert content(run.series) == expected(rows), "it was a sample"

    check()


# The header


def test_a_header_cut_at_any_byte_is_refused(tmp_path: Path) -> None:
    folder(tmp_path, sample())
    assert write_header(tmp_path, HEADER) == ""
    path = tmp_path / "run.json"
    whole = path.read_bytes()
    for size in range(len(whole) - 2):  # its last bytes are a bracket and the end of the line
        path.write_bytes(whole[:size])
        run, said = try_to_read(tmp_path)
        assert run is None
        assert said.startswith(f"{path} cannot be read: ")


def test_a_header_with_any_bytes_changed_is_read_or_refused(tmp_path: Path) -> None:
    folder(tmp_path, sample())
    path = tmp_path / "run.json"

    @given(st.lists(st.tuples(st.integers(min_value=0), st.integers(0, 255)), min_size=1, max_size=3))
    @settings(max_examples=400)
    def check(changes: list[tuple[int, int]]) -> None:
        assert write_header(tmp_path, HEADER) == ""
        data = bytearray(path.read_bytes())
        for at, byte in changes:
            data[at % len(data)] = byte
        path.write_bytes(data)
        run, said = try_to_read(tmp_path)
        if run is None:
            assert said.startswith(f"{path} ")
        else:
            assert how_many(run.series) == 1
            assert len(run.missing()) <= 2

    check()


# Secrets


@pytest.mark.parametrize("text", ["9" * 20_000, "token" * 2000, "api_" * 5000, "a.token-" * 2000], ids=len)
def test_a_long_word_is_looked_through_at_once(text: str) -> None:
    """Such as the base64 of an image in an error: every failed sample passes through here. It took the square of it."""
    began = time.process_time()
    assert hide(text) == text
    assert hide_arguments([text]) == [text]
    assert hide(f"{text} x_token=abc") == f"{text} x_token={HIDDEN}"
    assert time.process_time() - began < 2
