"""A test that needs a quiet machine is named and not a failure; one that fails by itself is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from . import twice

ONCE = """
from pathlib import Path
def test_company():
    ran = Path(__file__).with_name("ran")
    assert ran.exists(), ran.touch()
"""


def run(path: Path, source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (path / "test_it.py").write_text(source)
    command = [sys.executable, twice.__file__, str(path), "--rootdir", str(path), "-p", "no:sandboxbench", *arguments]
    return subprocess.run(command, cwd=path, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("workers", [[], ["-n", "2", "--dist", "worksteal"]], ids=["plain", "workers"])
def test_what_passes_alone_is_named(tmp_path: Path, workers: list[str]) -> None:
    done = run(tmp_path, ONCE + "def test_other(): pass\n", *workers)
    assert done.returncode == 0, done.stdout
    assert "1 failed, 1 passed" in done.stdout
    assert done.stdout.endswith("\nfailed among others, passed alone:\n  test_it.py::test_company\n")


def test_what_fails_again_has_failed(tmp_path: Path) -> None:
    done = run(tmp_path, ONCE + "def test_other(): assert 1 == 2\n")
    assert done.returncode == 1
    assert done.stdout.count("FAILED test_it.py::test_other - assert 1 == 2") == 2
    assert "1 failed, 1 passed" in done.stdout


def test_many_failures_are_not_tried_again(tmp_path: Path) -> None:
    many = f"import pytest\n@pytest.mark.parametrize('n', range({twice.MOST + 1}))\ndef test_it(n): assert n < 0\n"
    done = run(tmp_path, many)
    assert done.returncode == 1
    assert "once more" not in done.stdout


@pytest.mark.parametrize(("source", "status"), [("", 5), ("import nothing_of_this_name\n", 2)], ids=["none", "broken"])
def test_other_ends_are_passed_on(tmp_path: Path, source: str, status: int) -> None:
    assert run(tmp_path, source).returncode == status
