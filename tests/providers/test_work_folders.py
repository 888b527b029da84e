"""The folder of all sandboxes: private, and given to who runs the guests, also when several processes begin at once."""

from __future__ import annotations

import multiprocessing
import os
import stat
import sys
from pathlib import Path

import pytest

from pytest_sandboxbench.providers.work_folders import WorkFolders

GUEST = 60978

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="local sandboxes are made on Linux")
as_root = pytest.mark.skipif(not sys.platform.startswith("linux") or os.geteuid() != 0, reason="gives folders away")


def made_by(uid: int, root: Path) -> str:
    """What is wrong with the folder that is made; "" for nothing."""
    try:
        WorkFolders("kind", str(root), uid).prepare()
    except OSError as error:
        return str(error)
    found = (root / "kind").lstat()
    return "" if (found.st_uid, stat.S_IMODE(found.st_mode)) == (uid, 0o700) else str(found)


def many(barrier: object, uid: int, roots: list[Path], said: multiprocessing.Queue[str]) -> None:
    for root in roots:
        barrier.wait(10)  # type: ignore[attr-defined]
        said.put(made_by(uid, root))


@pytest.mark.parametrize("uid", [pytest.param(GUEST, marks=as_root), os.geteuid()], ids=["guest", "own"])
def test_processes_that_begin_at_once_share_it(tmp_path: Path, uid: int) -> None:
    """Workers of one run do: the second must not look while the first has made it and not given it away."""
    context = multiprocessing.get_context("spawn")  # a fork of a process with threads is warned of from 3.12 on
    roots = [tmp_path / str(i) for i in range(100)]
    barrier, said = context.Barrier(4), context.Queue()
    processes = [context.Process(target=many, args=(barrier, uid, roots, said), daemon=True) for _ in range(4)]
    for process in processes:
        process.start()
    wrong = {said.get(timeout=30) for _ in range(4 * len(roots))}
    for process in processes:
        process.join(10)
    assert wrong == {""}


@as_root
def test_one_that_a_killed_process_made_is_taken(tmp_path: Path) -> None:
    (tmp_path / "kind").mkdir(mode=0o700)
    assert made_by(GUEST, tmp_path) == ""


@as_root
@pytest.mark.parametrize("mode", [0o755, 0o700], ids=["open", "not empty"])
def test_another_of_the_same_user_is_refused_and_stays_as_it_is(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "kind"
    folder.mkdir()
    folder.chmod(mode)
    if mode == 0o700:
        (folder / "something").touch()
    before = folder.lstat()
    assert "is not a folder of user" in made_by(GUEST, tmp_path)
    assert folder.lstat() == before


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "kind").symlink_to(tmp_path / "elsewhere")
    assert "is not a folder of user" in made_by(os.geteuid(), tmp_path)
