"""A folder of records is read whole, or said what is wrong with it; nothing in it can do harm."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from pytest_sandboxbench.errors import UsageError
from pytest_sandboxbench.records.read import read_run
from pytest_sandboxbench.records.schema import encode, lines

from .written import HEADER, folder, sample


def refusal(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        read_run(path)
    text = str(caught.value)
    assert str(path) in text
    assert len(text) < 1000
    return text


def test_cut_anywhere_all_whole_lines_are_read(tmp_path: Path) -> None:
    """As a kill or a full disk leaves it: at each byte of the file."""
    written = [sample(round=n, sandbox="sändbox", error="") for n in range(4)]
    folder(tmp_path, *written)
    path = tmp_path / "samples.jsonl"
    whole = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for size in range(ends[0], len(whole) + 1):
        path.write_bytes(whole[:size])
        run = read_run(tmp_path)
        (series,) = run.series
        # A line that lacks nothing but its end is whole.
        lines_there = sum(end - 1 <= size for end in ends)
        assert (series.attempts, run.torn) == (lines_there, int(size not in ends and size + 1 not in ends)), size


def test_cut_within_the_first_line_there_are_no_samples(tmp_path: Path) -> None:
    folder(tmp_path, sample())
    path = tmp_path / "samples.jsonl"
    path.write_bytes(path.read_bytes()[:40])
    assert "no samples in" in refusal(tmp_path)


def test_each_file_of_a_killed_worker_may_be_torn(tmp_path: Path) -> None:
    folder(tmp_path, sample())
    (tmp_path / "samples.jsonl").rename(tmp_path / "samples-gw0.jsonl")
    text = (tmp_path / "samples-gw0.jsonl").read_bytes()
    (tmp_path / "samples-gw1.jsonl").write_bytes(text + text[:30])
    (tmp_path / "samples-gw2.jsonl").write_bytes(text[:-5])
    run = read_run(tmp_path)
    (series,) = run.series
    assert (series.attempts, run.torn) == (2, 2)


@pytest.mark.parametrize(
    "garbage",
    [
        b"garbage",
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\x00" * 100,
        b"\xff\xfe",
        b'{"series":"fake:startup@1/burst"}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"9" * 100_000,
        b'{"series":"fake:startup@1/burst","round":' + b"9" * 5000 + b"}",
    ],
    ids=["text", "empty", "object", "list", "null", "nul", "bytes", "part", "deep", "deeper", "number", "huge"],
)
def test_garbage_in_the_middle_is_named_with_file_and_line(tmp_path: Path, garbage: bytes) -> None:
    folder(tmp_path, sample(), sample(round=1))
    path = tmp_path / "samples.jsonl"
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + garbage + b"\n" + second)
    assert f"{path}, line 2: not a sample" in refusal(tmp_path)


def test_two_broken_lines_that_make_one_object_are_no_sample(tmp_path: Path) -> None:
    folder(tmp_path, sample())
    path = tmp_path / "samples.jsonl"
    line = path.read_bytes()
    path.write_bytes(line + line.replace(b',"lane"', b'\n"lane"') + line)
    assert "line 2: not a sample" in refusal(tmp_path)


def _row(**changed: object) -> bytes:
    row = json.loads(lines([encode(sample(), 0)]))
    return json.dumps({**row, **changed}).encode() + b"\n"


@pytest.mark.parametrize(
    "changed",
    [
        {"series": "nonsense"},
        {"series": "fake:\x1b[2J@1/burst"},
        {"series": 1},
        {"round": "1"},
        {"round": 1.5},
        {"ended_ns": 0},
        {"ended_ns": 10**30},
        {"scheduled_ns": None},
        {"phases": {"boot": [1]}},
        {"phases": {"boot": [5, 1]}},
        {"phases": []},
        {"warmup": "no"},
        {"outcome": None},
    ],
    ids=str,
)
def test_a_foreign_row_is_named_with_file_and_line(tmp_path: Path, changed: dict[str, object]) -> None:
    folder(tmp_path, sample())
    path = tmp_path / "samples.jsonl"
    path.write_bytes(path.read_bytes() + _row(**changed) + _row())
    assert f"{path}, line 2: not a sample" in refusal(tmp_path)


def test_fields_of_a_later_version_are_no_trouble(tmp_path: Path) -> None:
    folder(tmp_path)
    (tmp_path / "samples.jsonl").write_bytes(_row(novelty=[1, {"a": 2}]))
    assert len(read_run(tmp_path).series) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read"),
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("9" * 10_000, "cannot be read"),
        ("\x00", "cannot be read"),
        ("[]", "it has no schema version"),
        ('"schema"', "it has no schema version"),
        ("{}", "it has no schema version"),
        ('{"schema": 2}', "has schema '2'; this version reads schema 1"),
        ('{"schema": {"a": "' + "x" * 5000 + '"}}', "this version reads schema 1"),
    ],
    ids=lambda value: value[:12],
)
def test_a_header_that_is_none_is_refused(tmp_path: Path, text: str, said: str) -> None:
    folder(tmp_path, sample())
    (tmp_path / "run.json").write_text(text)
    assert said in refusal(tmp_path)


@pytest.mark.parametrize(
    "changed",
    [
        {"blocks": {}},
        {"blocks": [1]},
        {"blocks": [{}]},
        {"blocks": [{**HEADER["blocks"][0], "asked": ["startup"]}]},
        {"blocks": [{**HEADER["blocks"][0], "asked": {"fake": 3}}]},
        {"blocks": [{**HEADER["blocks"][0], "level": "all"}]},
        {"blocks": [{**HEADER["blocks"][0], "floor": ["null"]}]},
        {"providers": []},
        {"providers": {"fake": "scripted"}},
        {"providers": {"fake": {"facts": 1}}},
        {"guests": {"fake": 1}},
        {"operations": ["startup"]},
        {"operations": {"startup": {"start": 1}}},
        {"host": "me"},
    ],
    ids=str,
)
def test_a_header_of_wrong_types_is_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    folder(tmp_path, sample(), header={**HEADER, **changed})
    assert "is not a header of records" in refusal(tmp_path)


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    assert "run.json is missing" in refusal(tmp_path)
    assert "run.json is missing" in refusal(tmp_path / "nowhere")
    folder(tmp_path, sample())
    (tmp_path / "samples.jsonl").unlink()
    assert "a folder of records holds run.json and samples.jsonl" in refusal(tmp_path)
    (tmp_path / "samples.jsonl").mkdir()
    assert "cannot be read" in refusal(tmp_path)


@pytest.mark.parametrize("name", ["samples.jsonl", "run.json"])
def test_a_bomb_does_not_fill_the_memory(tmp_path: Path, name: str) -> None:
    """A sparse file of 20 GB is one line without an end."""
    folder(tmp_path, sample())
    with (tmp_path / name).open("r+b") as file:
        file.truncate(20 << 30)
    tracemalloc.start()
    try:
        assert "bytes" in refusal(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 200 << 20
    finally:
        tracemalloc.stop()


def test_many_rows_take_memory_in_proportion_to_their_numbers(tmp_path: Path) -> None:
    """20,000 rows are some 4 MB of text; what is kept of them is numbers, and the text passes through in pieces."""
    folder(tmp_path, *(sample(round=n // 4, lane=n % 4, level=4) for n in range(20_000)))
    tracemalloc.start()
    try:
        run = read_run(tmp_path)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    (series,) = run.series
    assert series.attempts == 20_000
    assert kept < 200 * 20_000
    assert peak < 20 << 20


def test_planned_rows_without_samples_are_named(tmp_path: Path) -> None:
    block = {**HEADER["blocks"][0], "operations": ["startup", "exec"], "asked": {"fake": ["startup", "exec"]}}
    run = read_run(folder(tmp_path, sample("null"), header={**HEADER, "blocks": [block, {**block, "level": 4}]}))
    assert run.missing() == [f"fake:{op}@{level}/burst" for level in (1, 4) for op in ("startup", "exec")]
    only_warmup = folder(tmp_path, sample(warmup=True), sample("null"))
    assert read_run(only_warmup).missing() == ["fake:startup@1/burst"]
    assert read_run(folder(tmp_path, sample(outcome="failed"), sample("null"))).missing() == []


def test_a_row_is_not_there_because_another_variant_of_it_is(tmp_path: Path) -> None:
    block = {**HEADER["blocks"][0], "asked": {"fake": ["startup"]}, "variants": {"size": "1"}}
    header = {**HEADER, "blocks": [block]}
    assert read_run(folder(tmp_path, sample(), header=header)).missing() == ["fake:startup{size=1}@1/burst"]
    measured = sample(variants=(("kind", "frozen"), ("size", "1")))
    assert read_run(folder(tmp_path, measured, header=header)).missing() == [], "the kind of a pause is not planned"
