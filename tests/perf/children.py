"""One child process: how long it took, how much CPU time and memory."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

__all__ = ["ROOT", "Used", "environment", "run"]

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Used:
    """``started_ns`` and ``ended_ns`` on the monotonic clock; ``cpu_s`` with its children's; ``memory_mib`` its peak.

    The peak counts what this process held when it started the child, too: keep that small.
    """

    started_ns: int
    ended_ns: int
    cpu_s: float
    memory_mib: float
    output: str

    @property
    def wall_s(self) -> float:
        return (self.ended_ns - self.started_ns) / 1e9


def run(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str] | None = None, code: int = 0) -> Used:
    """Run it to its end; ``RuntimeError`` with its output for another exit code than expected."""
    with TemporaryFile() as output:
        started = time.monotonic_ns()
        process = subprocess.Popen(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        _, status, usage = os.wait4(process.pid, 0)
        ended = time.monotonic_ns()
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode(errors="replace")
    if process.returncode != code:
        raise RuntimeError(f"{argv} ended with {process.returncode}: {text[-2000:]}")
    return Used(started, ended, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text)


def environment(folder: Path) -> dict[str, str]:
    """For a pytest as in an environment of its own: only the plugins that are named, and settings of nobody.

    Byte code goes to ``folder``: a first run compiles it, and work on the package meanwhile does not disturb.
    """
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "PYTHON"))}
    return inherited | {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
        "PYTHONPATH": str(ROOT),
    }
