"""Deadlines: each check passes on our own providers, and each finds the fault that it is there for."""

from __future__ import annotations

import pytest

from pytest_sandboxbench.compliance import deadlines as group
from pytest_sandboxbench.compliance.check import Check
from pytest_sandboxbench.errors import ExecFailed
from pytest_sandboxbench.model import ExecResult
from pytest_sandboxbench.providers.registry import Registry, parse_option
from tests.compliance.faulty import Call, FaultySandbox, fails_no_other, is_found, pairs, unproved, verdict
from tests.compliance.late import FAULTS, CrashesAtFirst, FailsAtFirst, ReturnsAtFirst, SaysNothing
from tests.compliance.own import check_passes, passing

READY = next(check for check in group.CHECKS if check.name == "commands_work_or_are_not_ready")
SLOW = [check.name for check in group.CHECKS if check.name not in ("a_create_without_time_leaves_nothing", READY.name)]


@pytest.mark.parametrize(("provider", "check"), passing(group, slow=SLOW))
def test_it_passes(provider: str, check: Check) -> None:
    check_passes(provider, check)


@pytest.mark.parametrize(("fault", "check", "says"), pairs(FAULTS, group))
def test_a_fault_is_found(fault: type[FaultySandbox], check: Check, says: str) -> None:
    is_found(fault, check, says)


@pytest.mark.full
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_fails_no_other_check(fault: type[FaultySandbox]) -> None:
    fails_no_other(fault, group)


def test_each_check_can_fail() -> None:
    assert not unproved(FAULTS, group)


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
def test_case_19_what_is_no_answer_yet(fault: type[FaultySandbox], says: str) -> None:
    is_found(fault, READY, says)


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


def test_a_failing_command_is_no_timeout() -> None:
    """An error of another kind is told with what it says."""

    class Fails(FaultySandbox):
        async def run(self, call: Call) -> ExecResult:
            if call.argv[0] == "sleep":
                raise ExecFailed("exec", said="no room")
            return await super().run(call)

    is_found(Fails, group.CHECKS[0], r"`sleep 60` with .* raised ExecFailed, not ExecTimeout: exec failed: no room")
