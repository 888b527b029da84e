"""What a run needs of its host and does not get: disk, output, descriptors, processes, programs that answer."""

from __future__ import annotations

import os
import resource
import secrets
import shlex
import signal
import sys
import time
from pathlib import Path

import pytest_sandboxbench.providers.bubblewrap_host as bubblewrap_host

from .case import SUBJECT, Case, Ended
from .fault import Fault

__all__ = ["FAULTS"]

PIDS = Path("/sys/fs/cgroup/pids")
FEW = ("-k", "test_lives or test_other", "--sandbox-samples=5")


def no_root() -> str:
    return "" if os.geteuid() == 0 else "only root may mount a small disk"


def no_pids() -> str:
    return "" if PIDS.is_dir() and os.access(PIDS, os.W_OK) else f"cannot make a group in {PIDS}"


def on_a_small_disk(case: Case, folder: str, size: str, *arguments: str, full: bool = False) -> Ended:
    """A disk of this size is mounted at a folder of the case; nobody else sees it."""
    (case.root / folder).mkdir(exist_ok=True)
    mount = f"mount -t tmpfs -o mode=755,size={size} none {case.root / folder}"
    fill = f"head -c 1M /dev/zero >{case.root / folder}/fill 2>/dev/null; " if full else ""
    script = f"{mount} && {{ {fill}exec {shlex.join(case.command(*arguments))}; }}"
    return case.end(case.start(command=["unshare", "-m", "sh", "-c", script]))


def full_for_the_records(case: Case) -> Ended:
    ended = on_a_small_disk(
        case, "small", "24k", "-k", "test_round_trip", "--sandbox-samples=300", "--sandbox-records=small/r"
    )
    assert " 300 " in ended.text.partition("operation ")[2], f"the table has not all samples: {ended.text}"
    return ended


def full_for_the_ledger(case: Case) -> Ended:
    """The run goes on, and says so: labels lead to what it makes."""
    state = case.root / "state" / "sandboxbench"
    state.mkdir()
    ended = on_a_small_disk(case, "state/sandboxbench", "16k", *FEW, full=True)
    assert "the ledger cannot be written" in ended.text, ended.text
    return ended


def full_from_the_middle_on(case: Case) -> Ended:
    """A limit on the size of files is what a full disk is, for an ordinary user too: a write fails half-way."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))

    return case.run("-k", "test_startup", "--sandbox-samples=60", before=limit)


def unwritable_state(case: Case) -> Ended:
    """No folder can be made where a file is; for root, too."""
    (case.root / "state" / "sandboxbench").write_text("")
    return case.run(*FEW)


def unwritable_state_without_labels(case: Case) -> Ended:
    """Nothing would lead to what it makes: it makes nothing."""
    case.configure({SUBJECT: {"at": "", "labels": "false"}})
    ended = unwritable_state(case)
    assert not case.logged("create made"), "it made a sandbox"
    assert case.marks("other") == 1
    return ended


def writable_by_others(case: Case) -> Ended:
    ledger = case.root / "state" / "sandboxbench" / "ledger"
    ledger.mkdir(parents=True)
    ledger.chmod(0o777)
    return case.run(*FEW)


def reader_gone(case: Case) -> Ended:
    """``| head -1``: the reader goes away while sandboxes live."""
    run = shlex.join(case.command("-v", "-k", "test_lives or test_startup", "--sandbox-samples=30"))
    wait = "until [ $(grep -c lives marks 2>/dev/null || echo 0) -ge 3 ]; do sleep 0.05; done"
    script = f"{{ {run}; echo $? >status; }} | {{ {wait}; }}"
    ended = case.end(case.start(command=["bash", "-c", script]))
    return Ended(int((case.root / "status").read_text()), ended.text)


def dev_full(case: Case) -> Ended:
    return _as_plain_pytest(case, ">/dev/full")


def no_stdout(case: Case) -> Ended:
    return _as_plain_pytest(case, ">&-")


def _as_plain_pytest(case: Case, where: str) -> Ended:
    """pytest itself cannot run so: with this plugin it fails in the same way."""
    bare = [sys.executable, "-m", "pytest", "-p", "no:sandboxbench", "-p", "no:cacheprovider", "-k", "test_other"]
    plain = case.end(case.start(command=["bash", "-c", f"{shlex.join(bare)} {where}"]))
    ended = case.end(case.start(command=["bash", "-c", f"{shlex.join(case.command(*FEW))} {where}"]))
    assert plain.status == ended.status, f"pytest alone has {plain.status}, with sandboxes it is {ended.status}"
    return ended


def few_descriptors(case: Case) -> Ended:
    """Not enough for 40 lanes: they fail, and all that was made is destroyed."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))

    return case.run("-k", "test_lives", "--sandbox-samples=2", "--sandbox-concurrency=40", before=limit)


