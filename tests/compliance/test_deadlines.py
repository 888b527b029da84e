"""Deadlines: each check passes on our own providers, and each finds the fault that it is there for."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from pytest_sandboxbench.compliance import deadlines as checks
from pytest_sandboxbench.errors import ExecFailed
from pytest_sandboxbench.model import ExecResult
from pytest_sandboxbench.providers.registry import Registry, parse_option
from tests.compliance.faulty import Call, FaultySandbox, verdict
from tests.compliance.late import FAULTS, CrashesAtFirst, FailsAtFirst, ReturnsAtFirst, SaysNothing
from tests.compliance.proof import Proof, is_found

READY = next(check for check in checks.CHECKS if check.name == "commands_work_or_are_not_ready")
QUICK = ("a_create_without_time_leaves_nothing", READY.name)
SLOW = {check.name: "bubblewrap" for check in checks.CHECKS if check.name not in QUICK}


class TestDeadlines(Proof):
    group: ClassVar = checks
    faults: ClassVar = FAULTS
    slow: ClassVar = SLOW


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (
            FailsAtFirst,
            "try 1 of a command after create raised TransportLost; a sandbox that does not answer yet is NotR",
        ),
        (CrashesAtFirst, "try 1 of a command after create raised ConnectionRefusedError; "),
        (SaysNothing, "NotReady does not say what the provider answered"),
        (ReturnsAtFirst, "try 1 of `true` after create returned 1"),
    ],
)
def test_case_19_what_is_no_answer_yet(fault: type[FaultySandbox], says: str, tmp_path: Path) -> None:
    is_found(fault, READY, says, tmp_path)


def ready_after(seconds: str) -> Registry:
    return Registry(None, [parse_option(f"fake.ready_after={seconds}")])


def test_case_19_a_create_that_returns_early() -> None:
    found = verdict(ready_after("0.3"), "fake", READY, 5.0)
    assert found.outcome == "passed"
    assert found.seconds >= 0.3


def test_case_19_never_ready() -> None:
    found = verdict(ready_after("never"), "fake", READY, 0.5)
    assert found.outcome == "failed"
    assert "tries in 0.5 s the sandbox is not ready; the last answer: connection refused" in found.said


def test_a_failing_command_is_no_timeout(tmp_path: Path) -> None:
    """An error of another kind is told with what it says."""

    class Fails(FaultySandbox):
        async def run(self, call: Call) -> ExecResult:
            if call.argv[0] == "sleep":
                raise ExecFailed("exec", said="no room")
            return await super().run(call)

    is_found(
        Fails,
        checks.CHECKS[0],
        r"`sleep 60` with .* raised ExecFailed, not ExecTimeout: exec failed: no room",
        tmp_path,
    )
