"""Whatever somebody writes: it is read as it was meant, or refused in one line that can be printed."""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_sandboxbench.errors import UsageError
from pytest_sandboxbench.model import SandboxSpec, SeriesKey
from pytest_sandboxbench.options import _VALUES, NAMES, _option
from pytest_sandboxbench.providers.fake_script import OPERATIONS, WORDS, Step, parse_script, parse_seconds
from pytest_sandboxbench.providers.fake_settings import FakeSettings, read_plan
from pytest_sandboxbench.providers.registry import parse_option
from pytest_sandboxbench.providers.settings import read_settings
from pytest_sandboxbench.records.schema import key_text, parse_key

ANYTHING = st.text(max_size=30)


@st.composite
def near(draw: st.DrawFn, right: st.SearchStrategy[str], alphabet: str) -> str:
    """A text that is right, or was before somebody edited it in a few places; or one of the same characters."""
    text = draw(right | st.text(alphabet, max_size=20))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        written = draw(st.text(alphabet, max_size=3) | st.text(max_size=2) | st.sampled_from(["9" * 400, "9" * 5000]))
        text = text[:at] + written + text[at + draw(st.integers(0, 2)) :]
    return text


def read(parse: Callable[[], Any], refusal: type[Exception]) -> Any:
    """What ``parse`` makes of it; None where it refuses in one line."""
    try:
        return parse()
    except refusal as error:
        said, kind = str(error), type(error)
    assert kind is refusal
    assert said
    assert said.isprintable()
    return None


# --sandbox-option

NAME = st.from_regex(r"[A-Za-z0-9][\w.-]{0,12}", fullmatch=True)
KEY = st.from_regex(r"[a-z][a-z_-]{0,12}", fullmatch=True)


@given(NAME, KEY, ANYTHING)
def test_an_option_comes_back_from_its_parts(name: str, key: str, value: str) -> None:
    assert parse_option(f"{name}.{key}={value}") == (name, key, value)


@given(near(st.builds("{}.{}={}".format, NAME, KEY, ANYTHING), "ab.=-"))
def test_any_text_is_an_option_or_is_refused(text: str) -> None:
    parts = read(lambda: parse_option(text), ValueError)
    assert parts is None or "{}.{}={}".format(*parts) == text
    assert read(lambda: _option(text), argparse.ArgumentTypeError) == parts


# Values of options


RIGHT: dict[str, st.SearchStrategy[Any]] = {
    "provider": st.lists(NAME, min_size=1, max_size=4),
    "concurrency": st.lists(st.integers(1, 10_000), min_size=1, max_size=4, unique=True),
    "shape": st.sampled_from(["burst", "closed-100", "closed-10s", "rate-0.5", "stagger-50ms"]),
    "samples": st.integers(1, 10**9),
    "warmup": st.integers(0, 10**9),
    "seed": st.integers(0, 1 << 64),
    "timeout": st.floats(1e-6, 1e8),
    "max-samples": st.integers(1, 10**9),
    "max-sandboxes": st.integers(1, 10**9),
    "held": st.integers(0, 10**9),
    "written": st.integers(0, 10**9),
    "max-seconds": st.floats(1e-6, 1e8),
    "budget-file": st.from_regex(r"\w[\w /.-]{0,20}", fullmatch=True),
    "records": st.from_regex(r"\w[\w /.-]{0,20}", fullmatch=True),
    "floor": st.sampled_from(["auto", "all", "none"]),
    "command": st.from_regex(r"\w[\w /.-]{0,20}", fullmatch=True),
}


