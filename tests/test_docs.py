"""The documents say what the code does: definitions are generated, examples run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_sandboxbench import options
from pytest_sandboxbench.cli import main
from pytest_sandboxbench.report.definitions import definitions

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_page_of_operations_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["operations"]) == 0
    assert capsys.readouterr().out == definitions()
    assert (ROOT / "docs" / "operations.md").read_text(encoding="utf-8") == definitions()


def test_every_option_is_documented() -> None:
    page = (ROOT / "docs" / "benches.md").read_text(encoding="utf-8")
    for name in (*options.NAMES, "option", "plan", "strict"):
        assert f"--sandbox-{name}" in page, name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def examples() -> list[tuple[str, str]]:
    """Every bench in the documents: a block of Python with a test in it."""
    found = []
    for page in PAGES:
        blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        found += [(f"{page.stem}-{i}", block) for i, block in enumerate(blocks) if "def test_" in block]
    return found


@pytest.mark.parametrize("code", [code for _, code in examples()], ids=[name for name, _ in examples()])
def test_the_examples_run(code: str, pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile(test_example=code)
    result = pytester.runpytest_subprocess("--sandbox-samples=2", "--sandbox-provider=bubblewrap", "-W", "error")
    assert result.ret == 0, result.outlines
    result.stdout.fnmatch_lines(["*= sandbox benchmarks =*", "* passed in *"])
