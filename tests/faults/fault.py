"""What a fault is, and how a cell of the matrix is checked."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .case import SUBJECT, Case, Ended

__all__ = ["KINDS", "Fault", "Result", "check", "run"]

KINDS = ("bubblewrap", "null", "fake")

Cleaned = Literal["itself", "next run", "reap"]


@dataclass(frozen=True)
class Fault:
    """``act`` lets it happen; all else is what is expected afterwards.

    ``status``   the exit status of the run, negative for a signal; None where pytest alone decides it
    ``cleaned``  by whom what was made is destroyed: the run ``itself``, the ``next run``, or ``reap``
    ``records``  what was measured can be shown again
    ``fast``     providers for which it is in the fast tests
    """

    name: str
    act: Callable[[Case], Ended]
    status: int | None
    cleaned: Cleaned = "itself"
    records: bool = True
    providers: tuple[str, ...] = KINDS
    fast: tuple[str, ...] = ()
    says: str = ""
    """What the run must have printed."""
    lacks: Callable[[], str] = lambda: ""
    """Why it cannot be done on this host."""
    pytests_own: bool = False
    """It is pytest that fails; what it prints then is its own."""


@dataclass(frozen=True, slots=True)
class Result:
    fault: str
    kind: str
    wrong: str
    seconds: float


_BUSY = "did not answer within 5 s"
"""A preflight has 5 s; on a machine that is busy with other things a good provider may need more."""
_TRIES = 3


def run(fault: Fault, kind: str) -> Result:
    """One cell, in a folder of its own. What is wrong comes back as text, for a table of all."""
    begin = time.monotonic()
    wrong = ""
    for _ in range(_TRIES):
        folder = Path(tempfile.mkdtemp(prefix="faults-", dir="/var/tmp"))
        wrong = ""
        try:
            check(fault, kind, folder)
        except AssertionError as error:
            wrong = str(error) or "an assertion"
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if _BUSY not in wrong:
            break
        time.sleep(2)
    return Result(fault.name, kind, wrong, time.monotonic() - begin)


def check(fault: Fault, kind: str, folder: Path) -> None:
    case = Case(folder, kind)
    try:
        ended = fault.act(case)
        told = f"\n{ended.text[-6000:]}"
        assert fault.status in (None, ended.status), f"exit status {ended.status} instead of {fault.status}{told}"
        for word in (
            () if fault.pytests_own else ("INTERNALERROR", "never awaited", "was never retrieved", "Task was destroyed")
        ):
            assert word not in ended.text, f"it printed {word!r}{told}"
        assert fault.says in ended.text, f"it did not say {fault.says!r}{told}"
        runs = case.runs
        if fault.records:
            _check_records(case)
        case.off.touch()
        if fault.cleaned in ("next run", "reap"):
            assert case.host.left(runs), "nothing was left: the fault did not strike"
        if fault.cleaned == "next run":
            _check_next_run(case)
        elif fault.cleaned == "reap":
            _check_reap(case, runs)
        left = case.host.settled(runs)
        assert not left, "left on the host: " + "; ".join(left) + told
    finally:
        case.close()


def _check_records(case: Case) -> None:
    assert case.records, "no records"
    for folder in case.records:
        done = case.sandboxbench("report", "--partial", "--width=120", str(folder))
        assert done.status == 0, f"the records cannot be read: {done.text}"
        assert f"  {SUBJECT}" in done.text or "  good" in done.text, f"no sample in the records: {done.text}"


def _check_next_run(case: Case) -> None:
    assert case.ledgers, "no ledger leads to what is left"
    number = len(case.records)
    after = case.run("-k", "test_startup", "--sandbox-samples=1")
    assert after.status == 0, f"the next run: exit status {after.status}: {after.text}"
    assert "left by run " in after.text, f"the next run did not say what it destroyed: {after.text}"
    assert len(case.records) == number + 1


def _check_reap(case: Case, runs: list[str]) -> None:
    (one,) = runs
    shown = case.sandboxbench("list", SUBJECT, "--run", one)
    assert shown.status == 0, shown.text
    assert ", gone: `sandboxbench reap`" in shown.text, f"it is not listed: {shown.text}"
    reaped = case.sandboxbench("reap", SUBJECT, "--run", one)
    assert reaped.status == 0, f"reap: exit status {reaped.status}: {reaped.text}"
    assert f"left by run {one}" in reaped.text, reaped.text
    again = case.sandboxbench("list", SUBJECT, "--run", one)
    assert "no sandbox of this project exists" in again.text, again.text
