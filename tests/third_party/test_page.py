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
    assert len(example("mini_sandboxbench.py").splitlines()) <= 160
    assert len(example("test_mini.py").splitlines()) < 30


class Joined:
    """The example as a package that is on the path; :mod:`.test_from_wheel` installs it."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = pytester.path
        point = re.search(r"\[project.entry-points.*?\]\n(.*?)\n\n", example("pyproject.toml"), re.DOTALL)
        assert point
        information = pytester.mkdir("mini_sandboxbench-1.0.dist-info")
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: mini-sandboxbench\nVersion: 1.0\n")
        points = f"[sandboxbench.providers]\n{point.group(1).replace(chr(34), '')}\n"
        (information / "entry_points.txt").write_text(points)
        monkeypatch.setenv("PYTHONPATH", str(self.path))
        monkeypatch.setenv("COLUMNS", "200")

    def check(self, module: str, status: int, *arguments: str) -> str:
        """The card, with this module as the provider's."""
        (self.path / "mini_sandboxbench.py").write_text(module, encoding="utf-8")
        command = [sys.executable, "-m", "pytest_sandboxbench.cli", "check", "mini", *arguments]
        done = subprocess.run(
            [*command, "--option", f"root={self.path / 'root'}"],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        assert done.stderr == ""
        assert list((self.path / "root").glob("*")) == []
        return done.stdout


@pytest.fixture
def joined(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Joined:
    return Joined(pytester, monkeypatch)


linux = pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")


@linux
def test_the_example_passes(joined: Joined) -> None:
    out = joined.check(example("mini_sandboxbench.py"), 0, "-k", "lifecycle", "-k", "exec", "-k", "files")
    assert "mini passes these checks" in out


@linux
@pytest.mark.full
def test_the_example_passes_everything(joined: Joined) -> None:
    assert "mini keeps its promises" in joined.check(example("mini_sandboxbench.py"), 0)


TRUTH = 'Capabilities(isolation="none", files=True, labels=True)'


def streaming() -> str:
    """The example with the stream of the page."""
    found = re.search(r"```python\n(    async def stream\(.*?)```\n", PAGE, re.DOTALL)
    assert found
    module = example("mini_sandboxbench.py")
    for here, there in (
        (TRUTH, TRUTH.replace(")", ", stream=True)")),
        ("import Iterator,", "import AsyncIterator, Iterator,"),
        ("import Capabilities, ExecResult,", "import Capabilities, ExecResult, Output,"),
        ("    async def write_file(", f"{found.group(1)}\n    async def write_file("),
    ):
        assert module.count(here) == 1, here
        module = module.replace(here, there)
    return module


@linux
def test_the_stream_of_the_page_passes(joined: Joined) -> None:
    out = joined.check(streaming(), 0, "-k", "stream")
    assert "can        exec, stream, files, labels, shell" in out
    assert "left out" not in out.splitlines()[-1]


@linux
@pytest.mark.full
def test_the_example_with_the_stream_passes_everything(joined: Joined) -> None:
    assert "mini keeps its promises" in joined.check(streaming(), 0)


@linux
@pytest.mark.parametrize(
    ("declared", "check"),
    [
        ("stream=True", "stream-the_last_item_is_the_exit"),
        ("network_off=True", "limits-without_network_the_host_is_not_reached"),
        ("one_shot=True", "one_shot-it_gives_output_and_exit_code"),
        ("pause=('frozen',)", "pause-paused_twice_is_paused"),
        ("limits=frozenset({'memory_mib'})", "limits-memory_is_limited"),
        ("limits=frozenset({'pids'})", "limits-processes_are_limited"),
    ],
    ids=["stream", "network_off", "one_shot", "pause", "memory_mib", "pids"],
)
def test_what_is_declared_and_not_there_fails(declared: str, check: str, joined: Joined) -> None:
    """Each check finds the lie that it is there for, in a provider that refuses no limit it claims to set."""
    module = example("mini_sandboxbench.py")
    assert module.count(TRUTH) == 1
    module = module.replace(TRUTH, f'Capabilities(isolation="none", files=True, labels=True, {declared})')
    module = module.replace("settings = (", "settings = () and (")
    out = joined.check(module, 1, "-k", check, "--timeout", "10")
    assert f"FAILED  {check}" in out
    assert "mini does not pass: 1 failed" in out


def test_every_error_that_a_provider_raises_is_on_the_page() -> None:
    others = {"ProviderMissing", "StateLost", "SandboxbenchError", "SandboxError"}
    assert {name for name in errors.__all__ if name not in others and f"`{name}" not in PAGE} == set()


WORDS = (model.Capabilities, model.ExecResult, model.Output, model.Owner, model.Preflight)
MORE_WORDS = (model.SandboxRef, model.SandboxSpec, model.SpanDeclaration)


@pytest.mark.parametrize("word", [*WORDS, *MORE_WORDS])
def test_every_field_is_on_the_page(word: Any) -> None:
    assert word.__name__ in PAGE
    assert {field.name for field in fields(word) if f"`{field.name}" not in PAGE} == set()
