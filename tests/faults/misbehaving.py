"""A provider that hangs or raises, whatever it raises, wherever it is called: instances of it beside a good one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .case import SUBJECT, Case, Ended
from .fault import Fault

__all__ = ["FAULTS"]

HANGS = ("hang", "swallow", "block")
RAISED = (
    *("RuntimeError", "OSError", "KeyError", "CancelledError", "TimeoutError", "SystemExit", "GeneratorExit", "Odd"),
    *("Unsayable", "StopAsyncIteration", "StopIteration", "RecursionError", "MemoryError", "AssertionError"),
)
OPERATIONS = {
    "preflight": "startup",
    "create": "startup",
    "exec": "startup",
    "write_file": "write_file",
    "read_file": "read_file",
    "stream": "stream",
    "pause": "resume",
    "resume": "resume",
    "destroy": "startup",
    "owned": "startup",
    "round_trip": "round_trip",
    "run_once": "cold_run",
    "aclose": "startup",
    "phases": "startup",
    "ref": "startup",
    "capabilities": "startup",
    "factory": "startup",
}
"""Where it happens, and a bench that gets there. ``factory`` is the making of the instance."""

# A provider that cannot say that it is ready is skipped, and one that does not close leaves nothing.
NO_FAILURE = {"preflight", "aclose", "capabilities", "factory"}


def beside_a_good_one(case: Case, operation: str, whats: Sequence[str], timeout_s: float) -> Ended:
    instances = {what.replace(":", "-"): {"at": operation, "what": what} for what in whats}
    case.configure({SUBJECT: {}, "good": {}, **instances})
    ended = case.run(
        f"--sandbox-provider=good,{','.join(instances)}",
        "-k",
        f"test_{OPERATIONS[operation]} or test_other",
        "--sandbox-samples=1",
        f"--sandbox-timeout={timeout_s}",
    )
    missed = [what for what in instances if what not in ended.text]
    assert operation == "phases" or not missed, f"nothing is said of {missed}: {ended.text[-6000:]}"
    assert case.marks("other") == 1, f"another test did not run: {ended.text[-6000:]}"
    assert "  good" in ended.text, f"the good instance has no row: {ended.text[-6000:]}"
    return ended


def hanging(operation: str) -> Fault:
    def act(case: Case) -> Ended:
        return beside_a_good_one(case, operation, HANGS, 1.0)

    return Fault(
        f"{operation} hangs",
        act,
        0 if operation in NO_FAILURE else 1,
        cleaned="next run" if operation == "destroy" else "itself",
    )


def in_a_thread(operation: str) -> Fault:
    """As an adapter calls a blocking SDK: the thread cannot be ended, and must not keep the run."""

    def act(case: Case) -> Ended:
        return beside_a_good_one(case, operation, ["thread"], 1.0)

    return Fault(f"{operation} hangs in a thread", act, 1)


def raising(operation: str) -> Fault:
    def act(case: Case) -> Ended:
        return beside_a_good_one(case, operation, [f"raise:{name}" for name in RAISED], 20.0)

    return Fault(
        f"{operation} raises anything",
        act,
        0 if operation in NO_FAILURE else 1,
        cleaned="next run" if operation == "destroy" else "itself",
        fast=("fake",) if operation == "resume" else (),
    )


def interrupting(operation: str) -> Fault:
    """As if Ctrl-C came at that very moment; and some libraries raise it of their own."""

    def act(case: Case) -> Ended:
        case.configure({SUBJECT: {"at": operation, "what": "raise:KeyboardInterrupt", "good": 1}})
        if operation in ("preflight", "owned", "aclose"):
            case.configure({SUBJECT: {"at": operation, "what": "raise:KeyboardInterrupt"}})
        return case.run("-k", f"test_{OPERATIONS[operation]}", "--sandbox-samples=3")

    return Fault(
        f"{operation} raises KeyboardInterrupt",
        act,
        2,
        cleaned="next run" if operation == "destroy" else "itself",
        records=operation != "preflight",
    )


def in_a_fixture(operation: str) -> Fault:
    """Outside of a block there is no supervisor of lanes."""

    def act(case: Case) -> Ended:
        case.configure({what: {"at": operation, "what": what} for what in HANGS} | {SUBJECT: {}})
        ended = case.run(
            f"--sandbox-provider={','.join(HANGS)},{SUBJECT}", "-k", "test_fixture or test_other", "--sandbox-timeout=1"
        )
        assert case.marks("other") == 1, f"another test did not run: {ended.text[-6000:]}"
        assert f"{len(HANGS)} failed" in ended.text or f"{len(HANGS)} error" in ended.text, ended.text[-6000:]
        return ended

    return Fault(
        f"{operation} of a fixture's sandbox hangs",
        act,
        1,
        cleaned="next run" if operation == "destroy" else "itself",
        records=False,
    )


def late(case: Case) -> Ended:
    """The create times out on our side after 1 s; the sandbox comes to life after 1.5 s, or after 2.5 s."""
    case.configure({SUBJECT: {"at": "create", "what": "late:1.5", "good": 1}})
    ended = case.run("-k", "test_lives", "--sandbox-samples=3", "--sandbox-timeout=1")
    assert case.logged("create late"), "it never came"
    return ended


def each(make: Callable[[str], Fault], but: Sequence[str] = ()) -> list[Fault]:
    return [make(operation) for operation in OPERATIONS if operation not in but]


FAULTS = (
    *each(hanging, but=("factory", "phases", "ref", "capabilities")),
    *map(in_a_thread, ("create", "exec")),
    *map(in_a_fixture, ("create", "exec", "destroy")),
    Fault("a create that times out comes late", late, 1, fast=("fake",)),
    *each(raising),
    *each(interrupting, but=("phases", "ref", "capabilities", "factory")),
)
