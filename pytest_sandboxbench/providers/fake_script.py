"""The language in which the scripted provider is told what each call does.

A script is a list of steps, one a call; the last step serves all further calls, and a final ``...`` starts again from
the first. A step is ``[COUNTx][SECONDS+]WHAT``: ``0.05``, ``hang``, ``0.2+error:no room``, ``2x0.05``. On the command
line a comma parts the steps, in TOML a list does as well, and there a text may hold commas.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..errors import UsageError

__all__ = ["OPERATIONS", "WORDS", "Script", "Step", "Word", "forms", "parse_items", "parse_script", "parse_seconds"]

OPERATIONS = (
    "create",
    "exec",
    "write_file",
    "read_file",
    "pause",
    "resume",
    "destroy",
    "round_trip",
    "run_once",
    "preflight",
    "owned",
    "aclose",
)
"""Each is a setting of the same name that holds a script. ``exec`` serves ``stream`` too."""

BOUND_S = 30.0
"""How long ``swallow`` and ``block`` last where the script does not say."""

_ENDLESS_S = 1e9
"""So many seconds are not waited for: a clock of nanoseconds could not hold many more."""

T = TypeVar("T")

_NUMBER = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_COUNTED = re.compile(r"(\d+)x(.+)", re.DOTALL)
_DELAYED = re.compile(rf"({_NUMBER})(?:\+(.+))?", re.DOTALL)
_LIMITS = ("quota", "capacity", "rate", "queue")


@dataclass(frozen=True, slots=True)
class Word:
    """A thing that a call can do besides taking its time.

    ``form``        as written, with its argument: ``error[:TEXT]``
    ``meaning``     one line, for documentation
    ``check``       raises ``ValueError`` for an argument that is not allowed
    ``operations``  the operations that know it
    """

    form: str
    meaning: str
    check: Callable[[str], object]
    operations: frozenset[str] = frozenset(OPERATIONS)


@dataclass(frozen=True, slots=True)
class Step:
    """What one call does: takes ``after_s`` seconds, then what ``word`` says; no word is success."""

    after_s: float = 0.0
    word: str = ""
    text: str = ""

    @property
    def seconds(self) -> float:
        """The argument of ``swallow``, ``block`` and ``late``."""
        return float(self.text) if self.text else BOUND_S


@dataclass(frozen=True, slots=True)
class Script(Generic[T]):
    """Items for the calls 0, 1, 2, ...: the last one repeats, or with ``again`` the whole list does."""

    turns: tuple[tuple[int, T], ...]
    again: bool = False

    def at(self, call: int) -> T:
        if self.again:
            call %= sum(count for count, _ in self.turns)
        for count, item in self.turns:
            if call < count:
                return item
            call -= count
        return self.turns[-1][1]


def _nothing(text: str) -> None:
    if text:
        raise ValueError("takes no argument")


def _anything(text: str) -> None:
    pass


def _seconds(text: str) -> None:
    if text:
        parse_seconds(text)


def _limit(text: str) -> None:
    if text not in _LIMITS:
        raise ValueError(f"{text!r} is not one of {', '.join(_LIMITS)}")


def _code(text: str) -> None:
    if not re.fullmatch(r"-?\d{1,9}", text):
        raise ValueError(f"{text!r} is not a whole number of at most 9 digits")


def _exception(text: str) -> None:
    kind = getattr(builtins, text or "RuntimeError", None)
    try:
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise TypeError
        kind("")
    except TypeError:
        raise ValueError(f"{text!r} is not a built-in exception that takes a message") from None


_CALLS = frozenset(OPERATIONS) - {"preflight", "aclose"}
_MAKES = frozenset({"create", "run_once"})
_INSIDE = frozenset({"exec", "write_file", "read_file", "pause", "resume"})

WORDS = {
    "hang": Word("hang", "never returns, until it is cancelled", _nothing),
    "swallow": Word("swallow[:SECONDS]", "hangs and swallows cancellation, then returns", _seconds),
    "block": Word("block[:SECONDS]", "blocks the whole event loop, then returns", _seconds),
    "raise": Word("raise[:NAME]", "raises a built-in exception, as a buggy adapter does", _exception),
    "error": Word("error[:TEXT]", "the operation's own typed error; TEXT is what the provider said", _anything, _CALLS),
    "lost": Word("lost[:TEXT]", "TransportLost", _anything, _CALLS),
    "timeout": Word("timeout", "the provider itself says that a deadline passed", _nothing, _CALLS),
    "reject": Word("reject:" + "|".join(_LIMITS), "Rejected for that limit", _limit, _CALLS),
    "exit": Word("exit:N", "the command returns N", _code, frozenset({"exec", "run_once"})),
    "leak": Word("leak", "the sandbox comes to life, but the call never returns", _nothing, _MAKES),
    "late": Word("late[:SECONDS]", "never returns; the sandbox comes to life that much later", _seconds, _MAKES),
    "gone": Word("gone", "the sandbox is found gone; for destroy that is success", _nothing, _INSIDE | {"destroy"}),
    "stuck": Word("stuck", "DestroyFailed, and so in every later try on it", _nothing, frozenset({"destroy"})),
    "lie": Word("lie", "says destroyed, and the sandbox lives on", _nothing, frozenset({"destroy"})),
    "fresh-boot": Word("fresh-boot", "a new boot: memory is lost, files are kept", _nothing, frozenset({"resume"})),
    "wiped": Word("wiped", "a new boot on an empty disk", _nothing, frozenset({"resume"})),
}
"""All that a step can say after its seconds."""


def forms(operation: str) -> list[str]:
    """The forms that a step of this operation may have, ``SECONDS`` first."""
    return ["SECONDS", *(word.form for word in WORDS.values() if operation in word.operations)]


def parse_script(instance: str, operation: str, items: Sequence[str]) -> Script[Step]:
    """Read the script of one operation; ``UsageError`` names the value, the allowed forms and an example."""
    if not items:
        return Script(((1, Step()),))
    try:
        return parse_items(items, lambda text: _step(operation, text))
    except ValueError as error:
        raise UsageError(
            f"provider {instance!r}: setting {operation} = {','.join(items)!r}: {error}. "
            f"A step is [COUNTx][SECONDS+]WHAT, where WHAT is {', '.join(forms(operation))}; a comma starts the next "
            f"step (a TOML list allows commas in a text), a last step ... starts again; "
            f"write for example --sandbox-option {instance}.{operation}=2x0.05,1.5+hang"
        ) from None


def parse_items(items: Sequence[str], read: Callable[[str], T]) -> Script[T]:
    """Read a list of ``[COUNTx]ITEM`` with an optional last ``...``; ``ValueError`` says what is wrong."""
    again = items[-1] == "..."
    turns = []
    for item in items[:-1] if again else items:
        counted = _COUNTED.fullmatch(item)
        count, text = (int(counted[1]), counted[2]) if counted else (1, item)
        if count < 1:
            raise ValueError(f"the count in {item!r} is not at least 1")
        turns.append((count, read(text)))
    if not turns:
        raise ValueError("'...' repeats the steps before it, and there are none")
    return Script(tuple(turns), again)


def parse_seconds(text: str) -> float:
    """Read a number of seconds, at least 0 and below 1e9; ``ValueError`` otherwise."""
    if not re.fullmatch(_NUMBER, text) or not float(text) < _ENDLESS_S:
        raise ValueError(f"{text!r} is not a number of seconds below {_ENDLESS_S:g}")
    return float(text)


def _step(operation: str, text: str) -> Step:
    delayed = _DELAYED.fullmatch(text)
    after_s = parse_seconds(delayed[1]) if delayed else 0.0
    rest = delayed[2] if delayed else text
    if rest is None:
        return Step(after_s)
    name, _, argument = rest.partition(":")
    word = WORDS.get(name)
    if word is None:
        raise ValueError(f"{text!r} is not a step")
    if operation not in word.operations:
        raise ValueError(f"{name!r} is not for {operation}")
    try:
        word.check(argument)
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from None
    return Step(after_s, name, argument)
