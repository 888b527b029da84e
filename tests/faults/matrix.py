"""All faults, in the order of the table, and the table."""

from __future__ import annotations

from collections.abc import Sequence

from . import interrupted, misbehaving, resources, together
from .fault import KINDS, Fault, Result

__all__ = ["FAULTS", "table"]

FAULTS: tuple[Fault, ...] = (
    *interrupted.FAULTS,
    *misbehaving.FAULTS,
    *resources.FAULTS,
    *together.FAULTS,
)


def table(results: Sequence[Result]) -> list[str]:
    """Faults down, providers across: ``ok`` and the seconds it took, ``-`` where the provider cannot have it."""
    cells = {(result.fault, result.kind): result for result in results}
    faults = [fault.name for fault in FAULTS if any(fault.name == result.fault for result in results)]
    width = max(map(len, ["fault", *faults]))
    lines = ["  ".join([f"{'fault':<{width}}", *(f"{kind:>10}" for kind in KINDS)])]
    for name in faults:
        shown = (_cell(cells.get((name, kind))) for kind in KINDS)
        lines.append("  ".join([f"{name:<{width}}", *(f"{cell:>10}" for cell in shown)]))
    wrong = [result for result in results if result.wrong]
    lines.append(f"{len(results) - len(wrong)} of {len(results)} ok; seconds that each took, start of pytest included")
    return lines + [f"{one.kind}, {one.fault}: {one.wrong.splitlines()[0]}" for one in wrong]


def _cell(result: Result | None) -> str:
    if result is None:
        return "-"
    return f"{'WRONG' if result.wrong else 'ok'} {result.seconds:.0f}"
