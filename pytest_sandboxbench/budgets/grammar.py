"""The one grammar of budgets: ``startup median 44ms..52ms @1,16,50,100``.

    budget    := [subject] statistic [at] { "/" reference } limit [at]
    subject   := [provider ":"] operation [ "{" name=value {"," name=value} "}" ] ["." phase]
    statistic := "median" | "p95" and others from p1 to p99.9 | "success" | "throughput"
    at        := "@" level {"," level} ["/" shape]
    reference := [statistic] "@" level | "floor" | "baseline" | provider ":"
    limit     := low ".." high | ".." high | low ".." | ("<" | "<=" | ">" | ">=") value | "=" "100%"

White space between the parts is free. Both limits belong to the range, so that ``<`` and ``<=`` mean the same. At a
test the subject may be missing, or be a phase alone: the operation is the test's own. ``docs/budgets.md`` is for users.
"""

from __future__ import annotations

import math
import re

from .model import Budget, Reference
from .scanning import LONGEST, RATE, RATIO, SHARE, TIME, BudgetError, Scale, Scanner, Value, shown, written

__all__ = ["BudgetError", "parse", "write"]

_EXAMPLE = "startup median 44ms..52ms @1,16"
_OWN_EXAMPLE = "median 44ms..52ms @1,16"

_HIGHEST_LEVEL = 10_000
_MOST_OVER = 2

# As names are in series keys: of providers, of operations; a phase may have dots, a variant's value as well.
_PROVIDER = re.compile(r"([A-Za-z0-9][\w.-]*)\s*:")
_OPERATION = re.compile(r"[\w+-]+")
_PHASE = re.compile(r"\.(?!\.)\s*([\w+-]+(?:\.[\w+-]+)*)")
_PART = re.compile(r"[\w.+-]+")
_STATISTIC = re.compile(r"(?:median|success|throughput|p[0-9]+(?:\.[0-9]+)?)(?![\w+-]|\.[0-9])")
_PERCENTILE = re.compile(r"p(0?[1-9]|[1-9][0-9])(?:\.[0-9]{1,3})?")
_SHAPE = re.compile(r"/\s*(burst|(?:closed|rate|stagger)-[\w-]+(?:\.[\w-]+)*)(?![\w-]|\.[\w-]|\s*:)")
_LIKE_A_SHAPE = re.compile(r"burst|closed|rate|stagger")
_INTEGER = re.compile(r"[0-9]+")
_BASE = re.compile(r"(?:floor|baseline)(?![\w-])")
_DOTS = re.compile(r"\.{2,}")
_COMPARE = re.compile(r"[<>=≤≥]+")

_INSTEAD = {
    **dict.fromkeys(("mean", "avg", "average"), "median"),
    **dict.fromkeys(("max", "maximum", "worst", "p100"), "p99"),
    **dict.fromkeys(("min", "minimum", "best"), "p5"),
    **dict.fromkeys(("stdev", "stddev", "std"), "p95"),
    **dict.fromkeys(("rps", "qps", "tps", "ops", "rate"), "throughput"),
    **dict.fromkeys(("failures", "errors"), "success"),
    "p0": "p1",
}
_PART_SAID = "names and values have letters, digits, '.', '_', '+' and '-', as in the tables"
_STATISTICS = "there are median, p95 and other percentiles from p1 to p99.9, success, throughput"
_SHAPES = "burst, closed-100, rate-20, stagger-50ms"


def parse(text: str, *, own: bool = False) -> Budget:
    """The budget that a text says. ``own``: the operation may be left out, as at a test, whose own it is then.

    ``BudgetError`` names the place, the token and an example.
    """
    budget = _Parser(Scanner(text, _OWN_EXAMPLE if own else _EXAMPLE), own).budget()
    # In its own form a text may be a little longer: what is shown can be given again.
    if len(text) > LONGEST // 2 and len(write(budget)) > LONGEST:
        raise BudgetError(text, len(text), "", f"a budget has at most {LONGEST} characters", _EXAMPLE)
    return budget