def written(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


@pytest.mark.parametrize("name", NAMES)
def test_an_options_value_is_read_as_it_was_written_and_nothing_else_gets_through(name: str) -> None:
    reader, right = _VALUES[name][0], RIGHT[name]

    @given(right)
    @settings(max_examples=30)
    def comes_back(value: Any) -> None:
        assert reader(written(value)) == (tuple(value) if isinstance(value, list) else value)

    @given(near(right.map(written), "0123456789.,-+e_ ax'\"\\"))
    @settings(max_examples=60)
    def any_text(text: str) -> None:
        value = read(lambda: reader(text), argparse.ArgumentTypeError)
        # What was read can be written into an ini file and is the same there.
        assert value is None or reader(written(list(value) if isinstance(value, tuple) else value)) == value

    comes_back()
    any_text()


# Keys of series


@given(ANYTHING, ANYTHING, ANYTHING, ANYTHING)
def test_any_text_can_be_a_variant_of_a_key(name: str, value: str, other_name: str, other_value: str) -> None:
    def key(name: str, value: str) -> SeriesKey:
        return SeriesKey("fake", "exec", ((key_text(name), key_text(value)),), "boot", 16)

    one, other = key(name, value), key(other_name, other_value)
    assert parse_key(str(one)) == one
    assert (str(one) == str(other)) == ((name, value) == (other_name, other_value))


@given(
    near(
        st.builds(
            "{}:{}{}{}@{}/burst".format,
            NAME,
            KEY,
            st.sampled_from(["", "{a=1}", "{a=1,b=}", "{a=b=c}"]),
            st.sampled_from(["", ".boot"]),
            st.integers(1, 99),
        ),
        "ab:{}=,.@/19 ",
    )
)
@settings(max_examples=200)
def test_any_text_is_a_key_or_is_refused(text: str) -> None:
    key = read(lambda: parse_key(text), ValueError)
    assert key is None or str(key) == text


# Scripts of the scripted provider

SECONDS = st.integers(0, 10_000).map(lambda ms: ms / 1000)
ARGUMENTS: dict[str, st.SearchStrategy[str]] = {
    "swallow": st.just("") | SECONDS.map(str),
    "block": st.just("") | SECONDS.map(str),
    "raise": st.sampled_from(["", "ValueError", "KeyError", "OSError"]),
    "error": ANYTHING,
    "lost": ANYTHING,
    "reject": st.sampled_from(["quota", "capacity", "rate", "queue"]),
    "exit": st.integers(-64, 255).map(str),
}


@st.composite
def steps(draw: st.DrawFn, operation: str) -> tuple[str, list[Step]]:
    """One item of a script as somebody writes it, and the steps that it stands for."""
    word = draw(st.sampled_from(["", *sorted(w for w in WORDS if operation in WORDS[w].operations)]))
    argument = draw(ARGUMENTS.get(word, st.just("")))
    after_s = draw(SECONDS)
    text = word + (f":{argument}" if argument else "")
    if not word or draw(st.booleans()):
        text = f"{after_s}+{text}" if text else str(after_s)
    else:
        after_s = 0.0
    count = draw(st.integers(1, 3))
    counted = f"{count}x{text}" if count > 1 or draw(st.booleans()) else text
    return counted, [Step(after_s, word, argument)] * count


@given(st.data(), st.sampled_from(OPERATIONS), st.booleans())
def test_a_script_is_played_as_it_was_written(data: st.DataObject, operation: str, again: bool) -> None:
    items = data.draw(st.lists(steps(operation), min_size=1, max_size=4))
    script = parse_script("fake", operation, [text for text, _ in items] + ["..."] * again)
    played = [step for _, turns in items for step in turns]
    for call in range(2 * len(played) + 2):
        assert script.at(call) == (played[call % len(played)] if again else played[min(call, len(played) - 1)])


@given(st.data(), st.sampled_from(OPERATIONS))
@settings(max_examples=200)
def test_any_script_is_read_or_refused(data: st.DataObject, operation: str) -> None:
    alphabet = "0123456789x+.:e-_" + "hangswoexit"
    text = steps(operation).map(lambda step: step[0]) | st.just("...")
    items = data.draw(st.lists(near(text, alphabet), max_size=3))
    script = read(lambda: parse_script("fake", operation, items), UsageError)
    for call in range(6 if script is not None else 0):
        step = script.at(call)
        assert 0 <= step.after_s < 1e9
        if step.word == "exit":
            int(step.text)
        if step.word in ("swallow", "block"):
            assert 0 <= step.seconds < 1e9


@given(near(st.floats(0, 1e8).map(str), "0123456789.e+-_ "))
def test_any_text_is_a_number_of_seconds_or_is_refused(text: str) -> None:
    value = read(lambda: parse_seconds(text), ValueError)
    assert value is None or 0 <= value < 1e9


@pytest.mark.parametrize("text", ["1e999", "9" * 400, "1e9"], ids=["exponent", "digits", "least"])
def test_a_number_of_seconds_has_an_end(text: str) -> None:
    """Text can be a number that Python reads as infinite; nothing could wait for it."""
    with pytest.raises(ValueError, match="is not a number of seconds"):
        parse_seconds(text)
    for script in (text, f"swallow:{text}", f"{text}+hang", f"2x0,{text}"):
        with pytest.raises(UsageError, match="is not a number of seconds"):
            parse_script("fake", "exec", script.split(","))


def test_an_exit_code_that_python_does_not_read() -> None:
    with pytest.raises(UsageError, match="is not a whole number"):
        parse_script("fake", "exec", ["exit:" + "9" * 5000])


# Settings of an instance


@dataclass(frozen=True, slots=True)
class Settings:
    text: str = "a"
    whole: int = 1
    number: float = 0.5
    flag: bool = False
    items: tuple[str, ...] = ()
    mode: Literal["kvm", "emulated"] = "kvm"
    path: str | None = None
    limit: int | None = None


ITEM = st.text(st.characters(exclude_characters=",", exclude_categories=["Cs"]), min_size=1, max_size=8).filter(
    lambda text: text == text.strip()
)
SETTINGS = st.builds(
    Settings,
    text=ANYTHING,
    whole=st.integers(),
    number=st.floats(allow_nan=False, allow_infinity=False),
    flag=st.booleans(),
    items=st.lists(ITEM, max_size=3).map(tuple),
    path=st.none() | ANYTHING.filter(lambda text: text != "none"),
    limit=st.none() | st.integers(),
)

TOML = st.recursive(
    st.booleans() | st.integers() | st.floats() | ANYTHING | st.just(10**400) | st.datetimes() | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANYTHING, inner, max_size=3),
    max_leaves=5,
)


