"""No secret reaches the disk: values whose name says so are replaced, and so is their text wherever else it stands."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["HIDDEN", "hide_arguments", "redact"]

HIDDEN = "***"

_NAMES = re.compile(r"(?i)(?:api|access|private)_?key|token|secret|passw(?:or)?d|credential|authorization")
_ARGUMENT = re.compile(r"(?i)((?:[\w.-]*(?:api[_-]?key|token|secret|passw(?:or)?d|credential))[\w-]*[= ])(\S+)")
_SHORTEST = 8


def redact(value: Any) -> Any:
    """A copy of JSON-like data without secrets: by the name of a key, and by the values of secret-named variables."""
    return _walk(value, _known_secrets())


def hide_arguments(argv: list[str]) -> list[str]:
    """A command line for the records: ``NAME=VALUE`` with a secret-sounding name loses its value."""
    return [_ARGUMENT.sub(rf"\1{HIDDEN}", argument) for argument in argv]


def _known_secrets() -> tuple[str, ...]:
    return tuple(v for k, v in os.environ.items() if _NAMES.search(k) and len(v) >= _SHORTEST)


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
