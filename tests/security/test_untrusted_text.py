"""Words of a sandbox and of a provider are text wherever they are shown, and no path is made of them."""

from __future__ import annotations

import json
import os
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NoReturn

import pytest

from pytest_sandboxbench.records.untrusted import harmless, inert
from tests.plugin.conftest import Suite, printed

from .careless import command, install, ours
from .enemy import bounded, line, records

HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07\x1b]52;c;ZXZpbA==\x07\x1b]8;;http://evil\x1b\\link\x9b31m\x84\u202etxt\u2066\r\n\x0b\x00\x08"
    "<script>alert(1)</script><!--&evil;]]>\"'../../../../evil/../../.bashrc%s%n"
)
LONELY = "\ud800\udfff" + HOSTILE + "x" * 5000

# What no output may hold: C0 but newline, tab and the colours of pytest itself, C1, overrides of direction, surrogates.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
STATUS = {"missing": 5, "preflight": 5, "load": 5, "settings": 4}


def assert_inert(text: str, where: str) -> None:
    found = _OBEYED.search(text)
    assert found is None, (where, text[max(0, found.start() - 200) : found.end() + 50])


def assert_json(path: Path) -> None:
    def refuse(word: str) -> NoReturn:
        raise AssertionError(f"{path}: {word} is not JSON")

    text = path.read_text(encoding="utf-8")
    for piece in text.splitlines() if path.suffix == ".jsonl" else [text]:
        json.loads(piece, parse_constant=refuse)
        assert_inert(piece, str(path))


def assert_no_markup(path: Path) -> None:
    """It is well-formed, and nothing of the hostile text has become an element or an attribute."""
    tree = ET.parse(path)
    for element in tree.iter():
        assert not (str(element.tag).endswith("script") and "alert" in (element.text or "")), path
        assert not any(name.startswith("on") for name in element.attrib), path
        assert_inert("".join([element.text or "", element.tail or "", *element.attrib.values()]), str(path))


@pytest.fixture(params=[HOSTILE, pytest.param(LONELY, marks=pytest.mark.full)], ids=["hostile", "lonely"])
def hostile(suite: Suite, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Suite:
    install(suite, request.param)
    monkeypatch.setenv("PYTHONPATH", str(suite.path), prepend=os.pathsep)
    monkeypatch.setenv("XDG_STATE_HOME", str(suite.path / "state"))
    return suite


def with_mode(suite: Suite, mode: str) -> None:
    suite.path.joinpath("pyproject.toml").write_text(
        f"[tool.sandboxbench.providers.cloud]\nkind = 'cloud'\nmode = '{mode}'\n"
    )


_FULL = ("create", "exec", "exec-raises", "foreign", "aclose", "preflight", "load", "settings")


@pytest.mark.parametrize(
    "mode", ["", "destroy", "missing", *(pytest.param(mode, marks=pytest.mark.full) for mode in _FULL)]
)
@pytest.mark.parametrize("workers", [(), pytest.param(("-n", "1"), marks=pytest.mark.full)], ids=["plain", "xdist"])
def test_it_is_text_wherever_it_is_shown(hostile: Suite, mode: str, workers: tuple[str, ...]) -> None:
    with_mode(hostile, mode)
    before = ours(hostile)
    words = ("--sandbox-provider=cloud", "--sandbox-samples=3", "--sandbox-warmup=0", "-rA", "-v", "--showlocals")
    files = ("--junitxml=junit.xml", "-o", "junit_logging=all", "--benchmark-json=out.json", "--benchmark-save=base")
    table = ("--benchmark-columns=min,median", "--benchmark-histogram=plots/plot")
    result = hostile.pytester.run(*hostile.command(*words, *files, *table, *workers), timeout=60)
    text = printed(result)
    assert "INTERNALERROR" not in text, text
    assert result.ret == STATUS.get(mode, 1), text
    assert_inert(text, "terminal")
    made = {path for path in hostile.path.rglob("*") if path.is_file()} - before
    for path in made:
        if path.suffix in (".json", ".jsonl"):
            assert_json(path)
        elif path.suffix in (".xml", ".svg"):
            assert_no_markup(path)
    known = {"junit.xml", "out.json", "plots", ".benchmarks", ".sandboxbench", ".pytest_cache", "state", "__pycache__"}
    known |= {"stdout", "stderr"}  # pytester's own
    assert {path.relative_to(hostile.path).parts[0] for path in made} <= known
    assert not [folder for folder in hostile.path.parents if (folder / "evil").exists()]
    for folder in hostile.folders:
        there = {path.name for path in folder.iterdir()}
        assert there <= {"run.json", "samples.jsonl", "samples-gw0.jsonl"}
        assert_inert(command(hostile, "report", "--all", "--partial", str(folder)), "report")
    if not mode:
        assert any(path.suffix == ".svg" for path in made)
        assert "owned" in text


@pytest.mark.parametrize(
    "mode", ["", *(pytest.param(m, marks=pytest.mark.full) for m in ("missing", "preflight", "load", "settings"))]
)
def test_the_command_shows_it_as_text(hostile: Suite, mode: str) -> None:
    with_mode(hostile, mode)
    for name in ("providers", "doctor"):
        text = command(hostile, name)
        assert "Traceback" not in text
        assert_inert(text, name)


def test_a_kind_whose_name_is_none_is_not_there(hostile: Suite) -> None:
    path = hostile.path / "careless-1.dist-info" / "entry_points.txt"
    path.write_text(path.read_text() + "../../evil\x1b[2J = careless:factory\na:b@1/burst = careless:factory\n")
    text = command(hostile, "providers")
    assert_inert(text, "providers")
    assert not any(line.startswith("../../evil") for line in text.splitlines())
    assert "a:b" not in text
    assert "cloud" in text


@pytest.mark.parametrize("text", [HOSTILE, LONELY], ids=["hostile", "lonely"])
def test_lines_tabs_and_colours_stay(text: str) -> None:
    assert_inert(harmless(text), "one line")
    assert_inert(inert(text), "lines")
    kept = "\x1b[31mred\x1b[0m\n\tnext\n"
    assert inert(kept) == kept
    assert inert(inert(text)) == inert(text)


def test_a_megabyte_is_cut_before_it_is_looked_at() -> None:
    assert harmless("\x1b" * (1 << 20), 20) == "\\x1b" * 4 + "\\x1…"
    assert harmless(" " * (1 << 20) + "x", 20) == "…"


def test_the_newest_run_of_a_folder_may_have_any_name(tmp_path: Path) -> None:
    """As somebody's repository may bring it along."""
    records(tmp_path / ".sandboxbench" / "z\x1b[2J\u202e\r", line())
    answer = bounded("pytest_sandboxbench.cli", "report", cwd=tmp_path)
    assert answer.status == 1
    answer.printed()