@given(SETTINGS)
def test_settings_come_back_from_text_and_from_toml(chosen: Settings) -> None:
    values = asdict(chosen)
    assert read_settings(Settings, "box", {k: v for k, v in values.items() if v is not None}) == chosen
    text = {key: ",".join(value) if isinstance(value, tuple) else str(value) for key, value in values.items()}
    text |= {key: "none" for key, value in values.items() if value is None}
    assert read_settings(Settings, "box", text) == chosen


@pytest.mark.parametrize("kind", [Settings, SandboxSpec], ids=lambda kind: kind.__name__)
def test_any_value_is_a_setting_or_is_refused(kind: type[Any]) -> None:
    @given(
        st.sampled_from([*kind.__dataclass_fields__, "nonsense"]) | ANYTHING,
        TOML | near(st.integers().map(str), "9.e-"),
    )
    @settings(max_examples=200)
    def check(key: str, value: Any) -> None:
        read(lambda: read_settings(kind, "box", {key: value}), UsageError)

    check()


@given(st.sampled_from(list(FakeSettings.__dataclass_fields__)), TOML | near(st.floats().map(str), "9.e-x+:,a"))
@settings(max_examples=200)
def test_any_value_is_a_setting_of_the_scripted_provider_or_is_refused(key: str, value: Any) -> None:
    read(lambda: read_plan("fake", {"max_live": 5, key: value}), UsageError)


@pytest.mark.parametrize(
    "value",
    [float("inf"), -float("inf"), float("nan"), 10**400, "9" * 400, datetime.date(2026, 1, 1)],
    ids=["inf", "-inf", "nan", "huge", "huge-text", "date"],
)
def test_a_number_that_is_none_is_refused(value: Any) -> None:
    """TOML knows ``inf``, and whole numbers of any length."""
    for key in ("whole", "number", "limit"):
        with pytest.raises(UsageError) as caught:
            read_settings(Settings, "box", {key: value})
        assert f"setting {key} = {value!r} is not a " in str(caught.value)
