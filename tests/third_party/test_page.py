"""The provider of the page is the one that is tested, and it passes."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from pytest_sandboxbench import errors, model

ROOT = Path(__file__).resolve().parents[2]
MINI = Path(__file__).parent / "mini"
PAGE = (ROOT / "docs" / "providers.md").read_text(encoding="utf-8").partition("## One of your own")[2]


def example(name: str) -> str:
    """The block below the name of a file."""
    found = re.search(rf"`{re.escape(name)}`:\n\n```\w+\n(.*?)```\n", PAGE, re.DOTALL)
    assert found, f"docs/providers.md shows no {name}"
    return found.group(1)


@pytest.mark.parametrize("name", ["pyproject.toml", "mini_sandboxbench.py", "test_mini.py"])
def test_the_page_shows_the_files(name: str) -> None:
    assert example(name) == (MINI / name).read_text(encoding="utf-8")


def test_it_is_short() -> None:
    assert len(example("mini_sandboxbench.py").splitlines()) < 150
    assert len(example("test_mini.py").splitlines()) < 30


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
@pytest.mark.parametrize(
    "chosen",
    [
        ("-k", "lifecycle", "-k", "exec", "-k", "files"),
        pytest.param((), marks=pytest.mark.full),
    ],
    ids=["some", "all"],
)
def test_the_example_passes(
    chosen: tuple[str, ...], pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the page, as a package that is on the path: :mod:`.test_from_wheel` installs it."""
    pytester.makefile(".py", mini_sandboxbench=example("mini_sandboxbench.py"))
    point = re.search(r"\[project.entry-points.*?\]\n(.*?)\n\n", example("pyproject.toml"), re.DOTALL)
    assert point
    information = pytester.mkdir("mini_sandboxbench-1.0.dist-info")
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: mini-sandboxbench\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[sandboxbench.providers]\n{point.group(1).replace(chr(34), '')}\n")
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    root = ("--option", f"root={pytester.path / 'root'}")
    command = [sys.executable, "-m", "pytest_sandboxbench.cli", "check", "mini", *root, *chosen]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert list((pytester.path / "root").iterdir()) == []


def test_every_error_that_a_provider_raises_is_on_the_page() -> None:
    others = {"ProviderMissing", "StateLost", "SandboxbenchError", "SandboxError"}
    assert {name for name in errors.__all__ if name not in others and f"`{name}" not in PAGE} == set()


WORDS = (model.Capabilities, model.ExecResult, model.Output, model.Owner, model.Preflight)
MORE_WORDS = (model.SandboxRef, model.SandboxSpec, model.SpanDeclaration)


@pytest.mark.parametrize("word", [*WORDS, *MORE_WORDS])
def test_every_field_is_on_the_page(word: Any) -> None:
    assert word.__name__ in PAGE
    assert {field.name for field in fields(word) if f"`{field.name}" not in PAGE} == set()
