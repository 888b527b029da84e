"""No secret reaches the disk: values whose name says so are replaced, and so is their text wherever else it stands."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

__all__ = ["HIDDEN", "hide", "hide_arguments", "hide_values", "redact", "secrets_in"]

HIDDEN = "***"

_WORDS = r"(?:api|access|private)[_-]?key|token|secret|passw(?:or)?d|credential|authorization"
_NAMES = re.compile(rf"(?i){_WORDS}")
_ARGUMENT = re.compile(rf"(?i)([\w.-]*(?:{_WORDS})[\w-]*[=: ]\s*)(\S+)")
_IN_TEXT = re.compile(rf"(?i)([\w.-]*(?:{_WORDS})[\w-]*=)(\S+)")
_OPTION = re.compile(rf"(?i)-[\w.-]*(?:{_WORDS})[\w-]*")
_SHORTEST = 8


def redact(value: Any, known: Iterable[str] = ()) -> Any:
    """A copy of JSON-like data without secrets.

    Hidden is what stands under a name that sounds like a secret, and its text wherever else it stands; the same for
    environment variables with such a name, and ``known`` ones. Texts of fewer than 8 characters are hidden under their
    name only.
    """
    return _walk(value, tuple({*known, *_of_environment(), *_under_names(value)}))


def secrets_in(value: Any) -> tuple[str, ...]:
    """The secrets that a run knows of: under names of JSON-like data that sound like one, and in the environment."""
    return tuple({*_of_environment(), *_under_names(value)})


def hide_values(text: str, known: Iterable[str]) -> str:
    """``text`` without these secrets."""
    for secret in known:
        text = text.replace(secret, HIDDEN)
    return text


def hide_arguments(argv: list[str]) -> list[str]:
    """A command line for the records: ``NAME=VALUE`` with a secret-sounding name loses its value, and so does
    ``--name VALUE``."""
    out: list[str] = []
    for argument in argv:
        if out and _OPTION.fullmatch(out[-1]):
            out.append(HIDDEN)
        else:
            out.append(_ARGUMENT.sub(rf"\1{HIDDEN}", argument))
    return out


def hide(text: str, known: Iterable[str] = ()) -> str:
    """A text that somebody else wrote, an error for instance, without values of secret variables and ``NAME=VALUE``."""
    text = hide_values(text, {*known, *_of_environment()})
    return _IN_TEXT.sub(rf"\1{HIDDEN}", text)


def _of_environment() -> Iterator[str]:
    return (v for k, v in os.environ.items() if _NAMES.search(k) and len(v) >= _SHORTEST)


def _under_names(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if isinstance(inner, str) and len(inner) >= _SHORTEST and _NAMES.search(str(key)):
                yield inner
            else:
                yield from _under_names(inner)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _under_names(item)


def _walk(value: Any, secrets: tuple[str, ...]) -> Any:
    if isinstance(value, Mapping):
        return {str(k): HIDDEN if v and _NAMES.search(str(k)) else _walk(v, secrets) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_walk(item, secrets) for item in value]
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, HIDDEN)
        return value
    return value if value is None or isinstance(value, bool | int | float) else str(value)
