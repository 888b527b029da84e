"""The limits of an instance that this project keeps itself, whatever its provider does.

They are settings like others, ``max_live``, ``max_queued`` and ``create_rate``, of every kind that has none of its own
by that name; ``limiter_max_live`` and so on always mean these.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import UsageError
from .settings import read_settings

__all__ = ["Limits", "Plan", "is_limit", "read_limits"]

_PREFIX = "limiter_"
_EXAMPLES = {"max_live": "20", "max_queued": "16", "create_rate": "5"}


@dataclass(frozen=True, slots=True)
class Limits:
    """``None`` is no limit.

    ``max_live``     how many sandboxes of the instance there may be at once; further creates wait
    ``max_queued``   how many creates may wait for room; one more is rejected
    ``create_rate``  how many creates may begin in a second; below one, so many in ``1 / create_rate`` seconds
    """

    max_live: int | None = None
    max_queued: int | None = None
    create_rate: float | None = None

    @property
    def capacity(self) -> int | None:
        """How many creates are accepted at once, those that wait included; None where nothing is ever rejected."""
        if self.max_live is None or self.max_queued is None:
            return None
        return self.max_live + self.max_queued

    def __bool__(self) -> bool:
        return self != Limits()

    def facts(self) -> dict[str, float]:
        """Those that are set, for the header of the records."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Plan:
    """What an account at a hosted provider may do, as its documentation says.

    ``max_live`` sandboxes at once; ``create_rate`` creates a second; each sandbox for ``longest_s`` seconds at most.
    """

    name: str
    max_live: int
    create_rate: float
    longest_s: float


def is_limit(key: str, own: frozenset[str] = frozenset()) -> bool:
    """Whether a setting is one of ours. ``own`` are the names that the kind has settings of."""
    return key.removeprefix(_PREFIX) in _EXAMPLES and key not in own


def read_limits(name: str, options: Mapping[str, Any], own: frozenset[str] = frozenset()) -> Limits:
    """The limits among an instance's settings. ``UsageError`` for a bad value, or one given under both names."""
    given: dict[str, Any] = {}
    for key, value in options.items():
        if is_limit(key, own):
            short = key.removeprefix(_PREFIX)
            if short in given:
                raise UsageError(f"provider {name!r}: {short} and {_PREFIX}{short} are one setting: give it once")
            given[short] = value
    limits = read_settings(Limits, name, given)
    for key, least in (("max_live", 1), ("max_queued", 0), ("create_rate", 0)):
        value = getattr(limits, key)
        if value is not None and (value < least or (key == "create_rate" and not value)):
            allowed = "a number above 0" if key == "create_rate" else f"a whole number from {least} on"
            raise _wrong(name, key, value, f"is not {allowed}")
    if limits.max_queued is not None and limits.max_live is None:
        raise _wrong(
            name, "max_queued", limits.max_queued, "needs max_live: creates wait for room under it", "max_live"
        )
    return limits


def _wrong(name: str, key: str, value: object, why: str, write: str = "") -> UsageError:
    example = write or key
    return UsageError(
        f"provider {name!r}: setting {key} = {value!r} {why}; "
        f"write for example --sandbox-option {name}.{example}={_EXAMPLES[example]}"
    )
