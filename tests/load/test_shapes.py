"""Load shapes as text: what is read, how it is spelled in a key, and what follows from it."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_sandboxbench.load.shapes import BURST, EXAMPLES, Shape, default_rounds, parse_shape
from pytest_sandboxbench.model import SeriesKey
from pytest_sandboxbench.records.schema import parse_key


@pytest.mark.parametrize(
    ("text", "shape", "spelled"),
    [
        ("burst", Shape(), "burst"),
        ("closed-100", Shape("closed", requests=100), "closed-100"),
        ("closed-007", Shape("closed", requests=7), "closed-7"),
        ("closed-1000000", Shape("closed", requests=1_000_000), "closed-1000000"),
        ("closed-10s", Shape("closed", lasts_ns=10_000_000_000), "closed-10s"),
        ("closed-0.5s", Shape("closed", lasts_ns=500_000_000), "closed-500ms"),
        ("rate-20", Shape("rate", per_s=20.0), "rate-20"),
        ("rate-20.0", Shape("rate", per_s=20.0), "rate-20"),
        ("rate-0.125", Shape("rate", per_s=0.125), "rate-0.125"),
        ("rate-10000", Shape("rate", per_s=10_000.0), "rate-10000"),
        ("stagger-50ms", Shape("stagger", apart_ns=50_000_000), "stagger-50ms"),
        ("stagger-0.05s", Shape("stagger", apart_ns=50_000_000), "stagger-50ms"),
        ("stagger-1000ms", Shape("stagger", apart_ns=1_000_000_000), "stagger-1s"),
        ("stagger-1.50s", Shape("stagger", apart_ns=1_500_000_000), "stagger-1500ms"),
        ("stagger-0.001ms", Shape("stagger", apart_ns=1_000), "stagger-0.001ms"),
        ("stagger-3600s", Shape("stagger", apart_ns=3_600_000_000_000), "stagger-3600s"),
    ],
)
def test_what_is_read_has_one_spelling(text: str, shape: Shape, spelled: str) -> None:
    assert parse_shape(text) == shape
    assert str(shape) == spelled
    assert parse_shape(spelled) == shape


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("closed", "closed needs its number; write for example closed-100"),
        ("rate", "rate needs its number; write for example rate-20"),
        ("stagger", "stagger needs its number; write for example stagger-50ms"),
        ("wave", f"the shapes are {EXAMPLES}"),
        ("", "the shapes are"),
        ("Burst", "the shapes are"),
        ("burst-4", "the shapes are"),
        ("-100", "the shapes are"),
        *((f"closed-{n}", "closed-N makes N requests") for n in ("", "0", "-1", "1.5", "1e3", "1000001", "x", "١")),
        *(
            (f"closed-{n}", "closed-TIME those that are begun")
            for n in ("0s", "5m", "s", "1e9s", "3601s", "1.s", "1 s")
        ),
        *((f"rate-{n}", "arrivals a second, from 0.001 to 10000") for n in ("", "0", "10001", "0.0001", "nan", "1/s")),
        *((f"stagger-{n}", "that far apart") for n in ("", "50", "0ms", "0.0001ms", "-5ms", "5us", "1e2ms", "..ms")),
    ],
)
def test_a_mistake_says_what_is_allowed(text: str, told: str) -> None:
    with pytest.raises(ValueError, match="is no load shape") as caught:
        parse_shape(text)
    said = str(caught.value)
    assert repr(text) in said
    assert told in said
    parse_shape(said.rpartition("write for example ")[2])


def test_an_endless_text_is_not_repeated() -> None:
    with pytest.raises(ValueError, match="is no load shape") as caught:
        parse_shape("9" * 5000)
    assert len(str(caught.value)) < 300


NUMBER = st.integers(0, 10**7).map(str) | st.decimals(0, 10**5, places=3).map(str) | st.text("0123456789.", max_size=9)
TEXT = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["burst", "closed", "rate", "stagger", ""]),
    st.sampled_from(["-", "", "--"]),
    NUMBER,
    st.sampled_from(["", "s", "ms", "/s", "@1", "{}", ":"]),
)


@given(TEXT | st.text(max_size=12))
def test_whatever_is_accepted_can_stand_in_a_key(text: str) -> None:
    try:
        shape = parse_shape(text)
    except ValueError:
        return
    assert parse_shape(str(shape)) == shape
    key = SeriesKey("fake", "startup", (("cache", "miss"),), "boot", 16, str(shape))
    assert parse_key(str(key)) == key


SHAPES = st.one_of(
    st.just(Shape()),
    st.builds(lambda n: Shape("closed", requests=n), st.integers(1, 1_000_000)),
    st.builds(lambda us: Shape("closed", lasts_ns=us * 1000), st.integers(1, 3_600_000_000)),
    st.builds(lambda mhz: Shape("rate", per_s=mhz / 1000), st.integers(1, 10_000_000)),
    st.builds(lambda us: Shape("stagger", apart_ns=us * 1000), st.integers(1, 3_600_000_000)),
)


@given(SHAPES, SHAPES)
def test_a_shape_comes_back_from_its_text_and_two_shapes_have_two(one: Shape, other: Shape) -> None:
    assert parse_shape(str(one)) == one
    assert (str(one) == str(other)) == (one == other)


@given(st.integers(1, 10_000_000), st.integers(0, 10_000))
def test_arrivals_by_the_clock_do_not_drift(mhz: int, lane: int) -> None:
    exact = Fraction(lane * 10**12, mhz)
    assert abs(Shape("rate", per_s=mhz / 1000).due_ns(lane) - exact) <= 1 + exact / 2**50


def test_when_lanes_are_due() -> None:
    assert [parse_shape("rate-20").due_ns(lane) for lane in (0, 1, 3)] == [0, 50_000_000, 150_000_000]
    assert [parse_shape("stagger-5ms").due_ns(lane) for lane in (0, 1, 3)] == [0, 5_000_000, 15_000_000]
    assert {parse_shape(text).due_ns(7) for text in ("burst", "closed-10", "closed-1s")} == {0}


@given(st.integers(1, 500), st.integers(1, 60), st.integers(1, 8))
def test_processes_share_the_requests_out_exactly(requests: int, level: int, size: int) -> None:
    shape = Shape("closed", requests=requests)
    lanes = [range(rank, level, size) for rank in range(size)]
    shares = [shape.share(level, own) for own in lanes]
    assert sum(share for share in shares if share is not None) == requests
    for own, share in zip(lanes, shares, strict=True):
        assert share is not None
        assert requests // level * len(own) <= share <= -(-requests // level) * len(own)


def test_other_shapes_make_one_request_a_lane_or_as_many_as_there_is_time_for() -> None:
    assert [parse_shape(text).share(8, range(1, 8, 2)) for text in ("burst", "rate-5", "stagger-1s")] == [4, 4, 4]
    assert parse_shape("closed-1s").share(8, range(8)) is None


def test_too_few_requests_for_the_lanes() -> None:
    assert Shape("closed", requests=16).lacks(16) == ""
    assert Shape("closed", requests=15).lacks(16).startswith("closed-15 is fewer requests than the 16 lanes")
    assert {parse_shape(text).lacks(10_000) for text in ("burst", "closed-1ms", "rate-1", "stagger-1ms")} == {""}


@pytest.mark.parametrize(
    ("text", "level", "local", "hosted"),
    [
        ("burst", 1, 60, 10),
        ("burst", 2, 20, 10),
        ("burst", 100, 20, 10),
        ("closed-100", 1, 6, 6),
        ("closed-10s", 16, 6, 6),
        ("rate-20", 1, 60, 10),
        ("rate-20", 16, 6, 6),
        ("stagger-50ms", 1, 60, 10),
        ("stagger-50ms", 4, 6, 6),
    ],
)
def test_default_rounds(text: str, level: int, local: int, hosted: int) -> None:
    assert default_rounds(parse_shape(text), level, hosted=False) == local
    assert default_rounds(parse_shape(text), level, hosted=True) == hosted


def test_burst_is_the_default() -> None:
    assert Shape() == BURST == parse_shape(SeriesKey("fake", "exec").shape)
