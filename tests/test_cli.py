"""The command ``sandboxbench``: what it prints, how it ends, and that a mistake is one line and no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_sandboxbench import __version__
from pytest_sandboxbench.cli import main
from pytest_sandboxbench.report.text import columns
from tests.records.written import HEADER, folder, sample

COMMAND = [sys.executable, "-m", "pytest_sandboxbench.cli"]


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")


def run(*argv: str) -> int:
    """The exit status, also where argparse ends the process."""
    try:
        return main(argv)
    except SystemExit as end:
        return int(end.code or 0)


def mistake(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """A mistake: status 4, nothing on standard output, a short text on standard error."""
    status = run(*argv)
    out, err = capsys.readouterr()
    assert (status, out) == (4, "")
    assert "Traceback" not in err
    assert len(err) < 2000
    return err


def write_config(**tables: str) -> None:
    text = "".join(f"[tool.sandboxbench.providers.{name}]\n{lines}\n" for name, lines in tables.items())
    Path("pyproject.toml").write_text(text)


# -- the command itself


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out == f"pytest-sandboxbench {__version__}\n"
    assert run("--help") == 0
    out = capsys.readouterr().out
    assert all(command in out for command in ("providers", "doctor", "report", "init"))


@pytest.mark.parametrize(
    "argv", [(), ("nonsense",), ("report", "--width", "wide"), ("report", "a", "b"), ("providers", "--x")], ids=str
)
def test_a_mistyped_command_is_a_usage_error(capsys: pytest.CaptureFixture[str], argv: Sequence[str]) -> None:
    assert "usage: sandboxbench" in mistake(capsys, *argv)


# -- providers and doctor


def test_providers_are_listed_with_what_they_lack(capsys: pytest.CaptureFixture[str]) -> None:
    write_config(
        slow='kind = "fake"\ncreate = "0.5"',
        gone='kind = "fake"\nmissing = "no daemon\\u001b[2J"\ncure = "start it"',
    )
    assert run("providers", "slow", "gone") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "slow (fake)  ready: kind scripted, create 0.5",
        "gone (fake)  missing: no daemon\\x1b[2J. start it",
    ]
    assert run("providers") == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ("bubblewrap", "fake", "null", "slow", "gone"))


def test_none_ready_is_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    write_config(gone='kind = "fake"\nmissing = "no daemon"')
    assert run("providers", "gone") == 1


def test_a_provider_that_never_answers_takes_nothing_from_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    write_config(
        hang='kind = "fake"\npreflight = "hang"',
        deaf='kind = "fake"\npreflight = "swallow:1e6"',
        bug='kind = "fake"\npreflight = "raise:ValueError"',
        good='kind = "fake"\npreflight = "0.5"\naclose = "hang"',
    )
    started = time.monotonic()
    assert run("providers", "hang", "deaf", "bug", "good") == 0
    assert time.monotonic() - started < 5 + 3
    lines = capsys.readouterr().out.splitlines()
    assert [line[13:43] for line in lines] == [
        "missing: it did not answer wit",
        "missing: it did not answer wit",
        "missing: ValueError: scripted ",
        "ready: kind scripted, prefligh",
    ]


def test_one_that_blocks_is_left_behind(capsys: pytest.CaptureFixture[str]) -> None:
    """In a process of its own: the blocked thread stays until the end."""
    write_config(block='kind = "fake"\npreflight = "block:60"', good='kind = "fake"')
    done = subprocess.run([*COMMAND, "providers", "block", "good"], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")
    silent = "it did not answer within 5 s. a preflight answers within a second; what takes longer belongs into create"
    assert f"block (fake)  missing: {silent}\n" in done.stdout
    assert "good (fake)   ready" in done.stdout


@pytest.mark.parametrize(
    ("config", "argv", "said"),
    [
        ("[tool.sandboxbench.providers.x", ["providers"], "pyproject.toml: "),
        ('[tool.sandboxbench.providers.x]\nkind = "fakee"', ["providers"], "unknown kind 'fakee'; there are: "),
        ('[tool.sandboxbench.providers.x]\nkind = "fakee"', ["doctor"], "unknown kind 'fakee'; there are: "),
        ('[tool.sandboxbench.providers.x]\nkind = "fake"\ncreat = 1', ["providers", "x"], "has no setting 'creat'"),
        ("", ["providers", "dokcer"], "unknown provider 'dokcer'; there are: "),
        ("", ["providers", "fake", "fake"], "given twice"),
    ],
)
def test_mistakes_in_names_and_settings(
    capsys: pytest.CaptureFixture[str], config: str, argv: list[str], said: str
) -> None:
    Path("pyproject.toml").write_text(config)
    assert said in mistake(capsys, *argv)


def test_doctor_tells_each_finding_with_its_cure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    write_config(gone='kind = "fake"\nmissing = "no daemon"\ncure = "start it"')
    status = run("doctor")
    lines = capsys.readouterr().out.splitlines()
    assert status == int(any(line.startswith("bad ") for line in lines))
    assert all(line[:6] in ("ok    ", "note  ", "bad   ", " " * 6) for line in lines)
    at = lines.index("note  provider gone is missing: no daemon")
    assert lines[at + 1] == "      start it"
    assert "ok    provider fake is ready" in lines
    assert any("PYTHONDONTWRITEBYTECODE is set" in line for line in lines)


def test_doctor_fails_where_records_cannot_be_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    assert run("doctor") == 1
    assert "bad   records cannot be written to" in capsys.readouterr().out


# -- report


def measured(path: Path, *more: object) -> Path:
    samples = [sample(name, round=n, ms=ms) for n in range(8) for name, ms in (("fake", 10), ("null", 2))]
    return folder(path, *samples)


def test_a_report_prints_the_table_of_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    measured(Path("records"))
    assert run("report", "records", "--width", "80") == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "10.0 ms" in out
    assert "5.00×" in out
    assert all(columns(line) <= 80 for line in out.splitlines())
    assert run("report", "records", "--width", "-5") == 0
    assert all(columns(line) <= 60 for line in capsys.readouterr().out.splitlines())


def test_without_a_folder_it_is_the_newest_run(capsys: pytest.CaptureFixture[str]) -> None:
    folder(Path(".sandboxbench/20260101-000000-ffffff"), sample(ms=111), sample("null"))
    folder(Path(".sandboxbench/20260102-000000-000000"), sample(ms=222), sample("null"))
    assert run("report") == 0
    assert "222 ms" in capsys.readouterr().out


def test_missing_rows_are_named_and_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    folder(Path("records"), sample("null"))
    assert run("report", "records") == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "planned rows have no samples: fake:startup@1/burst. --partial prints what there is" in err
    assert run("report", "records", "--partial") == 0
    assert "null" in capsys.readouterr().out


def test_a_run_that_was_cut_off_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    path = measured(Path("records")) / "samples.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    assert run("report", "records") == 0
    out, err = capsys.readouterr()
    assert "10.0 ms" in out
    assert err == "a last line was cut off, as by a kill; it is left out\n"


def test_all_adds_what_was_measured_along_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    folder(Path("records"), sample(), sample("null"), sample(operation="exec"))
    assert run("report", "records") == 0
    assert "exec:" not in capsys.readouterr().out
    assert run("report", "records", "--all") == 0
    assert "exec:" in capsys.readouterr().out


def test_what_cannot_be_read_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no records in" in mistake(capsys, "report")
    assert "run.json is missing" in mistake(capsys, "report", "nowhere")
    path = measured(Path("records"))
    (path / "samples.jsonl").write_bytes(b"\x00\n")
    assert "samples.jsonl, line 1: not a sample" in mistake(capsys, "report", "records")
    (path / "run.json").write_text("[" * 100_000)
    assert "run.json cannot be read" in mistake(capsys, "report", "records")
    Path("file").write_text("")
    assert "sandboxbench: " in mistake(capsys, "report", "file")


def test_hostile_records_print_as_harmless_text(capsys: pytest.CaptureFixture[str]) -> None:
    evil = "\x1b]0;owned\x07\r\n\u202e"
    header = {
        **HEADER,
        "host": {"cpu": evil, "system": evil},
        "providers": {"fake": {"isolation": evil, "facts": {"version": evil}}, evil: {}},
        "operations": {"startup": {"start": evil, "end": evil}},
        "blocks": [{**HEADER["blocks"][0], "asked": {"fake": ["startup", evil]}}],
    }
    folder(Path("records"), sample(outcome="failed", error=evil), header=header)
    assert run("report", "records", "--partial") == 0
    out, _ = capsys.readouterr()
    assert all(line.isprintable() for line in out.split("\n"))
    assert run("report", "records") == 1
    assert all(line.isprintable() for line in capsys.readouterr().err.split("\n"))


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    """``| head -1``: no traceback, no complaint at exit."""
    names = [f"p{n}" for n in range(2000)]
    block = {**HEADER["blocks"][0], "asked": {name: ["startup"] for name in names}, "providers": names}
    folder(tmp_path / "records", *map(sample, names), header={**HEADER, "blocks": [block]})
    read, write = os.pipe()
    process = subprocess.Popen([*COMMAND, "report", "records"], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert os.read(read, 9) == b"operation"
    os.close(read)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, "")


@pytest.mark.parametrize(
    ("line", "env"),
    [("exec 1>&-", {}), ("", {"PYTHONIOENCODING": "ascii"}), ("", {"PYTHONIOENCODING": "latin-1"})],
)
def test_a_poor_output_is_no_traceback(tmp_path: Path, line: str, env: dict[str, str]) -> None:
    measured(tmp_path / "records")
    shell = ["sh", "-c", f'{line}\n"$@"', "sh", *COMMAND, "report", "records"]
    done = subprocess.run(shell, capture_output=True, env={**os.environ, **env}, timeout=30)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (b"10.0 ms" in done.stdout) == (not line)


# -- init


def test_init_copies_the_suites(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("init") == 0
    assert capsys.readouterr().out == "copied the suites to benches: pytest benches\n"
    suites = {"conftest.py", "test_lifecycle.py", "test_startup.py", "test_throughput.py"}
    assert suites <= {path.name for path in Path("benches").iterdir()}
    Path("empty").mkdir()
    assert run("init", "empty") == 0
    assert run("init", "new/deep") == 0
    assert Path("new/deep/conftest.py").is_file()


def test_init_writes_over_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("mine")
    Path("file").write_text("mine")
    for target in ("mine", "file"):
        assert f"{target} is there already and not empty" in mistake(capsys, "init", target)
    assert [path.name for path in Path("mine").iterdir()] == ["notes.txt"]
    assert "file" in mistake(capsys, "init", "file/below")


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize(
    "argv", [("providers", "fake"), ("check", "fake", "-k", "idempotent"), ("operations",)], ids=str
)
def test_a_full_disk_is_said_of_the_output(argv: Sequence[str], unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        env = os.environ | {"PYTHONUNBUFFERED": unbuffered}
        done = subprocess.run([*COMMAND, *argv], stdout=full, stderr=subprocess.PIPE, text=True, timeout=30, env=env)
    assert (done.returncode, done.stderr) == (1, "sandboxbench: standard output: No space left on device\n")


def test_ctrl_c_while_it_is_imported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pytest_sandboxbench.cli.sandboxes.add_commands", interrupted)
    assert run("operations") == 130
    assert capsys.readouterr() == ("", "sandboxbench: interrupted\n")
