"""Gangs: a run that ends before its time, and workers that stand still or cannot begin."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from pytest_sandboxbench.providers import proc

from .conftest import Suite, printed
from .test_gangs import one, said
from .test_gangs_faults import DEADLY, FULL, state

LONG = """
    async def test_first(sandbox_bench):
        async def act(sandbox):
            pass
        await sandbox_bench.measure(act)

    async def test_long(sandbox_bench):
        async def act(sandbox):
            await sandbox.exec(["true"])
            with open("acts", "a") as file:
                file.write("x")
        await sandbox_bench.measure(act)

    async def test_never(sandbox_bench):
        raise AssertionError("it was run")
"""


def started(suite: Suite, *arguments: str) -> subprocess.Popen[str]:
    """A run in the middle of its second bench."""
    suite.write(test_long=LONG)
    slow = ("--sandbox-samples=500", "--sandbox-option=fake.create=0.02", "--sandbox-concurrency=4")
    command = suite.command(*suite.usual, *slow, "-n", "2", *arguments)
    process = subprocess.Popen(command, cwd=suite.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    acts = suite.path / "acts"
    ends = time.monotonic() + 80
    while not acts.exists() or acts.stat().st_size < 40:
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < ends
        time.sleep(0.02)
    return process


@FULL
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_shows_what_was_measured_until_then(suite: Suite, number: signal.Signals) -> None:
    process = started(suite)
    process.send_signal(number)
    text, _ = process.communicate(timeout=40)
    assert process.returncode == (2 if number == signal.SIGINT else 143), text
    assert "INTERNALERROR" not in text
    assert "it was run" not in text
    assert re.search(r"^long @4/burst$", text, re.MULTILINE), text
    assert re.search(r"^first @4/burst$", text, re.MULTILINE), text
    assert suite.series()["fake:long@4/burst"] >= 36
    suite.assert_nothing_left()


@FULL
def test_workers_end_with_their_controller_and_destroy_what_they_made(suite: Suite) -> None:
    process = started(suite)
    workers = {pid: proc.start_time(pid) for pid in proc.children(process.pid)}
    assert len(workers) == 2
    process.kill()
    process.communicate()
    ends = time.monotonic() + 20
    while alive := [pid for pid, began in workers.items() if proc.start_time(pid) == began]:
        assert time.monotonic() < ends, f"workers {alive} live on"
        time.sleep(0.05)
    suite.assert_nothing_left()
    assert suite.series()["fake:long@4/burst"] >= 36


@FULL
@pytest.mark.parametrize("rank", [0, 1])
def test_a_worker_that_is_interrupted_ends_the_run(suite: Suite, rank: int) -> None:
    """As pytest-xdist has it: a worker's Ctrl-C is everybody's."""
    process = started(suite)
    os.kill(sorted(proc.children(process.pid))[rank], signal.SIGINT)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 2, text
    assert "INTERNALERROR" not in text
    suite.assert_nothing_left()


@FULL
def test_a_worker_that_blocks_its_event_loop_is_bounded_by_the_deadline(suite: Suite) -> None:
    """The block's own supervision ends it; the gang has nothing to do, and all rounds are there."""
    suite.write(
        test_blocks=one(
            """
            import time

            async def test_blocks(sandbox_bench):
                acts = 0

                async def act(sandbox):
                    nonlocal acts
                    acts += 1
                    if WORKER == "gw1" and acts == 2:
                        time.sleep(30)
                await sandbox_bench.measure(act)
            """
        )
    )
    began = time.monotonic()
    result = suite.run_apart("-n", "2", "--sandbox-concurrency=2", "--sandbox-timeout=1")
    text = printed(result)
    assert time.monotonic() - began < 30
    assert result.parseoutcomes() == {"failed": 1}, text
    assert suite.series() == {"fake:blocks@2/burst": 6}
    assert "1 timeout of 6" in text
    suite.assert_nothing_left()


ENDS_THE_BLOCK = one(
    """
    async def test_odd(sandbox_bench):
        acts = 0

        async def act(sandbox):
            nonlocal acts
            acts += 1
            if WORKER == "{who}" and acts == 4:
                {what}
        await sandbox_bench.measure(act)

    async def test_next(sandbox_bench):
        await sandbox_bench.measure(nothing)
    """
)


@FULL
@pytest.mark.parametrize("who", ["gw0", "gw1"])
@pytest.mark.parametrize("what", ["pytest.fail('odd')", "pytest.skip('odd')"])
def test_an_act_that_raises_what_is_no_exception(suite: Suite, who: str, what: str) -> None:
    suite.write(test_odd=ENDS_THE_BLOCK.replace("{who}", who).replace("{what}", what))
    result = suite.run_apart("-n", "2", "--sandbox-concurrency=4")
    text = printed(result)
    assert "INTERNALERROR" not in text
    assert "the controller is gone" not in text
    if who == "gw1":
        assert result.parseoutcomes() == {"passed": 1, "failed": 1}, text
        assert "test_odd::test_odd@4 was cut short: gw1 left before the end: call: " in text
    else:  # it is the bench's own, as without workers
        assert result.parseoutcomes() == {"passed": 1, "skipped" if "skip" in what else "failed": 1}, text
    assert suite.series()["fake:next@4/burst"] == 12
    suite.assert_nothing_left()