def few_processes(case: Case) -> Ended:
    """A cgroup counts the harness's threads, too: it can start some of its lanes."""
    group = PIDS / f"faults-{secrets.token_hex(4)}"
    group.mkdir()
    try:
        (group / "pids.max").write_text("25")
        arguments = ("-k", "test_lives or test_other", "--sandbox-samples=2", "--sandbox-concurrency=20")
        ended = case.run(*arguments, before=lambda: (group / "cgroup.procs").write_text("0"))
        assert case.marks("other") == 1, ended.text
        left = case.host.settled(case.runs)  # what is left would keep the group
        assert not left, f"left on the host: {'; '.join(left)}"
        return ended
    finally:
        remove_soon(group)


def remove_soon(group: Path) -> None:
    """Zombies that the first process of the host has not reaped yet keep a group."""
    until = time.monotonic() + 10
    while True:
        try:
            return group.rmdir()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def a_bwrap_that_hangs(case: Case) -> Ended:
    """It answers until the fourth sandbox, and then no more."""
    real = bubblewrap_host.find_bwrap(None)
    wrapper = case.root / "bwrap"
    wrapper.write_text(
        f'#!/bin/sh\nif [ -e {case.root}/armed ]; then exec sleep 1000; fi\nexec {shlex.quote(real)} "$@"\n'
    )
    wrapper.chmod(0o755)
    case.configure({SUBJECT: {"bwrap": str(wrapper)}})
    process = case.start("-k", "test_lives", "--sandbox-samples=50", "--sandbox-timeout=2", "--sandbox-max-seconds=6")
    case.wait_for_mark("lives", 4, process)
    Path(case.root / "armed").touch()
    ended = case.end(process)
    assert "timeout" in ended.text, ended.text
    return ended


def a_stubborn_command(case: Case) -> Ended:
    ended = case.run("-k", "test_stubborn or test_other", "--sandbox-samples=2", "--sandbox-timeout=2")
    assert "2 timeout of 2" in ended.text, ended.text
    assert case.marks("other")
    return ended


NOT_ALL = f"  {SUBJECT}"

FAULTS = (
    Fault("full disk for the records", full_for_the_records, 0, records=False, says="No space left", lacks=no_root),
    Fault("full disk for the ledger", full_for_the_ledger, 0, lacks=no_root, says=NOT_ALL),
    Fault("every file stops growing", full_from_the_middle_on, 0, says="File too large"),
    Fault("no folder for the ledger", unwritable_state, 0, says="the ledger cannot be written", fast=("null",)),
    Fault(
        "no folder for the ledger, and no labels",
        unwritable_state_without_labels,
        1,
        records=False,
        providers=("bubblewrap",),
        says="without it nothing would lead to a sandbox that a kill leaves",
    ),
    Fault("others may write the ledger", writable_by_others, 0, says="is not a folder that only user"),
    Fault("the reader of the output is gone", reader_gone, 1, pytests_own=True),
    Fault("output to /dev/full", dev_full, None, records=False, pytests_own=True),
    Fault("no standard output (>&-)", no_stdout, 1, records=False, pytests_own=True),
    Fault("out of file descriptors", few_descriptors, 1, providers=("bubblewrap", "null"), records=False),
    Fault(
        "out of processes and threads",
        few_processes,
        1,
        providers=("bubblewrap", "null"),
        records=False,
        lacks=no_pids,
    ),
    Fault("a bwrap that hangs", a_bwrap_that_hangs, 1, providers=("bubblewrap",), says="timeout"),
    Fault("a command that ignores signals", a_stubborn_command, 1, providers=("bubblewrap", "null")),
)
