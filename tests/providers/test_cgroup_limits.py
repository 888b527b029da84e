"""Limits as the kernel's files say them: what is written is what is read back, and no limit is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_sandboxbench.providers.cgroup_limits import limits_in, set_limit
from pytest_sandboxbench.providers.cgroups import Limits


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("name", "amount", "said"),
    [("memory_mib", 256, "256"), ("pids", 64, "64"), ("vcpus", 0.5, "0.5"), ("vcpus", 2, "2")],
)
def test_what_is_set_is_read_back(tmp_path: Path, version: int, name: str, amount: float, said: str) -> None:
    set_limit(tmp_path, name, version, amount)
    assert limits_in(tmp_path, version) == {name: said}


@pytest.mark.parametrize(
    ("version", "files"),
    [
        (1, {"memory.limit_in_bytes": "9223372036854771712\n", "cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "1\n"}),
        (1, {"pids.max": "max\n"}),
        (2, {"memory.max": "max\n", "pids.max": "max\n", "cpu.max": "max 100000\n"}),
        (2, {}),
    ],
)
def test_no_limit_is_not_in_force(tmp_path: Path, version: int, files: dict[str, str]) -> None:
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    assert limits_in(tmp_path, version) == {}


def test_a_sandbox_has_what_its_groups_have(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    first.mkdir()
    second.mkdir()
    set_limit(first, "pids", 1, 7)
    set_limit(second, "memory_mib", 2, 1.5)
    limits = Limits((first, tmp_path / "gone"), second)
    assert list(limits.enforced().items()) == [("memory_mib", "1.5"), ("pids", "7")]
