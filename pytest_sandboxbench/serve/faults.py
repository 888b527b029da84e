"""What a local server does wrong on demand: a script an operation, in which each step serves one request.

A step is ``[COUNTx]WHAT``; after the last one the server behaves again, unless that is ``...``: then the script starts
anew. ``create=429`` is one rejection, ``create=2xok,503,...`` says 503 to every third create.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import UsageError

__all__ = ["OPERATIONS", "Fault", "Faults"]

OPERATIONS = {
    "create": "POST /v2/sandboxes",
    "connect": "POST .../connect: a resume",
    "pause": "POST .../pause",
    "kill": "DELETE: a destroy",
    "get": "GET .../SANDBOX",
    "list": "GET /v2/sandboxes",
    "exec": "process.Process/Start",
    "files": "GET and POST /files",
    "health": "GET /health",
}

_STEP = re.compile(r"(?:(?P<count>\d+)x)?(?P<what>ok|slow|drop|lose|hang|\d{3})(?::(?P<number>\d+(?:\.\d+)?))?")
_STATUSES = range(400, 600)


@dataclass(frozen=True, slots=True)
class Fault:
    """What becomes of one request.

    ``ok``      nothing
    ``NNN``     this status is the answer, and nothing is done; with ``:SECONDS`` a Retry-After
    ``slow``    it is served ``number`` seconds later
    ``drop``    the connection is closed without an answer, and nothing is done
    ``lose``    it is served, and the answer is lost with the connection
    ``hang``    no answer, and nothing is done, until the client goes away
    """

    what: str = "ok"
    number: float | None = None

    @property
    def status(self) -> int | None:
        return int(self.what) if self.what.isdigit() else None


class Faults:
    """The scripts of a server. Each request takes the next step of its operation's."""

    def __init__(self, scripts: Iterable[str] = ()) -> None:
        self._waiting: dict[str, deque[Fault]] = {}
        self._endless: dict[str, tuple[Fault, ...]] = {}
        for script in scripts:
            self.add(script)

    def add(self, script: str) -> None:
        """``OPERATION=STEP,STEP,...``. ``UsageError`` for one that is none; it replaces that operation's."""
        operation, equals, text = script.partition("=")
        if not equals or operation not in OPERATIONS:
            raise UsageError(f"fault {script!r}: write OPERATION=STEPS; operations: {', '.join(OPERATIONS)}")
        steps = [step.strip() for step in text.split(",") if step.strip()]
        again = steps[-1:] == ["..."]
        faults = [fault for step in steps[: len(steps) - again] for fault in _read(script, step)]
        if again and not faults:
            raise UsageError(f"fault {script!r}: there is nothing before the '...' to do again")
        self._waiting[operation] = deque(faults)
        self._endless[operation] = tuple(faults) if again else ()

    def next(self, operation: str) -> Fault:
        waiting = self._waiting.get(operation)
        if not waiting:
            return Fault()
        fault = waiting.popleft()
        if not waiting:
            waiting.extend(self._endless[operation])
        return fault


def _read(script: str, step: str) -> list[Fault]:
    found = _STEP.fullmatch(step)
    if found is None or (found["what"].isdigit() and int(found["what"]) not in _STATUSES):
        raise UsageError(
            f"fault {script!r}: {step!r} is no step; write ok, a status such as 429 or 429:2 (Retry-After), "
            "slow:SECONDS, drop, lose or hang, each with COUNTx before it where it comes more than once"
        )
    number = float(found["number"]) if found["number"] else None
    if found["what"] == "slow" and number is None:
        raise UsageError(f"fault {script!r}: slow for how long? slow:0.5 is half a second")
    return [Fault(found["what"], number)] * int(found["count"] or 1)
