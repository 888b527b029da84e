"""More than one process: xdist's workers and their controller, and other runs of the same user."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from pytest_sandboxbench.providers import proc

from .case import SUBJECT, Case, Ended
from .fault import Fault

__all__ = ["FAULTS"]

LONG = ("-k", "test_lives", "--sandbox-samples=2000", "--sandbox-concurrency=2")
TWO = ("-n", "2")
WORKERS_END_S = 20.0


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    return sorted(proc.children(process.pid))


def working_on_workers(case: Case, *arguments: str) -> subprocess.Popen[str]:
    process = case.start(*TWO, *LONG, *arguments)
    case.wait_for_mark("lives", 9, process)
    return process


def killed(name: str, *arguments: str) -> Callable[[Case], Ended]:
    """The other one ends its part, and goes on; who comes in its place measures nothing of the block again."""

    def act(case: Case) -> Ended:
        process = working_on_workers(case, *arguments)
        os.kill(case.worker(name), signal.SIGKILL)
        ended = case.end(process)
        assert ("replacing crashed worker" in ended.text) is (not arguments), ended.text
        assert f"{name} ended (signal 9)" in ended.text, f"it does not say how it ended: {ended.text}"
        assert "left by run" in ended.text, f"it does not say what it destroyed: {ended.text}"
        return ended

    return act


def all_killed(case: Case) -> Ended:
    process = working_on_workers(case, "--max-worker-restart=0")
    for name in ("gw1", "gw0"):
        os.kill(case.worker(name), signal.SIGKILL)
    return case.end(process)


def stopped(name: str) -> Callable[[Case], Ended]:
    """It is silent for twice the deadline and 5 s more, is killed, and what it had made is destroyed."""

    def act(case: Case) -> Ended:
        process = working_on_workers(case, "--sandbox-timeout=3")
        os.kill(case.worker(name), signal.SIGSTOP)
        ended = case.end(process, within_s=11 + WORKERS_END_S)
        assert f"{name} gave no sign of life for 11 s" in ended.text, ended.text
        assert "left by run" in ended.text, f"it does not say what it destroyed: {ended.text}"
        return ended

    return act


def interrupted_while_it_reaps(case: Case) -> Ended:
    """It goes on until all is destroyed, and ends as Ctrl-C ends it."""
    case.configure({SUBJECT: {"at": "destroy", "what": "slow:3"}})
    process = case.start("-n", "1", *LONG, "--max-worker-restart=0")
    case.wait(lambda: case.logged("destroy fault") == 2, process, "slow destroy in each lane")
    os.kill(case.worker("gw0"), signal.SIGKILL)
    case.wait(lambda: case.logged("destroy fault") > 2, process, "destroy by the controller")
    process.send_signal(signal.SIGINT)
    ended = case.end(process, within_s=20)
    assert "Traceback" not in ended.text, ended.text
    assert "left by run" in ended.text, f"it does not say what it destroyed: {ended.text}"
    return ended


def workers_and_records(case: Case) -> Ended:
    """Nothing goes wrong."""
    ended = case.run("-n", "1", "-k", "test_lives", "--sandbox-samples=3", "--sandbox-records=kept/here")
    assert [folder.relative_to(case.root) for folder in case.records] == [Path("kept/here")], case.records
    assert "left by run" not in ended.text, ended.text
    return ended


def controller_is_killed(case: Case) -> Ended:
    """Its workers notice, end by themselves and destroy what they made."""
    process = working_on_workers(case)
    workers = {pid: proc.start_time(pid) for pid in workers_of(process)}
    assert len(workers) == 2, workers
    process.kill()
    ended = case.end(process)
    until = time.monotonic() + WORKERS_END_S
    while alive := [pid for pid, started in workers.items() if proc.start_time(pid) == started]:
        assert time.monotonic() < until, f"workers {alive} live on"
        time.sleep(0.05)
    return ended


def only_the_controller(number: int) -> Callable[[Case], Ended]:
    def act(case: Case) -> Ended:
        process = working_on_workers(case)
        process.send_signal(number)
        return case.end(process)

    return act


def everybody(case: Case) -> Ended:
    process = case.start(*TWO, *LONG, before=lambda: os.setpgid(0, 0))
    case.wait_for_mark("lives", 9, process)
    os.killpg(process.pid, signal.SIGINT)
    return case.end(process)


def two_runs(case: Case) -> Ended:
    """Neither destroys what is the other's, in the middle or at the end."""
    first = case.start("-k", "test_lives", "--sandbox-samples=40")
    case.wait_for_mark("lives", 3, first)
    second = case.start("-k", "test_lives", "--sandbox-samples=10")
    ended = case.end(second)
    other = case.end(first)
    assert "left by run" not in ended.text + other.text, ended.text + other.text
    return Ended(max(ended.status, other.status), ended.text + other.text)


def reap_beside_a_run(case: Case) -> Ended:
    process = case.start("-k", "test_lives", "--sandbox-samples=60")
    case.wait_for_mark("lives", 3, process)
    (run,) = case.runs
    running = f"{process.pid}, running"
    case.wait(lambda: running in case.sandboxbench("list", SUBJECT, "--run", run).text, process, f"list with {running}")
    # Without a run's name `reap` clears up after others on this host, too; scripted sandboxes are the case's own. A run
    # begins with what ledgers of dead processes lead to, and they are the case's own as well.
    if case.kind == "fake":
        reaped = case.sandboxbench("reap", SUBJECT)
    else:
        reaped = case.run("-k", "test_startup", "--sandbox-samples=1", "--sandbox-records=beside")
    named = case.sandboxbench("reap", SUBJECT, "--run", run)
    assert process.poll() is None, "it ended too early for this to say anything"
    ended = case.end(process)
    assert reaped.status == 0, reaped.text
    assert "left by run" not in reaped.text, reaped.text
    assert named.status != 0, named.text
    assert "is not over" in named.text, named.text
    return ended


FAULTS = (
    Fault("-n 2: the leader is killed", killed("gw0"), 1),
    Fault("-n 2: the leader is killed, for good", killed("gw0", "--max-worker-restart=0"), 1, fast=("fake",)),
    Fault("-n 2: the follower is killed", killed("gw1"), 1),
    Fault("-n 2: the follower is killed, for good", killed("gw1", "--max-worker-restart=0"), 1),
    Fault("-n 2: both are killed, for good", all_killed, 1, says="left by run"),
    Fault("-n 2: the leader is stopped", stopped("gw0"), 1),
    Fault("-n 2: the follower is stopped", stopped("gw1"), 1),
    Fault("-n 1: Ctrl-C while the controller destroys", interrupted_while_it_reaps, 2, records=False),
    Fault("-n 1: records in a folder of one's own", workers_and_records, 0, says=f"  {SUBJECT}"),
    Fault("-n 2: the controller is killed", controller_is_killed, -9),
    Fault("-n 2: Ctrl-C, the controller only", only_the_controller(signal.SIGINT), 2, says=f"  {SUBJECT}"),
    Fault("-n 2: Ctrl-C at a terminal", everybody, 2, says=f"  {SUBJECT}"),
    Fault("-n 2: SIGTERM, the controller only", only_the_controller(signal.SIGTERM), 143, says=f"  {SUBJECT}"),
    Fault("two runs at once", two_runs, 0),
    Fault("reap beside a living run", reap_beside_a_run, 0),
)
