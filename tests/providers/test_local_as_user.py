"""Root runs the tests of the local providers once more as an ordinary user, which is who runs them elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

UID = 54321
HERE = Path(__file__).parent
FILES = ("test_bubblewrap_isolation.py", "test_bubblewrap_start.py", "test_owned.py")
IN_FULL = (
    "test_bubblewrap.py",
    "test_bubblewrap_host.py",
    "test_bubblewrap_limits.py",
    "test_bubblewrap_pause.py",
    "test_guest_python.py",
    "test_null.py",
    "test_processes.py",
)

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="not root: the tests ran as an ordinary user"
)


def as_user(*argv: str, env: dict[str, str], cwd: str) -> subprocess.CompletedProcess[str]:
    line = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", *argv]
    return subprocess.run(line, env=env, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("name", [*FILES, *(pytest.param(name, marks=pytest.mark.full) for name in IN_FULL)])
def test_as_an_ordinary_user(name: str) -> None:
    own = Path("/var/tmp") / f"sandboxbench-{UID}"
    folder = Path("/tmp") / f"sandboxbench-test-{os.getpid()}"
    folder.mkdir()
    os.chown(folder, UID, UID)
    paths = [str(HERE.parent.parent), sysconfig.get_path("purelib")]
    env = {
        "HOME": str(folder),
        "PATH": os.defpath,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    try:
        # The harness's own interpreter may lie in root's home; the same version of the system's can run all the same.
        # setpriv still has root's rights when it opens the program, so the program is asked.
        pythons = (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}")
        ask = "import os, sys, pytest, pytest_sandboxbench; sys.exit(not os.access(sys.executable, os.X_OK))"
        python = next((path for path in pythons if as_user(path, "-c", ask, env=env, cwd="/").returncode == 0), None)
        if python is None:
            pytest.skip(f"user {UID} can run none of {', '.join(pythons)} with pytest and this package")
        done = as_user(
            python,
            *(
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                "--tb=short",
                f"--basetemp={folder}/tmp",
                f"--rootdir={folder}",
            ),
            *("-c", os.devnull, str(HERE / name)),
            env=env,
            cwd=str(folder),
        )
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        assert " passed" in done.stdout
    finally:
        shutil.rmtree(folder)
        shutil.rmtree(own, ignore_errors=True)
