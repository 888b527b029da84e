"""``python -m tests.twice [ARGUMENTS OF PYTEST]``: what fails among other tests must pass by itself, or it has failed.

Many of these tests measure real time on real sandboxes, while as many others as there are workers do the same. One that
needs a quiet machine shall not fail a change that has nothing to do with it; it is named, so that it can be mended.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

MOST = 12
"""More than so many failures are not the company's fault."""

_FAILED = 1  # pytest.ExitCode.TESTS_FAILED


def main(arguments: Sequence[str]) -> int:
    # The script, not `python -m pytest`: that would import the package from here, and not what tox installed.
    pytest = Path(sys.executable).with_name("pytest")
    with tempfile.TemporaryDirectory() as cache:
        command = [str(pytest), *arguments, "-o", f"cache_dir={cache}"]
        status = subprocess.call(command)
        if status != _FAILED:
            return status
        told = Path(cache) / "v/cache/lastfailed"
        failed = list(json.loads(told.read_text("utf-8"))) if told.exists() else []
        if not 0 < len(failed) <= MOST:
            return status
        print(f"\n{len(failed)} failed; once more, one after another:", *failed, sep="\n  ", flush=True)
        status = subprocess.call([*command, "-n", "0", "--lf", "--lfnf", "none"])
    if status == 0:
        print("\nfailed among others, passed alone:", *failed, sep="\n  ", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
