"""Every module can be imported on every system: what a system does not have is missed when it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

# What is imported first keeps the real platform: asyncio and subprocess would look for Windows itself.
ALL = """
import importlib, pkgutil, sys
import asyncio, concurrent.futures, ctypes, multiprocessing, pytest, shutil, socket, subprocess, tempfile, zoneinfo

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

platform, *missing = sys.argv[1:]
for name in missing:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Missing())
sys.platform = platform
if platform == "win32":
    import os, select, signal
    posix = {os: "geteuid getuid getpgid killpg uname eventfd pidfd_open waitid chown memfd_create", select: "poll"}
    posix[signal] = "SIGKILL SIGSTOP SIGCONT SIGHUP"
    for module, gone in posix.items():
        for name in gone.split():
            if hasattr(module, name):
                delattr(module, name)
import pytest_sandboxbench
names = [found.name for found in pkgutil.walk_packages(pytest_sandboxbench.__path__, "pytest_sandboxbench.")]
for name in names:
    # What needs an extra: a server that is for Linux.
    if not name.endswith("__main__") and not name.startswith("pytest_sandboxbench.serve.e2b"):
        importlib.import_module(name)
assert "pytest_sandboxbench.providers.fake" in names
"""
PREFLIGHTS = """
for name in ("bubblewrap", "null", "fake"):
    module = importlib.import_module(f"pytest_sandboxbench.providers.{name}")
    found = asyncio.run(module.factory(name, {}).preflight())
    print(name, found.ready, bool(found.ready or (found.reason and found.cure)))
"""
POSIX = ("fcntl", "pwd", "grp", "resource", "termios")


def python(code: str, *argv: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("argv", [("win32", *POSIX), ("darwin",)], ids=["win32", "darwin"])
def test_every_module_is_imported(argv: tuple[str, ...]) -> None:
    python(ALL, *argv)


def test_what_runs_on_windows() -> None:
    said = python(ALL + PREFLIGHTS, "win32", *POSIX)
    assert said.splitlines() == ["bubblewrap False True", "null False True", "fake True True"]


def test_a_shared_state_is_refused_where_files_cannot_be_locked() -> None:
    code = """
from pytest_sandboxbench.errors import UsageError
from pytest_sandboxbench.providers import fake
try:
    fake.factory("fake", {"state_dir": "x"})
except UsageError as error:
    print(error)
"""
    assert "state_dir" in python(ALL + code, "win32", *POSIX)