class _Parser:
    def __init__(self, scanner: Scanner, own: bool) -> None:
        self._text, self._own = scanner, own

    def budget(self) -> Budget:
        text = self._text
        begin = text.here()
        provider, operation, variants, phase = self._subject()
        statistic = self._statistic(begin, alone=text.text[begin : text.at].strip() == operation)
        levels, shape = self._at()
        over = self._references(statistic, levels)
        low, high = self._limit(statistic, _scale(statistic, divided=bool(over)))
        if not levels:
            levels, shape = self._at(last=True)
        if token := text.token():
            text.wrong("the levels are given twice" if token == "@" else f"{shown(token)} {_behind(token)}")
        return Budget(operation, statistic, low, high, provider, variants, phase, levels, shape, over)

    # -- what it is about

    def _subject(self) -> tuple[str | None, str | None, tuple[tuple[str, str], ...], str]:
        text = self._text
        if not text.token():
            text.wrong("there is no budget")
        if self._own and (phase := text.take(_PHASE)):
            return None, None, (), phase[1]
        if self._own and self._begins_with_statistic():
            return None, None, (), ""
        provider = text.take(_PROVIDER)
        operation = text.take(_OPERATION)
        if operation is None:
            text.wrong(
                "an operation is missing after the provider" if provider else "a budget begins with an operation"
            )
        variants = self._variants() if text.sign("{") else ()
        phase = text.take(_PHASE)
        return provider and provider[1], operation.group(), variants, phase[1] if phase else ""

    def _begins_with_statistic(self) -> bool:
        """Whether there is no subject. An operation may be called ``median``, too: a statistic comes after it then."""
        text = self._text
        begin = text.here()
        word = text.take(_STATISTIC) or text.take(_OPERATION)
        found = False
        if word is not None and (word.re is _STATISTIC or word.group().lower() in _INSTEAD):
            beside = text.text[text.at : text.at + 2]
            phase = beside[:1] == "." and beside != ".."
            found = not (phase or text.token() in (":", "{") or self._is_statistic())
        text.at = begin
        return found

    def _is_statistic(self) -> bool:
        return self._text.find(_STATISTIC) is not None or self._text.token().lower() in _INSTEAD

    def _variants(self) -> tuple[tuple[str, str], ...]:
        text = self._text
        found: dict[str, str] = {}
        while True:
            at = text.here()
            name = self._part("a variant's name")
            if name in found:
                text.wrong(f"variant {shown(name)} is given twice", at, name)
            if not text.sign("="):
                text.wrong(f"variant {shown(name)} has no value: write for example {{cache=miss}}")
            found[name] = self._part("a variant's value")
            if text.sign("}"):
                return tuple(sorted(found.items()))
            if not text.sign(","):
                text.wrong(f"',' or '}}' is missing after {shown(f'{name}={found[name]}')}: {_PART_SAID}")

    def _part(self, what: str) -> str:
        match = self._text.take(_PART)
        if match is None:
            self._text.wrong(f"{what} is missing: {_PART_SAID}")
        return match.group()

    # -- the statistic

    def _statistic(self, begin: int, *, alone: bool) -> str:
        """``alone``: what was read since ``begin`` is a single word, and may have been meant for the statistic."""
        text = self._text
        at = text.here()
        match = text.take(_STATISTIC)
        word = match.group() if match is not None else text.token()
        if match is None and alone and not text.find(_OPERATION):
            first = text.text[begin:at].split()[0]
            if _STATISTIC.fullmatch(first) or first.lower() in _INSTEAD:
                text.wrong(f"the operation is missing before {shown(first)}", begin, first)
            if self._own and word:
                text.wrong(f"{shown(first)} is no statistic: {_STATISTICS}", begin, first)
        if word.lower() in _INSTEAD:
            text.wrong(f"{shown(word)} is not judged: take {_INSTEAD[word.lower()]}", at, word)
        if match is None and _STATISTIC.fullmatch(word.lower()):
            text.wrong(f"{shown(word)} is written {word.lower()!r}", at, word)
        if match is None:
            said = f"{shown(word)} is no statistic" if text.find(_OPERATION) else "the statistic is missing"
            text.wrong(f"{said}: {_STATISTICS}", at, word)
        if word[0] != "p":
            return word
        if not _PERCENTILE.fullmatch(word) or float(word[1:]) > 99.9:
            text.wrong(
                f"{shown(word)} is not judged: percentiles go from p1 to p99.9, with 3 decimals at most", at, word
            )
        number = float(word[1:])
        return "median" if number == 50 else f"p{number:g}"

    # -- levels

    def _at(self, *, last: bool = False) -> tuple[tuple[int, ...], str | None]:
        """() and None where there is none. ``last``: behind the limit, where nothing else can follow a slash."""
        text = self._text
        if not text.sign("@"):
            return (), None
        levels = [self._level()]
        while text.sign(","):
            at = text.here()
            levels.append(self._level())
            if levels[-1] in levels[:-1]:
                text.wrong(f"level {levels[-1]} is given twice", at)
        shape = text.take(_SHAPE)
        slash = text.here()
        if shape is None and text.sign("/"):
            word = text.token()
            if word != "@" and (last or _LIKE_A_SHAPE.match(word)) and not text.find(_PROVIDER):
                text.wrong(
                    f"{shown(word)} is no load shape: there are {_SHAPES}" if word else "a load shape is missing"
                )
            text.at = slash
        return tuple(sorted(levels)), shape and shape[1]

    def _level(self) -> int:
        text = self._text
        at = text.here()
        match = text.take(_INTEGER)
        if match is None:
            text.wrong("a level is missing: write for example @1,16")
        level = int(match.group())
        if not 1 <= level <= _HIGHEST_LEVEL:
            text.wrong(f"{shown(match.group())} is no level: they go from 1 to {_HIGHEST_LEVEL}", at, match.group())
        return level

    # -- ratios

    def _references(self, statistic: str, levels: tuple[int, ...]) -> tuple[Reference, ...]:
        text = self._text
        found: tuple[Reference, ...] = ()
        while text.sign("/"):
            if statistic == "success":
                text.wrong("a success rate is not divided", text.at - 1)
            at = text.here()
            reference = self._reference(statistic)
            if lacking := _lacking(found, reference, levels, statistic):
                text.wrong(lacking, at, text.text[at : text.at])
            found = (*found, reference)
        return found

    def _reference(self, statistic: str) -> Reference:
        text = self._text
        at, token = text.here(), text.token()
        provider = text.take(_PROVIDER)
        if provider is not None:
            return Reference("series", provider=provider[1])
        named = text.find(_STATISTIC) is not None
        if named and (other := self._statistic(at, alone=False)) != statistic:
            text.wrong(f"{other} is another statistic than {statistic}", at, token)
        if text.sign("@"):
            return Reference("level", level=self._level())
        if named:
            text.wrong(f"a level is missing: write for example {statistic}@1")
        base = text.take(_BASE)
        if base is not None:
            return Reference("floor" if base.group() == "floor" else "baseline")
        if not token:
            text.wrong(
                "what it is divided by is missing: write @1, floor, baseline, or a provider with a colon, docker:"
            )
        return text.wrong(
            f"{shown(token)} is nothing to divide by: write @1, floor, baseline, or a provider with a colon, docker:"
        )

    # -- limits

    def _limit(self, statistic: str, scale: Scale) -> tuple[float, float]:
        text = self._text
        at = text.here()
        if compare := text.take(_COMPARE):
            return self._compared(compare.group(), at, statistic, scale)
        low = text.value()
        dots = text.take(_DOTS)
        if dots is not None and len(dots.group()) > 2:
            text.wrong("a range has two dots: 44ms..52ms", dots.start(), dots.group())
        high = text.value() if dots is not None else None
        if low is None and high is None:
            token = text.token()
            said = f"{shown(token)} is no limit" if token and token != "@" else "the limit is missing"
            text.wrong(f"{said}: write for example {_LIMITS[scale.fit]}")
        if low is not None and dots is None:
            text.wrong(f"{shown(low.text)} alone is no limit: write for example {_LIMITS[scale.fit]}", at, low.text)
        if low is not None and high is not None:
            low, high = self._alike(low, high, scale)
        first = self._number(low, statistic, scale) if low is not None else -math.inf
        last = self._number(high, statistic, scale) if high is not None else math.inf
        if first >= last and low is not None and high is not None:
            text.wrong(f"{shown(low.text)} is not below {shown(high.text)}", low.at, low.text)
        return first, last

    def _compared(self, sign: str, at: int, statistic: str, scale: Scale) -> tuple[float, float]:
        text = self._text
        if sign not in ("<", "<=", ">", ">=", "="):
            text.wrong(f"{shown(sign)} is no comparison: there are <, <=, > and >=", at, sign)
        given = text.value()
        if given is None:
            token = text.token()
            text.wrong(f"{shown(token)} is no number" if token else "the limit is missing")
        value = self._number(given, statistic, scale)
        if sign != "=":
            return (-math.inf, value) if sign[0] == "<" else (value, math.inf)
        if statistic != "success" or value != 1:
            text.wrong("'=' is for success = 100% only: write a range", at, sign)
        return 1.0, 1.0

    def _alike(self, low: Value, high: Value, scale: Scale) -> tuple[Value, Value]:
        """The two ends of a range; where only one has a unit it is that of both: ``44..52ms``."""
        unit = low.unit or high.unit
        if low.unit == high.unit or unit not in scale.units:
            return low, high
        bare = high if low.unit else low
        if bare.unit == "" and "" not in scale.units:
            return low._replace(unit=low.unit or unit), high._replace(unit=high.unit or unit)
        # Of 0.9..110% nobody knows whether 90 % was meant, or 0.9 %.
        if bare.unit == "" and unit == "%" and bare.read(scale):
            self._text.wrong(f"{shown(bare.text)} has no %: write both limits with it, or none", bare.at, bare.text)
        return low, high

    def _number(self, value: Value, statistic: str, scale: Scale) -> float:
        text, what = self._text, "a ratio" if scale is RATIO else statistic
        if value.unit not in scale.units:
            said = (
                f"has unit {shown(value.unit)}, which does not fit" if value.unit else "has no unit, and needs one for"
            )
            text.wrong(f"{shown(value.text)} {said} {what}: {scale.fit}", value.at, value.text)
        number = value.read(scale)
        if not math.isfinite(number) or (scale is SHARE and number > 1):
            most = ": a share is at most 100%" if scale is SHARE else ""
            text.wrong(f"{shown(value.text)} is too large{most}", value.at, value.text)
        return number


