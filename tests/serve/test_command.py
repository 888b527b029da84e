"""``sandboxbench serve`` and ``sandboxbench template``: mistakes are one line, and the end is in order."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-m", "pytest_sandboxbench.cli"]


def run(*argv: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *argv], capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **(env or {})}
    )


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("serve", "e2b", "--fault", "make=500"), "operations: create, connect"),
        (("serve", "e2b", "--max-live", "0"), "--max-live: a whole number from 1 on"),
        (("serve", "e2b", "--create-rate", "0"), "--create-rate: a number above 0"),
        (("serve", "e2b", "--port", "70000"), "--port: a number from 0 to 65535"),
        (("serve", "nobody"), "invalid choice: 'nobody'"),
        (("template", "e2b", "x", "--vcpus", "0"), "whole numbers from 1 on"),
    ],
)
def test_a_mistake_is_one_message(argv: tuple[str, ...], said: str) -> None:
    ended = run(*argv, env={"E2B_API_KEY": "e2b_x"})
    assert ended.returncode == 4
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        ended = run("serve", "e2b", "--port", port)
    assert (ended.returncode, ended.stderr.strip()) == (
        4,
        f"sandboxbench: port {port} is taken: --port 0 takes one that is free",
    )


def test_a_template_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("E2B_API_KEY", raising=False)
    ended = run("template", "e2b", "x")
    assert ended.returncode == 4
    assert "E2B_API_KEY is not set" in ended.stderr


def test_a_service_that_is_not_there_is_told_without_a_traceback() -> None:
    ended = run("template", "e2b", "x", env={"E2B_API_KEY": "e2b_x", "E2B_API_URL": "http://127.0.0.1:9"})
    assert ended.returncode == 4
    assert "building template x" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_in_order(number: signal.Signals) -> None:
    process = subprocess.Popen(
        [*COMMAND, "serve", "e2b", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        said = "".join(iter(process.stdout.readline, "Ctrl-C ends it, and destroys what is left in it.\n"))
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (0, "", "")
    assert "export E2B_API_KEY=e2b_local E2B_API_URL=http://127.0.0.1:" in said
    assert "says nothing of E2B" in " ".join(said.split()) or "say nothing of E2B" in said


def test_nothing_of_it_is_loaded_by_other_commands() -> None:
    code = (
        "import sys; from pytest_sandboxbench.cli import main; main(['operations']); "
        "print({'aiohttp', 'e2b', 'asyncio'} & set(sys.modules), file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "aiohttp" not in ended.stderr
    assert "e2b" not in ended.stderr
