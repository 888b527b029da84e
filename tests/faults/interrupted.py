"""A run that is told to end, or is ended: signals, at every stage of a sandbox's life."""

from __future__ import annotations

import os
import signal
import subprocess
import time

from .case import SUBJECT, Case, Ended
from .fault import Fault

__all__ = ["FAULTS"]

LONG = ("--sandbox-samples=1000", "--sandbox-concurrency=2")


def working(case: Case, *arguments: str) -> subprocess.Popen[str]:
    """A run in the middle of its work, some samples on disk."""
    process = case.start("-k", "test_lives", *LONG, *arguments)
    case.wait_for_mark("lives", 7, process)
    return process


def paused(case: Case) -> subprocess.Popen[str]:
    process = case.start("-k", "test_paused", "--sandbox-samples=10", "--sandbox-timeout=60")
    case.wait_for_mark("paused", 4, process)
    return process


def signalled(number: int, stage: str = "working") -> Fault:
    def act(case: Case) -> Ended:
        process = working(case) if stage == "working" else paused(case)
        process.send_signal(number)
        return case.end(process)

    killed = number == signal.SIGKILL
    name = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP", signal.SIGKILL: "SIGKILL"}
    status = {signal.SIGINT: 2, signal.SIGKILL: -9}.get(signal.Signals(number), 128 + number)
    return Fault(
        f"{name[signal.Signals(number)]}{' while paused' if stage == 'paused' else ''}",
        act,
        status,
        cleaned="reap" if killed else "itself",
        says="" if killed else f"  {SUBJECT}",
        fast=("bubblewrap",) if number in (signal.SIGINT, signal.SIGKILL) and stage == "paused" else (),
    )


def killed_before_the_next_run(stage: str) -> Fault:
    def act(case: Case) -> Ended:
        process = working(case) if stage == "working" else paused(case)
        process.kill()
        return case.end(process)

    return Fault(
        f"SIGKILL{' while paused' if stage == 'paused' else ''}, then a run",
        act,
        -9,
        cleaned="next run",
        fast=("null", "fake") if stage == "working" else (),
    )


def killed_without_labels(case: Case) -> Ended:
    """Only the ids in the ledger lead to what is left."""
    case.configure({SUBJECT: {"at": "", "labels": "false"}})
    process = paused(case)
    process.kill()
    return case.end(process)


def interrupted_twice(case: Case) -> Ended:
    """The second one while a destroy hangs means: now."""
    case.configure({SUBJECT: {"at": "destroy", "what": "hang", "good": 3}})
    process = case.start("-k", "test_lives", "--sandbox-samples=10", "--sandbox-timeout=60")
    case.wait(lambda: case.logged("destroy fault"), process, "hanging destroy")
    process.send_signal(signal.SIGINT)
    case.wait(lambda: case.logged("destroy fault") > 1, process, "second try to destroy")
    process.send_signal(signal.SIGINT)
    return case.end(process, within_s=20)


def interrupted_twice_in_a_turn(case: Case) -> Ended:
    """Both come while a turn destroys: no third is needed, and no destroy begins afterwards."""
    case.configure({SUBJECT: {"at": "destroy", "what": "slow:25", "good": 3}})
    process = case.start("-k", "test_startup", "--sandbox-samples=10", "--sandbox-timeout=60")
    case.wait(lambda: case.logged("destroy fault"), process, "slow destroy")
    process.send_signal(signal.SIGINT)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    return case.end(process, within_s=10)


def interrupted_at_the_end(case: Case) -> Ended:
    """What the turn could not destroy the end destroys, also when the one interrupt of the run comes just then."""
    case.configure({SUBJECT: {"at": "destroy", "what": "slow:2:4"}})
    process = case.start("-k", "test_lives", "--sandbox-samples=1", "--sandbox-concurrency=4")
    case.wait(lambda: case.logged("destroy fault") > 4, process, "second try to destroy")
    process.send_signal(signal.SIGINT)
    ended = case.end(process, within_s=20)
    assert case.logged("destroy done") == 4, ended.text
    return ended


def interrupted_twice_at_the_end(case: Case) -> Ended:
    case.configure({SUBJECT: {"at": "destroy", "what": "slow:8:1", "good": 1}})
    process = case.start("-k", "test_lives", "--sandbox-samples=2")
    case.wait(lambda: case.logged("destroy fault") > 1, process, "second try to destroy")
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    return case.end(process, within_s=6)


def interrupted_in_a_create(case: Case) -> Ended:
    case.configure({SUBJECT: {"at": "create", "what": "hang", "good": 3}})
    process = case.start("-k", "test_lives", "--sandbox-samples=10")
    case.wait(lambda: case.logged("create fault"), process, "hanging create")
    process.send_signal(signal.SIGINT)
    return case.end(process, within_s=20)


def interrupted_as_a_group(case: Case) -> Ended:
    """As a terminal sends it: every process of the group gets it."""
    process = case.start("-k", "test_lives", *LONG, before=lambda: os.setpgid(0, 0))
    case.wait_for_mark("lives", 7, process)
    os.killpg(process.pid, signal.SIGINT)
    return case.end(process)


def in_the_background(case: Case) -> Ended:
    """A shell that is not interactive starts it with Ctrl-C ignored; nothing more is made after the signal."""

    def background() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    process = case.start("-k", "test_lives", *LONG, before=background)
    case.wait_for_mark("lives", 7, process)
    process.send_signal(signal.SIGTERM)
    made = case.marks("lives")
    ended = case.end(process, within_s=20)
    assert case.marks("lives") <= made + 2, f"it went on: {made} lived before, {case.marks('lives')} in the end"
    return ended


FAULTS = (
    signalled(signal.SIGINT),
    Fault("Ctrl-C at a terminal (the whole group)", interrupted_as_a_group, 2, says=f"  {SUBJECT}"),
    signalled(signal.SIGINT, "paused"),
    Fault("Ctrl-C in a create that hangs", interrupted_in_a_create, 2),
    Fault(
        "Ctrl-C twice, in a destroy that hangs",
        interrupted_twice,
        2,
        cleaned="next run",
        says="may still exist",
    ),
    Fault(
        "Ctrl-C twice, while a turn destroys",
        interrupted_twice_in_a_turn,
        2,
        cleaned="next run",
        says="may still exist",
    ),
    Fault("Ctrl-C while the end destroys", interrupted_at_the_end, 2, says=f"  {SUBJECT}"),
    Fault(
        "Ctrl-C twice, while the end destroys",
        interrupted_twice_at_the_end,
        2,
        cleaned="next run",
        says="may still exist",
    ),
    signalled(signal.SIGTERM),
    signalled(signal.SIGTERM, "paused"),
    Fault("SIGTERM as a background job", in_the_background, 143, says=f"  {SUBJECT}"),
    signalled(signal.SIGHUP),
    signalled(signal.SIGKILL),
    signalled(signal.SIGKILL, "paused"),
    killed_before_the_next_run("working"),
    killed_before_the_next_run("paused"),
    Fault(
        "SIGKILL while paused, no labels, then a run",
        killed_without_labels,
        -9,
        cleaned="next run",
        providers=("bubblewrap",),  # what is no sandbox is not written down without labels
    ),
)
