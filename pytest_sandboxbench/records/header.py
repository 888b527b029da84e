"""Reading ``run.json``, whoever wrote it: bounded in size and in what it may claim, refused with a message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ..errors import UsageError
from .schema import SCHEMA
from .untrusted import depth_is_over, harmless, open_regular, size_text

__all__ = ["LARGEST_HEADER", "MOST_ROWS", "read_header"]

LARGEST_HEADER = 8 << 20
"""Bytes: a thousand times what a run of the shipped suites writes."""

MOST_ROWS = 100_000
"""Planned rows of all blocks together."""

_DEEPEST = 30

_Name = Annotated[str, Meta(max_length=1000)]
_Names = Annotated[list[_Name], Meta(max_length=10_000)]
_MOST_PROVIDERS = Meta(max_length=10_000)


class _Block(msgspec.Struct):
    id: str
    providers: _Names
    operations: _Names
    asked: Annotated[dict[_Name, _Names], _MOST_PROVIDERS]
    variants: Annotated[dict[_Name, _Name], Meta(max_length=100)]
    level: Annotated[int, Meta(ge=1, lt=10**9)]
    shape: _Name
    floor: _Name | None = None
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
    providers: Annotated[dict[str, _Provider], _MOST_PROVIDERS] = msgspec.field(default_factory=dict)
    guests: Annotated[dict[str, dict[str, Any]], _MOST_PROVIDERS] = msgspec.field(default_factory=dict)
    limits: Annotated[dict[str, _Limits], _MOST_PROVIDERS] = msgspec.field(default_factory=dict)
    operations: Annotated[dict[str, _Operation], Meta(max_length=10_000)] = msgspec.field(default_factory=dict)
    host: dict[str, Any] = msgspec.field(default_factory=dict)


def read_header(folder: Path) -> dict[str, Any]:
    """The header of a folder of records, as written. ``UsageError`` says what is wrong with it."""
    path = folder / "run.json"
    try:
        with open_regular(path) as (file, size):
            if size > LARGEST_HEADER:
                raise UsageError(
                    f"{path} is not a header of records: it has {size} bytes, "
                    f"and {size_text(LARGEST_HEADER)} is the most"
                )
            header = json.loads(file.read(LARGEST_HEADER).decode(), parse_constant=_no_number)
    except FileNotFoundError:
        raise UsageError(f"no records in {folder}: {path.name} is missing") from None
    except (OSError, ValueError, RecursionError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{path} cannot be read: {harmless(said)}") from None
    if not isinstance(header, dict) or "schema" not in header:
        raise UsageError(f"{path} is not a header of records: it has no schema version")
    if type(header["schema"]) is not int or header["schema"] != SCHEMA:
        raise UsageError(f"{path} has schema {_short(header['schema'])}; this version reads schema {SCHEMA}")
    if depth_is_over(header, _DEEPEST):
        raise UsageError(f"{path} is not a header of records: something in it is more than {_DEEPEST} deep")
    try:
        known = msgspec.convert(header, _Header)
    except (msgspec.ValidationError, ValueError) as error:  # ValueError: a text that UTF-8 cannot hold
        raise UsageError(f"{path} is not a header of records: {harmless(str(error))}") from None
    rows = sum(len(operations) for block in known.blocks for operations in block.asked.values())
    if not rows:
        raise UsageError(f"{path} is not a header of records: it plans no rows, so that there is nothing to report")
    if rows > MOST_ROWS:
        raise UsageError(f"{path} is not a header of records: it plans {rows} rows, and {MOST_ROWS} is the most")
    return header


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


def _short(value: object) -> str:
    return f"'{value}'" if type(value) is int and abs(value) < 10**9 else f"'{harmless(_text(value), 20)}'"


def _text(value: object) -> str:
    """A foreign value in a message: neither all of it, nor an error because it is nested a thousand times."""
    return value if isinstance(value, str) else type(value).__name__ if isinstance(value, dict | list) else "a number"
