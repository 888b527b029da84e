"""The file of a ledger: on the disk, whole and locked when it has its name, and written anew when it is long."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from pytest_sandboxbench.ledger import Ledger, books, taken
from pytest_sandboxbench.model import Capabilities

from .test_ledger import HOSTED, LABELS, NO_LABELS, NOT_HERE, dead, folder, only, opened, ref

__all__ = ["Path", "folder", "kill_at_each_line"]


# -- what outlasts a power loss


@pytest.mark.parametrize(("capabilities", "each"), [(LABELS, 0), (NO_LABELS, 0), (HOSTED, 1)])
def test_the_first_intent_and_each_hosted_one_is_on_the_disk(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capabilities: Capabilities, each: int
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
    ledger = opened(folder, capabilities)
    ledger.making("p")
    (path,) = folder.iterdir()
    assert synced[0] == path.stat().st_size, "with all that is in it"
    synced.clear()
    for number in range(3):
        ledger.making("p")
        ledger.made(ref(f"{number}"))
    ledger.settle()
    assert len(synced) == 3 * each


def test_a_file_system_that_cannot_wait_for_the_disk_is_used_all_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(descriptor: int) -> None:
        raise OSError(errno.EINVAL, "no")

    monkeypatch.setattr(os, "fsync", fsync)
    ledger = opened(folder)
    ledger.making("p")
    assert (ledger.problem, only(folder).made["p"].unknown) == ("", 1)


# -- after the end


@pytest.mark.parametrize("capabilities", [LABELS, NO_LABELS])
def test_what_comes_after_the_end_is_in_a_file_that_can_be_understood(folder: Path, capabilities: Capabilities) -> None:
    ledger = opened(folder, capabilities)
    ledger.making("p", 2)
    ledger.close(all_gone=True)
    assert list(folder.iterdir()) == []
    ledger.made(ref("late"))
    assert set(only(folder).made["p"].live) == {"late"}
    ledger.making("p")
    assert only(folder).made["p"].unknown == 1
    ledger.gone(ref("late"))
    ledger.over("p")
    assert list(folder.iterdir()) == []


def test_what_is_left_at_the_end_keeps_the_lock_while_the_process_lives(folder: Path) -> None:
    ledger = opened(folder, LABELS, NOT_HERE)
    ledger.making("p")
    ledger.made(ref("a"))
    ledger.close()
    assert only(folder).standing == "alive"
    ledger.gone(ref("a"))
    assert list(folder.iterdir()) == [], "and goes when that is destroyed at last"


def test_two_books_of_one_owner_do_not_touch_each_other(folder: Path) -> None:
    first, second = opened(folder), opened(folder)
    first.making("p", 1)
    second.making("p", 2)
    assert sorted(book.made["p"].unknown for book in books(folder)) == [1, 2]
    assert {book.owner for book in books(folder)} == {dead()}
    second.close(all_gone=True)
    assert only(folder).made["p"].unknown == 1


# -- a file that is written anew


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are written anew much earlier than they are."""
    monkeypatch.setattr("pytest_sandboxbench.ledger.writing._LARGE", 2000)


def grow(ledger: Ledger, until: Callable[[int], bool], number: int = 0) -> int:
    """Make and destroy until ``until``; one that is destroyed, one that stays, one that is unknown are there before."""
    for name in ("gone", "stays"):
        ledger.making("p")
        ledger.made(ref(name, owner="x"))
    ledger.making("p")
    ledger.settle()
    ledger.gone(ref("gone"))
    while not until(number):
        number += 1
        ledger.making("p")
        ledger.made(ref(f"s{number}", owner="x" * 80))
        ledger.settle()
        ledger.gone(ref(f"s{number}"))
        ledger.settle()
    return number


@pytest.mark.parametrize("capabilities", [LABELS, NO_LABELS, HOSTED])
def test_a_file_does_not_grow_with_what_is_gone(folder: Path, short: None, capabilities: Capabilities) -> None:
    ledger = opened(folder, capabilities, NOT_HERE)
    sizes = []

    def enough(number: int) -> bool:
        sizes.append(size(folder))
        return number == 200

    grow(ledger, enough)
    (path,) = folder.iterdir()
    assert 1900 < max(sizes) < 2500
    book = only(folder)
    assert (set(book.made["p"].live), book.made["p"].unknown) == ({"stays"}, 1)
    assert book.made["p"].live["stays"].details == {"owner": "x"}
    assert book.standing == "alive", "its lock is held"
    assert path.stat().st_mode & 0o777 == 0o600
    ledger.gone(ref("stays"))
    ledger.over("p")
    ledger.close()
    assert list(folder.iterdir()) == []


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*"))


