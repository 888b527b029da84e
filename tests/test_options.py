"""The readers of option values: what they take, and that a mistake names the value, the form and an example.

That the options reach a run, from the command line and from an ini file, is tested in ``plugin/``.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_sandboxbench.options import _VALUES, NAMES, SHORT, _project_has_budgets


def read(name: str, text: str) -> Any:
    return _VALUES[name][0](text)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("provider", "fake", ("fake",)),
        ("provider", " fake , null,", ("fake", "null")),
        ("concurrency", "1,16,50", (1, 16, 50)),
        ("concurrency", "10000", (10_000,)),
        ("shape", "stagger-0.05s", "stagger-50ms"),
        ("samples", "1", 1),
        ("warmup", "0", 0),
        ("seed", "0", 0),
        ("timeout", "0.5", 0.5),
        ("max-seconds", "1e3", 1000.0),
        ("command", "node -e 1", "node -e 1"),
        ("records", "x y", "x y"),
    ],
)
def test_values(name: str, text: str, value: object) -> None:
    assert read(name, text) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("provider", text) for text in ("", ",", " ")),
        *(("concurrency", text) for text in ("", "0", "-1", "1,1", "1,,2", "x", "10001", "1.5", "9" * 5000)),
        *(("samples", text) for text in ("", "0", "-3", "1.5", "x", "1e3", "9" * 5000)),
        *(("shape", text) for text in ("", "closed", "closed-0", "rate-", "rate-1e3", "stagger-5", "wave", "burst ")),
        *(("warmup", text) for text in ("", "-1", "x")),
        *(("seed", text) for text in ("", "-1", "0x1")),
        *(("timeout", text) for text in ("", "0", "-1", "nan", "inf", "x", "1e9")),
        *(("max-seconds", text) for text in ("", "0", "nan")),
        *(("command", text) for text in ("", " ", "'unclosed")),
    ],
)
def test_a_mistake_names_the_value_and_an_example_that_is_right(name: str, text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        read(name, text)
    said = str(caught.value)
    assert repr(text) in said
    example = re.search(r"write for example (?:'([^']+)'|(\S+))", said)
    assert example is not None
    read(name, example[1] or example[2])


def test_defaults_are_values_of_their_own_option() -> None:
    for name in NAMES:
        default = _VALUES[name][1]
        text = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
        assert default is None or read(name, text) == default
    assert set(SHORT) <= {*NAMES, "budget"}


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("", False),
        ("[tool.other]\nbudgets = []\n", False),
        ('[project]\ndependencies = ["pytest-sandboxbench"]\n', False),
        ('[tool.sandboxbench.providers.vm]\nkind = "fake"\n', False),
        ("[tool.sandboxbench]\nbudgets = []\n", True),
        ("[tool.sandboxbench.bugdets]\n", True),
        ("[tool]\nsandboxbench = 1\n", True),
        ("tool.sandboxbench = [\n", True),
    ],
)
def test_what_judges_is_loaded_where_a_project_may_have_budgets(tmp_path: Path, text: str, has: bool) -> None:
    """Whoever only depends on this project pays nothing for it in each worker; a mistake is left to who tells it."""
    path = tmp_path / "pyproject.toml"
    assert not _project_has_budgets(path)
    path.write_text(text)
    assert _project_has_budgets(path) is has
