"""An instance's settings: a frozen dataclass a provider, filled from ``pyproject.toml`` and ``--sandbox-option``.

From the command line every value is text, from TOML it has a type already; both end up as the field's type, or as
one message that names the instance, the key, the value, what is allowed and an example.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from ..errors import UsageError

__all__ = ["read_settings"]

S = TypeVar("S")

_WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def read_settings(cls: type[S], name: str, options: Mapping[str, Any]) -> S:
    """Build ``cls`` (a dataclass whose fields are str, int, float, bool, tuple[str, ...] or ``| None``) from options.

    ``UsageError`` for an unknown key or a value that is not of the field's type.
    """
    hints = typing.get_type_hints(cls)
    fields = {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for raw_key, value in options.items():
        key = raw_key.replace("-", "_")
        if key not in fields:
            known = ", ".join(fields) or "none"
            raise UsageError(f"provider {name!r} has no setting {raw_key!r}; it has: {known}")
        try:
            values[key] = _convert(hints[key], value)
        except (TypeError, ValueError, OverflowError):
            raise UsageError(
                f"provider {name!r}: setting {key} = {value!r} is not {_describe(hints[key])}; "
                f"write for example --sandbox-option {name}.{key}={_example(hints[key])}"
            ) from None
    return cls(**values)


def _alternatives(hint: Any) -> tuple[Any, ...]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return typing.get_args(hint)
    return (hint,)


def _convert(hint: Any, value: Any) -> Any:
    """``value`` as the first of the hint's types that takes it; ``ValueError`` when none does."""
    kinds = _alternatives(hint)
    if type(None) in kinds and (value is None or value == "none"):
        return None
    for kind in kinds:
        if kind is not type(None):
            try:
                return _convert_one(kind, value)
            except (TypeError, ValueError, OverflowError):  # the last: infinity as a whole number, or a huge one
                continue
    raise ValueError(value)


def _convert_one(kind: Any, value: Any) -> Any:
    origin = typing.get_origin(kind)
    if origin is tuple:
        if not isinstance(value, str | list | tuple):
            raise TypeError(value)
        items = value.split(",") if isinstance(value, str) else value
        return tuple(str(item).strip() for item in items if str(item).strip())
    if origin is typing.Literal:
        if str(value) in typing.get_args(kind):
            return str(value)
        raise ValueError(value)
    if kind is bool:
        return value if isinstance(value, bool) else _word(value)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError(value)
    if kind is str:
        return str(value)
    number = kind(value)
    if not math.isfinite(number) or (isinstance(value, float) and number != value):
        raise ValueError(value)
    return number


def _word(value: Any) -> bool:
    try:
        return _WORDS[str(value).lower()]
    except KeyError:
        raise ValueError(value) from None


def _describe(hint: Any) -> str:
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "none"}
    out = []
    for kind in _alternatives(hint):
        origin = typing.get_origin(kind)
        if origin is typing.Literal:
            out.append("one of " + ", ".join(map(str, typing.get_args(kind))))
        elif origin is tuple:
            out.append("a list")
        else:
            out.append(names.get(kind, str(kind)))
    return " or ".join(out)


def _example(hint: Any) -> str:
    kind = next(k for k in _alternatives(hint) if k is not type(None))
    origin = typing.get_origin(kind)
    if origin is typing.Literal:
        return str(typing.get_args(kind)[0])
    if origin is tuple:
        return "a,b"
    return {int: "2", float: "0.5", bool: "true"}.get(kind, "text")
