"""The card of a provider: what it says it can do, and which of its promises it kept."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from .. import __version__
from ..compliance.check import Check
from ..compliance.run import STILL_LISTED, Verdict
from ..model import Capabilities
from ..report.text import clip, harmless, wrap

__all__ = ["Card", "Line", "listing"]

_POWERS = {
    "exec": "exec",
    "stream": "stream",
    "files": "files",
    "one_shot": "one-shot run",
    "network_off": "network off",
    "labels": "labels",
    "shell": "shell",
}
_LIMITS = ("vcpus", "memory_mib", "pids")
_LABEL = 11
_PLACE = re.compile(r" \(([^()]+, line \d+)\)")
"""The end of what is said of an exception that is none of ours."""
_LISTED = "owned(run) gave ["
_GONE = "found the sandbox gone"
_NUMBERS = len("  passed  failed  left out  ")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the card. ``kind`` is how a terminal shows it."""

    text: str
    kind: Literal["head", "plain", "good", "bad"] = "plain"


@dataclass(frozen=True, slots=True)
class Card:
    """``chosen`` checks of ``total`` were asked for; ``verdicts`` are fewer where ``cut`` says why."""

    name: str
    kind: str
    facts: Mapping[str, str]
    can: Capabilities
    verdicts: Sequence[Verdict]
    chosen: int
    total: int
    seconds: float
    cut: str = ""

    @property
    def failed(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.outcome == "failed"]

    def lines(self, width: int) -> Iterator[Line]:
        yield from self._head(width)
        yield from self._declared(width)
        yield from self._groups(width)
        yield from self._failures(width)
        yield from self._limits(width)
        yield from self._end(width)

    def _head(self, width: int) -> Iterator[Line]:
        shown = self.name if self.name == self.kind else f"{self.name} ({self.kind})"
        yield Line(clip(f"{shown}, checked by pytest-sandboxbench {__version__}", width), "head")
        facts = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in self.facts.items())
        if facts:
            yield from (Line(text) for text in wrap(harmless(facts, 8 * width), width, most=6))
        yield Line("")

    def _declared(self, width: int) -> Iterator[Line]:
        can = self.can
        powers = [said for name, said in _POWERS.items() if getattr(can, name)]
        rows = {
            "isolation": str(can.isolation) + (", hosted" if can.hosted else ""),
            "can": _list(powers),
            "cannot": _list([said for name, said in _POWERS.items() if not getattr(can, name)]),
            "pauses": _list(can.pause),
            "limits": _list([name for name in _LIMITS if name in can.limits]),
            "at once": "as many as fit" if can.max_live is None else f"{can.max_live} sandboxes at most",
        }
        for label, said in rows.items():
            yield from _row(label, said, width)
        yield Line("")

    def _groups(self, width: int) -> Iterator[Line]:
        groups = list(dict.fromkeys(verdict.check.group for verdict in self.verdicts))
        if not groups:
            return
        wide = max(map(len, [*groups, "checks"]))
        yield Line(f"{'checks':<{wide}}  passed  failed  left out", "head")
        for group in groups:
            inside = [verdict for verdict in self.verdicts if verdict.check.group == group]
            yield from _group(group, inside, wide, width)
        yield Line("")

    def _failures(self, width: int) -> Iterator[Line]:
        alike: dict[tuple[str, str], list[Verdict]] = {}
        for verdict in self.failed:
            alike.setdefault(_cause(verdict.said), []).append(verdict)
        for (cause, _which), verdicts in alike.items():
            first = verdicts[0]
            for verdict in verdicts:
                yield Line(clip(f"FAILED  {verdict.check}", width), "bad")
            if len(verdicts) == 1:
                yield from _row("  promise", first.check.about, width)
                said = first.said
            elif cause == STILL_LISTED:
                said = f"{len(verdicts)} checks: {cause}: the first is {first.said.rpartition(f'{cause}: ')[2]}"
            else:
                said = f"{len(verdicts)} checks failed with the same {cause}: {first.said}"
            yield from _row("  came", harmless(said, 2000), width, most=12)
            yield Line("")

    def _limits(self, width: int) -> Iterator[Line]:
        """Which of the declared limits a check has seen to hold."""
        found: dict[str, list[str]] = {"": [], "NOT held: ": [], "not looked at: ": []}
        for name in (name for name in _LIMITS if name in self.can.limits):
            outcomes = {verdict.outcome for verdict in self.verdicts if name in verdict.check.needs}
            held = "NOT held: " if "failed" in outcomes else "" if "passed" in outcomes else "not looked at: "
            found[held].append(name)
        said = "; ".join(how + ", ".join(names) for how, names in found.items() if names)
        if said:
            yield from _row("verified", said if found[""] else f"no limit; {said}", width)

    def _end(self, width: int) -> Iterator[Line]:
        some = "" if self.chosen == self.total else f" of {self.total}"
        yield from _row("checked", f"{len(self.verdicts)}{some} in {_seconds(self.seconds)}", width)
        count = Counter(verdict.outcome for verdict in self.verdicts)
        left_out = f", {count['left out']} left out" if count["left out"] else ""
        if self.cut:
            said = f"{self.name}: {self.cut} after {len(self.verdicts)} of {self.chosen} checks"
            yield Line(clip(f"{said}: {count['passed']} passed, {count['failed']} failed{left_out}", width), "bad")
        elif count["failed"]:
            said = f"{self.name} does not pass: {count['failed']} failed, {count['passed']} passed{left_out}"
            yield Line(clip(said, width), "bad")
        elif not count["passed"]:
            yield Line(clip(f"{self.name}: none of these checks applies to it{left_out}", width))
        else:
            said = "passes these checks" if some else "keeps its promises"
            yield Line(clip(f"{self.name} {said}: {count['passed']} passed{left_out}", width), "good")


