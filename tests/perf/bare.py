"""The same command lines without this project: a small C program, and hyperfine."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from pytest_sandboxbench.providers.one_process import Command

__all__ = ["Spawner", "hyperfine", "spawner"]

_SOURCE = Path(__file__).with_name("spawn.c")


class Spawner:
    """The running C program."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.output = b""

    def run(self, lanes: int = 1) -> list[int]:
        """Latencies (ns) of lanes released at one instant; ``output`` is then what the first one printed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"%d\n" % lanes)
        self._process.stdin.flush()
        latencies = [int(text) for text in self._process.stdout.readline().split()]
        if len(latencies) != lanes:
            raise RuntimeError("the C program ended")
        self.output = self._process.stdout.read(int(self._process.stdout.readline()))
        if min(latencies) < 0:
            raise RuntimeError(f"the command failed: {self.output.decode(errors='replace')}")
        return latencies


@contextlib.contextmanager
def spawner(commands: Sequence[Command]) -> Iterator[Spawner]:
    """The C program, compiled and started, ready to run these commands (lane k the k-th)."""
    with TemporaryDirectory(prefix="sandboxbench-perf-") as folder:
        program, data = Path(folder, "spawn"), Path(folder, "commands")
        subprocess.run(["cc", "-O2", "-pthread", "-o", program, _SOURCE], check=True)
        data.write_bytes(b"".join(_packed(command) for command in commands))
        process = subprocess.Popen(
            [*_without_privileges(), program, data],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=commands[0].pass_fds,
        )
        try:
            yield Spawner(process)
        finally:
            process.communicate()


def hyperfine(command: Command, runs: int) -> list[float]:
    """Times in seconds, as hyperfine takes them, without a shell, output through a pipe."""
    with TemporaryDirectory(prefix="sandboxbench-perf-") as folder:
        report = Path(folder, "times.json")
        options = ["-N", "--output=pipe", "--style=none", f"--runs={runs}", f"--export-json={report}"]
        subprocess.run(
            [*_without_privileges(), _found("hyperfine"), *options, shlex.join(command.argv)],
            env=_environment(command),
            pass_fds=command.pass_fds,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        times: list[float] = json.loads(report.read_text())["results"][0]["times"]
        return times


def _packed(command: Command) -> bytes:
    environment = [f"{key}={value}" for key, value in _environment(command).items()]
    words = [str(len(command.argv)), *command.argv, str(len(environment)), *environment]
    return b"".join(os.fsencode(word) + b"\0" for word in words)


def _environment(command: Command) -> Mapping[str, str]:
    assert command.env is not None
    return command.env


def _without_privileges() -> list[str]:
    """What the provider's threads give up before they start anything, as a prefix."""
    groups = ["--clear-groups"] if os.geteuid() == 0 else []
    return [_found("setpriv"), "--no-new-privs", *groups, "--"]


def _found(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise SystemExit(f"{name} is not installed: setpriv comes with util-linux, hyperfine as a package of its own")
    return path
