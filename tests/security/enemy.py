"""Files as an enemy makes them, and a process that has little memory and little time to refuse them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from pytest_sandboxbench.records.schema import encode, lines
from tests.records.written import HEADER, folder, sample

__all__ = ["ENOUGH", "Answer", "bounded", "line", "many", "records", "replace"]

ENOUGH = 1 << 30
"""Bytes of address space: what a report of an ordinary run takes twenty times over."""

_ROW: dict[str, Any] = json.loads(lines([encode(sample(), 0)]))

# The limits are set by the child itself: preexec_fn is no friend of threads.
_CHILD = """
import resource, runpy, signal, sys
memory, module, *sys.argv = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
sys.argv.insert(0, module)
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


class Answer(NamedTuple):
    status: int
    out: str
    err: str

    def refused(self) -> str:
        """One message on standard error, status 4, nothing else. Returns the message."""
        assert (self.status, self.out) == (4, ""), self
        assert self.err.startswith("sandboxbench: "), self
        assert self.err.count("\n") == 1, self
        assert self.err.rstrip("\n").isprintable(), self
        assert len(self.err) < 1500, self
        return self.err

    def printed(self) -> str:
        """A report, and no line of it that a terminal would obey."""
        assert self.status in (0, 1), self
        assert "Traceback" not in self.err, self
        assert all(line.isprintable() for line in (self.out + self.err).split("\n")), self
        return self.out


def bounded(module: str, *arguments: str, seconds: float = 20, cwd: Path | None = None) -> Answer:
    """Run a module's command with :data:`ENOUGH` memory. ``TimeoutExpired`` for one that hangs."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(ENOUGH), module, *arguments],
        capture_output=True,
        timeout=seconds,
        cwd=cwd,
        check=False,
        env={**os.environ, "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
    )
    return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())


def line(**changed: Any) -> bytes:
    """A line of samples with these fields."""
    return json.dumps({**_ROW, **changed}).encode() + b"\n"


def many(count: int, **changed: str) -> bytes:
    """As many lines; each has its number in place of ``#``."""
    start, *ends = line(**changed).decode().split("#")
    return "".join(str(n).join([start, *ends]) for n in range(count)).encode()


def records(path: Path, samples: bytes | None = None, **header: Any) -> Path:
    """A folder of records that is in order but for these lines, or these parts of the header."""
    folder(path, sample(), sample("null"), header={**HEADER, **header})
    if samples is not None:
        (path / "samples.jsonl").write_bytes(samples)
    return path


def replace(path: Path, make: Callable[[Path], object]) -> None:
    """Put something else where a file is."""
    path.unlink()
    make(path)
