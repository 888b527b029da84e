"""One case: a folder with everything of it inside, runs of pytest and of the command in it, and what came of them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pytest_sandboxbench.model import Owner

from .host import Host

__all__ = ["SUBJECT", "Case", "Ended"]

SUBJECT = "subject"
"""The name of the instance under test, whatever its kind."""

LEAN = ("-p", "no:hypothesispytest", "-p", "no:anyio", "-p", "no:cacheprovider")
ENDS_S = 90.0

BENCHES = '''
import asyncio
import os
from pathlib import Path

import pytest

MARKS = Path(__file__).with_name("marks")


def mark(word, sandbox=""):
    with MARKS.open("a") as marks:
        marks.write(f"{word} {sandbox}\\n")


mark(os.environ.get("PYTEST_XDIST_WORKER", "alone"), os.getpid())


async def test_lives(sandbox_bench):
    """A sandbox that works, a bit longer than the others."""
    async def lives(sandbox):
        mark("lives", sandbox.id)
        await sandbox.exec(["sleep", "0.1"])
    await sandbox_bench.measure(lives)


async def test_paused(sandbox_bench, sandbox_provider):
    """The fourth one stays paused."""
    async def paused(sandbox):
        await sandbox.pause(kind=sandbox_provider.capabilities.pause[0])
        mark("paused", sandbox.id)
        if MARKS.read_text().count("paused") > 3:
            await asyncio.sleep(100)
        await sandbox.resume()
    await sandbox_bench.measure(paused)


async def test_stubborn(sandbox_bench):
    """A command that ignores every signal that can be ignored."""
    async def stubborn(sandbox):
        mark("stubborn", sandbox.id)
        await sandbox.exec(["sh", "-c", "trap '' TERM INT HUP QUIT; sleep 100"])
    await sandbox_bench.measure(stubborn)


@pytest.mark.sandbox_bench("startup")
async def test_startup(sandbox_bench):
    await sandbox_bench.measure()


@pytest.mark.sandbox_bench("write_file")
async def test_write_file(sandbox_bench):
    await sandbox_bench.measure()


@pytest.mark.sandbox_bench("read_file")
async def test_read_file(sandbox_bench):
    await sandbox_bench.measure()


@pytest.mark.sandbox_bench("resume")
async def test_resume(sandbox_bench):
    await sandbox_bench.measure()


@pytest.mark.sandbox_bench("round_trip")
async def test_round_trip(sandbox_bench):
    await sandbox_bench.measure()


@pytest.mark.sandbox_bench("cold_run")
async def test_cold_run(sandbox_bench):
    await sandbox_bench.measure()


async def test_stream(sandbox_bench):
    async def stream(sandbox):
        assert [piece async for piece in sandbox.stream(["echo", "hi"])]
    await sandbox_bench.measure(stream)


async def test_fixture(sandbox):
    """No bench: a sandbox from the fixture."""
    assert (await sandbox.exec(["true"])).exit_code == 0


def test_other():
    """A test that has nothing to do with sandboxes."""
    mark("other")
'''


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended; ``status`` is negative for a signal, as ``subprocess`` has it."""

    status: int
    text: str