STOPPED_APART = one(
    """
    import signal

    with open(f"pid-{WORKER}", "w") as file:
        print(os.getpid(), file=file)

    @pytest.mark.parametrize("number", range(4))
    async def test_alone(sandbox_bench, number):
        if number == 1:
            os.kill(int(open("pid-gw1").read()), signal.SIGSTOP)
        await sandbox_bench.measure(nothing, operation=f"alone_{number}")
    """
)


@FULL
def test_one_that_has_no_part_in_a_bench_and_is_stopped_holds_nobody_up(suite: Suite) -> None:
    suite.write(test_apart=STOPPED_APART)
    result = suite.run_apart("-n", "2", "--sandbox-timeout=1")
    text = printed(result)
    assert result.parseoutcomes() == {"passed": 4}, text
    assert "worker gw1 gave no sign of life for 7 s while gw0 waited, and was killed" in text
    assert list(suite.series().values()) == [3, 3, 3, 3]


STOPPED_AT_THE_END = one(
    """
    import signal
    import threading

    from pytest_sandboxbench.load.member import Link

    question = Link.question

    async def stop_or_be_late(self, subject, what=None):
        if subject == "end" and WORKER == "gw0":
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGSTOP)).start()
        elif subject == "end":
            time.sleep(1)
        return await question(self, subject, what)

    Link.question = stop_or_be_late

    async def test_one(sandbox_bench):
        await sandbox_bench.measure(nothing)

    async def test_next(sandbox_bench):
        await sandbox_bench.measure(nothing)
    """
)


@FULL
def test_one_that_is_stopped_before_it_reads_what_the_others_measured(suite: Suite) -> None:
    """It is more than its pipe holds."""
    suite.write(test_end=STOPPED_AT_THE_END)
    many = ("--sandbox-concurrency=16", "--sandbox-samples=60")
    result = suite.run_apart("-n", "2", "--max-worker-restart=0", "--sandbox-timeout=1", *many)
    text = printed(result)
    assert result.parseoutcomes() == {"passed": 1, "failed": 1}, text
    assert (
        "worker gw0 gave no sign of life for 7 s while others waited, and was killed, in test_end.py::test_one" in text
    )
    assert suite.series() == {"fake:one@16/burst": 960, "fake:next@16/burst": 960}


SETUP_OF_A_VIEW = one(
    """
    @pytest.fixture
    def picky():
        if WORKER == "{late}":
            time.sleep(0.5)
        if WORKER == "gw1":
            raise RuntimeError("not on this one")

    @pytest.mark.sandbox_bench("write_file")
    async def test_write(picky, sandbox_bench):
        await sandbox_bench.measure()

    @pytest.mark.sandbox_bench("read_file")
    async def test_read(sandbox_bench):
        measured = await sandbox_bench.measure()
        say("read", len(measured.latencies_s))
    """
)


@FULL
@pytest.mark.parametrize("late", ["gw0", "gw1"])
def test_a_view_that_cannot_begin_leaves_the_block_to_the_next(suite: Suite, late: str) -> None:
    suite.write(test_views=SETUP_OF_A_VIEW.replace("{late}", late))
    result = suite.run_apart("-n", "2", "--sandbox-concurrency=4")
    text = printed(result)
    assert result.parseoutcomes() == {"passed": 1, "failed": 1}, text
    assert "files@4 was not measured: gw1 left before the end: setup: " in text
    assert suite.series() == {"fake:write_file@4/burst": 12, "fake:read_file@4/burst": 12}
    assert ["gw0", "read", "12"] in said(suite)


LED_BY_ANOTHER = one(
    """
    @pytest.mark.sandbox_bench("write_file")
    async def test_write(sandbox_bench):
        await sandbox_bench.measure()

    async def test_deadly(sandbox_bench):
        if WORKER == "gw0":
            os._exit(9)
        await sandbox_bench.measure(nothing)

    @pytest.mark.sandbox_bench("read_file")
    async def test_read(sandbox_bench):
        measured = await sandbox_bench.measure()
        say("read", len(measured.latencies_s))
    """
)


@FULL
def test_who_takes_over_knows_all_lanes_of_a_block_that_it_did_not_lead(suite: Suite) -> None:
    suite.write(test_views=LED_BY_ANOTHER)
    result = suite.run_apart("-n", "2", "--sandbox-concurrency=4", "--max-worker-restart=0")
    text = printed(result)
    assert result.parseoutcomes() == {"passed": 2, "failed": 1}, text
    assert ["gw1", "read", "12"] in said(suite)
    assert suite.series() == {"fake:write_file@4/burst": 12, "fake:read_file@4/burst": 12}


@FULL
def test_no_worker_is_left(suite: Suite) -> None:
    """What nobody came to is said, and is no success."""
    suite.write(test_two=DEADLY.format(dies="gw0", where="inside"))
    result = suite.run_apart("-n", "1", "--max-worker-restart=0", state(suite))
    text = printed(result)
    assert "INTERNALERROR" not in text
    assert result.ret == 1, text
    assert "2 benches were not run: no worker was left" in text
    assert Path(suite.folder).is_dir()
    suite.assert_nothing_left()
