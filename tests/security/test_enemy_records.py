"""A folder of records that an enemy made is refused with a message: no hang, no memory bomb, nothing executed."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_sandboxbench.cli import main
from tests.records.written import HEADER

from .enemy import Answer, bounded, line, many, records, replace

BLOCK = HEADER["blocks"][0]


def report(path: Path, *arguments: str, seconds: float = 20) -> Answer:
    return bounded("pytest_sandboxbench.cli", "report", *arguments, str(path), seconds=seconds)


def _sparse(size: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        with path.open("wb") as file:
            file.truncate(size)

    return make


def _longer(path: Path) -> None:
    """Grows while it is read: a link into /proc has no size at all."""
    path.symlink_to("/proc/kallsyms")


FILES: dict[str, Callable[[Path], object]] = {
    "sparse": _sparse(1 << 43),
    "pipe": lambda path: os.mkfifo(path),
    "zero": lambda path: path.symlink_to("/dev/zero"),
    "terminal": lambda path: path.symlink_to("/dev/tty"),
    "folder": lambda path: path.mkdir(),
    "itself": lambda path: path.symlink_to(path.name),
    "nowhere": lambda path: path.symlink_to("nowhere"),
    "no-size": _longer,
}


@pytest.mark.parametrize("name", ["run.json", "samples.jsonl"])
@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_is_none(tmp_path: Path, name: str, kind: str) -> None:
    path = records(tmp_path / "records")
    replace(path / name, FILES[kind])
    # A second; the rest is for a busy machine.
    said = report(path, seconds=10).refused()
    assert str(path) in said


BOMBS: dict[str, Callable[[Path], object]] = {
    "many-series": lambda path: records(path, many(100_000, series="fake:o#@1/burst")),
    "many-variants": lambda path: records(
        path, line(series="fake:o{" + ",".join(f"v{n}=1" for n in range(1_000_000)) + "}@1/burst")
    ),
    "some-variants": lambda path: records(
        path, line(series="fake:o{" + ",".join(f"v{n}=1" for n in range(50_000)) + "}@1/burst") * 3
    ),
    "phases": lambda path: records(
        path, b"".join(line(phases={f"{n}-{m}": [0, 0] for m in range(1000)}) for n in range(300))
    ),
    "outcomes": lambda path: records(path, many(150_000, outcome="o#")),
    "outcome": lambda path: records(path, line(outcome="x" * 900_000) * 3),
    "digits": lambda path: records(path, line().replace(b'"round": 0', b'"round": ' + b"9" * 5000)),
    "ended": lambda path: records(path, line().replace(b'"ended_ns": ', b'"ended_ns": ' + b"9" * 4000)),
    "started": lambda path: records(path, line(started_ns=0)),
    "negative": lambda path: records(path, line(scheduled_ns=-(10**9))),
    "phase": lambda path: records(path, line(phases={"\x1b[2J": [9, 1]})),
    "deep-line": lambda path: records(path, line().replace(b"{", b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b",", 1)),
    "nan": lambda path: records(path, line().replace(b'"round": 0', b'"round": NaN')),
    "surrogate": lambda path: records(path, line(outcome="failed", error="\ud800")),
    "planned-rows": lambda path: records(
        path, blocks=[{**BLOCK, "asked": {"fake": [str(n) for n in range(9_999)]}}] * 50
    ),
    "planned-row": lambda path: records(path, blocks=[{**BLOCK, "asked": {"fake": ["x" * 1_000_000]}}]),
    "variants": lambda path: records(path, blocks=[{**BLOCK, "variants": {str(n): "" for n in range(50_000)}}]),
    "level": lambda path: records(path, blocks=[{**BLOCK, "level": 10**9}]),
    "no-level": lambda path: records(path, blocks=[{**BLOCK, "level": 0}]),
    "header-digits": lambda path: _header(path, '{"schema": 1, "seed": ' + "9" * 5000 + "}"),
    "header-nan": lambda path: _header(path, '{"schema": 1, "host": {"load_average": [NaN]}}'),
    "header-true": lambda path: _header(path, '{"schema": true}'),
    "header-deep": lambda path: _header(path, '{"schema": 1, "host": {"cpu": ' + "[" * 500 + "]" * 500 + "}}"),
    "header-deeper": lambda path: _header(path, '{"schema": ' + '{"a":' * 100_000),
    "header-lists": lambda path: _header(path, '{"schema": 1, "blocks": [' + "[]," * 2_000_000 + "0]}"),
    "header-bytes": lambda path: _header(path, '{"schema": 1, "blocks": "\udcff"}'),
}


def _header(path: Path, text: str) -> None:
    records(path)
    (path / "run.json").write_bytes(text.encode(errors="surrogateescape"))


# These have a process with little memory to themselves; the others are small.
LARGE = (
    "many-series",
    "some-variants",
    "phases",
    "outcomes",
    "deep-line",
    "planned-rows",
    "header-deeper",
    "header-lists",
)


@pytest.mark.parametrize("kind", BOMBS)
def test_a_bomb(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    path = tmp_path / "records"
    BOMBS[kind](path)
    answer = report(path, seconds=10) if kind in LARGE else Answer(main(["report", str(path)]), *capsys.readouterr())
    assert str(path) in answer.refused()


CLAIMS: dict[str, Callable[[Path], object]] = {
    "rounds": lambda path: records(path, blocks=[{**BLOCK, "rounds": 10**12, "warmup": 10**12, "wall_s": 1e300}]),
    "many-lanes": lambda path: records(
        path,
        line(series="fake:startup@999999999/burst") + line(series="null:startup@999999999/burst"),
        blocks=[{**BLOCK, "level": 999_999_999}],
    ),
    "round": lambda path: records(
        path, line(round=10**18) + line(round=-(10**18)) + line(series="null:startup@1/burst")
    ),
    "long-texts": lambda path: records(
        path,
        operations={"startup": {"start": "\x1b x" * 400_000, "end": "\u202e" * 100_000}},
        providers={"fake": {"isolation": "\x00 " * 300_000, "facts": {"version": [["\x1b]52;c;x\x07"] * 1000]}}},
        host={"cpu": "\x9b2J" * 100_000, "cpus_usable": True, "load_average": ["a"]},
    ),
    "errors": lambda path: records(
        path,
        b"".join(line(outcome="failed", error="\x1b[2J\u2066 " * 20_000) for _ in range(10))
        + line(outcome="\x1b]8;;http://x\x07link\r")
        + line(series="null:startup@1/burst"),
    ),
    "duplicates": lambda path: records(
        path,
        line().replace(b"{", b'{"round": 5, "round": 6, "outcome": "failed",', 1) + line(series="null:startup@1/burst"),
    ),
    "providers": lambda path: records(path, providers={f"p{n}\x1b": {} for n in range(5000)}),
    "planned": lambda path: records(
        path, blocks=[{**BLOCK, "asked": {"fake\x1b[2J": [f"{n}\r" for n in range(5000)]}}]
    ),
    "series": lambda path: records(path, line() + many(10_000, series="fake:o#@1/burst")),
    "interrupted": lambda path: records(
        path, blocks=[{**BLOCK, "id": f"\x1b{n}", "complete": False} for n in range(9000)]
    ),
    "unicode": lambda path: records(path, line(series="沙箱:é\u0301@1/burst") + line(sandbox="\u202e", path="\x1b")),
}


@pytest.mark.parametrize("kind", CLAIMS)
def test_what_it_claims_costs_nothing_and_prints_as_text(tmp_path: Path, kind: str) -> None:
    CLAIMS[kind](tmp_path / "records")
    report(tmp_path / "records", "--partial", "--all", seconds=10).printed()


def test_more_files_than_a_run_has_processes(tmp_path: Path) -> None:
    path = records(tmp_path / "records")
    for number in range(10_000):
        os.link(path / "samples.jsonl", path / f"samples-{number}.jsonl")
    assert "more than 10000 files" in report(path).refused()


def test_the_newest_run_of_a_folder_may_have_any_name(tmp_path: Path) -> None:
    """As somebody's repository may bring it along."""
    records(tmp_path / ".sandboxbench" / "z\x1b[2J\u202e\r", b"")
    bounded("pytest_sandboxbench.cli", "report", cwd=tmp_path).refused()