def test_many_that_exist_are_not_written_anew_each_time(
    folder: Path, short: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(folder, LABELS)
    files = set()
    for number in range(300):
        ledger.making("p")
        ledger.made(ref(f"s{number}"))
        ledger.settle()
        files.add(only(folder).path.stat().st_ino)
    assert len(only(folder).made["p"].live) == 300
    assert len(files) < 10


def test_where_it_cannot_be_written_anew_the_old_one_goes_on(
    folder: Path, short: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(folder, LABELS, NOT_HERE)
    grow(ledger, lambda number: size(folder) > 1500 and bool(number))

    def create(path: Path, text: bytes) -> int:
        raise OSError(errno.ENOSPC, "the disk is full")

    monkeypatch.setattr("pytest_sandboxbench.ledger.writing.create", create)
    for number in range(100, 120):
        ledger.making("p")
        ledger.made(ref(f"s{number}"))
        ledger.settle()
    assert size(folder) > 2500
    assert (ledger.problem, only(folder).standing) == ("", "alive")
    assert {f"s{number}" for number in range(100, 120)} < set(only(folder).made["p"].live)


def test_a_reader_that_meets_the_old_file_looks_at_the_new_one(
    folder: Path, short: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    ledger = opened(folder, LABELS, NOT_HERE)
    grow(ledger, lambda number: size(folder) > 1500 and bool(number))
    really: Callable[[int, int], None] = fcntl.flock
    path = only(folder).path

    def flock(descriptor: int, operation: int) -> None:
        """Between opening and locking, the owner writes it anew."""
        monkeypatch.setattr(fcntl, "flock", really)
        old = path.stat().st_ino
        grow(ledger, lambda number: path.stat().st_ino != old, 1000)
        really(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    assert only(folder).standing == "alive"
    monkeypatch.setattr(fcntl, "flock", flock)
    with taken(path) as free:
        assert not free


def test_a_file_is_whole_and_locked_when_it_gets_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really, seen = Path.replace, []

    def replace(self: Path, target: Path) -> Path:
        assert books(folder) == []
        out = really(self, target)
        seen.append(only(folder))
        return out

    monkeypatch.setattr(Path, "replace", replace)
    opened(folder, owner=NOT_HERE).making("p", 2)
    assert [(book.standing, book.made["p"].unknown) for book in seen] == [("alive", 2)]


def test_drafts_of_the_killed_go_after_a_while(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True)
    old, young = folder / "a.jsonl.new", folder / "b.jsonl.new"
    for draft in (old, young):
        draft.write_bytes(b"x")
    os.utime(old, (1, 1))
    opened(folder).making("p")
    assert not old.exists()
    assert young.exists()
    assert only(folder).made["p"].unknown == 1


def killed_at(folder: Path, line: int) -> None:
    """End this process at a line of the ledger while it writes anew, if it has so many."""
    from pytest_sandboxbench.ledger import writing

    writing._LARGE = 2000
    ledger = opened(folder, LABELS, dead())
    grow(ledger, lambda number: ledger._size > 1700)
    with killing(line):
        ledger._write_anew()


@contextmanager
def killing(line: int) -> Iterator[None]:
    seen = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal seen
        if event == "line" and "ledger" in frame.f_code.co_filename and "tests" not in frame.f_code.co_filename:
            seen += 1
            if seen == line:
                os._exit(9)
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)


def kill_at_each_line(root: Path) -> None:
    """In a process of one thread: fork, so that each is killed as the kernel does it."""
    status, line = 9, 0
    while status == 9:
        line += 1
        folder = root / str(line)
        child = os.fork()
        if not child:
            killed_at(folder, line)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        book = only(folder)
        assert (set(book.made["p"].live), book.made["p"].unknown) == ({"stays"}, 1), line
        assert (book.standing, book.spoilt) == ("dead", False), line
    assert status == 0, status
    print(line)


def test_wherever_the_writer_ends_while_it_writes_anew_one_whole_file_is_there(tmp_path: Path) -> None:
    code = "import sys; from tests.test_ledger_file import *; kill_at_each_line(Path(sys.argv[1]))"
    ended = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[1],
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) > 30, "so many lines it was killed at"
