"""How the end of a worker is told: with its exit status where it died, at once where it said that it is done."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_sandboxbench.load.gang import _how


class Process:
    """Of a worker, as ``subprocess`` has it."""

    def __init__(self, status: int | None) -> None:
        self.status = status
        self.waits = 0

    def wait(self, timeout: float) -> int:
        self.waits += 1
        if self.status is None:
            raise subprocess.TimeoutExpired("python", timeout)
        return self.status


def node(process: object, *, down: bool = True, **more: Any) -> SimpleNamespace:
    io = SimpleNamespace() if process is None else SimpleNamespace(popen=process)
    return SimpleNamespace(gateway=SimpleNamespace(_io=io), _down=down, **more)


@pytest.mark.parametrize(("status", "told"), [(9, "ended (exit 9)"), (-9, "ended (signal 9)"), (None, "ended")])
def test_one_that_died_with_what_the_system_says(status: int | None, told: str) -> None:
    assert _how(node(Process(status))) == told


def test_one_that_said_its_last_word_is_not_waited_for() -> None:
    """xdist ends it only when all are done: a wait for each of them was a second for each of them."""
    process = Process(None)
    assert _how(node(process, workeroutput={"exitstatus": 0})) == "ended"
    assert process.waits == 0


@pytest.mark.parametrize("process", [None, Process(0)], ids=["over ssh", "not down"])
def test_one_whose_process_is_not_ours_to_ask(process: Process | None) -> None:
    assert _how(node(process, down=False)) == "ended"
    assert process is None or process.waits == 0
