"""A secret that a run was given is in no record, report, junit, JSON, log or error, whatever an adapter does."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

import pytest

from tests.plugin.conftest import Suite, printed

from .careless import command, install, ours

# In a quotation, in JSON, in Python and on one line they look different.
SETTING = 'tok-5f3a"9c\\1e77$%d<b>é-ß'
VARIABLE = "key-0a1b2c3d4e5f6071\tz"
SHORTER = "tok-5f3a"

MODES = {
    "": 1,
    "create": 1,
    "exec": 1,
    "exec-raises": 1,
    "foreign": 1,
    "destroy": 1,
    "aclose": 1,
    "missing": 5,
    "preflight": 5,
    "load": 5,
    "settings": 4,
}
EVERYTHING = (
    *("-rA", "-vv", "--tb=long", "--showlocals", "--junitxml=junit.xml", "-o", "junit_logging=all"),
    *("--log-file=run.log", "--log-file-level=DEBUG", "--log-level=DEBUG", "--durations=0"),
    *("--benchmark-json=out.json", "--benchmark-save=base"),
)


def forms(secret: str) -> dict[str, str]:
    """How a secret may stand in a text."""
    escaped = {"as it is": secret, "repr": repr(secret)[1:-1], "JSON": json.dumps(secret)[1:-1]}
    markup = secret.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {**escaped, "XML": markup, "attribute": markup.replace('"', "&quot;"), "one line": " ".join(secret.split())}


def found(texts: Mapping[str, str]) -> list[str]:
    return [
        f"{name}: {form}: {text[max(0, text.index(shown) - 100) : text.index(shown) + 60]!r}"
        for name, text in texts.items()
        for secret in (SETTING, VARIABLE)
        for form, shown in forms(secret).items()
        if shown in text
    ]


@pytest.fixture
def cloud(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    install(suite)
    monkeypatch.setenv("PYTHONPATH", str(suite.path), prepend=os.pathsep)
    monkeypatch.setenv("XDG_STATE_HOME", str(suite.path / "state"))
    monkeypatch.setenv("CLOUD_API_KEY", VARIABLE)
    monkeypatch.setenv("OTHER_TOKEN", SHORTER)
    return suite


def in_file(suite: Suite, mode: str) -> None:
    """The secret as a setting in pyproject.toml."""
    suite.path.joinpath("pyproject.toml").write_text(
        f"[tool.sandboxbench.providers.cloud]\nkind = 'cloud'\nmode = '{mode}'\napi_key = {json.dumps(SETTING)}\n",
        encoding="utf-8",
    )


def measured(suite: Suite, mode: str, *arguments: str) -> dict[str, str]:
    """What a run wrote and printed, by name; the records printed again are among it."""
    before = ours(suite)
    words = ("--sandbox-provider=cloud", "--sandbox-samples=2", "--sandbox-warmup=0", *EVERYTHING, *arguments)
    result = suite.pytester.run(*suite.command(*words), timeout=60)
    assert result.ret == MODES[mode], printed(result)
    assert "INTERNALERROR" not in printed(result), printed(result)
    texts = {"terminal": printed(result)}
    for path in suite.path.rglob("*"):
        if path.is_file() and path not in before and path.suffix != ".pyc":
            texts[str(path.relative_to(suite.path))] = path.read_bytes().decode("utf-8", "replace")
    for folder in suite.folders:
        texts["report"] = command(suite, "report", "--all", "--partial", str(folder))
    return texts


COMMAND = ("missing", "preflight", "load")
QUICK = ("", "create", "destroy", "missing", "settings")


@pytest.mark.parametrize("mode", [pytest.param(m, marks=() if m in QUICK else pytest.mark.full) for m in MODES])
def test_it_is_nowhere(cloud: Suite, mode: str) -> None:
    in_file(cloud, mode)
    texts = measured(cloud, mode)
    assert "\n".join(found(texts)) == ""
    if not mode:
        assert {"report", "out.json", "junit.xml", "run.log"} <= texts.keys()
        assert any("samples.jsonl" in name for name in texts)
    assert any("***" in text for text in texts.values()), "it was said, and hidden"


@pytest.mark.parametrize("mode", ["", *(pytest.param(m, marks=pytest.mark.full) for m in ("create", "missing"))])
def test_nor_with_workers(cloud: Suite, mode: str) -> None:
    in_file(cloud, mode)
    assert "\n".join(found(measured(cloud, mode, "-n", "1"))) == ""


def test_nor_given_on_the_command_line(cloud: Suite) -> None:
    assert found(measured(cloud, "", f"--sandbox-option=cloud.api_key={SETTING}")) == []


@pytest.mark.parametrize("mode", ["", "settings", *(pytest.param(m, marks=pytest.mark.full) for m in COMMAND)])
def test_the_command_does_not_say_it(cloud: Suite, mode: str) -> None:
    in_file(cloud, mode)
    assert found({name: command(cloud, *name.split()) for name in ("providers", "doctor")}) == []


def test_a_mistake_in_a_secret_setting_does_not_show_it(suite: Suite) -> None:
    result = suite.bare("--sandbox-provider=fake", f"--sandbox-option=fake.api_token={SETTING}")
    assert result.ret == 4
    assert found({"terminal": printed(result)}) == []


def test_a_value_that_is_no_setting_at_all_is_not_shown(suite: Suite) -> None:
    result = suite.bare(f"--sandbox-option=api_token={SETTING}")
    assert result.ret == 4
    assert found({"terminal": printed(result)}) == []
