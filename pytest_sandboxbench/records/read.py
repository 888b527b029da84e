"""Reading a folder of records back. A torn last line is the mark of a kill and is tolerated; other damage is named."""

from __future__ import annotations

import json
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from ..errors import UsageError
from .schema import SCHEMA, Row
from .series import SeriesTable, asked_rows, row_of_key

__all__ = ["Run", "read_run"]

_ROW = msgspec.json.Decoder(Row)
_ROWS = msgspec.json.Decoder(list[Row])

_CHUNK_BYTES = 1 << 20
_LONGEST_LINE = 1 << 20
_LARGEST_HEADER = 64 << 20


class _Block(msgspec.Struct):
    id: str
    providers: list[str]
    operations: list[str]
    asked: dict[str, list[str]]
    variants: dict[str, str]
    level: int
    shape: str
    floor: str | None = None
    complete: bool = False


class _Provider(msgspec.Struct):
    facts: dict[str, Any] = msgspec.field(default_factory=dict)
    options: dict[str, Any] = msgspec.field(default_factory=dict)


class _Operation(msgspec.Struct):
    start: str
    end: str


class _Limits(msgspec.Struct):
    enforced: dict[str, str] = msgspec.field(default_factory=dict)
    unenforced: list[str] = msgspec.field(default_factory=list)


class _Header(msgspec.Struct):
    """What a report looks up in a header; there is more in it."""

    blocks: list[_Block] = msgspec.field(default_factory=list)
    providers: dict[str, _Provider] = msgspec.field(default_factory=dict)
    guests: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    limits: dict[str, _Limits] = msgspec.field(default_factory=dict)
    operations: dict[str, _Operation] = msgspec.field(default_factory=dict)
    host: dict[str, Any] = msgspec.field(default_factory=dict)


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
    header = _read_header(folder)
    series = SeriesTable()
    torn = 0
    paths = sorted(folder.glob("samples*.jsonl"))
    for path in paths:
        torn += _read_samples(path, series)
    if not paths or not len(series):
        raise UsageError(f"no samples in {folder}; a folder of records holds run.json and samples.jsonl")
    return Run(folder, header, series, torn)


def _read_header(folder: Path) -> dict[str, Any]:
    path = folder / "run.json"
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            text = file.read(min(size, _LARGEST_HEADER))
        if size > _LARGEST_HEADER:
            raise UsageError(f"{path} is not a header of records: it has more than {_LARGEST_HEADER} bytes")
        header = json.loads(text.decode())
    except FileNotFoundError:
        raise UsageError(f"no records in {folder}: {path.name} is missing") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    if not isinstance(header, dict) or "schema" not in header:
        raise UsageError(f"{path} is not a header of records: it has no schema version")
    if header["schema"] != SCHEMA:
        raise UsageError(f"{path} has schema {str(header['schema'])[:20]!r}; this version reads schema {SCHEMA}")
    try:
        msgspec.convert(header, _Header)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path} is not a header of records: {error}") from None
    return header


def _read_samples(path: Path, series: SeriesTable) -> int:
    """Feed one file into ``series``; returns 1 when its last line is torn."""
    seen, rest = 0, b""
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                whole, newline, rest = (rest + chunk).rpartition(b"\n")
                if newline:
                    lines = whole.split(b"\n")
                    _feed(path, seen, lines, series)
                    seen += len(lines)
                if len(rest) > _LONGEST_LINE:
                    raise UsageError(f"{path}, line {seen + 1}: not a sample: longer than {_LONGEST_LINE} bytes")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    if not rest:
        return 0
    try:
        last = msgspec.json.decode(rest, type=Row)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return 1
    _add(path, seen + 1, last, series)
    return 0


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
        raise UsageError(f"{path}, line {number}: not a sample: {error}: {line[:80]!r}") from None


def _add(path: Path, number: int, row: Row, series: SeriesTable) -> None:
    try:
        series.add(row)
    except ValueError as error:
        raise UsageError(f"{path}, line {number}: not a sample: {error}") from None
