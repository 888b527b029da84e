"""Facts of host and guest; a guest is not trusted."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_sandboxbench.facts import cpu_ticks, guest_command, host_facts, load_average, parse_guest, process_start


def test_what_a_shell_prints_is_understood() -> None:
    done = subprocess.run(guest_command(), capture_output=True, check=True, timeout=20)
    facts = parse_guest(done.stdout)
    assert facts["kernel"].startswith(os.uname().sysname)
    assert facts["machine"] == os.uname().machine
    assert int(facts["vcpus"]) >= 1
    assert int(facts["memory_mib"]) > 0
    assert int(facts["mounts"]) > 0
    assert facts["user"] == str(os.geteuid())


@pytest.mark.parametrize(
    ("output", "facts"),
    [
        (b"", {}),
        (b"no line of facts\n", {}),
        (b"python=\nkernel= Linux 6.1 \n", {"kernel": "Linux 6.1"}),
        (b"cgroup cpu.max=max\ncgroup pids/pids.max=5", {"cgroup cpu.max": "max", "cgroup pids/pids.max": "5"}),
        (b"url=a=b", {"url": "a=b"}),
        (b"=x\n \n...=x\na\x1b[2J=x\n", {}),
        (b"kernel=\x1b]0;owned\x07\n", {"kernel": "?]0;owned?"}),
        (b"kernel=\xff\xfe\n", {"kernel": "��"}),
        (b"kernel=1\nkernel=2\n", {"kernel": "2"}),
    ],
)
def test_lines_that_are_facts(output: bytes, facts: dict[str, str]) -> None:
    assert parse_guest(output) == facts


@given(st.binary(max_size=40_000) | st.lists(st.binary(max_size=30)).map(b"=".join))
def test_whatever_a_guest_prints_is_bounded_and_printable(output: bytes) -> None:
    _check_bounds(parse_guest(output))


@pytest.mark.parametrize(
    "output",
    [
        b"a=" + b"x" * (1 << 24),
        b"".join(b"key%d=x\n" % n for n in range(1 << 16)),
        b"k" * 1000 + b"=v\n",
        ("k=" + "‮沙" * 9000).encode(),
    ],
    ids=["long", "many", "key", "wide"],
)
def test_a_flood_is_cut(output: bytes) -> None:
    facts = parse_guest(output)
    assert facts
    _check_bounds(facts)


def _check_bounds(facts: dict[str, str]) -> None:
    assert sum(len(key) + len(value) for key, value in facts.items()) <= 16384
    for key, value in facts.items():
        assert 0 < len(key) <= 64
        assert 0 < len(value) <= 200
        assert (key + value).isprintable()


def test_facts_of_the_host_are_json_and_hold_what_a_comparison_needs() -> None:
    facts = host_facts()
    assert json.loads(json.dumps(facts)) == facts
    assert {"cpu", "cpus_usable", "kernel", "memory_mib", "python", "packages"} <= set(facts)
    assert None not in facts.values()
    assert "pytest" in facts["packages"]


def test_load_average() -> None:
    load = load_average()
    assert load is not None
    assert len(load) == 3


STAT = b"""cpu  170 0 0 320 10 0 0 0 0 0
cpu0 90 1 2 3 4 0 0 0 7 0
cpu1 10 0 0 90 0 0 0 0 0 0
cpu10 70 0 0 220 10 0 0 0 0 0
intr 5 5
"""


@pytest.mark.parametrize(
    ("mask", "ticks"),
    [({0}, (93, 100)), ({1}, (10, 100)), ({0, 10}, (163, 400)), ({0, 1, 10}, (173, 500)), ({0, 2}, None)],
)
def test_only_the_cpus_that_may_be_used_are_asked(
    mask: set[int], ticks: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An act that keeps the one CPU of its mask busy is bound by it, whatever the other fifteen do."""
    (tmp_path / "stat").write_bytes(STAT)
    opened = Path.open
    monkeypatch.setattr(Path, "open", lambda self, *args: opened(tmp_path / "stat", *args))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: mask)
    assert cpu_ticks() == ticks


def test_the_ticks_of_this_host() -> None:
    found = cpu_ticks()
    assert found is not None
    assert 0 < found[0] < found[1]


def test_a_host_that_does_not_tell_its_ticks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    opened = Path.open
    monkeypatch.setattr(Path, "open", lambda self, *args: opened(tmp_path / "none", *args))
    assert cpu_ticks() is None
    monkeypatch.delattr(os, "sched_getaffinity")
    assert cpu_ticks() is None


def test_the_start_of_a_process_tells_a_reused_pid() -> None:
    own = process_start(os.getpid())
    assert own.isdigit()
    child = subprocess.Popen(["sleep", "10"])
    try:
        assert int(process_start(child.pid)) >= int(own)
    finally:
        child.kill()
        child.wait()
    assert process_start(child.pid) == ""