_LIMITS = {
    TIME.fit: "..52ms, 44ms..52ms or < 52ms",
    SHARE.fit: "99%.., >= 99% or = 100%",
    RATE.fit: "20/s.. or >= 20/s",
    RATIO.fit: "..1.2 or < 120%",
}


def _behind(token: str) -> str:
    """What is said of a token behind the end."""
    said = "comes after the end of the budget"
    if token[0] in "<>=≤≥":
        return f"{said}: a limit on both sides is a range, 44ms..52ms"
    return f"{said}: what it is divided by stands before the limit" if token == "/" else said


def _scale(statistic: str, *, divided: bool) -> Scale:
    if divided:
        return RATIO
    return {"success": SHARE, "throughput": RATE}.get(statistic, TIME)


def _lacking(before: tuple[Reference, ...], new: Reference, levels: tuple[int, ...], statistic: str) -> str:
    """Why a ratio cannot be divided by this as well; "" where it can."""
    flat = f"{statistic}@100 / {statistic}@1"
    if new.kind == "level":
        if before:
            return f"a level comes first, and once: {flat} / floor"
        if len(levels) != 1:
            return f"a ratio of levels has one above the line: {flat}"
        return f"level {new.level} is the one above the line: {flat}" if levels[0] == new.level else ""
    if not before:
        return ""
    if len(before) == _MOST_OVER or before[0].kind != "level" or new.kind == "baseline":
        return f"this is one too many: after a level, it is divided by the floor or a provider at most: {flat} / floor"
    return ""


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
    words.append(_range(budget))
    if at and not flat:
        words.append(at)
    return " ".join(word for word in words if word)


def _range(budget: Budget) -> str:
    if budget.statistic == "success" and budget.low == budget.high == 1:
        return "= 100%"
    scale = _scale(budget.statistic, divided=bool(budget.over))
    low, high = (written(limit, scale) if math.isfinite(limit) else "" for limit in (budget.low, budget.high))
    return f"{low}..{high}"
