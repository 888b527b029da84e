"""What a run would make, before it makes anything: ``--sandbox-plan``, and levels that an account has no room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from .errors import UsageError
from .load.operations import shown_operations
from .load.shapes import parse_shape
from .markers import read
from .naming import level, scenario, shape
from .records.untrusted import harmless

if TYPE_CHECKING:
    from .providers.registry import Registry
    from .session import BenchSession

__all__ = ["check_levels", "show"]


def check_levels(registry: Registry, names: Sequence[str], levels: Sequence[int]) -> None:
    """Refuse a sweep that an account has no room for. ``UsageError`` with the ways out."""
    for name in names:
        try:
            plan, own = registry.plan(name), registry.limits(name).max_live
        except UsageError as error:
            raise pytest.UsageError(str(error)) from None
        if plan is None or (own is not None and own <= plan.max_live):
            continue
        over = [level for level in levels if level > plan.max_live]
        if over:
            few = ",".join(str(level) for level in levels if level <= plan.max_live) or str(plan.max_live)
            raise pytest.UsageError(
                f"{name}: plan {plan.name} has {plan.max_live} sandboxes at once, and level "
                f"{', '.join(map(str, over))} needs more. Lower the levels (--concurrency {few}); or say that the "
                f"account has another plan (--sandbox-option {name}.plan=...); or let the lanes wait for room "
                f"(--sandbox-option {name}.max_live={plan.max_live}); or measure what it rejects "
                f"(--sandbox-option {name}.plan=unlimited)"
            )


@dataclass(frozen=True, slots=True)
class _Row:
    """Sandboxes of one provider in one block, in all and at once; ``more`` where ``number`` is a least."""

    block: str
    number: int
    at_once: int
    rounds: int
    warmups: int
    more: bool = False


def show(config: pytest.Config, session: pytest.Session) -> int:
    """Print what would be made, how many, and how long that takes at least."""
    from .session import session_of

    session.perform_collect()
    config.option.collectonly = True  # what ends here measured nothing, and was not to
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    benches = session_of(config)
    rows: dict[str, list[_Row]] = {}
    for id_, members in benches.blocks.members.items():
        for name in dict.fromkeys(member.callspec.params["sandbox_provider"] for member in members):  # type: ignore[attr-defined]
            rows.setdefault(name, []).append(_row(benches, id_, members, name))
    reporter.write_line("")
    for name, found in rows.items():
        for line in _lines(benches, name, found):
            reporter.write_line(line)
    if not rows:
        reporter.write_line("no benches were collected")
    total = sum(row.number for found in rows.values() for row in found)
    most = benches.settings.max_sandboxes
    if most is not None and total > most:
        reporter.write_line(f"--sandbox-max-sandboxes {most} would stop it: it makes {total}")
    return pytest.ExitCode.OK if rows else pytest.ExitCode.NO_TESTS_COLLECTED


def _row(benches: BenchSession, id_: str, members: Sequence[pytest.Item], name: str) -> _Row:
    settings, lanes = benches.settings, level(members[0])
    marks = [read(member) for member in members]
    let_go = shape(members[0])
    hosted = _capabilities(benches, name).hosted
    samples = max((mark.samples for mark in marks if mark.samples is not None), default=None)
    warmup = max((mark.warmup for mark in marks if mark.warmup is not None), default=None)
    rounds, warmups = settings.rounds_of(let_go, lanes, samples, hosted=hosted), settings.warmups_of(warmup)
    known = shown_operations(marks[0].operation or "")
    each = scenario(benches.config, marks[0].operation or "").sandboxes if known else 1
    lives = parse_shape(let_go).share(lanes, range(lanes))
    number = (rounds + warmups) * (lanes if lives is None else lives) * each
    return _Row(id_, number, lanes * each, rounds, warmups, more=lives is None or not known)


def _capabilities(benches: BenchSession, name: str) -> Any:
    try:
        return benches.registry.make(name).capabilities
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None


def _lines(benches: BenchSession, name: str, rows: Sequence[_Row]) -> list[str]:
    registry = benches.registry
    plan, limits, spec = registry.plan(name), registry.limits(name), registry.spec(name)
    about = [f"plan {plan.name}: {plan.max_live} at once, {plan.create_rate:g} creates a second"] if plan else []
    asked = {key: getattr(spec, key) for key in ("image", "vcpus", "memory_mib") if getattr(spec, key) is not None}
    about += [f"{key}={value}" for key, value in asked.items()]
    about += [f"{key}={value:g} kept here" for key, value in limits.facts().items()]
    out = [harmless(f"{name}{': ' + '; '.join(about) if about else ''}", 600)]
    width = max(len(row.block) for row in rows)
    for row in rows:
        least = " at least" if row.more else ""
        rounds = f"{row.rounds} rounds{f' and {row.warmups} to warm up' if row.warmups else ''}"
        out.append(
            f"  {harmless(row.block):<{width}}  {row.number:>6} sandboxes{least}, {row.at_once} at once, in {rounds}"
        )
    total, most = sum(row.number for row in rows), max(row.at_once for row in rows)
    told = f"  in all {total} sandboxes{' at least' if any(row.more for row in rows) else ''}, {most} at once"
    if limits.create_rate:
        told += f"; {_time(total / limits.create_rate)} at least, by {limits.create_rate:g} creates a second"
    out.append(told)
    if spec.lifetime_s is not None:
        out.append(f"  each ends by itself after {_time(spec.lifetime_s)}")
    if not _capabilities(benches, name).hosted and benches.settings.rounds is None:
        out.append("  up to four times as many where a budget is not decided before")
    return out


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.3g} s"
    return f"{int(seconds // 60)} min {round(seconds % 60)} s"
