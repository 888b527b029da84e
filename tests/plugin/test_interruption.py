"""Ctrl-C, a kill, a full disk: nothing is left running, and what was measured is kept."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time

import pytest

from pytest_sandboxbench.cli import main

from .conftest import Suite

SLOW = ("--sandbox-samples=400", "--sandbox-option=fake.create=0.05", "--sandbox-concurrency=2")


def start(suite: Suite, *arguments: str) -> subprocess.Popen[str]:
    command = suite.command(*suite.usual, *SLOW, *arguments)
    return subprocess.Popen(command, cwd=suite.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for_creates(suite: Suite, process: subprocess.Popen[str], number: int = 8) -> None:
    ends = time.monotonic() + 40
    while len(suite.calls("create")) < number:
        assert time.monotonic() < ends
        assert process.poll() is None
        time.sleep(0.02)


def finish(process: subprocess.Popen[str]) -> str:
    text, _ = process.communicate(timeout=40)
    return text


@pytest.mark.parametrize("workers", [(), pytest.param(("-n", "1"), marks=pytest.mark.full)], ids=["plain", "xdist"])
def test_ctrl_c_in_the_middle_of_a_block(
    suite: Suite, capsys: pytest.CaptureFixture[str], workers: tuple[str, ...]
) -> None:
    suite.one_bench()
    process = start(suite, *workers)
    wait_for_creates(suite, process)
    process.send_signal(signal.SIGINT)
    text = finish(process)
    assert process.returncode == 2, text
    assert "INTERNALERROR" not in text
    assert "KeyboardInterrupt" in text
    if not workers:  # a worker's samples come to its controller with the test's report
        assert "  fake  " in text, "the table of what was measured"
    suite.assert_nothing_left()
    kept = [sample for sample in suite.samples() if not sample.get("warmup")]
    assert len(kept) >= 3
    capsys.readouterr()
    assert main(["report", "--partial", "--width=120", str(suite.folder)]) == 0
    assert "  fake  " in capsys.readouterr().out


def test_ctrl_c_between_warm_ups_leaves_nothing(suite: Suite) -> None:
    suite.one_bench()
    process = start(suite, "--sandbox-warmup=300")
    wait_for_creates(suite, process, 3)
    process.send_signal(signal.SIGINT)
    text = finish(process)
    assert process.returncode == 2, text
    assert "INTERNALERROR" not in text
    suite.assert_nothing_left()


def test_ctrl_c_twice(suite: Suite) -> None:
    """The second one, while sandboxes are being destroyed, means: now."""
    suite.one_bench()
    process = start(suite, "--sandbox-option=fake.destroy=20")
    wait_for_creates(suite, process, 2)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=10)
    assert process.returncode == 2, text
    assert "INTERNALERROR" not in text


HANGING_END = """
import asyncio
import sys

from pytest_sandboxbench.measuring import Measuring


async def hang(self, name, provider):
    print("the end hangs", file=sys.__stderr__, flush=True)
    await asyncio.sleep(60)


Measuring._close = hang
"""


def test_ctrl_c_twice_at_the_end_writes_down_what_is_left(suite: Suite) -> None:
    """The second one goes straight through the event loop: the records are finished all the same."""
    suite.pytester.makeconftest(HANGING_END)
    suite.one_bench()
    command = suite.command(*suite.usual, "--sandbox-samples=2", "-s")
    process = subprocess.Popen(command, cwd=suite.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    until_then = []
    for line in process.stdout:
        until_then.append(line)
        if "the end hangs" in line:
            break
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None, "one does not end it"
    process.send_signal(signal.SIGINT)
    text = finish(process)
    assert process.returncode == 2, text
    assert "was destroyed but it is pending" not in text
    assert suite.header()["finished"]
    assert "  fake  " in text, "the table of what was measured"


BROKEN_END = """
from pytest_sandboxbench.measuring import Measuring


async def broken(self, name, provider):
    raise OSError("the end is broken")


