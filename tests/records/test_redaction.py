"""No secret reaches the disk."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from pytest_sandboxbench.records.logs import WithoutSecrets
from pytest_sandboxbench.records.redaction import HIDDEN, hide, hide_arguments, redact
from pytest_sandboxbench.records.schema import encode, lines
from pytest_sandboxbench.records.spool import write_header

from .written import HEADER, sample

SECRET = "sk-0123456789abcdef"


@pytest.mark.parametrize(
    "name",
    [
        *("api_key", "API-KEY", "e2b_apikey", "private_key", "token", "ACCESS_TOKEN", "client_secret", "password"),
        *("passwd", "credentials", "Authorization"),
    ],
)
def test_what_stands_under_such_a_name_is_hidden(name: str) -> None:
    assert redact({name: SECRET}) == {name: HIDDEN}
    assert redact({"deep": [{name: {"in": SECRET}}]}) == {"deep": [{name: HIDDEN}]}
    assert redact({name: ""}) == {name: ""}, "that there is none is no secret"


def test_its_text_is_hidden_wherever_else_it_stands() -> None:
    assert redact({"a": {"token": SECRET}, "b": [f"Bearer {SECRET}!"]}) == {
        "a": {"token": HIDDEN},
        "b": [f"Bearer {HIDDEN}!"],
    }


def test_values_of_the_environment_are_hidden_wherever_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    monkeypatch.setenv("SHORT_TOKEN", "on")
    assert redact({"facts": [f"url?k={SECRET}&on", 5]}) == {"facts": [f"url?k={HIDDEN}&on", 5]}
    monkeypatch.delenv("SOME_API_KEY")
    assert redact([SECRET]) == [SECRET]


def test_ordinary_values_stay() -> None:
    value = {"key": "a", "keys": 1, "monkey": "b", "author": "c", "image": "python:3", "n": None, "x": 1.5}
    assert redact(value) == value


@pytest.mark.parametrize(
    ("argv", "wanted"),
    [
        (["--sandbox-option", f"e2b.api_key={SECRET}"], ["--sandbox-option", f"e2b.api_key={HIDDEN}"]),
        ([f"--sandbox-option=e2b.api-key={SECRET}"], [f"--sandbox-option=e2b.api-key={HIDDEN}"]),
        (["--token", SECRET, "x"], ["--token", HIDDEN, "x"]),
        ([f"TOKEN={SECRET}", "pytest"], [f"TOKEN={HIDDEN}", "pytest"]),
        (["-k", "token", "benches/"], ["-k", "token", "benches/"]),
        (["-k", "exec", "--provider=e2b"], ["-k", "exec", "--provider=e2b"]),
    ],
)
def test_command_lines(argv: list[str], wanted: list[str]) -> None:
    assert hide_arguments(argv) == wanted


def test_errors_of_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("E2B_API_KEY", SECRET)
    said = f"401: key {SECRET} is not valid; token expired; api_key=abc"
    assert hide(said) == f"401: key {HIDDEN} is not valid; token expired; api_key={HIDDEN}"
    assert SECRET.encode() not in lines([encode(sample(outcome="failed", error=said), 0)])


def test_the_header_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("E2B_API_KEY", SECRET)
    header = {
        **HEADER,
        "providers": {"e2b": {"options": {"api_key": "other-secret-1"}, "facts": {"url": f"a/{SECRET}"}}},
    }
    header["command"] = ["pytest", "other-secret-1"]
    assert write_header(tmp_path, header) == ""
    text = (tmp_path / "run.json").read_text()
    assert SECRET not in text
    assert "other-secret-1" not in text
    assert json.loads(text)["providers"]["e2b"]["options"] == {"api_key": HIDDEN}


@pytest.mark.parametrize(
    "said",
    [
        'a"b\\c\td-é-012345',
        repr('a"b\\c\td-é-012345'),
        json.dumps('a"b\\c\td-é-012345'),
        json.dumps('a"b\\c\td-é-012345', ensure_ascii=False),
        ascii('a"b\\c\td-é-012345'),
        repr('a"b\\c\td-é-012345'.encode()),
        'a"b\\c\td-é-012345'.replace("\t", " "),
    ],
)
def test_a_secret_as_python_and_json_write_it(said: str) -> None:
    hidden = hide(f"said {said}", ['a"b\\c\td-é-012345'])
    assert "012345" not in hidden
    assert HIDDEN in hidden


def test_a_secret_that_begins_with_another_is_hidden_to_its_end() -> None:
    for known in ([SECRET, SECRET + "-more"], [SECRET + "-more", SECRET]):
        assert hide(f"a {SECRET}-more b", known) == f"a {HIDDEN} b"


def test_a_private_key_is_hidden_line_by_line() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0\nzzzzzzzzzzzzzzzzzzzzzzzz\n-----END KEY-----\n"
    told = hide("E   MIIEvQIBADANBgkqhkiG9w0\nE   zzzzzzzzzzzzzzzzzzzzzzzz\nE   -----END KEY-----", [key])
    assert told == f"E   {HIDDEN}\nE   {HIDDEN}\nE   -----END KEY-----"


def test_lists_numbers_and_what_lies_below_a_secret_name(tmp_path: Path) -> None:
    value = {"tokens": ["first-token", "other-token"], "api_key": 1234567890, "text": "first-token 1234567890", "n": 7}
    assert redact(value) == {"tokens": HIDDEN, "api_key": HIDDEN, "text": f"{HIDDEN} {HIDDEN}", "n": 7}
    assert redact({"password": {"of": "somebody"}, "who": "somebody"})["who"] == HIDDEN


def test_what_is_logged() -> None:
    def told(message: object, *arguments: object, error: BaseException | None = None) -> str:
        info = (type(error), error, None) if error else None
        record = logging.LogRecord("x", logging.INFO, "f.py", 1, str(message), arguments, info, sinfo=SECRET)
        assert WithoutSecrets([SECRET]).filter(record)
        return logging.Formatter("%(message)s").format(record)

    assert told("key %s", SECRET) == f"key {HIDDEN}\n{HIDDEN}"
    assert SECRET not in told("key", error=ValueError(SECRET))
    assert SECRET not in told("two %s %s", SECRET), "it does not fit its arguments"
    assert told("100 %") == f"100 %\n{HIDDEN}"
