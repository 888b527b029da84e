"""Saved runs of pytest-benchmark are checked before they are compared with: anybody may have written them.

pytest-benchmark reads whatever is there, a pipe or ten gigabytes, and finds out that a field is missing when everything
is measured. What it writes itself passes, of all versions that it reads.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_sandboxbench.errors import UsageError
from pytest_sandboxbench.records.untrusted import depth_is_over, harmless, open_regular, size_text

__all__ = ["LARGEST", "MOST_NESTED", "MOST_VALUES", "compared_files", "read_saved"]

LARGEST = 256 << 20
"""Bytes: about seven million samples."""

MOST_VALUES = 10_000_000
MOST_NESTED = 500_000
"""Lists and objects: some thirty a series."""

_DEEPEST = 30
_LARGEST_MACHINE = 64 << 10
_GREATEST = 1e15

_REQUIRED = (
    *("min", "max", "mean", "stddev", "median", "iqr", "q1", "q3", "ld15iqr", "hd15iqr"),
    *("rounds", "iterations", "outliers"),
)
# pytest-benchmark lays the saved figures over what it knows of the current run: these are no figures.
_TAKEN = frozenset(
    {"name", "fullname", "group", "param", "params", "path", "source", "extra_info", "options", "has_error", "cprofile"}
)


def compared_files(session: Any) -> list[Path]:
    """The files that ``--benchmark-compare`` would read. ``ValueError`` for a name that the storage does not take."""
    if not session.compare or not hasattr(session.storage, "query"):  # Elasticsearch has none
        return []
    if session.compare is True:
        return list(session.storage.query("[0-9][0-9][0-9][0-9]_"))[-1:]
    return list(session.storage.query(session.compare))


def read_saved(path: Path) -> dict[str, Any]:
    """A saved run. ``UsageError`` says why it is none."""
    shown = harmless(str(path), 1000)
    try:
        if not (path.name.isprintable() and path.parent.name.isprintable()):
            raise ValueError("its name has characters that a terminal would obey")
        document: dict[str, Any] = _checked(_parsed(path))
    except (OSError, ValueError, RecursionError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"{shown} is not a saved run of pytest-benchmark: {harmless(said)}; remove it, or name another one: "
            "--benchmark-compare=NUMBER"
        ) from None
    return document


def _parsed(path: Path) -> Any:
    with open_regular(path) as (file, size):
        if size > LARGEST:
            raise ValueError(f"it has {size} bytes, and {size_text(LARGEST)} is the most")
        text = file.read(LARGEST)
    # Three bytes of nesting become a hundred in memory.
    for what, found, most in (
        ("values", text.count(b","), MOST_VALUES),
        ("lists and objects", text.count(b"[") + text.count(b"{"), MOST_NESTED),
    ):
        if found > most:
            raise ValueError(f"it has more than {most} {what}")
    return json.loads(text.decode())


def _checked(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict) or not isinstance(document.get("benchmarks"), list):
        raise ValueError("it has no list of benchmarks")
    if depth_is_over(document, _DEEPEST):
        raise ValueError(f"something in it is more than {_DEEPEST} deep")
    machine = document.get("machine_info")
    if not isinstance(machine, dict) or not isinstance(machine.get("cpu", {}), dict):
        raise ValueError("it does not tell the machine that it was measured on")
    if len(json.dumps(machine)) > _LARGEST_MACHINE:
        raise ValueError(f"its machine_info has more than {size_text(_LARGEST_MACHINE)}")
    for number, result in enumerate(document["benchmarks"]):
        try:
            _check_result(result)
        except ValueError as error:
            raise ValueError(f"benchmark {number}: {error}") from None
    return document


def _check_result(result: Any) -> None:
    if not isinstance(result, dict) or not isinstance(result.get("fullname"), str):
        raise ValueError("it has no fullname")
    if not isinstance(result.get("params"), dict | None):
        raise ValueError("its params are no object")
    stats = result.get("stats")
    if not isinstance(stats, dict):
        raise ValueError("it has no stats")
    missing = [name for name in _REQUIRED if name not in stats]
    if missing or ("ops" not in stats and not stats["mean"]):
        raise ValueError(f"its stats lack {', '.join(missing or ['ops'])}")
    _check_stats(stats)


def _check_stats(stats: Mapping[str, Any]) -> None:
    for name, value in stats.items():
        if name in _TAKEN:
            raise ValueError(f"{name!r} is not a figure")
        if name == "data":
            good = isinstance(value, list) and all(map(_is_number, value))
        elif name == "outliers":
            good = isinstance(value, str) and value.isprintable() and len(value) <= 40
        else:
            good = _is_number(value) or (value is None and name not in _REQUIRED and name != "ops")
        if not good:
            raise ValueError(f"its {name[:40]!r} is not a number that can be compared")


def _is_number(value: object) -> bool:
    if type(value) is int:
        return abs(value) < _GREATEST
    return type(value) is float and math.isfinite(value) and abs(value) < _GREATEST