@dataclass
class Case:
    """``kind`` is the provider's. ``root`` is a new folder, without permissions for others."""

    root: Path
    kind: str
    host: Host = field(init=False)
    environment: dict[str, str] = field(init=False)
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.root.chmod(0o755)
        for name in ("tmp", "state", "work", "fake"):
            (self.root / name).mkdir()
        self.host = Host(self.root)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "SANDBOXBENCH_", "COV_"))}
        self.environment = {
            **kept,
            "TMPDIR": str(self.root / "tmp"),
            "XDG_STATE_HOME": str(self.root / "state"),
            "PYTHONPATH": str(self._install()),
            "PYTHONDONTWRITEBYTECODE": "1",
            "COLUMNS": "120",
        }
        (self.root / "test_cases.py").write_text(BENCHES, encoding="utf-8")
        self.configure({SUBJECT: {}})

    def _install(self) -> Path:
        """The faulty provider, as a package of somebody else that is on the path."""
        site = self.root / "site"
        info = site / "faulty_sandboxbench-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty-sandboxbench\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[sandboxbench.providers]\nfaulty = faulty_sandboxbench:factory\n")
        shutil.copy(Path(__file__).with_name("faulty.py"), site / "faulty_sandboxbench.py")
        return site

    # -- the instances

    def configure(self, instances: Mapping[str, Mapping[str, Any]]) -> None:
        """Write ``pyproject.toml``: instances by name with their settings, of the kind or, with ``at``, faulty ones."""
        lines = ["[tool.pytest.ini_options]", 'asyncio_default_fixture_loop_scope = "function"']
        for name, settings in instances.items():
            faulty = {"kind": "faulty", "inner": self.kind, "off": str(self.off), "log": str(self.log)}
            own = faulty if "at" in settings else {"kind": self.kind}
            lines.append(f'[tool.sandboxbench.providers."{name}"]')
            lines += [f"{k} = {json.dumps(v)}" for k, v in {**own, **self.place, **settings}.items()]
        (self.root / "pyproject.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")

    @property
    def place(self) -> dict[str, Any]:
        """Settings by which all that is made lies in the case's folder."""
        return {"state_dir": str(self.root / "fake")} if self.kind == "fake" else {"work_root": str(self.root / "work")}

    @property
    def off(self) -> Path:
        """While this file is there, the faulty provider is a good one."""
        return self.root / "off"

    @property
    def log(self) -> Path:
        return self.root / "log"

    # -- running

    def command(self, *arguments: str) -> list[str]:
        usual = ["--sandbox-warmup=0", "--sandbox-floor=none"]
        if not any(a.startswith("--sandbox-provider") for a in arguments):
            usual.append(f"--sandbox-provider={SUBJECT}")
        return [sys.executable, "-m", "pytest", *LEAN, *usual, *arguments]

    def start(
        self,
        *arguments: str,
        before: Callable[[], None] | None = None,
        env: Mapping[str, str] | None = None,
        command: Sequence[str] | None = None,
    ) -> subprocess.Popen[str]:
        """A run of pytest, its output in a file: a reader that is slow must not hold it back."""

        def prepare() -> None:
            for number in (signal.SIGINT, signal.SIGHUP):  # ignored in the background, or by nohup
                signal.signal(number, signal.SIG_DFL)
            if before is not None:
                before()

        with (self.root / f"output-{len(self.started)}").open("w") as output:
            process = subprocess.Popen(
                command or self.command(*arguments),
                cwd=self.root,
                env={**self.environment, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=prepare,
                text=True,
            )
        self.started.append(process)
        return process

    def end(self, process: subprocess.Popen[str], within_s: float = ENDS_S) -> Ended:
        try:
            status = process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end within {within_s:g} s:\n{self.output(process)[-3000:]}") from None
        return Ended(status, self.output(process))

    def output(self, process: subprocess.Popen[str]) -> str:
        return (self.root / f"output-{self.started.index(process)}").read_text(encoding="utf-8", errors="replace")

    def run(self, *arguments: str, **how: Any) -> Ended:
        return self.end(self.start(*arguments, **how))

    def sandboxbench(self, *arguments: str) -> Ended:
        done = subprocess.run(
            [sys.executable, "-m", "pytest_sandboxbench.cli", *arguments],
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=ENDS_S,
            check=False,
        )
        return Ended(done.returncode, done.stdout + done.stderr)

    def wait(self, is_so: Callable[[], object], process: subprocess.Popen[str], what: str) -> None:
        until = time.monotonic() + ENDS_S
        while not is_so():
            assert process.poll() is None, f"it ended before {what}:\n{self.output(process)[-3000:]}"
            assert time.monotonic() < until, f"no {what}:\n{self.output(process)[-3000:]}"
            time.sleep(0.01)

    def wait_for_mark(self, word: str, number: int, process: subprocess.Popen[str]) -> None:
        self.wait(lambda: self.marks(word) >= number, process, f"{number} marks {word!r}")

    def marks(self, word: str) -> int:
        return _count(self.root / "marks", word)

    def worker(self, name: str) -> int:
        """The process of a worker that has collected its tests."""
        lines = (self.root / "marks").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name} "))

    def logged(self, words: str) -> int:
        return _count(self.log, words)

    def close(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()

    # -- what came of it

    @property
    def ledgers(self) -> list[Path]:
        return sorted((self.root / "state").glob("sandboxbench/ledger/*.jsonl"))

    @property
    def runs(self) -> list[str]:
        """Ids of the runs of which something is on disk."""
        owners = [Owner.parse(unquote(path.stem)) for path in self.ledgers]
        headers = [json.loads(path.read_text())["run_id"] for path in self.root.glob("**/run.json")]
        return sorted({*headers, *(owner.run_id for owner in owners if owner is not None)})

    @property
    def records(self) -> list[Path]:
        return sorted(path.parent for path in self.root.glob("**/run.json"))


def _count(path: Path, words: str) -> int:
    try:
        return sum(line.startswith(words) for line in path.read_text(encoding="utf-8").splitlines())
    except FileNotFoundError:
        return 0
