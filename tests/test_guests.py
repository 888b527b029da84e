"""Whether a guest has what was asked for."""

from __future__ import annotations

import pytest

from pytest_sandboxbench.errors import CreateFailed
from pytest_sandboxbench.guests import Unlike
from pytest_sandboxbench.model import SandboxSpec


@pytest.mark.parametrize(
    ("asked", "facts", "known"),
    [
        ({}, {"vcpus": "64", "memory_mib": "1"}, ()),
        ({"vcpus": 2, "memory_mib": 4096}, {"vcpus": "2", "memory_mib": "3900"}, ()),
        ({"vcpus": 2, "memory_mib": 4096}, {}, ()),
        ({"vcpus": 2}, {"vcpus": "?"}, ()),
        ({"vcpus": 0.5, "memory_mib": 64}, {"vcpus": "8", "memory_mib": "32000"}, ("vcpus", "memory_mib")),
    ],
    ids=["nothing asked", "alike", "a guest that tells nothing", "or nonsense", "told by who enforces it"],
)
def test_nothing_is_said_of_a_guest_that_fits(asked: dict[str, float], facts: dict[str, str], known: list[str]) -> None:
    guests = Unlike()
    guests.compare("p", SandboxSpec(**asked), facts, known)  # type: ignore[arg-type]
    guests.check("p")


@pytest.mark.parametrize(
    ("asked", "facts", "said"),
    [
        ({"vcpus": 2}, {"vcpus": "4"}, "p with vcpus=2 failed: inside there is vcpus=4"),
        ({"vcpus": 0.5}, {"vcpus": "1"}, "vcpus=0.5 failed: inside there is vcpus=1"),
        ({"memory_mib": 4096}, {"memory_mib": "2000"}, "inside there is memory_mib=2000"),
        ({"memory_mib": 4096}, {"memory_mib": "8000"}, "inside there is memory_mib=8000"),
    ],
)
def test_one_that_does_not_fit_is_told_each_time(asked: dict[str, float], facts: dict[str, str], said: str) -> None:
    guests = Unlike()
    with pytest.raises(CreateFailed) as raised:
        guests.compare("p", SandboxSpec(**asked), facts, ())  # type: ignore[arg-type]
    assert said in str(raised.value)
    guests.check("another")
    with pytest.raises(CreateFailed):
        guests.check("p")
