"""Which series a budget is about, and why one is about none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from ..model import SeriesKey
from ..records.series import Series, row_of_key
from ..records.untrusted import harmless
from .model import Budget, Placed

__all__ = ["Unmatched", "applies", "idle_levels", "matches", "no_phase", "unmatched"]

_MOST_NAMED = 12


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A budget that is about no series of a run, and why, in words.

    ``mistaken``: what it names was measured, and has no such phase, or no variant of such a name. Otherwise it may be
    about a series that only this run lacks: ``-k``, a provider that is not ready, a level not asked for.
    """

    placed: Placed
    reason: str
    mistaken: bool


def matches(budget: Budget, key: SeriesKey, *, own: str | None = None) -> bool:
    """Whether a budget is about the series of a key, which is that of a whole operation.

    Its phase is looked up inside of the series: see :func:`applies`. ``own`` is the operation of a budget that names
    none: that of the test which it stands at.
    """
    return (
        key.operation == (budget.operation or own)
        and budget.provider in (None, key.provider)
        and set(budget.variants) <= set(key.variants)
        and (not budget.levels or key.level in budget.levels)
        and budget.shape in (None, key.shape)
    )


def applies(budget: Budget, series: Series, *, own: str | None = None) -> bool:
    """Whether it is about a series that was measured, whose phases are known then.

    A series without a success has none; a budget on one of its phases is about it as well.
    """
    return matches(budget, series.key, own=own) and (not budget.phase or budget.phase in series.phases or not series.ok)


def unmatched(placed: Iterable[Placed], measured: Sequence[Series], *, own: str | None = None) -> list[Unmatched]:
    """Of these budgets those that are about none of the series that were measured, each with the reason.

    A ratio needs what is below its line as well. The reason is that of the narrowest words that still match::

        matches no series: no operation 'statrup' was measured; there are startup, exec: did you mean 'startup'?
        matches no series: startup was measured at 1, 16 lanes, not at 100
    """
    found = []
    for one in placed:
        budget = one.budget
        operation = budget.operation or own or ""
        series = [s for s in measured if applies(budget, s, own=own)]
        reason, mistaken = _missing(budget, series, measured) if series else _why(budget, operation, measured)
        if reason:
            found.append(Unmatched(one, f"matches no series: {reason}", mistaken))
    return found


def idle_levels(placed: Iterable[Placed], measured: Sequence[Series]) -> list[Unmatched]:
    """Of these budgets those of whose levels a part was not measured, each with the reason."""
    found = []
    for one in placed:
        budget = one.budget
        levels = {series.key.level for series in measured if applies(replace(budget, levels=()), series)}
        missing = [level for level in budget.levels if level not in levels]
        if levels and missing and len(missing) < len(budget.levels):
            shown = harmless(budget.operation or "", 100)
            reason = f"{shown} was measured at {_lanes(sorted(levels))}, not at {', '.join(map(str, missing))}"
            found.append(Unmatched(one, reason, mistaken=False))
    return found


def no_phase(operation: str, phase: str, there: Iterable[str]) -> str:
    """``'startup' has no phase 'craete'; it has create, first_exec: did you mean 'create'?``"""
    names = list(there)
    said = f"'{harmless(operation, 100)}' has no phase '{harmless(phase, 100)}'"
    return f"{said}; it has {_listed(phase, names)}" if names else f"{said}: none is measured inside of it"


def _why(budget: Budget, operation: str, measured: Sequence[Series]) -> tuple[str, bool]:
    shown = harmless(operation, 100)
    left = [series for series in measured if series.key.operation == operation]
    if not left:
        return f"no operation '{shown}' was measured{_there(operation, (s.key.operation for s in measured))}", False
    providers = [series.key.provider for series in left]
    if budget.provider not in (None, *providers):
        wanted = str(budget.provider)
        return f"no provider '{harmless(wanted, 100)}' was measured with {shown}{_there(wanted, providers)}", False
    left = [series for series in left if budget.provider in (None, series.key.provider)]
    levels = sorted({series.key.level for series in left})
    if budget.levels and not set(budget.levels) & set(levels):
        return f"{shown} was measured at {_lanes(levels)}, not at {', '.join(map(str, budget.levels))}", False
    left = [series for series in left if not budget.levels or series.key.level in budget.levels]
    shapes = [series.key.shape for series in left]
    if budget.shape not in (None, *shapes):
        wanted = str(budget.shape)
        return f"{shown} was not measured in the shape '{harmless(wanted, 100)}'{_there(wanted, shapes)}", False
    left = [series for series in left if budget.shape in (None, series.key.shape)]
    for name, value in budget.variants:
        names = [other for series in left for other, _ in series.key.variants]
        wanted = f"{name}={value}"
        if name not in names:
            none = "" if names else ": it has none"
            return f"'{shown}' has no variant '{harmless(name, 100)}'{none}{_there(name, names)}", True
        values = [f"{name}={other}" for series in left for key, other in series.key.variants if key == name]
        if wanted not in values:
            return f"{shown} was not measured with {harmless(wanted, 100)}{_there(wanted, values)}", False
        left = [series for series in left if (name, value) in series.key.variants]
    if not left:  # each variant exists, and not all of them in one series
        wanted = ",".join(f"{name}={value}" for name, value in budget.variants)
        return f"{shown} was not measured with {harmless(wanted)} together", False
    return no_phase(operation, budget.phase, (name for series in left for name in series.phases)), True


def _missing(budget: Budget, series: Sequence[Series], measured: Sequence[Series]) -> tuple[str, bool]:
    """What a ratio lacks below its line; empty where it lacks nothing."""
    shown = harmless(series[0].key.operation, 100)
    rows = {row_of_key(one.key) for one in measured}
    same = [one for one in measured if one.key.operation == series[0].key.operation]
    for over in budget.over:
        if over.kind == "level" and not any(row_of_key(replace(one.key, level=over.level)) in rows for one in series):
            levels = sorted({one.key.level for one in same if budget.provider in (None, one.key.provider)})
            if over.level not in levels:
                return f"{shown} was measured at {_lanes(levels)}, not at {over.level}", False
            return f"{shown} was measured at {_lanes([over.level])} in another shape, variant or provider only", False
        if over.kind == "series":
            name = harmless(over.provider, 100)
            providers = [one.key.provider for one in same]
            if over.provider not in providers:
                there = _there(over.provider, providers)
                return f"no provider '{name}' was measured with {shown} to divide by{there}", False
            above = [one for one in series if one.key.provider != over.provider]
            if not above:
                return f"no other provider was measured with {shown} to divide by that of '{name}'", False
            if not any(row_of_key(replace(one.key, provider=over.provider)) in rows for one in above):
                return f"'{name}' was measured with {shown} at other levels, in other shapes or variants only", False
    return "", False


def _lanes(levels: Sequence[int]) -> str:
    return f"{', '.join(map(str, levels))} lane{'s' * (levels != [1])}"


def _there(wanted: str, names: Iterable[str]) -> str:
    """``; there are startup, exec: did you mean 'startup'?``"""
    there = list(dict.fromkeys(names))
    return f"; there {'is' if len(there) == 1 else 'are'} {_listed(wanted, there)}" if there else ""


def _listed(wanted: str, names: Iterable[str]) -> str:
    there = list(dict.fromkeys(names))
    shown = ", ".join(harmless(name, 100) for name in there[:_MOST_NAMED]) + ", ..." * (len(there) > _MOST_NAMED)
    close = get_close_matches(wanted, there, 1)
    return f"{shown}: did you mean '{harmless(close[0], 100)}'?" if close else shown
