"""The one grammar of budgets: ``startup median 44ms..52ms @1,16,50,100``.

    budget    := [subject] statistic [at] { "/" reference } limit [at]
    subject   := [provider ":"] operation [ "{" name=value {"," name=value} "}" ] ["." phase]
    statistic := "median" | "p95" and other percentiles | "success" | "throughput"
    reference := ["median"] "@" level | "floor" | "baseline" | provider ":"
    limit     := low ".." high | ".." high | low ".." | ("<" | "<=" | ">" | ">=") value | "=" "100%"
    at        := "@" level {"," level} ["/" shape]

Both limits belong to the range, so that ``<`` and ``<=`` mean the same. ``docs/budgets.md`` is for its users.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NoReturn

from ..load.shapes import parse_shape
from ..stats.digits import plain
from .model import Budget, Reference

__all__ = ["BudgetError", "parse", "write"]

LONGEST = 500

_EXAMPLE = "startup median 44ms..52ms @1,16"
_WORD = r"[\w+-]+"
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]*"
_NUMBER = r"(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:e[+-]?[0-9]+)?"
_TOKEN = re.compile(
    rf"""(?P<at>@\s*[0-9]+(?:\s*,\s*[0-9]+)*(?:\s*/\s*(?=burst|closed|rate|stagger)[A-Za-z0-9_.-]+)?)
    |(?P<dots>\.\.)
    |(?P<value>{_NUMBER}(?:\s*(?:ns|us|µs|μs|ms|s|min|x|%|/\s*s|/\s*min)(?![\w]))?(?!\w|[\w.-]*:))
    |(?P<compare><=|>=|<|>|=)
    |(?P<slash>/)
    |(?P<provider>{_NAME}:(?=$|[\s<>=.@/]))
    |(?P<series>(?:{_NAME}:)?{_WORD}(?:\{{[^}}]*\}})?(?:\.(?!\.){_WORD})?)
    |(?P<phase>\.(?!\.){_WORD})""",
    re.VERBOSE,
)
_VALUE = re.compile(rf"({_NUMBER})\s*(.*)")
_SERIES = re.compile(
    rf"(?:(?P<provider>{_NAME}):)?(?P<operation>{_WORD})(?:\{{(?P<inside>[^}}]*)\}})?"
    rf"(?:\.(?P<phase>{_WORD}))?",
)
_PERCENTILE = re.compile(r"p([0-9]{1,2}(?:\.[0-9]{1,3})?)")
_TIMES: Mapping[str, float] = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9}
_INSTEAD = {
    "mean": "median",
    "avg": "median",
    "average": "median",
    "max": "p99",
    "min": "p5",
    "stdev": "p95",
    "rps": "throughput",
    "p100": "p99",
    "p0": "p1",
}


class BudgetError(ValueError):
    """A text that is no budget: the ``token`` at place ``at`` (from 0) of ``text`` is wrong, as ``message`` says."""

    def __init__(self, text: str, at: int, token: str, message: str) -> None:
        super().__init__(f"{message} (at character {at + 1}); write for example {_EXAMPLE!r}")
        self.text, self.at, self.token, self.message = text, at, token, message


class _Token:
    __slots__ = ("at", "kind", "text")

    def __init__(self, kind: str, text: str, at: int) -> None:
        self.kind, self.text, self.at = kind, text, at


def parse(text: str, *, own: bool = False) -> Budget:
    """The budget that a text says. ``own``: the operation may be left out, as at a test, whose own it is then.

    ``BudgetError`` names the place, the token and an example.
    """
    return _Parser(text, own).budget()


class _Parser:
    def __init__(self, text: str, own: bool) -> None:
        self._text, self._own = text, own
        if len(text) > LONGEST:
            raise BudgetError(text[:LONGEST], LONGEST, "", f"a budget has at most {LONGEST} characters")
        self._tokens = self._scan()
        self._next = 0

    def _scan(self) -> list[_Token]:
        tokens, at = [], 0
        while at < len(self._text):
            if self._text[at].isspace():
                at += 1
                continue
            match = _TOKEN.match(self._text, at)
            if match is None or match.end() == at:
                word = self._text[at:].split()[0]
                raise BudgetError(self._text, at, word, f"{word!r} is no part of a budget")
            tokens.append(_Token(str(match.lastgroup), match.group(), at))
            at = match.end()
        tokens.append(_Token("end", "", len(self._text)))
        return tokens

    # -- tokens

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._token
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _wrong(self, message: str, token: _Token | None = None) -> NoReturn:
        token = token or self._token
        raise BudgetError(self._text, token.at, token.text, message)

    # -- rules

    def budget(self) -> Budget:
        provider, operation, variants, phase = self._subject()
        statistic = self._statistic(self._take())
        first = self._at()
        over = self._references(statistic)
        low, high = self._limit(statistic, ratio=bool(over))
        last = self._at()
        if first is not None and last is not None:
            self._wrong("the levels are given twice", last)
        at = first or last
        levels, shape = ((), None) if at is None else self._levels(at)
        if self._token.kind != "end":
            self._wrong(f"{self._token.text!r} comes after the end of the budget")
        found = Budget(operation, statistic, low, high, provider, variants, phase, levels, shape, over)
        self._check(found, first)
        return found

    def _subject(self) -> tuple[str | None, str | None, tuple[tuple[str, str], ...], str]:
        token = self._token
        if token.kind == "phase" and self._own:
            self._take()
            return None, None, (), token.text[1:]
        if token.kind not in ("series", "value"):
            self._wrong("a budget begins with an operation" if token.text else "there is no budget")
        if self._own and (_is_statistic(token.text) or token.text in _INSTEAD):
            return None, None, (), ""
        match = _SERIES.fullmatch(token.text)
        if match is None:
            self._wrong(f"{token.text!r} is no operation")
        if self._tokens[self._next + 1].kind not in ("series", "value") and _is_statistic(token.text):
            self._wrong(f"the operation is missing before {token.text!r}")
        self._take()
        variants = []
        for part in (match["inside"] or "").split(",") if match["inside"] is not None else ():
            name, equals, value = part.strip().partition("=")
            if not (name and equals and value) or re.search(r"[\s{}=]", name + value):
                self._wrong(f"{part.strip()!r} is no variant: write for example {{cache=miss}}", token)
            variants.append((name, value))
        if len({name for name, _ in variants}) < len(variants):
            self._wrong("a variant is given twice", token)
        return match["provider"], match["operation"], tuple(sorted(variants)), match["phase"] or ""

    def _statistic(self, token: _Token) -> str:
        word = token.text
        if word in _INSTEAD:
            self._wrong(f"{word!r} is not judged; take {_INSTEAD[word]}", token)
        if not _is_statistic(word):
            said = f"{word!r} is no statistic" if word else "the statistic is missing"
            self._wrong(f"{said}: there are median, p95 and other percentiles, success, throughput", token)
        if word in ("success", "throughput", "median"):
            return word
        number = float(word[1:])
        return "median" if number == 50 else f"p{number:g}"

    def _at(self) -> _Token | None:
        return self._take() if self._token.kind == "at" else None

    def _levels(self, token: _Token) -> tuple[tuple[int, ...], str | None]:
        numbers, _, shape = token.text[1:].partition("/")
        levels = [int(number) for number in numbers.split(",")]
        if not all(1 <= level <= 10_000 for level in levels) or len(set(levels)) < len(levels):
            self._wrong(f"{token.text!r} names no different levels from 1 to 10000", token)
        if not (shape := shape.strip()):
            return tuple(sorted(levels)), None
        try:
            return tuple(sorted(levels)), str(parse_shape(shape))
        except ValueError as error:
            return self._wrong(str(error), token)

    def _references(self, statistic: str) -> tuple[Reference, ...]:
        found: list[Reference] = []
        while self._token.kind == "slash":
            self._take()
            found.append(self._reference(statistic))
        return tuple(found)

    def _reference(self, statistic: str) -> Reference:
        token = self._take()
        if token.kind == "series" and _is_statistic(token.text):
            if self._statistic(token) != statistic:
                self._wrong(f"{token.text} is another statistic than {statistic}", token)
            token = self._take()
            if token.kind != "at":
                self._wrong(f"a level is missing: write {statistic}@1", token)
        if token.kind == "at":
            levels, shape = self._levels(token)
            if len(levels) != 1 or shape is not None:
                self._wrong(f"{token.text!r} is not one level", token)
            return Reference("level", level=levels[0])
        if token.kind == "series" and token.text in ("floor", "baseline"):
            return Reference("floor" if token.text == "floor" else "baseline")
        if token.kind == "provider":
            return Reference("series", provider=token.text[:-1])
        known = "write @1, floor, baseline, or a provider with a colon: docker:"
        return self._wrong(f"{token.text!r} is nothing to divide by: {known}", token)

    def _check(self, budget: Budget, first: _Token | None) -> None:
        """Refuse what can be written, and never judged. ``first``: the levels above the line."""
        statistic, over, levels = budget.statistic, budget.over, budget.levels
        if budget.phase and statistic in ("success", "throughput"):
            self._wrong(f"{statistic} is one of whole operations: leave .{budget.phase} out", self._tokens[0])
        if not over:
            return
        slash = next(token for token in self._tokens if token.kind == "slash")
        if statistic == "success":
            self._wrong("a success rate is not divided", slash)
        kinds = [reference.kind for reference in over]
        if len(kinds) > 2 or (len(kinds) == 2 and (kinds[0] != "level" or kinds[1] not in ("floor", "series"))):
            self._wrong("after a level, it is divided once more at most: by the floor or by a provider", slash)
        if kinds[0] == "level" and (first is None or len(levels) != 1 or levels[0] == over[0].level):
            self._wrong("a ratio of two levels has one above the line: median@100 / median@1", slash)
        if kinds[-1] == "series" and over[-1].provider == budget.provider:
            self._wrong(f"{budget.provider} is not divided by itself", slash)
        if "baseline" in kinds and (budget.phase or statistic == "throughput"):
            self._wrong("a baseline holds latencies of whole operations: no phase and no throughput", slash)

    # -- limits

    def _limit(self, statistic: str, *, ratio: bool) -> tuple[float, float]:
        token = self._take()
        low, high = -math.inf, math.inf
        if token.kind == "compare":
            value = self._value(self._take(), statistic, ratio=ratio)
            if token.text == "=":
                if statistic != "success" or value != 1:
                    self._wrong("'=' is for success = 100% only: write a range", token)
                return 1.0, 1.0
            return (low, value) if "<" in token.text else (value, high)
        if token.kind == "value":
            if self._take_dots() is None:
                self._wrong("a limit is a range: write ..52ms, 44ms.., 44ms..52ms or < 52ms", token)
            if self._token.kind == "value":
                other = self._take()
                high = self._value(other, statistic, ratio=ratio)
                low = self._value(token, statistic, ratio=ratio, unit=_unit(other.text))
                if low >= high:
                    self._wrong(f"{token.text} is not below {other.text}", token)
                return low, high
            return self._value(token, statistic, ratio=ratio), high
        if token.kind == "dots" and self._token.kind == "value":
            return low, self._value(self._take(), statistic, ratio=ratio)
        bad = self._token if token.kind == "dots" else token
        said = f"{bad.text!r} is no limit" if bad.kind == "series" else "the limit is missing"
        return self._wrong(f"{said}: write for example ..52ms, 44ms..52ms or >= 99%", bad if bad.text else token)

    def _take_dots(self) -> _Token | None:
        return self._take() if self._token.kind == "dots" else None

    def _value(self, token: _Token, statistic: str, *, ratio: bool, unit: str = "") -> float:
        match = _VALUE.fullmatch(token.text) if token.kind == "value" else None
        if match is None:
            self._wrong(f"{token.text!r} is no limit" if token.text else "a limit is missing", token)
        number, said = float(match[1]), _unit(token.text) or unit
        if ratio:
            units: Mapping[str, float] = {"": 1.0, "x": 1.0, "%": 0.01}
            fit = "a plain number, or %"
        elif statistic == "success":
            units, fit = {"": 1.0, "%": 0.01}, "% or a share of 1"
        elif statistic == "throughput":
            units, fit = {"/s": 1.0, "/min": 1 / 60}, "/s or /min"
        else:
            units, fit = _TIMES, "ns, us, ms, s or min"
        if said not in units:
            self._wrong(f"{token.text!r} has no unit that fits {'a ratio' if ratio else statistic}: {fit}", token)
        # 0.07 * 100 is not 7: a share is divided.
        value = number / 100 if units[said] == 0.01 else number * units[said]
        if not math.isfinite(value) or (statistic == "success" and value > 1):
            self._wrong(f"{token.text!r} is too large", token)
        return value


def _unit(text: str) -> str:
    match = _VALUE.fullmatch(text)
    said = re.sub(r"\s", "", match[2]) if match else ""
    return "us" if said in ("µs", "μs") else said


def _is_statistic(word: str) -> bool:
    if word in ("median", "success", "throughput"):
        return True
    match = _PERCENTILE.fullmatch(word)
    return match is not None and 0 < float(match[1]) < 100


# -- printing


def write(budget: Budget) -> str:
    """The text of a budget in its one canonical form; ``parse`` gives it back."""
    inside = ",".join(f"{name}={value}" for name, value in budget.variants)
    series = f"{budget.provider}:" if budget.provider is not None else ""
    series += (budget.operation or "") + (f"{{{inside}}}" if inside else "")
    series += f".{budget.phase}" if budget.phase else ""
    at = f"@{','.join(map(str, budget.levels))}" if budget.levels else ""
    at += f"/{budget.shape}" if at and budget.shape else ""
    flat = bool(budget.over) and budget.over[0].kind == "level"
    words = [series, budget.statistic + (at if flat else "")]
    for over in budget.over:
        name = {"level": f"{budget.statistic}@{over.level}", "series": f"{over.provider}:"}.get(over.kind, over.kind)
        words[-1] += f" / {name}"
    words.append(_limits(budget))
    if at and not flat:
        words.append(at)
    return " ".join(word for word in words if word)


def _limits(budget: Budget) -> str:
    if budget.statistic == "success":
        return _shares(budget.low, budget.high)
    low, high = (_written(limit, budget) if math.isfinite(limit) else "" for limit in (budget.low, budget.high))
    return f"{low}..{high}"


def _shares(*limits: float) -> str:
    """Both as percents or both as shares: a number without a unit has that of the other limit."""
    percents = [plain(round(limit * 100, 10)) if math.isfinite(limit) else "" for limit in limits]
    if limits == (1.0, 1.0):
        return "= 100%"
    if all(float(text) / 100 == limit for text, limit in zip(percents, limits, strict=True) if text):
        return "..".join(f"{text}%" if text else "" for text in percents)
    return "..".join(plain(limit) if math.isfinite(limit) else "" for limit in limits)


def _written(limit: float, budget: Budget) -> str:
    """The shortest text that is read as exactly this number."""
    if budget.over:
        return plain(limit)
    if budget.statistic == "throughput":
        return f"{plain(limit)}/s"
    texts = [(f"{plain(round(limit / size, 12))}{unit}", size) for unit, size in _TIMES.items()]
    exact = [text for text, size in texts if float(_VALUE.fullmatch(text)[1]) * size == limit]  # type: ignore[index]
    return min(exact, key=len, default=f"{plain(limit)}ns")
