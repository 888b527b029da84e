"""Numbers and untrusted text as people see them."""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_sandboxbench.report.text import clip, columns, duration, harmless, number, unit_of, wrap
from pytest_sandboxbench.stats.digits import UNITS

POSITIVE = st.floats(1e-4, 1e12, allow_nan=False)


@given(POSITIVE)
def test_three_digits_and_never_an_exponent(value: float) -> None:
    text = number(value)
    assert re.fullmatch(r"\d+(\.\d+)?", text)
    digits = text.replace(".", "").lstrip("0")
    if value >= 0.01:
        assert len(digits) == 3 if value < 999.5 else len(digits) > 3
        assert float(text) == pytest.approx(value, rel=0.0051)


@given(POSITIVE, POSITIVE)
def test_the_greater_value_never_reads_as_the_smaller(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert float(number(low)) <= float(number(high))


@given(st.floats(1.0, 1e12))
def test_a_duration_in_its_unit_has_one_to_three_digits_before_the_point(ns: float) -> None:
    text, unit = duration(ns).split(" ")
    size = dict(UNITS)[unit]
    assert float(text) * size == pytest.approx(ns, rel=0.0051)
    assert 1 <= float(text) < 1000 or unit == "s"


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0.0000 ns"),
        (1, "1.00 ns"),
        (999.4, "999 ns"),
        (999.6, "1.00 µs"),
        (999_499, "999 µs"),
        (999_999.6, "1.00 ms"),
        (1_000_000, "1.00 ms"),
        (9_994_999, "9.99 ms"),
        (9_995_001, "10.0 ms"),
        (999_499_999, "999 ms"),
        (999_500_000, "1.00 s"),
        (59_960_000_000, "60.0 s"),
        (3_600_000_000_000, "3600 s"),
    ],
)
def test_durations(ns: float, text: str) -> None:
    assert duration(ns) == text
    assert unit_of(ns)[0] == text.split()[1]


HOSTILE = [
    "\x1b[2J\x1b]0;owned\x07",
    "a\r\nb\x0bc\x0c\x85d\u2028e",
    "\x00\x08\x7f\x9b31m",
    "ab\u202egpj.exe\u2066",
    "\ud800\udfff",
    "\u200b\ufeff\u00ad",
    "沙箱 🏖️ サンドボックス",
    "ארגז חול صندوق",
    "e" + "\u0301" * 500,
]


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_nothing_that_a_terminal_obeys_comes_through(text: str) -> None:
    safe = harmless(text)
    assert safe.isprintable()
    assert len(safe) <= 300
    safe.encode()


@given(st.text())
def test_harmless_is_printable_and_bounded(text: str) -> None:
    safe = harmless(text, 50)
    assert safe.isprintable()
    assert len(safe) <= 50
    assert harmless(safe, 50) == safe


@given(st.text(), st.integers(2, 100))
def test_clipped_text_fits(text: str, width: int) -> None:
    text = harmless(text)
    cut = clip(text, width)
    assert columns(cut) <= width
    assert cut == text if columns(text) <= width else cut.endswith("…") and text.startswith(cut[:-1])


@given(st.text(), st.integers(12, 100), st.integers(1, 4))
def test_wrapped_text_fits_and_says_where_something_is_missing(text: str, width: int, most: int) -> None:
    text = harmless(text)
    lines = wrap(text, width, indent="  ", more="   ", most=most)
    assert 1 <= len(lines) <= most
    assert all(columns(line) <= width for line in lines)
    whole = " ".join(line.strip() for line in lines)
    assert "…" in whole or whole == text


def test_wide_characters_take_two_columns() -> None:
    assert columns("沙箱") == 4
    assert clip("沙箱沙箱", 5) == "沙箱…"
    assert wrap("沙箱 沙箱 沙箱", 9) == ["沙箱 沙箱", "沙箱"]


def test_the_tables_own_characters_take_one() -> None:
    assert columns("µ×…→") == 4
    assert sys.stdout is not None
