"""The command ``sandboxbench check``: its card, its exit status, and that nothing is left when it is interrupted."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_sandboxbench.compliance.check import Check, brief
from pytest_sandboxbench.compliance.checks import CHECKS
from pytest_sandboxbench.compliance.run import Verdict
from pytest_sandboxbench.errors import ProviderMissing
from pytest_sandboxbench.load.preflight import PREFLIGHT_S
from pytest_sandboxbench.report.text import columns
from tests.test_cli import mistake, run, write_config

ROOT = Path(__file__).resolve().parents[1]
COMMAND = [sys.executable, "-m", "pytest_sandboxbench.cli", "check"]
LISTED = "a_sandbox_is_listed"
SECRET = "s3cr3t-0123456789"


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def card(capsys: pytest.CaptureFixture[str], status: int, *argv: str) -> list[str]:
    """The card of a run that ends with this status; nothing else is printed."""
    assert run("check", *argv) == status
    out, err = capsys.readouterr()
    assert err == ""
    assert all(columns(line) <= 80 and line.isprintable() for line in out.splitlines()), out
    return out.splitlines()


# -- the card


def test_a_provider_that_passes(capsys: pytest.CaptureFixture[str]) -> None:
    lines = card(capsys, 0, "fake", "-k", "lifecycle-destroy")
    assert lines[0].startswith("fake, checked by pytest-sandboxbench ")
    assert "isolation  scripted" in lines
    assert "can        exec, stream, files, one-shot run, network off" in lines
    assert "cannot     labels, shell" in lines
    assert "pauses     memory" in lines
    assert "limits     vcpus, memory_mib, pids" in lines
    assert "at once    as many as fit" in lines
    assert "lifecycle       3" in lines
    assert "verified   no limit; not looked at: vcpus, memory_mib, pids" in lines
    assert lines[-1] == "fake passes these checks: 3 passed"


def test_a_check_that_fails_is_shown_with_its_promise(capsys: pytest.CaptureFixture[str]) -> None:
    lines = card(capsys, 1, "fake", "-k", "writing_again", "-k", "idempotent", "--option", "write_file=error:no disk")
    assert "FAILED  files-writing_again_replaces" in lines
    assert "  promise  A second `write_file` replaces the file: nothing stays of what was" in lines
    assert any(line.startswith("  came     ") and "no disk" in line for line in lines)
    assert lines[-1] == "fake does not pass: 1 failed, 1 passed"


def test_it_stops_at_the_first_failure_where_asked(capsys: pytest.CaptureFixture[str]) -> None:
    lines = card(capsys, 1, "fake", "-x", "-k", "files", "--option", "write_file=error:no disk")
    assert sum(line.startswith("FAILED") for line in lines) == 1
    assert lines[-1].startswith("fake: stopped at a failure after 2 of ")


def test_what_many_checks_failed_with_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    lines = card(capsys, 1, "fake", "-k", "exec-stdin", "-k", "exec-env_is", "--option", "exec=2x0,gone")
    assert sum(line.startswith("FAILED") for line in lines) == 3
    assert sum(line.startswith("  came ") for line in lines) == 1
    assert not any(line.startswith("  promise") for line in lines)
    assert any(
        line.startswith("  came     3 checks failed with the same error, SandboxGone; the first") for line in lines
    )


@pytest.mark.parametrize(
    ("said", "same"),
    [
        (("KeyError: 'a' (unshare.py, line 8)", "x raised KeyError: 'b' (unshare.py, line 8)"), "exception; the first"),
        (("no daemon", "no daemon"), "words: no daemon"),
        (("KeyError: 'a' (unshare.py, line 8)", "KeyError: 'a' (unshare.py, line 9)"), ""),
        (("no daemon", "no disk"), ""),
    ],
    ids=str,
)
def test_what_is_the_same(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, said: tuple[str, ...], same: str
) -> None:
    left = list(said)

    async def failed(_registry: object, _name: str, check: Check, _timeout_s: float, **_more: bool) -> Verdict:
        return Verdict(check, "failed", left.pop(0), 0.0)

    monkeypatch.setattr("pytest_sandboxbench.cli.check.run_check", failed)
    text = "\n".join(card(capsys, 1, "fake", "-k", "idempotent", "-k", "never_was"))
    assert text.count("FAILED") == 2
    assert text.count("  came ") == (1 if same else 2)
    assert f"2 checks failed with the same {same}" in text or not same


def test_what_differs_is_said_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    lines = card(capsys, 1, "fake", "-k", "writing_again", "-k", "a_folder", "--option", "write_file=error:no disk")
    assert sum(line.startswith("  promise") for line in lines) == 2


def test_a_long_script_is_cut_in_its_middle() -> None:
    script = f"echo begins; {'x' * 300}; echo ends"
    for said in (f"exec {['sh', '-c', script]} failed", f"exec {['sh', '-c', script + chr(39)]} failed"):
        short = brief(said)
        assert len(short) < 160
        assert re.search(r"'sh', '-c', .echo begins; x+ \.\.\. x+; echo ends.*\] failed", short), short
    assert brief(f"exec {['sh', '-c', 'exit 3']} failed") == "exec ['sh', '-c', 'exit 3'] failed"


def test_what_is_left_out_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    lines = card(capsys, 0, "fake", "-k", "pause-a_kind", "-k", "pause-memory", "--option", "pause_kinds=none")
    assert "cannot     labels, shell" in lines
    assert "pauses     none" in lines
    (row,) = (line for line in lines if line.startswith("pause "))
    assert row.endswith("cannot pause")
    assert lines[-1] == "fake passes these checks: 1 passed, 1 left out"
    assert card(capsys, 0, "fake", "-k", "pause-memory", "--option", "pause_kinds=none")[-1] == (
        "fake: none of these checks applies to it, 1 left out"
    )


def test_limits_that_were_seen_to_hold(capsys: pytest.CaptureFixture[str]) -> None:
    """The scripted guest has no shell in which to try one."""
    lines = card(capsys, 0, "fake", "-k", "memory_is_limited", "--option", "limits=memory_mib")
    assert "verified   no limit; not looked at: memory_mib" in lines


def test_an_instance_is_named_with_its_kind(capsys: pytest.CaptureFixture[str]) -> None:
    write_config(small='kind = "fake"\nmax_live = 4')
    lines = card(capsys, 0, "small", "-k", "idempotent")
    assert lines[0].startswith("small (fake), checked by ")
    assert "at once    4 sandboxes at most" in lines


def test_what_a_provider_says_is_harmless_and_no_secret(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOUD_API_KEY", SECRET)
    lines = card(
        capsys, 1, "fake", "-k", LISTED, "--option", f"create=error:no\x1b[2J\u202ekey {SECRET} token={SECRET}"
    )
    text = "\n".join(lines)
    assert "no\\x1b[2J" in text
    assert SECRET not in text


def test_a_provider_that_cannot_be_closed_fails_each_check(capsys: pytest.CaptureFixture[str]) -> None:
    lines = card(capsys, 1, "fake", "-k", "idempotent", "--option", "aclose=raise:OSError")
    assert any("OSError: scripted bug of fake in aclose" in line for line in lines)


def test_a_provider_that_ceases_to_be_ready_fails_the_check(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(*_arguments: object, **_more: object) -> Verdict:
        raise ProviderMissing("fake", "no daemon", "start it")

    monkeypatch.setattr("pytest_sandboxbench.cli.check.run_check", gone)
    lines = card(capsys, 1, "fake", "-k", "idempotent")
    assert "  came     fake is not ready: no daemon. start it" in lines


def test_colours_are_for_terminals(tmp_path: Path) -> None:
    def shown(**environment: str) -> bytes:
        """What a terminal gets, with the line of progress."""
        leader, follower = pty.openpty()
        env = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
        command = [*COMMAND, "fake", "-k", "idempotent"]
        with subprocess.Popen(
            command, stdin=follower, stdout=follower, stderr=follower, env=env | {"TERM": "xterm"} | environment
        ) as process:
            os.close(follower)
            got = b""
            try:
                while piece := os.read(leader, 4096):
                    got += piece
            except OSError:
                pass  # the other end is closed
            os.close(leader)
        assert process.returncode == 0
        return got

    coloured = shown()
    assert b"\x1b[32mfake passes these checks" in coloured
    assert b"\r\x1b[2K1 of 1: lifecycle-destroy_is_idempotent\r\x1b[2K" in coloured
    assert b"\x1b[32m" not in shown(NO_COLOR="1")
    assert b"\x1b[32m" not in shown(TERM="dumb")


# -- what cannot be checked


def test_a_missing_provider_is_said_in_no_time(capsys: pytest.CaptureFixture[str]) -> None:
    started = time.monotonic()
    assert run("check", "fake", "--option", "missing=no daemon\x1b[2J", "--option", "cure=start it") == 1
    assert time.monotonic() - started < 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", "sandboxbench: fake is not ready: no daemon\\x1b[2J. start it\n")


@pytest.mark.parametrize("script", ["preflight=hang", "preflight=raise:ValueError", "preflight=block:60"])
def test_a_preflight_that_does_not_answer(capsys: pytest.CaptureFixture[str], script: str) -> None:
    started = time.monotonic()
    assert run("check", "fake", "--option", script) == 1
    assert time.monotonic() - started < PREFLIGHT_S + 4
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("sandboxbench: fake is not ready: ")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ((), "name a provider to check; there are: bubblewrap, e2b, fake, null"),
        (("dokcer",), "unknown provider 'dokcer'; there are: "),
        (("fake", "-k", "nonsense"), "no check has 'nonsense' in its name; their groups are lifecycle, "),
        (("fake", "--option", "exec"), "--option 'exec' is not KEY=VALUE; write for example --option memory_mib=512"),
        (("fake", "--option", "creat=1"), "has no setting 'creat'"),
        (("fake", "--option", "vcpus=-1"), "is not above 0"),
        (("fake", "--timeout", "0"), "is not a number of seconds above 0"),
        (("fake", "--list"), "leave the name out"),
        (("fake", "null"), "usage: sandboxbench"),
    ],
    ids=str,
)
def test_mistakes(capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], said: str) -> None:
    assert said in mistake(capsys, "check", *argv)


def test_a_mistyped_setting_keeps_its_secret(capsys: pytest.CaptureFixture[str]) -> None:
    assert SECRET not in mistake(capsys, "check", "fake", "--option", f"=token={SECRET}")


# -- interrupted


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=str)
def test_ctrl_c_destroys_what_was_made_and_prints_what_was_checked(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    log = tmp_path / "calls.jsonl"
    hangs = ["--option", "exec=2x0,hang", "--option", f"log={log}", "--option", f"state_dir={tmp_path / 'state'}"]
    command = [*COMMAND, "fake", "-k", LISTED, "-k", "idempotent", "-k", "exec-stdin_arrives", *hangs]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            _wait_for_create_of_third(log)
            process.send_signal(number)
            out, err = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (process.returncode, err) == (status, "")
    lines = out.splitlines()
    assert lines[0].startswith("fake, checked by ")
    assert lines[-1].startswith("fake: interrupted after ")
    assert _made(log) == _destroyed(log) != set()


def _calls(log: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def _of(log: Path, operation: str) -> set[object]:
    return {call["sandbox"] for call in _calls(log) if call["op"] == operation and call["outcome"] == "ok"}


def _made(log: Path) -> set[object]:
    return _of(log, "create")


def _destroyed(log: Path) -> set[object]:
    return _of(log, "destroy") & _made(log)


def _wait_for_create_of_third(log: Path) -> None:
    """Until one sandbox is made in which the command hangs."""
    until = time.monotonic() + 20
    while not _made(log) - _destroyed(log):
        assert time.monotonic() < until, "no sandbox was made"
        time.sleep(0.02)
    time.sleep(0.2)


# -- the list


def test_the_page_holds_what_the_list_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", "--list") == 0
    out = capsys.readouterr().out
    assert all(f"| `{check}` | " in out for check in CHECKS)
    page = (ROOT / "docs" / "compliance.md").read_text(encoding="utf-8")
    assert page.partition("<!-- Made by `sandboxbench check --list`; a test compares. -->\n\n")[2] == out


def test_a_part_of_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", "--list", "-k", "idempotent") == 0
    assert capsys.readouterr().out.count("\n| `") == 1


def test_every_check_states_its_promise_in_a_line() -> None:
    assert {str(check) for check in CHECKS if not check.about.endswith(".")} == set()
    assert len({str(check) for check in CHECKS}) == len(CHECKS)
