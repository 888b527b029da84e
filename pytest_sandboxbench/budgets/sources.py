"""Where budgets stand: options, TOML files, markers. A mistake is one message that begins with the place."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from ..errors import UsageError
from ..records.untrusted import harmless, size_text
from .grammar import BudgetError, parse
from .model import Placed

__all__ = ["OPTION", "from_marker", "from_option", "from_toml", "read_file"]

OPTION = "--sandbox-budget"

_LARGEST = 1 << 20  # bytes
_LONGEST = 100  # characters of a value or key that a message shows
_KNOWN = ("budgets", "providers")  # keys of [tool.sandboxbench]
_TEXT = "startup median 44ms..52ms @1,16"
_OWN_TEXT = "median 44ms..52ms @1,16"
_LIST = f'budgets = ["{_TEXT}"]'
_TABLE = f'[tool.sandboxbench.budgets] with startup = ["{_OWN_TEXT}"]'


def from_option(texts: Iterable[str], where: str = OPTION) -> list[Placed]:
    """Budgets that were given as texts: by an option, or a hook, which may return anything. ``UsageError``."""
    given: object = texts
    if isinstance(given, str):
        return [_placed(given, where)]
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        _refuse(where, f"{_said(given)} is no list of texts: write for example [{_TEXT!r}]")
    return [_placed(text, where) for text in given]


def from_marker(args: Sequence[object], kwargs: Mapping[str, object], where: str) -> list[Placed]:
    """Budgets at a test, whose operation may be left out. ``UsageError``."""
    for name, value in kwargs.items():
        _refuse(where, f"{name}={_said(value)} is not known: a budget is a text, for example {_OWN_TEXT!r}")
    if not args:
        _refuse(where, f"it has no budget: write for example {_OWN_TEXT!r}")
    return [_placed(text, where, own=True) for text in args]


def from_toml(table: Mapping[str, Any], where: str) -> list[Placed]:
    """The budgets of a table, under its key ``budgets``: a list of texts, or a table of such lists by operation.

    There the operation, or anything that a budget begins with, is put before each text. One text alone needs no list.
    ``where`` names the table: ``pyproject.toml: [tool.sandboxbench]``. ``UsageError`` names the key and the value.
    """
    given = table.get("budgets", [])
    place = f"{where} budgets"
    if isinstance(given, dict):
        return [placed for key, texts in given.items() for placed in _of_key(key, texts, place)]
    return _of_list(given, place, f"write a list of texts, {_LIST}, or a table, {_TABLE}")


def read_file(path: Path, *, inside: tuple[str, ...] = ()) -> list[Placed]:
    """The budgets of a TOML file, in a table ``inside`` of it or at its top. ``UsageError``.

    A table that is not there has no budgets. A file of budgets alone has them, even if none, and nothing else; the
    table of a project may have providers as well.
    """
    name = harmless(str(path.name if inside else path))
    table: Any = _document(path, name)
    for key in inside:
        table = table.get(key, {}) if isinstance(table, dict) else {}
    if not isinstance(table, dict):
        return []  # who reads other things there says so
    if inside:
        place = f"{name}: [{'.'.join(inside)}]"
        for key in table:
            if key not in _KNOWN:
                close = get_close_matches(key, _KNOWN, 1)
                meant = f": did you mean {close[0]!r}?" if close else ""
                _refuse(place, f"{_shown(key)} is not known here; there are {' and '.join(_KNOWN)}{meant}")
        return from_toml(table, place)
    for key in table:
        if key != "budgets":
            where = ": that is for pyproject.toml" if key == "tool" else ""
            _refuse(name, f"{_shown(key)} is not known here{where}; {_LIST} is all that it has")
    if "budgets" not in table:
        _refuse(name, f"it has no budgets: write {_LIST}, or budgets = [] for none")
    return from_toml(table, f"{name}:")


def _document(path: Path, name: str) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte
        said = error.strerror if isinstance(error, OSError) else None
        _refuse(name, f"{said or error}: it is to be a TOML file with {_LIST}")
    if len(data) > _LARGEST:
        _refuse(name, f"it has more than {size_text(_LARGEST)}, and is to be a TOML file with {_LIST}")
    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:  # ValueError: no UTF-8, no TOML, or a number without end
        _refuse(name, f"it is not TOML: {error}; write for example {_LIST}")


def _of_key(key: str, texts: object, place: str) -> list[Placed]:
    place = f"{place}, {harmless(key, _LONGEST)}"
    allowed = f"write a text, or a list of texts, for example {_shown(key)} = [{_OWN_TEXT!r}]"
    if isinstance(texts, dict):
        # A dot in a key without quotes is a table in TOML.
        inner = next(iter(texts), "create")
        allowed = f"write a text, or a list of texts; a key with a dot has quotes: {_shown(f'{key}.{inner}')} = ..."
    return _of_list(texts, place, allowed, before=f"{key} ")


def _of_list(texts: object, place: str, allowed: str, before: str = "") -> list[Placed]:
    """A text alone stands at the place itself, one of several at its entry, counted from 1."""
    if isinstance(texts, str):
        return [_placed(before + texts, place)]
    if not isinstance(texts, list):
        _refuse(place, f"{_said(texts)} is not allowed: {allowed}")
    found = []
    for number, text in enumerate(texts, 1):
        entry = f"{place}, entry {number}"
        if not isinstance(text, str):
            _refuse(entry, f"{_said(text)} is no budget: {allowed}")
        found.append(_placed(before + text, entry))
    return found


def _placed(text: object, where: str, *, own: bool = False) -> Placed:
    if not isinstance(text, str):
        _refuse(where, f"{_said(text)} is no budget: write a text, for example {_OWN_TEXT if own else _TEXT!r}")
    try:
        return Placed(parse(text, own=own), where)
    except BudgetError as error:
        _refuse(where, f"{_shown(text, 200)}: {error}")


def _shown(text: str, longest: int = _LONGEST) -> str:
    return repr(text if len(text) <= longest else text[: longest - 1] + "…")


def _said(value: object) -> str:
    """A value with its kind: ``3 (int)``. It may be huge, or have a ``repr`` that raises."""
    try:
        text = repr(value)
    except Exception:
        text = "..."
    return f"{harmless(text, _LONGEST)} ({type(value).__name__})"


def _refuse(where: str, message: str) -> NoReturn:
    raise UsageError(harmless(f"{where}: {message}", 2000))