@pytest.mark.full
def test_a_run_of_a_million_samples_is_read(tmp_path: Path) -> None:
    """The limits are for enemies: no number of samples is too many, as long as there is memory for their numbers."""
    path = records(tmp_path / "records", b"")
    text = line(round=7)
    with (path / "samples.jsonl").open("wb") as file:
        for number in range(1_000_000):
            file.write(text.replace(b'"round": 7', b'"round": %d' % number))
        file.write(line(series="null:startup@1/burst"))
    assert "1000000" in report(path, seconds=120).printed()


# -- every part of a header, as every type

_NUMBERS: list[Any] = [None, True, 0, -1, 10**12, 10**30, 1.5, 1e308]
_TEXTS: list[Any] = ["", "\x1b[2J", "x" * 5000, "\ud800"]
_NESTED: list[Any] = [[], [[]], [1], ["\r"], {}, {"\x1b": 1}, {"a": {"b": []}}, [{}], [None]]
VALUES = st.sampled_from([*_NUMBERS, *_TEXTS, *_NESTED])


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += _places(inner, (*path, key))
    return found


FULL: dict[str, Any] = {
    **HEADER,
    "host": {**HEADER["host"], "load_average": [0.1, 0.2, 0.3], "cpu_quota": "1 2", "memory_limit": "5"},
    "providers": {
        "fake": {"isolation": "none", "facts": {"version": "1"}, "options": {"a": 1}, "spans": {}},
        "null": {},
    },
    "guests": {"fake": {"vcpus": "2", "memory_mib": "100"}},
    "limits": {"fake": {"enforced": {"pids": "5"}, "unenforced": ["vcpus"]}},
}
PLACES = _places(FULL)


@settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(changes=st.lists(st.tuples(st.sampled_from(PLACES), VALUES | st.just("delete")), min_size=1, max_size=3))
def test_any_type_anywhere_in_a_header(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: list[tuple[tuple[Any, ...], Any]]
) -> None:
    _check_header(tmp_path, capsys, changes)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join(map(str, place)))
def test_each_place_of_a_header_as_something_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: tuple[Any, ...]
) -> None:
    values: list[Any] = [None, 1, 1e308, "\x1b[2J\ud800", ["\r"], {"\x9b": [1]}, [[[[]]]], "delete"]
    for value in values:
        _check_header(tmp_path, capsys, [(place, value)])


def _check_header(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: list[tuple[tuple[Any, ...], Any]]
) -> None:
    header = json.loads(json.dumps(FULL))
    for place, value in changes:
        at = header
        try:
            for key in place[:-1]:
                at = at[key]
            if value == "delete":
                del at[place[-1]]
            else:
                at[place[-1]] = copy.deepcopy(value)  # the next change may be made inside of it
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took it away
    path = tmp_path / "records"
    if not path.exists():
        records(path)
    (path / "run.json").write_text(json.dumps(header))
    status = main(["report", str(path)])
    out, err = capsys.readouterr()
    assert status in (0, 1, 4)
    assert (status == 0) == bool(out)
    assert all(text.isprintable() for text in (out + err).split("\n"))
    assert "Traceback" not in err
