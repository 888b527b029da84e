"""A budget's text from left to right: words and numbers with their units, and a mistake with its place.

How numbers are read and written stands here as well, so that each is read as it was written, to the last bit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple, NoReturn

__all__ = ["LONGEST", "RATE", "RATIO", "SHARE", "TIME", "BudgetError", "Scale", "Scanner", "Value", "shown", "written"]

LONGEST = 500  # characters

# What a mistake is called by: a word, with its dots if they are no range; a sign; or a single character.
_TOKEN = re.compile(r"[\w+%-]+(?:[.,](?=[\w+%-])[\w+%-]+)*|\.{2,}|[<>=]+|\S")
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?")
# Letters at a number are its unit, known or not; after a space only known ones are, as other words may follow.
_UNIT = re.compile(r"/?[^\W\d_]+|\s*(?:(?:ns|us|µs|μs|ms|s|min|x|/\s*s|/\s*min)(?!\w)|%)")
_GLUED = re.compile(r"(?!\.\.)[^\s@<>=/][^\s@]*")

_SHOWN = 60  # characters of a token
_LONGEST_NUMBER = 21  # characters; a longer one is written with an exponent


class BudgetError(ValueError):
    """A text that is no budget: the ``token`` at place ``at`` (from 0) of ``text`` is wrong, as ``message`` says.

    Its own text is one line: what is wrong, where, and an example.
    """

    def __init__(self, text: str, at: int, token: str, message: str, example: str) -> None:
        super().__init__(text, at, token, message, example)
        self.text, self.at, self.token, self.message, self.example = text, at, token, message, example

    def __str__(self) -> str:
        return f"{self.message} (at character {self.at + 1}); write for example {self.example!r}"


class Scale(NamedTuple):
    """What a limit may be given in: its units, each with a power of ten, a factor and a divisor; and in words.

    ``units`` come with the largest first, and ``written`` are those that a canonical text is made with.
    """

    units: Mapping[str, tuple[int, int, int]]
    written: tuple[str, ...]
    fit: str


TIME = Scale(
    {"min": (9, 60, 1), "s": (9, 1, 1), "ms": (6, 1, 1), "us": (3, 1, 1), "ns": (0, 1, 1)},
    ("min", "s", "ms", "us", "ns"),
    "ns, us, ms, s or min",
)
SHARE = Scale({"": (0, 1, 1), "%": (-2, 1, 1)}, ("%",), "%, or a share of 1 without a unit")
RATE = Scale({"/s": (0, 1, 1), "/min": (0, 1, 60)}, ("/s", "/min"), "/s or /min")
RATIO = Scale({"": (0, 1, 1), "x": (0, 1, 1), "%": (-2, 1, 1)}, ("",), "a plain number, x or %")


class Value(NamedTuple):
    """A number as it stands in a text: ``digits`` times ten to the ``exponent``, its ``unit`` in our spelling or ""."""

    text: str
    at: int
    digits: str
    exponent: int
    unit: str

    def read(self, scale: Scale) -> float:
        """In the scale's base: nanoseconds, a share, acts a second. The unit must be one of the scale's."""
        power, times, per = scale.units[self.unit]
        # The power goes into the text, so that 0.0441s and 44.1ms are one number and not nearly one.
        return float(f"{self.digits}e{self.exponent + power}") * times / per


class Scanner:
    """A place in a text. What is looked for may have white space before it."""

    __slots__ = ("at", "example", "text")

    def __init__(self, text: str, example: str) -> None:
        self.text, self.at, self.example = text, 0, example
        if len(text) > LONGEST:
            self.text = text[:LONGEST]
            self.wrong(f"a budget has at most {LONGEST} characters", LONGEST, "")

    def here(self) -> int:
        """The place of what comes next, behind white space; the text's length at its end."""
        self.at = len(self.text) - len(self.text[self.at :].lstrip())
        return self.at

    def find(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """What comes next, if it is that."""
        return pattern.match(self.text, self.here())

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """What comes next, if it is that: then the place is behind it."""
        match = self.find(pattern)
        if match is not None:
            self.at = match.end()
        return match

    def sign(self, sign: str) -> bool:
        """The same for a single character: whether it came next."""
        found = self.text.startswith(sign, self.here())
        self.at += found
        return found

    def token(self, at: int | None = None) -> str:
        """What stands at a place, or comes next, whatever it is; "" at the end."""
        match = _TOKEN.match(self.text, self.here() if at is None else at)
        return match.group() if match is not None else ""

    def value(self) -> Value | None:
        """A number with its unit, if one comes next."""
        number = self.take(_NUMBER)
        if number is None:
            return None
        start, unit = number.start(), _UNIT.match(self.text, self.at)
        self.at = unit.end() if unit is not None else self.at
        glued = _GLUED.match(self.text, self.at)
        if glued is not None:
            token = self.text[start : glued.end()]
            self.wrong(f"{shown(token)} is no number with a unit: write for example 1.5ms, or 44ms..52ms", start, token)
        said = "".join(unit.group().split()) if unit is not None else ""
        text = self.text[start : self.at]
        return Value(text, start, number[1], int(number[2] or 0), "us" if said in ("µs", "μs") else said)

    def wrong(self, message: str, at: int | None = None, token: str | None = None) -> NoReturn:
        """Raise the error; without a place and token it is about what comes next."""
        at = self.here() if at is None else at
        raise BudgetError(self.text, at, self.token(at) if token is None else token, message, self.example)


def shown(text: str, longest: int = _SHOWN) -> str:
    """What somebody wrote as it stands in a message: quoted, on one line, not too long."""
    return repr(text if len(text) <= longest else text[: longest - 1] + "…")


def written(limit: float, scale: Scale) -> str:
    """The text of a limit, finite and not negative, that is read as exactly this number.

    In the unit in which the number is shortest, and in the largest of several.
    """
    if limit == 0:
        return "0s" if scale is TIME else "0" + scale.written[0]  # short in any unit: one that people use
    texts = {unit: _in_unit(limit, scale.units[unit]) for unit in scale.written}
    unit = min((unit for unit, text in texts.items() if text), key=lambda unit: len(texts[unit]))
    return texts[unit] + unit


def _in_unit(limit: float, unit: tuple[int, int, int]) -> str:
    """The number that is read as exactly this limit; "" where there is none: sixtieths cannot always be undone."""
    power, times, per = unit
    number = limit * per / times
    if not math.isfinite(number):
        return ""
    digits, exponent = _digits(number)
    if float(f"{digits}e{exponent}") * times / per != limit:
        return ""
    return _plain(digits, exponent - power)


def _digits(number: float) -> tuple[str, int]:
    """The fewest digits that are this number, and the power of ten that they are multiplied with."""
    mantissa, _, exponent = repr(number).partition("e")
    whole, _, behind = mantissa.partition(".")
    digits = whole + behind
    short = digits.rstrip("0")
    return short.lstrip("0") or "0", int(exponent or 0) - len(behind) + len(digits) - len(short)


def _plain(digits: str, exponent: int) -> str:
    point = len(digits) + exponent  # how many of the digits stand before it
    if point > _LONGEST_NUMBER or 2 - exponent > _LONGEST_NUMBER:
        return f"{digits}e{exponent}"
    if exponent >= 0:
        return digits + "0" * exponent
    return f"{digits[:point]}.{digits[point:]}" if point > 0 else "0." + "0" * -point + digits