Measuring._close = broken
"""


def test_an_end_that_raises_says_what_is_left(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makeconftest(BROKEN_END)
    suite.one_bench()
    done = suite.pytester.run(
        *suite.command(*suite.usual, "--sandbox-samples=2", "--sandbox-option=fake.destroy=raise:OSError", *workers),
        timeout=60,
    )
    text = done.stdout.str()
    assert "the end is broken" in text
    assert "sandbox leaks" in text
    assert done.ret == 1


def test_a_kill_keeps_what_was_measured(suite: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    suite.one_bench()
    process = start(suite)
    wait_for_creates(suite, process)
    process.kill()
    finish(process)
    assert len(suite.samples()) >= 3
    assert suite.header()["complete"] is False
    assert main(["report", "--partial", str(suite.folder)]) == 0
    assert "  fake  " in capsys.readouterr().out


def test_records_on_a_full_disk(suite: Suite, workers: tuple[str, ...]) -> None:
    """A limit on the size of files is what a full disk is: a write that fails half-way."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))

    suite.one_bench()
    command = suite.command(
        *suite.usual, "--sandbox-samples=100", "--sandbox-option=fake.log=none", "-p", "no:cacheprovider", *workers
    )
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=suite.path, preexec_fn=limit, capture_output=True, text=True, timeout=60, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert done.stdout.count("records are incomplete: ") == 1
    assert "File too large" in done.stdout
    assert " 100 " in done.stdout.partition("operation ")[2], "the table has all samples: they are in memory"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
def test_records_on_a_really_full_disk(suite: Suite) -> None:
    suite.one_bench()
    (suite.path / "small").mkdir()
    run = " ".join(suite.command(*suite.usual, "--sandbox-samples=300", "--sandbox-records=small/r"))
    script = f"mount -t tmpfs -o size=16k none {suite.path}/small && {run}; code=$?; ls -l small/r; exit $code"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], cwd=suite.path, capture_output=True, text=True, timeout=60, check=False
    )
    if "unshare failed" in done.stderr or "permission denied" in done.stderr:
        pytest.skip("may not mount")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No space left on device" in done.stdout
    assert " 300 " in done.stdout.partition("operation ")[2]


def test_a_bench_that_ends_its_worker_is_not_run_again(suite: Suite) -> None:
    """Others are, by a new worker."""
    suite.write(
        test_two="""
        import os

        async def test_deadly(sandbox_bench):
            async def act(sandbox):
                if len(open("calls.jsonl").read().splitlines()) > 6:
                    os._exit(9)
            await sandbox_bench.measure(act)

        async def test_next(sandbox_bench):
            async def act(sandbox):
                pass
            await sandbox_bench.measure(act)
        """
    )
    result = suite.run_apart("-n", "2", f"--sandbox-option=fake.state_dir={suite.path}/state")
    result.assert_outcomes(failed=1, passed=1)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*crashed while running 'test_two.py::test_deadly*"])
    text = result.stdout.str()
    assert text.count("crashed while running 'test_two.py::test_deadly") == text.count("crashed while running")
    assert "INTERNALERROR" not in text
    assert {sample["series"] for sample in suite.samples() if sample["outcome"] == "ok"} >= {"fake:next@1/burst"}
    assert "destroyed 1 left by run" in text
    suite.assert_nothing_left()


def test_a_run_begins_by_destroying_what_a_dead_one_left(suite: Suite, workers_always: tuple[str, ...]) -> None:
    suite.one_bench()
    state = f"--sandbox-option=fake.state_dir={suite.path}/state"
    first = start(suite, "--sandbox-option=fake.exec=30", state)
    wait_for_creates(suite, first, 2)
    first.kill()
    finish(first)
    assert '"fake-' in (suite.path / "state" / "fake.json").read_text()
    result = suite.run_apart(state, *workers_always)
    assert result.ret == 0
    assert "left by run" in result.stdout.str()
    assert "whose process is gone: fake fake-" in result.stdout.str()
    assert (suite.path / "state" / "fake.json").read_text().startswith("[{}, {}")
