"""A saved run that an enemy made is refused before anything is measured, with a message and exit status 4."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_sandboxbench.baseline.saved import read_saved
from pytest_sandboxbench.errors import UsageError
from tests.plugin.conftest import LEAN, Suite, clean

from .enemy import bounded, replace

STATS: dict[str, Any] = {
    **dict.fromkeys(("min", "max", "mean", "median", "q1", "q3", "ld15iqr", "hd15iqr", "total"), 0.004),
    **dict.fromkeys(("stddev", "iqr", "stddev_outliers", "iqr_outliers"), 0),
    "outliers": "0;0",
    "ops": 250.0,
    "rounds": 3,
    "iterations": 1,
    "data": [0.004, 0.004, 0.004],
    "p95": 0.005,
}
SAVED: dict[str, Any] = {
    "machine_info": {"node": "here", "cpu": {"count": 2, "hz_actual": [1, 0]}},
    "commit_info": {"id": None},
    "benchmarks": [
        {
            "group": "exec @1",
            "name": "test_exec[fake-c1]",
            "fullname": "fake:exec@1/burst",
            "params": {"concurrency": 1},
            "param": "fake-c1",
            "extra_info": {},
            "options": {},
            "stats": STATS,
        }
    ],
    "datetime": "2026-01-01T00:00:00",
    "version": "5.3.1",
}


def refusal(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        read_saved(path)
    text = str(caught.value)
    assert "is not a saved run of pytest-benchmark" in text
    assert text.isprintable()
    assert len(text) < 1500
    return text


def written(
    path: Path, stats: dict[str, Any] | None = None, result: dict[str, Any] | None = None, **parts: Any
) -> Path:
    one = {**SAVED["benchmarks"][0], **(result or {})}
    one["stats"] = {**STATS, **(stats or {})} if isinstance(one["stats"], dict) else one["stats"]
    path.write_text(json.dumps({**SAVED, "benchmarks": [one], **parts}))
    return path


def test_what_is_in_order_is_read(tmp_path: Path) -> None:
    assert read_saved(written(tmp_path / "0001_a.json"))["benchmarks"][0]["stats"] == STATS


@pytest.mark.parametrize(
    "stats",
    [
        {"name": "\x1b[2J"},
        {"fullname": 1},
        {"group": 5},
        {"median": "\x1b[2J"},
        {"median": None},
        {"median": float("nan")},
        {"max": float("inf")},
        {"min": -(10**4000)},
        {"ops": 10**30},
        {"rounds": "3"},
        {"rounds": True},
        {"outliers": "\r0"},
        {"outliers": 0},
        {"outliers": "0" * 5000},
        {"data": 1},
        {"data": [1, "a"]},
        {"data": [[]]},
        {"x\x1b[2J" * 100: "y"},
    ],
    ids=lambda stats: ascii(stats)[:30],
)
def test_a_figure_that_is_none(tmp_path: Path, stats: dict[str, Any]) -> None:
    assert "benchmark 0" in refusal(written(tmp_path / "0001_a.json", stats))


@pytest.mark.parametrize("name", ["min", "mean", "median", "iqr", "rounds", "outliers", "hd15iqr"])
def test_a_figure_that_lacks(tmp_path: Path, name: str) -> None:
    stats = {k: v for k, v in STATS.items() if k != name}
    path = tmp_path / "0001_a.json"
    path.write_text(json.dumps({**SAVED, "benchmarks": [{**SAVED["benchmarks"][0], "stats": stats}]}))
    assert f"lack {name}" in refusal(path)


TEXTS: dict[str, bytes] = {
    "empty": b"",
    "list": b"[]",
    "nul": b"\0" * 1000,
    "not-utf-8": b'{"benchmarks": ["\xff"]}',
    "deep": b"[" * 100_000,
    "deeper": b'{"benchmarks": [], "machine_info": {}, "x": ' + b"[" * 400 + b"]" * 400 + b"}",
    "digits": b'{"benchmarks": [], "machine_info": ' + b"9" * 5000 + b"}",
    "lists": b'{"benchmarks": [' + b"[]," * 600_000 + b"0]}",
    "values": b'{"benchmarks": [' + b"0," * 10_000_001 + b"0]}",
    "none": b'{"benchmarks": null}',
    "numbers": b'{"benchmarks": [1], "machine_info": {}}',
    "no-machine": b'{"benchmarks": []}',
    "cpu": b'{"benchmarks": [], "machine_info": {"cpu": ["hz_actual"]}}',
    "long-machine": b'{"benchmarks": [], "machine_info": {"node": "' + b"x" * 100_000 + b'"}}',
}


@pytest.mark.parametrize("kind", TEXTS)
def test_a_text_that_is_none(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "0001_a.json"
    path.write_bytes(TEXTS[kind])
    refusal(path)


def test_a_name_that_a_terminal_obeys(tmp_path: Path) -> None:
    refusal(written(tmp_path / "0001_\x1b]0;owned\x07.json"))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    place=st.sampled_from(
        [("benchmarks",), ("machine_info",), ("machine_info", "cpu"), ("benchmarks", 0), ("benchmarks", 0, "stats")]
        + [("benchmarks", 0, "params"), ("benchmarks", 0, "fullname"), ("commit_info",)]
        + [("benchmarks", 0, "stats", name) for name in STATS]
    ),
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=6,
    ),
)
def test_any_type_anywhere(tmp_path: Path, place: tuple[Any, ...], value: Any) -> None:
    """Either it is refused, or it is a number where one is wanted."""
    document = json.loads(json.dumps(SAVED))
    at = document
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    path = tmp_path / "0001_a.json"
    path.write_text(json.dumps(document))
    told, read = "", {}
    try:
        read = read_saved(path)
    except UsageError as error:
        told = str(error)
    assert told.isprintable()
    for result in read.get("benchmarks", ()):
        f"{result['stats']['median'] * 1e9:,.4f}"


# -- as pytest meets it


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10 << 30)


KINDS: dict[str, tuple[Callable[[Path], object], str]] = {
    "sparse": (_sparse, "bytes, and 256 MiB is the most"),
    "pipe": (os.mkfifo, "is not an ordinary file"),
    "zero": (lambda path: path.symlink_to("/dev/zero"), "is not an ordinary file"),
    "folder": (Path.mkdir, "is not an ordinary file"),
    "figure": (lambda path: written(path, {"median": "\x1b[2J"}), "its 'median' is not a number"),
}


def test_a_comparison_with_it_is_refused(suite: Suite) -> None:
    suite.one_bench()
    clean(suite.run("--benchmark-save=base"), 0)
    (saved,) = suite.path.glob(".benchmarks/*/0001_base.json")
    suite.log.unlink()
    words = ("-p", "no:cacheprovider", *LEAN, *suite.usual, "--benchmark-compare=0001")
    for kind, (make, said) in KINDS.items():
        replace(saved, make)
        answer = bounded("pytest", *words, cwd=suite.path, seconds=30)
        text = answer.out + answer.err
        assert answer.status == 4, (kind, text)
        assert "ERROR: " in text, (kind, text)
        assert said in text, (kind, text)
        assert "Traceback" not in text
        assert "\x1b" not in text
        if kind == "folder":
            saved.rmdir()
            saved.touch()
    assert suite.calls("create") == [], "nothing was measured"


def test_the_newest_run_alone_is_read(suite: Suite) -> None:
    """Without a number the last one is compared with: what else lies there is not opened."""
    suite.one_bench()
    clean(suite.run("--benchmark-save=base"), 0)
    (saved,) = suite.path.glob(".benchmarks/*/0001_base.json")
    saved.rename(saved.with_name("0002_base.json"))
    os.mkfifo(saved)
    text = clean(suite.run("--benchmark-compare"), 0)
    assert "(0002_base)" in text


def test_names_of_saved_runs_are_shown_as_text(suite: Suite) -> None:
    suite.one_bench()
    clean(suite.run("--benchmark-save=base"), 0)
    (saved,) = suite.path.glob(".benchmarks/*/0001_base.json")
    saved.rename(saved.with_name("0001_\x1b[2J.json"))
    for number in ("0001", "0099"):
        assert "\x1b[2J" not in clean(suite.run(f"--benchmark-compare={number}"), 4)
