"""What a session has to tell besides its results: its own, and under xdist what each worker said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .load.gang_worker import say
from .records.redaction import hide
from .stash import HEARD

if TYPE_CHECKING:
    import pytest

    from .measuring import Measuring
    from .reaping import Reaped

__all__ = ["News", "not_destroyed", "told_of"]

_MOST_IDS = 5
_DIGITS = re.compile(r"\d+(?:\.\d+)?")


class News:
    """``measuring`` is set in the process that measures."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._absent: dict[str, tuple[str, str]] = {}
        self._left: list[tuple[str, str, str]] = []
        self._notes: list[str] = []
        self.measuring: Measuring | None = None

    def tell(self) -> None:
        """In a worker: let the controller know, also when no report follows."""
        say(self._config, "news", {name: getattr(self, name) for name in ("absent", "left", "notes", "problem")})

    def note(self, text: str) -> None:
        self._notes.append(text)
        self.tell()

    def workers(self) -> None:
        """In xdist's controller, at the end: workers that ended before their time, and what nobody came to."""
        heard = self._config.stash.get(HEARD, None)
        if heard is None:
            return
        self._notes += heard.ends
        if heard.unrun:
            benches = "1 bench was" if heard.unrun == 1 else f"{heard.unrun} benches were"
            self._notes.append(f"{benches} not run: no worker was left")

    @property
    def unrun(self) -> int:
        heard = self._config.stash.get(HEARD, None)
        return 0 if heard is None else heard.unrun

    def missing(self, name: str, reason: str, cure: str) -> None:
        self._absent[name] = (reason, cure)
        self.tell()

    def reaped(self, reaped: Reaped, *, own: bool) -> None:
        """What was destroyed of the dead: of this run's, where what stays is this run's leak, or of earlier ones."""
        if own:
            self._left += [(ref.provider, ref.id, reason) for ref, reason in reaped.left]
            reaped.left.clear()
        self._notes += told_of(reaped)
        self.tell()

    def _said(self, subject: str) -> list[Any]:
        heard = self._config.stash.get(HEARD, None)
        return [] if heard is None else [news[subject] for news in heard.news.values()]

    @property
    def absent(self) -> dict[str, tuple[str, str]]:
        """Providers that cannot run here: name -> (reason, cure)."""
        merged = dict(self._absent)
        for absent in self._said("absent"):
            merged.update(absent)
        return merged

    @property
    def left(self) -> list[tuple[str, str, str]]:
        """Sandboxes that could not be destroyed: (provider, id, reason)."""
        found = [(provider, self._told(id_), self._told(reason)) for provider, id_, reason in self._own_left()]
        return found + [left for lefts in self._said("left") for left in lefts]

    def _own_left(self) -> list[tuple[str, str, str]]:
        own = self.measuring.left if self.measuring is not None else []
        return self._left + [(left.ref.provider, left.ref.id, left.reason) for left in own]

    def _told(self, text: str) -> str:
        """Without secrets: an id is a word of a provider too."""
        return hide(text) if self.measuring is None else self.measuring.told(text)

    @property
    def problem(self) -> str:
        """What went wrong with the records or the ledger, empty for nothing."""
        own = self.measuring.problem if self.measuring is not None else ""
        return next(filter(None, (own, *self._said("problem"))), "")

    @property
    def notes(self) -> list[str]:
        """What else somebody should know, one line each."""
        return list(
            dict.fromkeys(
                [
                    *map(self._told, self._notes),
                    *self._open(),
                    *(note for notes in self._said("notes") for note in notes),
                ]
            )
        )

    def _open(self) -> list[str]:
        """What was made and is not known to be gone: the end was interrupted, or a create may come late."""
        if self.measuring is None:
            return []
        ledger = self.measuring.ledger
        known = {(provider, id_) for provider, id_, _reason in self._own_left()}
        number = len(ledger.live.keys() - known) + sum(ledger.unknown.values())
        if not number:
            return []
        what = f"{number} sandboxes" if number > 1 else "1 sandbox"
        return [f"{what} may still exist, or come late: the next run destroys them, or `sandboxbench reap` now"]


def told_of(reaped: Reaped) -> list[str]:
    """What came of a reaping, a line for each thing to know: not for each sandbox, there may be hundreds."""
    lines = []
    by_run: dict[str, list[str]] = {}
    for found in reaped.destroyed:
        by_run.setdefault(found.owner.run_id if found.owner else "?", []).append(f"{found.ref.provider} {found.ref.id}")
    lines += [
        f"destroyed {len(ids)} left by run {run}, whose process is gone: {_some(ids)}" for run, ids in by_run.items()
    ]
    lines += not_destroyed((ref.provider, ref.id, reason) for ref, reason in reaped.left)
    for provider, number, run in reaped.unknown:
        lines.append(
            f"run {run} was ended in the middle of {number} creates on {provider}, which lists nothing by owner: "
            f"look there; `sandboxbench reap --forget {run}` ends this message"
        )
    why: dict[str, list[str]] = {}
    for run, problem in reaped.problems:
        why.setdefault(problem, []).extend([run] if run else [])
    for problem, runs in why.items():
        named = f"what run {_some(list(dict.fromkeys(runs)))} left is not destroyed: " if runs else ""
        lines.append(f"{named}{problem}")
    return lines


def not_destroyed(left: Iterable[tuple[str, str, str]]) -> list[str]:
    """One line for all of a provider that are left for one reason: (provider, id, reason) of each."""
    alike: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for provider, id_, reason in left:
        alike.setdefault((provider, _DIGITS.sub("#", reason.replace(id_, "ID"))), []).append((id_, reason))
    return [
        f"not destroyed: {provider} {_some(list(dict.fromkeys(id_ for id_, _reason in ones)))}: {ones[0][1]}"
        for (provider, _words), ones in alike.items()
    ]


def _some(ids: Sequence[str]) -> str:
    more = len(ids) - _MOST_IDS
    return ", ".join(ids[:_MOST_IDS]) + (f" and {more} more" if more > 0 else "")
