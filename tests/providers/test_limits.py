"""The limits of an instance that are kept here: how they are set, and which settings are a kind's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_sandboxbench.errors import UsageError
from pytest_sandboxbench.providers.limits import Limits, read_limits
from pytest_sandboxbench.providers.registry import Registry, parse_option


def registry(root: Path, *options: str, toml: str = "") -> Registry:
    (root / "pyproject.toml").write_text(toml)
    return Registry(root, map(parse_option, options))


SMALL = '[tool.sandboxbench.providers.small]\nkind = "bubblewrap"\nmax-live = 20\ncreate_rate = 2.5\n'


def test_they_are_settings_like_others(tmp_path: Path) -> None:
    made = registry(tmp_path, "small.max_queued=16", "small.max_live=4", "null.max_live=2", toml=SMALL)
    assert made.limits("small") == Limits(4, 16, 2.5)
    assert made.limits("null") == Limits(2)
    assert made.limits("bubblewrap") == Limits()
    assert made.make("small").name == "small", "its factory never sees them"


def test_a_kind_that_has_settings_of_these_names_keeps_them(tmp_path: Path) -> None:
    """The scripted system has limits of its own; ours have a longer name there."""
    made = registry(tmp_path, "fake.max_live=3", "fake.limiter_max_live=5", "fake.limiter_create_rate=2")
    assert made.limits("fake") == Limits(5, None, 2.0)
    assert made.make("fake").capabilities.max_live == 3


def test_the_longer_name_is_good_everywhere(tmp_path: Path) -> None:
    assert registry(tmp_path, "null.limiter_max_live=5").limits("null") == Limits(5)
    with pytest.raises(UsageError, match="max_live and limiter_max_live are one setting: give it once"):
        registry(tmp_path, "null.limiter_max_live=5", "null.max-live=5").limits("null")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (
            "max_live=0",
            "max_live = 0 is not a whole number from 1 on; write for example --sandbox-option null.max_live",
        ),
        ("max_live=many", "setting max_live = 'many' is not a whole number or none"),
        ("max_live=1.5", "setting max_live = '1.5' is not a whole number or none"),
        ("create_rate=0", "create_rate = 0.0 is not a number above 0; .* null.create_rate=5"),
        ("create_rate=-1", "create_rate = -1.0 is not a number above 0"),
        ("create_rate=inf", "create_rate = 'inf' is not a number"),
        ("max_queued=3", "max_queued = 3 needs max_live: creates wait for room under it"),
        ("max_queued=-1", "max_queued = -1 is not a whole number from 0 on"),
    ],
)
def test_a_bad_value_is_refused_when_the_instance_is_made(tmp_path: Path, option: str, said: str) -> None:
    made = registry(tmp_path, f"null.{option}")
    for use in (made.limits, made.make):
        with pytest.raises(UsageError, match=said):
            use("null")


def test_what_they_come_to() -> None:
    assert not Limits()
    assert Limits(create_rate=1)
    assert Limits(4, 16).facts() == {"max_live": 4, "max_queued": 16}
    assert [Limits(4, 16).capacity, Limits(4, 0).capacity, Limits(4).capacity, Limits().capacity] == [20, 4, None, None]
    assert read_limits("x", {"max_live": "none", "image": "y"}) == Limits()
