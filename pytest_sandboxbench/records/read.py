"""Reading a folder of records back. A torn last line is the mark of a kill and is tolerated; other damage is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from ..errors import UsageError
from .schema import SCHEMA, Row
from .series import SeriesTable

__all__ = ["Run", "read_run"]

_CHUNK_BYTES = 1 << 20


class Run:
    """A run from disk: ``header`` as written, ``series`` made of its samples, ``torn`` lines that a kill cut off."""

    def __init__(self, folder: Path, header: dict[str, Any], series: SeriesTable, torn: int) -> None:
        self.folder = folder
        self.header = header
        self.series = series
        self.torn = torn

    def missing(self) -> list[str]:
        """Planned rows without a single sample: ``provider operation @level``."""
        out = []
        measured = {(s.key.provider, s.key.operation, s.key.level) for s in self.series if s.attempts}
        for block in self.header.get("blocks", []):
            for provider in block["providers"]:
                out += [
                    f"{provider} {operation} @{block['level']}"
                    for operation in block["asked"].get(provider, [])
                    if (provider, operation, block["level"]) not in measured
                ]
        return out


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
        header = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"no records in {folder}: {path.name} is missing") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    if not isinstance(header, dict) or "schema" not in header:
        raise UsageError(f"{path} is not a header of records: it has no schema version")
    if header["schema"] != SCHEMA:
        raise UsageError(f"{path} has schema {header['schema']!r}; this version reads schema {SCHEMA}")
    return header


def _read_samples(path: Path, series: SeriesTable) -> int:
    """Feed one file into ``series``; returns 1 when its last line is torn."""
    chunk_of_rows = msgspec.json.Decoder(list[Row])
    size = path.stat().st_size
    seen = position = 0
    with path.open("rb") as file:
        while lines := file.readlines(_CHUNK_BYTES):
            position += sum(map(len, lines))
            torn = 0
            try:
                # One call for many lines: a third of the time of one call a line.
                rows = chunk_of_rows.decode(b"[" + b",".join(lines) + b"]")
            except msgspec.MsgspecError:
                rows, torn = _one_by_one(path, seen, lines, last=position >= size)
            for row in rows:
                try:
                    series.add(row)
                except ValueError as error:
                    raise UsageError(f"{path}, near line {seen + 1}: {error}") from None
            seen += len(lines)
            if torn:
                return 1
    return 0


def _one_by_one(path: Path, before: int, lines: list[bytes], *, last: bool) -> tuple[list[Row], int]:
    decode = msgspec.json.Decoder(Row).decode
    rows: list[Row] = []
    for number, line in enumerate(lines, before + 1):
        try:
            rows.append(decode(line))
        except msgspec.MsgspecError as error:
            if last and number == before + len(lines) and not line.endswith(b"\n"):
                return rows, 1
            raise UsageError(f"{path}, line {number}: not a sample: {error}: {line[:80]!r}") from None
    return rows, 0
