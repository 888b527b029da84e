"""Which providers there are, and how the settings of an instance are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_sandboxbench.errors import UsageError
from pytest_sandboxbench.model import SandboxSpec
from pytest_sandboxbench.providers.fake import FakeProvider
from pytest_sandboxbench.providers.registry import Registry, parse_option


def registry(root: Path, toml: str = "", *options: str) -> Registry:
    (root / "pyproject.toml").write_text(toml)
    return Registry(root, map(parse_option, options))


def mistake(root: Path, toml: str = "", *options: str, name: str = "fake") -> str:
    def use() -> None:
        made = registry(root, toml, *options)
        made.kind(name)
        made.spec(name)
        made.make(name)

    with pytest.raises(UsageError) as caught:
        use()
    return str(caught.value)


SLOW = '[tool.sandboxbench.providers.slow]\nkind = "fake"\ncreate = "0.5"\nmemory_mib = 256\n'


def test_built_in_kinds_are_names_without_any_configuration(tmp_path: Path) -> None:
    for root in (None, tmp_path):
        made = Registry(root)
        assert {"bubblewrap", "fake", "null"} <= set(made.kinds)
        assert made.names == made.kinds
        assert made.kind("fake") == "fake"
        assert isinstance(made.make("fake"), FakeProvider)
        assert made.spec("fake") == SandboxSpec()


def test_an_instance_has_a_name_a_kind_and_settings(tmp_path: Path) -> None:
    made = registry(tmp_path, SLOW)
    assert "slow" in made.names
    assert "slow" not in made.kinds
    assert made.kind("slow") == "fake"
    assert made.make("slow").name == "slow"
    assert made.options("slow") == {"create": "0.5", "memory_mib": 256}
    assert made.spec("slow").memory_mib == 256
    assert made.options("fake") == {}


def test_a_table_may_bear_the_name_of_its_kind(tmp_path: Path) -> None:
    made = registry(tmp_path, "[tool.sandboxbench.providers.fake]\nmemory_mib = 64\n")
    assert made.kind("fake") == "fake"
    assert made.spec("fake").memory_mib == 64


def test_the_command_line_overrides_the_file(tmp_path: Path) -> None:
    made = registry(tmp_path, SLOW, "slow.create=0.1", "slow.memory_mib=512", "fake.exec=0.2")
    assert made.options("slow") == {"create": "0.1", "memory_mib": "512"}
    assert made.spec("slow").memory_mib == 512
    assert made.options("fake") == {"exec": "0.2"}


def test_the_last_of_two_wins(tmp_path: Path) -> None:
    assert registry(tmp_path, "", "fake.exec=1", "fake.exec=2").options("fake") == {"exec": "2"}


def test_a_dash_is_an_underscore_everywhere(tmp_path: Path) -> None:
    made = registry(tmp_path, SLOW.replace("memory_mib", "memory-mib"), "slow.memory-mib=1024", "fake.max-live=3")
    assert made.spec("slow").memory_mib == 1024
    assert made.make("fake").capabilities.max_live == 3


def test_what_is_asked_of_a_sandbox_goes_to_the_spec_and_not_to_the_factory(tmp_path: Path) -> None:
    options = ["image=x", "vcpus=0.5", "memory_mib=64", "pids=32", "network=yes", "lifetime_s=60"]
    made = registry(tmp_path, "", *(f"fake.{option}" for option in [*options, "allow_unenforced=true"]))
    assert made.spec("fake") == SandboxSpec("x", 0.5, 64, 32, True, lifetime_s=60.0, allow_unenforced=True)
    assert made.make("fake").name == "fake"


def test_an_unknown_name_is_told_with_those_there_are(tmp_path: Path) -> None:
    said = mistake(tmp_path, SLOW, name="dokcer")
    assert said.startswith("unknown provider 'dokcer'; there are: bubblewrap, e2b, fake, ")
    assert "slow" in said
    assert "`sandboxbench providers`" in said
    assert "unknown provider 'x'" in mistake(tmp_path, "", "x.create=1")


def test_an_unknown_kind_is_told_with_its_table(tmp_path: Path) -> None:
    for kind in ('"fakee"', "3", "[]"):
        said = mistake(tmp_path, f"[tool.sandboxbench.providers.slow]\nkind = {kind}\n", name="slow")
        assert said.startswith("[tool.sandboxbench.providers.slow]: unknown kind")
        assert "there are: bubblewrap, e2b, fake, " in said
    assert "unknown kind 'slow'" in mistake(tmp_path, "[tool.sandboxbench.providers.slow]\n", name="slow")


def test_a_name_given_twice(tmp_path: Path) -> None:
    made = registry(tmp_path, SLOW)
    made.check(["fake", "slow"])
    with pytest.raises(UsageError, match=r"provider 'fake' is given twice; .* pyproject\.toml"):
        made.check(["fake", "slow", "fake"])


@pytest.mark.parametrize(
    ("option", "parts"),
    [
        ("memory_mib=lots", ("setting memory_mib = 'lots' is not a whole number or none", "fake.memory_mib=2")),
        ("memory_mib=1.5", ("setting memory_mib = '1.5' is not a whole number",)),
        ("memory_mib=0", ("setting memory_mib = 0 is not above 0", "fake.memory_mib=512")),
        ("vcpus=-1", ("setting vcpus = -1.0 is not above 0", "fake.vcpus=0.5")),
        ("vcpus=nan", ("setting vcpus = 'nan' is not a number",)),
        ("network=maybe", ("setting network = 'maybe' is not true or false", "fake.network=true")),
        ("lifetime_s=inf", ("setting lifetime_s = 'inf' is not a number",)),
        ("lock=srial", ("setting lock = 'srial' is not one of none, serial", "fake.lock=none")),
        ("creat=1", ("provider 'fake' has no setting 'creat'; it has: create, exec, ",)),
        ("env=A", ("provider 'fake' has no setting 'env'",)),
    ],
)
def test_a_bad_value_is_told_with_what_is_allowed_and_an_example(
    tmp_path: Path, option: str, parts: tuple[str, ...]
) -> None:
    said = mistake(tmp_path, "", f"fake.{option}")
    for part in parts:
        assert part in said


@pytest.mark.parametrize("text", ["", "fake", "fake=1", "fake.create", ".create=1", "fake.=1", "=1"])
def test_an_option_of_another_form_is_told_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not NAME\.KEY=VALUE; write for example bubblewrap\.memory_mib=512"):
        parse_option(text)


def test_an_option_is_split_where_a_person_means_it() -> None:
    assert parse_option("fake.create=0.5") == ("fake", "create", "0.5")
    assert parse_option("msb-0.4.image=a=b.c") == ("msb-0.4", "image", "a=b.c")
    assert parse_option("fake.facts=") == ("fake", "facts", "")


@pytest.mark.parametrize(
    "toml",
    [
        "[tool.sandboxbench.providers.slow",
        "tool = 1",
        "[tool]\nsandboxbench = []",
        "[tool.sandboxbench]\nproviders = 'fake'",
        "[tool.sandboxbench.providers]\nfake = 1",
        '[tool.sandboxbench.providers."a b"]\nkind = "fake"',
        '[tool.sandboxbench.providers."a:b"]\nkind = "fake"',
        '[tool.sandboxbench.providers.""]\nkind = "fake"',
        "a = '\x00'",
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, toml: str) -> None:
    assert mistake(tmp_path, toml).startswith(str(tmp_path / "pyproject.toml"))


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=str(path)):
        Registry(tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(UsageError, match=str(path)):
        Registry(tmp_path)
