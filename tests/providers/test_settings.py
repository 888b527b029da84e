"""An instance's settings, from TOML and from the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from pytest_sandboxbench.errors import UsageError
from pytest_sandboxbench.providers.settings import read_settings


@dataclass(frozen=True, slots=True)
class Settings:
    image: str = "python"
    vcpus: int = 1
    memory_gib: float = 0.5
    hosted: bool = False
    mounts: tuple[str, ...] = ()
    mode: Literal["kvm", "emulated"] = "kvm"
    key_file: str | None = "key"
    limit: int | None = None


@pytest.mark.parametrize(
    ("key", "value", "read"),
    [
        ("image", "node", "node"),
        ("image", 3.11, "3.11"),
        ("vcpus", "2", 2),
        ("vcpus", 2, 2),
        ("memory_gib", "1.5", 1.5),
        ("memory_gib", 2, 2.0),
        ("hosted", "true", True),
        ("hosted", "Yes", True),
        ("hosted", "on", True),
        ("hosted", "1", True),
        ("hosted", "off", False),
        ("hosted", "0", False),
        ("hosted", True, True),
        ("mounts", "/a, /b,,", ("/a", "/b")),
        ("mounts", ["/a", "/b"], ("/a", "/b")),
        ("mounts", "", ()),
        ("mode", "emulated", "emulated"),
        ("key_file", None, None),
        ("key_file", "other", "other"),
        ("limit", "7", 7),
        ("limit", 7, 7),
    ],
)
def test_text_and_typed_values_become_the_fields_type(key: str, value: Any, read: Any) -> None:
    settings = read_settings(Settings, "box", {key: value})

    assert getattr(settings, key) == read
    assert type(getattr(settings, key)) is type(read)


@pytest.mark.parametrize("key", ["key_file", "limit"])
def test_none_can_be_written_on_the_command_line(key: str) -> None:
    assert getattr(read_settings(Settings, "box", {key: "none"}), key) is None


def test_a_number_is_not_cut_to_a_whole_one() -> None:
    with pytest.raises(UsageError):
        read_settings(Settings, "box", {"vcpus": 2.7})


def test_what_is_not_given_keeps_its_default() -> None:
    assert read_settings(Settings, "box", {}) == Settings()


def test_a_dash_in_a_key_is_an_underscore() -> None:
    assert read_settings(Settings, "box", {"memory-gib": "2"}).memory_gib == 2.0


def test_an_unknown_key_names_those_that_exist() -> None:
    with pytest.raises(UsageError) as caught:
        read_settings(Settings, "box", {"vcpu": "2"})

    assert str(caught.value) == (
        "provider 'box' has no setting 'vcpu'; it has: image, vcpus, memory_gib, hosted, mounts, mode, key_file, limit"
    )


def test_a_provider_without_settings_says_so() -> None:
    @dataclass
    class Nothing:
        pass

    with pytest.raises(UsageError, match="it has: none"):
        read_settings(Nothing, "box", {"a": "1"})


@pytest.mark.parametrize(
    ("key", "value", "allowed", "example"),
    [
        ("vcpus", "two", "a whole number", "box.vcpus=2"),
        ("vcpus", "2.5", "a whole number", "box.vcpus=2"),
        ("vcpus", True, "a whole number", "box.vcpus=2"),
        ("vcpus", None, "a whole number", "box.vcpus=2"),
        ("memory_gib", "1.5g", "a number", "box.memory_gib=0.5"),
        ("hosted", "maybe", "true or false", "box.hosted=true"),
        ("image", True, "text", "box.image=text"),
        ("image", ["a"], "text", "box.image=text"),
        ("mounts", 5, "a list", "box.mounts=a,b"),
        ("mode", "qemu", "one of kvm, emulated", "box.mode=kvm"),
        ("limit", "many", "a whole number or none", "box.limit=2"),
    ],
)
def test_a_wrong_value_names_itself_what_is_allowed_and_an_example(
    key: str, value: Any, allowed: str, example: str
) -> None:
    with pytest.raises(UsageError) as caught:
        read_settings(Settings, "box", {key: value})

    assert str(caught.value) == (
        f"provider 'box': setting {key} = {value!r} is not {allowed}; write for example --sandbox-option {example}"
    )
