"""Writing: appended as it happens, whole lines, and a full disk never stops a run."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path

import pytest

from pytest_sandboxbench.records.read import read_run
from pytest_sandboxbench.records.schema import encode, lines
from pytest_sandboxbench.records.spool import Spool, write_header

from .written import HEADER, folder, sample


def test_what_was_appended_is_on_disk_at_once(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "new" / "run", "samples-gw0.jsonl")
    spool.append(b"")
    assert not spool.path.parent.exists(), "nothing measured, nothing written"
    spool.append(b"1\n")
    assert spool.path.read_bytes() == b"1\n"
    spool.append(b"2\n3\n")
    assert spool.path.read_bytes() == b"1\n2\n3\n"
    spool.close()
    spool.close()
    assert spool.problem == ""


def test_two_processes_append_to_one_file_without_loss(tmp_path: Path) -> None:
    one, other = Spool(tmp_path), Spool(tmp_path)
    for n in range(100):
        (one if n % 2 else other).append(b"%d\n" % n)
    assert one.path.read_bytes().split() == [b"%d" % n for n in range(100)]
    one.close()
    other.close()


def test_a_short_write_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda to, data: write(to, data[:3]))
    spool = Spool(tmp_path)
    spool.append(b"0123456789\n")
    spool.close()
    assert spool.path.read_bytes() == b"0123456789\n"


def test_a_full_disk_is_said_once_and_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What had been written before stays readable, the line that the disk had no room for included in no statistic."""
    folder(tmp_path)
    line = lines([encode(sample(), 0)])
    spool = Spool(tmp_path)
    spool.append(line)
    write, calls = os.write, 0

    def full(to: int, data: bytes) -> int:
        nonlocal calls
        calls += 1
        if calls == 1:
            return write(to, data[:20])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        spool.append(line)
        spool.append(line)
    spool.append(line)
    spool.close()
    assert spool.problem == f"records are incomplete: {spool.path}: No space left on device"
    assert calls == 2, "after the first error nothing is tried again"
    run = read_run(tmp_path)
    (series,) = run.series
    assert (series.attempts, run.torn) == (1, 1)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    spool = Spool(tmp_path / "file" / "run")
    spool.append(b"1\n")
    spool.close()
    assert "records are incomplete" in spool.problem
    assert "records are incomplete" in write_header(tmp_path / "file" / "run", HEADER)


def test_a_header_is_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader sees the old one or the new one; a disk that is full in between leaves the old one."""
    assert write_header(tmp_path, {**HEADER, "n": 1}) == ""
    seen = []
    replace = Path.replace

    def watched(self: Path, target: Path) -> Path:
        seen.append(json.loads((tmp_path / "run.json").read_text())["n"])
        assert json.loads(self.read_text())["n"] == 2
        return replace(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", watched)
        assert write_header(tmp_path, {**HEADER, "n": 2}) == ""
    assert seen == [1]
    assert json.loads((tmp_path / "run.json").read_text())["n"] == 2

    def full(self: Path, *args: object, **kwargs: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    for step in ("open", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(Path, step, full)
            assert "No space left on device" in write_header(tmp_path, {**HEADER, "n": 3})
        assert json.loads((tmp_path / "run.json").read_text())["n"] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_header_of_anything_can_be_written(tmp_path: Path) -> None:
    odd = {1: Path("/x"), "t": (1, 2), "s": "\udcff", "n": None, "f": 1.5, "b": True, "set": frozenset({1})}
    assert write_header(tmp_path, {**HEADER, "odd": odd}) == ""
    read = json.loads((tmp_path / "run.json").read_text())["odd"]
    assert read == {"1": "/x", "t": [1, 2], "s": "\\udcff", "n": None, "f": 1.5, "b": True, "set": "frozenset({1})"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full (Linux)")
def test_a_real_full_device(tmp_path: Path) -> None:
    try:
        os.mknod(tmp_path / "samples.jsonl", stat.S_IFCHR | 0o666, Path("/dev/full").stat().st_rdev)
        os.close(os.open(tmp_path / "samples.jsonl", os.O_WRONLY))
    except OSError:
        pytest.skip("may make no device here")
    spool = Spool(tmp_path)
    spool.append(b"1\n")
    spool.close()
    assert "No space left on device" in spool.problem


def test_a_link_in_the_way_is_not_written_through(tmp_path: Path) -> None:
    """A folder that somebody else made may hold one under the name of our temporary file."""
    other = tmp_path / "other"
    other.write_text("mine")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / f".run.json.{os.getpid()}").symlink_to(other)
    (tmp_path / "run" / "run.json").symlink_to(other)
    assert write_header(tmp_path / "run", HEADER) == ""
    assert other.read_text() == "mine"
    assert not (tmp_path / "run" / "run.json").is_symlink()


def test_a_link_in_its_place_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"mine\n")
    spool = Spool(tmp_path)
    spool.path.symlink_to(tmp_path / "precious")
    spool.append(b"1\n")
    assert (tmp_path / "precious").read_bytes() == b"mine\n"
    assert spool.problem.startswith(f"records are incomplete: {spool.path}")
