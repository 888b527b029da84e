"""How busy the CPUs of the host were while a row was measured, as the header of its run says: anybody's numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..model import SeriesKey
from .series import asked_rows

__all__ = ["busy_shares", "cpus_usable"]


def busy_shares(header: Mapping[str, Any]) -> dict[SeriesKey, float]:
    """The share (0..1) of all CPU time that was used during the turns of each row that a person asked for.

    Rows without one, or with something that is none, are left out. Where a row stands in two blocks, the last counts.
    """
    found: dict[SeriesKey, float] = {}
    for block in header.get("blocks", []):
        shares = block.get("busy")
        if not isinstance(shares, Mapping):
            continue
        for key in asked_rows({"blocks": [block]}):
            share = shares.get(key.provider)
            if isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share <= 1:
                found[key] = float(share)
    return found


def cpus_usable(header: Mapping[str, Any]) -> int | None:
    """How many CPUs the run could use; None where the header does not say."""
    cpus = header.get("host", {}).get("cpus_usable")
    return cpus if isinstance(cpus, int) and not isinstance(cpus, bool) and 0 < cpus < 1 << 20 else None
