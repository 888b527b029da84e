"""Reading a folder of records back. A torn last line is the mark of a kill and is tolerated; other damage is named."""

from __future__ import annotations

from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any

import msgspec

from ..errors import UsageError
from .header import read_header
from .schema import Row
from .series import SeriesTable, asked_rows, row_of_key
from .untrusted import harmless, open_regular

__all__ = ["MOST_NAMES", "MOST_SERIES", "Run", "read_run"]

MOST_SERIES = 20_000
MOST_NAMES = 100_000
"""Phases and outcomes of all series together. A sample may bring new ones, so they take memory as samples do not."""

_ROW = msgspec.json.Decoder(Row)
_ROWS = msgspec.json.Decoder(list[Row])

_CHUNK_BYTES = 1 << 20
_LONGEST_LINE = 1 << 20
_MOST_FILES = 10_000


class Run:
    """A run from disk: ``header`` as written, ``series`` made of its samples, ``torn`` lines that a kill cut off."""

    def __init__(self, folder: Path, header: dict[str, Any], series: SeriesTable, torn: int) -> None:
        self.folder = folder
        self.header = header
        self.series = series
        self.torn = torn

    def missing(self) -> list[str]:
        """Planned rows without a single sample: ``provider operation @level``."""
        measured = {row_of_key(series.key) for series in self.series if series.attempts}
        return [str(row) for row in asked_rows(self.header) if row not in measured]


def read_run(folder: Path) -> Run:
    """Read everything. ``UsageError`` names what is not there or not readable."""
    header = read_header(folder)
    series = SeriesTable()
    torn = 0
    paths = sorted(islice(folder.glob("samples*.jsonl"), _MOST_FILES + 1))
    if len(paths) > _MOST_FILES:
        raise UsageError(f"{folder} has more than {_MOST_FILES} files of samples; a run writes one a process")
    for path in paths:
        torn += _read_samples(path, series)
    if not paths or not len(series):
        raise UsageError(f"no samples in {folder}; a folder of records holds run.json and samples.jsonl")
    return Run(folder, header, series, torn)


def _read_samples(path: Path, series: SeriesTable) -> int:
    """Feed one file into ``series``; returns 1 when its last line is torn."""
    seen, rest = 0, b""
    try:
        with open_regular(path) as (file, _):
            while chunk := file.read(_CHUNK_BYTES):
                whole, newline, rest = (rest + chunk).rpartition(b"\n")
                if newline:
                    lines = whole.split(b"\n")
                    _feed(path, seen, lines, series)
                    seen += len(lines)
                    _check_names(path, seen, series)
                if len(rest) > _LONGEST_LINE:
                    raise UsageError(f"{path}, line {seen + 1}: not a sample: longer than {_LONGEST_LINE} bytes")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    if not rest:
        return 0
    try:
        last = msgspec.json.decode(rest, type=Row)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return 1
    _add(path, seen + 1, last, series)
    return 0


def _check_names(path: Path, seen: int, series: SeriesTable) -> None:
    """After each piece of a file, which is too short to bring very many."""
    names = sum(len(one.phases) + len(one.outcomes) for one in series)
    for kind, found, most in (("series", len(series), MOST_SERIES), ("phases and outcomes", names, MOST_NAMES)):
        if found > most:
            raise UsageError(f"{path}, up to line {seen}: {found} different {kind}, and {most} is the most")


def _feed(path: Path, before: int, lines: list[bytes], series: SeriesTable) -> None:
    try:
        # One call for many lines: a third of the time of one call a line.
        rows = _ROWS.decode(b"[" + b",".join(lines) + b"]")
    except (msgspec.MsgspecError, ValueError, RecursionError):
        rows = []
    if len(rows) != len(lines):  # also where two broken lines make one whole object
        rows = list(map(partial(_row, path), count(before + 1), lines))
    for number, row in enumerate(rows, before + 1):
        _add(path, number, row, series)


def _row(path: Path, number: int, line: bytes) -> Row:
    try:
        return _ROW.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise UsageError(f"{path}, line {number}: not a sample: {harmless(str(error))}: {line[:80]!r}") from None


def _add(path: Path, number: int, row: Row, series: SeriesTable) -> None:
    try:
        series.add(row)
    except ValueError as error:
        raise UsageError(f"{path}, line {number}: not a sample: {error}") from None