def _cause(said: str) -> tuple[str, str]:
    """What failures have in common, as a word and what makes it the same: where an adapter raised, what it found."""
    if said.startswith(STILL_LISTED) or (STILL_LISTED in said and _LISTED in said):
        return STILL_LISTED, ""
    if place := _PLACE.search(said):
        return "exception; the first of them", place[1]
    if _GONE in said:
        return "error, SandboxGone; the first of them", _GONE
    return "words", said


def _group(group: str, verdicts: Sequence[Verdict], wide: int, width: int) -> Iterator[Line]:
    """Numbers, and why some were left out: each reason once."""
    count = Counter(verdict.outcome for verdict in verdicts)
    passed, failed, left = (str(count[name] or "") for name in ("passed", "failed", "left out"))
    reasons = Counter(harmless(verdict.said) for verdict in verdicts if verdict.outcome == "left out")
    one = len(reasons) == 1
    said = "; ".join(reason if one else f"{reason} ({number})" for reason, number in reasons.items())
    start = f"{group:<{wide}}  {passed:>6}  {failed:>6}  {left:>8}"
    kind: Literal["bad", "plain"] = "bad" if failed else "plain"
    if not said:
        yield Line(start.rstrip(), kind)
        return
    for at, text in enumerate(wrap(said, width - wide - _NUMBERS, most=6)):
        yield Line(f"{start if at == 0 else ' ' * len(start)}  {text}", kind if at == 0 else "plain")


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(str, names)) or "none"


def _row(label: str, said: str, width: int, *, most: int = 6) -> Iterator[Line]:
    for at, text in enumerate(wrap(harmless(said, 4000), width - _LABEL, most=most)):
        yield Line(f"{label if at == 0 else '':<{_LABEL}}{text}")


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def listing(checks: Sequence[Check]) -> str:
    """Markdown: every check with its promise and what a provider must declare for it, by group."""
    lines: list[str] = []
    for group in dict.fromkeys(check.group for check in checks):
        inside = [check for check in checks if check.group == group]
        about = (sys.modules[inside[0].run.__module__].__doc__ or "").strip().partition("\n")[0]
        lines += [f"### {group}", "", about, "", "| check | promise | needs |", "|---|---|---|"]
        for check in inside:
            needs = ", ".join(f"`{need}`" for need in check.needs) or "nothing"
            lines.append(f"| `{check}` | {check.about.replace('|', chr(92) + '|')} | {needs} |")
        lines.append("")
    return "\n".join(lines)
