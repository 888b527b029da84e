"""Where budgets stand: what is read there, under which name, and what is said of a mistake."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pytest_sandboxbench.budgets.grammar import parse, write
from pytest_sandboxbench.budgets.model import Placed
from pytest_sandboxbench.budgets.sources import from_marker, from_option, from_toml, read_file
from pytest_sandboxbench.errors import UsageError

PROJECT = ("tool", "sandboxbench")
TABLE = "pyproject.toml: [tool.sandboxbench]"


def told(found: list[Placed]) -> list[tuple[str, str]]:
    return [(write(placed.budget), placed.where) for placed in found]


def refusal(call: Any) -> str:
    with pytest.raises(UsageError) as raised:
        call()
    said = str(raised.value)
    assert said.isprintable()
    return said


# Options and hooks


def test_texts_of_an_option() -> None:
    assert from_option([]) == []
    assert from_option(["startup p95 < 1s", "exec median ..3ms"]) == [
        Placed(parse("startup p95 < 1s"), "--sandbox-budget"),
        Placed(parse("exec median ..3ms"), "--sandbox-budget"),
    ]


def test_a_hook_may_give_one_text_or_any_row_of_them() -> None:
    assert told(from_option("startup median ..1s", "hook x")) == [("startup median ..1s", "hook x")]
    assert told(from_option(iter(["startup median ..1s"]), "hook x")) == [("startup median ..1s", "hook x")]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (3, "hook x: 3 (int) is no list of texts"),
        ({"startup": "median ..1s"}, "hook x: {'startup': 'median ..1s'} (dict) is no list of texts"),
        ([None], "hook x: None (NoneType) is no budget: write a text, for example 'startup median"),
        (["startup medain ..1s"], "hook x: 'startup medain ..1s': 'medain' is no statistic"),
    ],
)
def test_what_a_hook_gives_is_a_list_of_texts(given: Any, said: str) -> None:
    assert refusal(lambda: from_option(given, "hook x")).startswith(said)


def test_a_mistake_begins_with_its_place_and_ends_with_an_example() -> None:
    assert refusal(lambda: from_option(["startup p100 ..1s"])) == (
        "--sandbox-budget: 'startup p100 ..1s': 'p100' is not judged; take p99 (at character 9); "
        "write for example 'startup median 44ms..52ms @1,16'"
    )


def test_a_text_that_a_terminal_would_obey_is_shown_harmless() -> None:
    said = refusal(lambda: from_option(["startup \x1b[2J\u202emedian ..1s\n"], "a\x1b[2J"))
    assert said.startswith("a\\x1b[2J: ")
    long = refusal(lambda: from_option(["startup " + "x" * 10_000]))
    assert "at most 500 characters" in long
    assert len(long) < 500


# Markers


def test_a_marker_has_the_operation_of_its_test_or_names_one() -> None:
    assert told(from_marker(("median ..1s", ".create p95 ..2s", "exec median ..3s"), {}, "at test_a")) == [
        ("median ..1s", "at test_a"),
        (".create p95 ..2s", "at test_a"),
        ("exec median ..3s", "at test_a"),
    ]


@pytest.mark.parametrize(
    ("args", "kwargs", "said"),
    [
        ((), {}, "here: it has no budget: write for example 'median 44ms..52ms @1,16'"),
        (("median ..1s",), {"p95": 0.3}, "here: p95=0.3 (float) is not known: a budget is a text, for example 'median"),
        ((("median ..1s",),), {}, "here: ('median ..1s',) (tuple) is no budget: write a text, for example 'median"),
        (("..1s",), {}, "here: '..1s': a budget begins with an operation"),
    ],
)
def test_a_marker_has_texts_only(args: tuple[object, ...], kwargs: dict[str, object], said: str) -> None:
    assert refusal(lambda: from_marker(args, kwargs, "here")).startswith(said)


# Tables


def test_a_list_of_a_table() -> None:
    table = tomllib.loads('budgets = ["startup median ..1s", "exec p95 ..2s"]')
    assert told(from_toml(table, TABLE)) == [
        ("startup median ..1s", f"{TABLE} budgets, entry 1"),
        ("exec p95 ..2s", f"{TABLE} budgets, entry 2"),
    ]
    assert from_toml({}, TABLE) == []
    assert from_toml({"budgets": []}, TABLE) == []


def test_a_table_by_operation() -> None:
    table = tomllib.loads(
        """
        [budgets]
        startup = ["median 44ms..52ms @1,16", "p95 ..80ms"]
        "bubblewrap:startup" = "median ..52ms"
        "startup{cache=miss}.create" = ["median ..3ms"]
        """
    )
    assert told(from_toml(table, TABLE)) == [
        ("startup median 44ms..52ms @1,16", f"{TABLE} budgets, startup, entry 1"),
        ("startup p95 ..80ms", f"{TABLE} budgets, startup, entry 2"),
        ("bubblewrap:startup median ..52ms", f"{TABLE} budgets, bubblewrap:startup"),
        ("startup{cache=miss}.create median ..3ms", f"{TABLE} budgets, startup{{cache=miss}}.create, entry 1"),
    ]


def test_one_text_needs_no_list() -> None:
    assert told(from_toml({"budgets": "startup median ..1s"}, TABLE)) == [("startup median ..1s", f"{TABLE} budgets")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("budgets = 3", 'budgets: 3 (int) is not allowed: write a list of texts, budgets = ["startup median'),
        ("budgets = true", "budgets: True (bool) is not allowed: write a list"),
        ("budgets = 2026-12-01", "budgets: datetime.date(2026, 12, 1) (date) is not allowed"),
        ('budgets = ["startup median ..1s", 0.5]', "budgets, entry 2: 0.5 (float) is no budget: write a list of texts"),
        ('budgets = ["startup median ..1"]', "budgets, entry 1: 'startup median ..1': '1' has no unit"),
        ("budgets.startup = 3", "budgets, startup: 3 (int) is not allowed: write a text, or a list of texts"),
        ("budgets.startup = [[]]", "budgets, startup, entry 1: [] (list) is no budget: write a text"),
        ('budgets.startup = "..1s"', "budgets, startup: 'startup ..1s': '..' is no statistic"),
        (
            'budgets.startup = "exec median ..1s"',
            "budgets, startup: 'startup exec median ..1s': 'exec' is no statistic",
        ),
        (
            '[budgets]\nstartup.create = "median ..1s"',
            "budgets, startup: {'create': 'median ..1s'} (dict) is not allowed: write a text, or a list of texts; "
            "a key with a dot has quotes: 'startup.create' = ...",
        ),
        ('budgets."\\u001b[2J" = 1', "budgets, \\x1b[2J: 1 (int) is not allowed"),
        (f"budgets = 0x{'f' * 9000}", "budgets: ... (int) is not allowed"),
    ],
)
def test_a_table_holds_texts_only(text: str, said: str) -> None:
    assert refusal(lambda: from_toml(tomllib.loads(text), TABLE)).startswith(f"{TABLE} {said}")


# Files


def test_a_file_of_budgets(tmp_path: Path) -> None:
    path = tmp_path / "budgets.toml"
    path.write_text('budgets = ["größe median ..1µs"]\n', encoding="utf-8")
    assert told(read_file(path)) == [("größe median ..1us", f"{path}: budgets, entry 1")]
    path.write_text('[budgets]\nstartup = "median ..1s"\n')
    assert told(read_file(path)) == [("startup median ..1s", f"{path}: budgets, startup")]
    path.write_text("budgets = []\n")
    assert read_file(path) == []


def test_a_project_file(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(
        '[tool.sandboxbench]\nbudgets = ["startup median ..1s"]\n[tool.sandboxbench.providers.x]\nkind="y"\n'
    )
    assert told(read_file(path, inside=PROJECT)) == [
        ("startup median ..1s", "pyproject.toml: [tool.sandboxbench] budgets, entry 1")
    ]
    path.write_text("[tool.sandboxbench]\nbudgets = [1]\n")
    assert refusal(lambda: read_file(path, inside=PROJECT)).startswith(
        f"{TABLE} budgets, entry 1: 1 (int) is no budget"
    )


@pytest.mark.parametrize(
    "text", ["", "tool = 3", "[tool.other]\nbudgets = 1", "[tool.sandboxbench.providers.x]\nkind = 'null'"]
)
def test_a_project_need_not_have_budgets(tmp_path: Path, text: str) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(text)
    assert read_file(path, inside=PROJECT) == []


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("budget", "; there are budgets and providers: did you mean 'budgets'?"),
        ("x", "; there are budgets and providers"),
    ],
)
def test_the_table_of_a_project_has_no_other_keys(tmp_path: Path, key: str, said: str) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(f'[tool.sandboxbench]\n{key} = ["startup median ..1us"]\n')
    assert refusal(lambda: read_file(path, inside=PROJECT)) == f"{TABLE}: '{key}' is not known here{said}"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it has no budgets: write budgets = ["),
        (b'budget = ["startup median ..1s"]', "'budget' is not known here; budgets = ["),
        (b"[tool.sandboxbench]\nbudgets = []", "'tool' is not known here: that is for pyproject.toml; budgets = ["),
        (b"budgets = [", "it is not TOML: "),
        (b"budgets = ['\xff']", "it is not TOML: "),
        (b"budgets = " + b"9" * 5000, "it is not TOML: "),
        (b"budgets = " + b"[" * 5000, "it is not TOML: "),
        (b"#" * ((1 << 20) + 1), "it has more than 1 MiB, and is to be a TOML file with budgets = ["),
    ],
    ids=["empty", "unknown", "project", "open", "bytes", "number", "deep", "large"],
)
def test_a_file_of_budgets_holds_nothing_else(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "budgets.toml"
    path.write_bytes(content)
    message = refusal(lambda: read_file(path))
    assert message.startswith(f"{path}: {said}")
    assert 'budgets = ["startup median 44ms..52ms @1,16"]' in message


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    missing = tmp_path / "not-there.toml"
    assert refusal(lambda: read_file(missing)).startswith(f"{missing}: No such file or directory: it is to be a TOML")
    assert refusal(lambda: read_file(tmp_path)).startswith(f"{tmp_path}: Is a directory")
    assert "null byte" in refusal(lambda: read_file(tmp_path / "a\0b"))
    assert "\\x1b[2J" in refusal(lambda: read_file(tmp_path / "a\x1b[2J"))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "budgets.toml"
    path.write_text("budgets = []")
    path.chmod(0)
    assert refusal(lambda: read_file(path)).startswith(f"{path}: Permission denied")
