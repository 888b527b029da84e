"""Whose ledger it is, and whether that process lives: locks, pids, and what names a host."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_sandboxbench.ledger import standing, taken, this_process
from pytest_sandboxbench.model import Owner

from .test_ledger import DEAD, NOT_HERE, dead, folder, left_by, only

__all__ = ["folder"]


def test_the_writer_is_alive_and_another_start_or_host_is_not() -> None:
    me = this_process("r")
    assert standing(me) == "alive"
    assert standing(Owner("r", me.host, me.pid, "1")) == "dead", "the pid is used again"
    assert standing(dead()) == "dead"
    assert standing(Owner("r", "elsewhere", me.pid, me.started)) == "elsewhere"
    assert standing(Owner("r", me.host + "+1", me.pid, me.started)) == "elsewhere", "another pid namespace"


@pytest.mark.parametrize(("owner", "without"), [(dead(), "dead"), (NOT_HERE, "elsewhere")])
def test_a_lock_is_a_proof_of_life_wherever_its_process_is(folder: Path, owner: Owner, without: str) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.test_ledger import *\n"
        "ledger = opened(Path(sys.argv[1]), owner=Owner.parse(sys.argv[2]))\n"
        "ledger.making('p'); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(folder), owner.label()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        assert only(folder).standing == "alive"
        with taken(only(folder).path) as free:
            assert not free
    assert only(folder).standing == without
    with taken(only(folder).path) as free:
        assert free


def test_readers_do_not_take_each_other_for_the_owner(folder: Path) -> None:
    import fcntl

    path = left_by(folder, dead())
    with path.open("rb") as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)
        assert (only(folder).standing, only(folder).clearing) == ("dead", False)


def test_who_clears_up_waits_for_a_reader(folder: Path) -> None:
    import fcntl

    path = left_by(folder, dead())
    with path.open("rb") as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)
        timer = threading.Timer(0.03, fcntl.flock, (reader, fcntl.LOCK_UN))
        timer.start()
        with taken(path) as free:
            assert free
        timer.join()


@pytest.mark.parametrize(("owner", "clearing"), [(dead(), True), (this_process("r"), False), (NOT_HERE, False)])
def test_a_reader_can_tell_who_clears_up_from_an_owner_of_this_host(folder: Path, owner: Owner, clearing: bool) -> None:
    with taken(left_by(folder, owner)) as free:
        assert free
        assert (only(folder).standing, only(folder).clearing) == ("alive", clearing)
    assert not only(folder).clearing


def test_without_start_times_the_lock_decides_and_without_locks_the_pid(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on macOS: a pid that is used again looks like its first process."""

    def flock(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr("pytest_sandboxbench.owners.process_start", lambda pid: "")
    me = this_process("r")
    assert (me.started, standing(me)) == ("", "alive")
    assert [standing(Owner("r", me.host, pid, "")) for pid in (DEAD, 0, 10**30)] == ["dead"] * 3
    path = left_by(folder, me)
    assert only(folder).standing == "dead"
    monkeypatch.setattr("fcntl.flock", flock)
    assert only(folder).standing == "alive"
    with taken(path) as free:
        assert free


# -- what names a host


def forget_machine() -> None:
    from pytest_sandboxbench import owners

    owners._machine.cache_clear()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """The host's name on a machine with this id."""
    place = tmp_path / "machine-id"
    monkeypatch.setattr("pytest_sandboxbench.owners._MACHINE_IDS", (str(tmp_path / "none"), str(place)))

    def host(id_: str) -> str:
        place.write_text(id_)
        forget_machine()
        return this_process("").host.partition("+")[0]

    yield host
    forget_machine()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere a hardware address names the machine")
def test_two_machines_of_one_name_are_two_hosts(machine: Callable[[str], str]) -> None:
    one, two = machine("0123456789abcdef" * 2 + "\n"), machine("f" * 32)
    assert one != two
    assert one == machine("0123456789abcdef" * 2)
    assert one.rpartition("-")[0] == os.uname().nodename[:40]
    assert "01234567" not in one, "the id itself is nobody's business"
    for none in ("", "uninitialized\n", "\xff"):
        assert machine(none) == os.uname().nodename[:40]


def test_a_hardware_address_that_was_made_up_names_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_sandboxbench import owners

    monkeypatch.setattr("uuid.getnode", lambda: 0x0123456789AB)
    assert owners._hardware_address() == ""
    monkeypatch.setattr("uuid.getnode", lambda: 0x0023456789AB)
    assert owners._hardware_address() == "0023456789ab"


@pytest.mark.parametrize("name", ["a/b c\n", "höst\x1b[2J", "x" * 300, ""])
def test_a_hosts_name_is_short_and_can_be_printed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    from types import SimpleNamespace

    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename=name))
    me = this_process("r")
    assert me.host.isascii()
    assert me.host.isprintable()
    assert not set("/ ") & set(me.host)
    assert len(me.host) <= 63
    assert Owner.parse(me.label()) == me
