"""Budgets and verdicts on their way from a worker to its controller, which takes plain values only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

__all__ = ["from_plain", "to_plain"]

T = TypeVar("T")


def to_plain(values: Sequence[Any]) -> list[Any]:
    """Dictionaries, lists, texts and numbers; infinite ones are kept, so it is no JSON."""
    return [msgspec.to_builtins(value) for value in values]


def from_plain(values: Sequence[Any], kind: type[T]) -> list[T]:
    return [msgspec.convert(value, kind) for value in values]
