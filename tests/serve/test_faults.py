"""The scripts of what goes wrong."""

from __future__ import annotations

import pytest

from pytest_sandboxbench.errors import UsageError
from pytest_sandboxbench.serve.faults import OPERATIONS, Fault, Faults


def taken(script: str, operation: str, number: int) -> list[str]:
    faults = Faults([script])
    return [faults.next(operation).what for _ in range(number)]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("create=429", ["429", "ok", "ok"]),
        ("create=2xok,503", ["ok", "ok", "503", "ok"]),
        ("create=ok,500,...", ["ok", "500", "ok", "500", "ok"]),
        ("create=", ["ok", "ok"]),
    ],
)
def test_each_request_takes_a_step(script: str, expected: list[str]) -> None:
    assert taken(script, "create", len(expected)) == expected
    assert taken(script, "kill", 2) == ["ok", "ok"]


def test_a_step_has_a_number() -> None:
    faults = Faults(["create=429:2,slow:0.5,drop"])
    assert [faults.next("create") for _ in range(3)] == [Fault("429", 2), Fault("slow", 0.5), Fault("drop")]
    assert Fault("429").status == 429
    assert Fault("drop").status is None


def test_a_later_script_replaces_an_earlier_one() -> None:
    faults = Faults(["create=500,..."])
    faults.add("create=ok")
    assert [faults.next("create").what for _ in range(3)] == ["ok"] * 3


@pytest.mark.parametrize(
    "script",
    [
        "create",
        "make=500",
        "create=200",
        "create=999",
        "create=broken",
        "create=slow",
        "create=...",
        "create=0x",
        "=500",
    ],
)
def test_what_is_no_script_is_told_with_what_is(script: str) -> None:
    with pytest.raises(UsageError) as raised:
        Faults([script])
    assert script in str(raised.value)
    assert any(word in str(raised.value) for word in (*OPERATIONS, "slow:0.5", "429:2", "again"))
