"""Where budgets stand: options, TOML files, markers. A mistake is one message that begins with the place."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from ..errors import UsageError
from ..records.untrusted import harmless
from .grammar import BudgetError, parse
from .model import Placed

__all__ = ["OPTION", "from_marker", "from_option", "from_toml", "read_file"]

OPTION = "--sandbox-budget"

_LARGEST = 1 << 20  # bytes
_EXAMPLE = 'budgets = ["startup median 44ms..52ms @1,16"]'


def from_option(texts: Iterable[str], where: str = OPTION) -> list[Placed]:
    """Budgets that were given as texts. ``UsageError``."""
    return [_placed(text, where) for text in texts]


def from_marker(args: Sequence[object], kwargs: Mapping[str, object], where: str) -> list[Placed]:
    """Budgets at a test, whose operation may be left out. ``UsageError``."""
    if kwargs:
        _refuse(where, f"{next(iter(kwargs))}=... is not known: a budget is a text, such as 'median 44ms..52ms @1,16'")
    if not args:
        _refuse(where, "it has no budget: write for example 'median 44ms..52ms @1,16'")
    return [_placed(text, where, own=True) for text in args]


def from_toml(table: Mapping[str, Any], where: str) -> list[Placed]:
    """The budgets of a table: a list of texts, or tables by operation under the key ``budgets``. ``UsageError``."""
    given = table.get("budgets", [])
    if isinstance(given, list):
        return [_placed(text, f"{where} budgets, entry {number}") for number, text in enumerate(given, 1)]
    if not isinstance(given, dict):
        _refuse(where, f"budgets is {_kind(given)}: write a list of texts, {_EXAMPLE}")
    found = []
    for series, texts in given.items():
        place = f"{where} budgets, {harmless(series, 100)}"
        several = texts if isinstance(texts, list) else [texts]
        for number, text in enumerate(several, 1):
            if not isinstance(text, str):
                _refuse(place, f"it is {_kind(text)}: write a text, or a list of texts, such as 'median 44ms..52ms'")
            found.append(_placed(f"{series} {text}", f"{place}, entry {number}" if len(several) > 1 else place))
    return found


def read_file(path: Path, *, inside: tuple[str, ...] = ()) -> list[Placed]:
    """The budgets of a TOML file, in a table ``inside`` of it or at its top. ``UsageError``.

    A table that is not there has no budgets; a file of budgets alone has nothing else.
    """
    name = harmless(str(path.name if inside else path), 300)
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            _refuse(name, f"it has more than {_LARGEST} bytes")
        table: Any = tomllib.loads(data.decode())
    except OSError as error:
        _refuse(name, f"{error.strerror or error}: --sandbox-budget-file names a TOML file with {_EXAMPLE}")
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        _refuse(name, f"it is not TOML: {error}")
    for key in inside:
        table = table.get(key, {}) if isinstance(table, dict) else {}
    if not isinstance(table, dict):
        return []  # who reads other things there says so
    if not inside and (others := [key for key in table if key != "budgets"]):
        _refuse(name, f"{others[0]!r} is not known here: {_EXAMPLE} is all that it has")
    return from_toml(table, f"{name}: [{'.'.join(inside)}]" if inside else f"{name}:")


def _placed(text: object, where: str, *, own: bool = False) -> Placed:
    if not isinstance(text, str):
        _refuse(where, f"it is {_kind(text)}: a budget is a text, such as 'startup median 44ms..52ms @1,16'")
    try:
        return Placed(parse(text, own=own), where)
    except BudgetError as error:
        _refuse(where, f"{text[:200]!r}: {error}")


def _kind(value: object) -> str:
    return {str: "a text", list: "a list", dict: "a table", bool: "true or false"}.get(type(value), "a number")


def _refuse(where: str, message: str) -> NoReturn:
    raise UsageError(harmless(f"{where}: {message}", 2000))
