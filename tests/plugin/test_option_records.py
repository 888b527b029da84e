"""``--sandbox-records``: where the raw samples go, and that nobody's records are mixed with others."""

from __future__ import annotations

import subprocess

import pytest

from pytest_sandboxbench.cli import main

from .conftest import Suite, clean, errors


def test_by_default_a_new_folder_that_git_does_not_see(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.one_bench()
    text = clean(suite.run(*workers), 0)
    assert f"records: .sandboxbench/{suite.folder.name}" in text
    assert (suite.path / ".sandboxbench" / ".gitignore").read_text().endswith("*\n")
    subprocess.run(["git", "init", "-q"], cwd=suite.path, check=True)
    done = subprocess.run(["git", "status", "--short"], cwd=suite.path, capture_output=True, text=True, check=True)
    assert ".sandboxbench" not in done.stdout


def test_a_chosen_folder(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.one_bench()
    text = clean(suite.run("--sandbox-records=deep/er", *workers), 0)
    assert "records: deep/er (sandboxbench report deep/er prints this table again)" in text
    assert len(suite.samples(suite.path / "deep/er")) == 3
    assert not (suite.path / ".sandboxbench").exists()


def test_the_printed_command_prints_the_table_again(suite: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    suite.one_bench()
    text = clean(suite.run("--sandbox-records=r"), 0)
    table = [line for line in text.splitlines() if line.startswith(("operation ", "  fake "))]
    capsys.readouterr()
    assert main(["report", "--width", "120", str(suite.path / "r")]) == 0
    again = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("operation ", "  fake "))]
    assert again == table != []


def test_records_that_are_there_are_not_overwritten(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.one_bench()
    clean(suite.run("--sandbox-records=r"), 0)
    before = {path.name: path.read_bytes() for path in (suite.path / "r").iterdir()}
    result = suite.run("--sandbox-records=r", *workers)
    clean(result, 4)
    (error,) = errors(result)
    assert "--sandbox-records r: it holds records already; name a new or empty folder" in error
    assert {path.name: path.read_bytes() for path in (suite.path / "r").iterdir()} == before
    assert suite.calls("create") == []


def test_a_file_is_no_folder(suite: Suite) -> None:
    suite.one_bench()
    (suite.path / "r").write_text("mine")
    clean(suite.run("--sandbox-records=r"), 4)
    assert (suite.path / "r").read_text() == "mine"


def test_the_ini_key(suite: Suite) -> None:
    suite.ini("sandbox_records = kept")
    suite.one_bench()
    clean(suite.run(), 0)
    assert len(suite.samples(suite.path / "kept")) == 3


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_measured(
    suite: Suite, workers: tuple[str, ...]
) -> None:
    suite.one_bench()
    (suite.path / "file").write_text("")
    text = clean(suite.run("--sandbox-records=file/below", *workers), 4)
    assert text.count("records cannot be written to ") == 1
    assert suite.calls("create") == []


def test_an_empty_name_is_no_folder(suite: Suite) -> None:
    suite.one_bench()
    assert "it names no folder; write for example records/today" in clean(suite.run("--sandbox-records="), 4)


def test_a_chosen_folder_and_one_worker(suite: Suite) -> None:
    """The run's name and folder are decided once, also for what the controller does at the end."""
    suite.one_bench()
    result = suite.run_apart("--sandbox-records=here", "-n", "1")
    text = clean(result, 0)
    assert "  fake  " in text
    assert (suite.path / "here" / "run.json").exists()
