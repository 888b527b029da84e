"""No secret reaches the disk: values whose name says so are replaced, and so is their text wherever else it stands."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from .untrusted import writable

__all__ = ["HIDDEN", "hide", "hide_arguments", "hide_values", "redact", "redactor", "secrets_in"]

HIDDEN = "***"

_WORDS = (
    r"(?:api|access|private|secret|signing|encryption|master|ssh)[_-]?key"
    r"|token|secret|passw(?:or)?d|passphrase|credential|authorization|bearer|cookie"
)
_NAMES = re.compile(rf"(?i){_WORDS}")
# A match starts where a name does: tried at each letter of a long word, it would take a time that grows by the square.
_NAME = rf"(?<![\w.-])[\w.-]*(?:{_WORDS})[\w-]*"
_ARGUMENT = re.compile(rf"(?i)({_NAME}[=: ]\s*)(\S+)")
_IN_TEXT = re.compile(rf"(?i)({_NAME}=)(\S+)")
_OPTION = re.compile(rf"(?i)-[\w.-]*(?:{_WORDS})[\w-]*")
_SHORTEST = 8
_SHORTEST_LINE = 16


def redact(value: Any, known: Iterable[str] = ()) -> Any:
    """A copy of JSON-like data without secrets.

    Hidden is what stands under a name that sounds like a secret, and its text wherever else it stands; the same for
    environment variables with such a name, and ``known`` ones. Texts of fewer than 8 characters are hidden under their
    name only.
    """
    return _walk(value, frozenset({*known, *_of_environment(), *_under_names(value)}))


def redactor(known: Iterable[str] = ()) -> Callable[[Any], Any]:
    """:func:`redact` with the environment's secrets of now: for what is called often."""
    secrets = frozenset({*known, *_of_environment()})
    return lambda value: _walk(value, secrets.union(_under_names(value)))


def secrets_in(value: Any) -> tuple[str, ...]:
    """The secrets that a run knows of: under names of JSON-like data that sound like one, and in the environment."""
    return tuple({*_of_environment(), *_under_names(value)})


def hide_values(text: str, known: Iterable[str]) -> str:
    """``text`` without these secrets, whether they stand in it as they are or as Python and JSON write them."""
    pattern = _pattern(frozenset(known))
    return text if pattern is None else pattern.sub(HIDDEN, text)


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
    text = hide_values(writable(text), {*known, *_of_environment()})
    return _IN_TEXT.sub(rf"\1{HIDDEN}", text)


@lru_cache(maxsize=32)
def _pattern(secrets: frozenset[str]) -> re.Pattern[str] | None:
    # The longest first: where one secret begins with another, its rest must not stay.
    forms = sorted({form for secret in secrets for form in _forms(secret)}, key=lambda form: (-len(form), form))
    return re.compile("|".join(map(re.escape, forms))) if forms else None


def _forms(secret: str) -> Iterator[str]:
    """How a secret may stand in a text. One of several lines, a private key, is hidden line by line as well."""
    yield secret
    yield from (repr(secret)[1:-1], ascii(secret)[1:-1], repr(secret.encode(errors="surrogatepass"))[2:-1])
    yield from (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    yield " ".join(secret.split())  # as an error of a sample holds it
    lines = secret.splitlines()
    if len(lines) > 1:
        yield from (s for line in lines if len(s := line.strip()) >= _SHORTEST_LINE and not s.startswith("-----"))


def _of_environment() -> Iterator[str]:
    return (v for k, v in os.environ.items() if _NAMES.search(k) and len(v.strip()) >= _SHORTEST)


def _under_names(value: Any, *, named: bool = False) -> Iterator[str]:
    """Texts that stand somewhere below a name that sounds like a secret."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _under_names(inner, named=named or _NAMES.search(str(key)) is not None)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _under_names(item, named=named)
    elif named and value is not None and not isinstance(value, bool) and len(str(value).strip()) >= _SHORTEST:
        yield str(value)


def _walk(value: Any, secrets: frozenset[str]) -> Any:
    if isinstance(value, Mapping):
        # A secret can be a name as well: of a guest's fact, for instance.
        return {
            hide_values(writable(str(k)), secrets): HIDDEN if v and _NAMES.search(str(k)) else _walk(v, secrets)
            for k, v in value.items()
        }
    if isinstance(value, list | tuple):
        return [_walk(item, secrets) for item in value]
    if isinstance(value, str):
        return hide_values(writable(value), secrets)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no word for it
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return HIDDEN if str(value) in secrets else value
    return hide_values(writable(str(value)), secrets)
