"""What limits did to a series, for tables and saved files: rejections with their own latency, and our own limiter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..records.series import Series
from ..stats import Summary, median, summarise
from .text import duration

__all__ = ["limiter", "limiter_note", "rejections"]

_OUTCOMES = ("rejected(capacity)", "rejected(queue)", "rejected(quota)", "rejected(rate)")


def rejections(series: Series) -> dict[str, Summary]:
    """``rejected(quota)`` and so on -> how long it took to be told; nanoseconds."""
    found = series.rejections.latencies
    return {outcome: summarise([found[outcome]]) for outcome in _OUTCOMES if outcome in found}


def limiter(series: Series, header: Mapping[str, Any]) -> dict[str, Any] | None:
    """What our own limits did to this series. None where there are none, or where they had no part in it.

    ``waited``     successes that waited for room or for their turn by the rate
    ``rejected``   what we turned away
    ``waves``      whether the lanes outnumber ``max_live``: they came one after another, whatever the level says
    ``median_without_wait_ns``  of all successes, with the waits taken out; beside the median, which holds them
    """
    limits = header.get("providers", {}).get(series.key.provider, {}).get("limiter")
    if not isinstance(limits, Mapping) or not limits:
        return None
    most = limits.get("max_live")
    waves = isinstance(most, int) and series.key.level > most
    found = series.rejections
    if not (found.waited or found.ours or waves):
        return None
    served = found.without_waits(series.latencies)
    return {
        "by": "ours",
        "limits": dict(limits),
        "waited": found.waited,
        "rejected": found.ours,
        "waves": waves,
        "median_without_wait_ns": median(served) if served else None,
    }


def limiter_note(series: Series, header: Mapping[str, Any]) -> str:
    """The same as one line for the notes of a table; empty where there is nothing to say."""
    found = limiter(series, header)
    if found is None:
        return ""
    told = []
    if found["waited"]:
        without = duration(found["median_without_wait_ns"])
        told.append(f"{found['waited']} of {series.ok} waited for us (phase queue); median without the wait {without}")
    if found["rejected"]:
        told.append(f"{found['rejected']} of {series.rejected} rejections are ours")
    if found["waves"]:
        told.append(f"never more than {found['limits']['max_live']} lanes had a sandbox")
    limits = ", ".join(f"{name}={value}" for name, value in found["limits"].items())
    return f"limiter=ours ({limits}): {series.key.provider}:{series.key.label} @{series.key.level}: {', '.join(told)}"
