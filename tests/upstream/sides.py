"""The two sides of a comparison: virtual environments with and without the plugin, and runs in them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from . import outcomes
from .suites import Suite

__all__ = ["SIDES", "Run", "Side", "prepare"]

SIDES = ("without", "plusour")  # as long as each other: paths stand in what the suites wrap and compare

_INSTALL_S = 600
_RUN_S = 1800

Outcomes = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Run:
    """``outcomes`` by test id, ``passed`` or ``failed in setup``; ``tail`` is what pytest said last."""

    outcomes: Outcomes
    status: int
    tail: str


@dataclass(frozen=True, slots=True)
class Side:
    """One environment, and the suite's archive unpacked beside it."""

    suite: Suite
    base: Path
    left_out: tuple[str, ...] = ()

    @property
    def bin(self) -> Path:
        return self.base / "venv" / "bin"

    @property
    def root(self) -> Path:
        return self.base / "suite"

    def run(self, *arguments: str) -> Run:
        """The suite, or the tests that the arguments name. An environment of its own: nobody's settings, no home."""
        said, temporary, home = (self.base / name for name in ("outcomes.jsonl", "tmp", "home"))
        shutil.rmtree(temporary, ignore_errors=True)
        for folder in (temporary, home):
            folder.mkdir(exist_ok=True)
        said.write_text("")
        environment = {key: value.format(root=self.root) for key, value in self.suite.environment.items()}
        path = [str(self.base / "plugin"), *environment.pop("PYTHONPATH", "").split(os.pathsep)]
        environment |= {
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(filter(None, path)),
            "TMPDIR": str(temporary),
            outcomes.FILE: str(said),
        }
        done = subprocess.run(
            [str(self.bin / "pytest"), "-p", "outcomes", "-p", "no:cacheprovider", *self.suite.options, *arguments],
            cwd=self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_RUN_S,
            check=False,
        )
        return Run(_read(said), done.returncode, done.stdout[-6000:])


def prepare(suite: Suite, wheel: Path, folder: Path) -> tuple[Side, Side]:
    """Both sides of a suite. Every package that both have has one version."""
    release = f"{suite.name}=={version(suite.name)}"
    without, ours = (folder / side for side in SIDES)
    for base in (without, ours):
        _call([sys.executable, "-m", "venv", str(base / "venv")], cwd=folder)
    _pip(without, "install", release, *suite.needs)
    left_out = tuple(name for name in suite.optional if not _installs(without, name))
    frozen = folder / "constraints.txt"
    frozen.write_text(_pip(without, "freeze"))
    had = [name for name in suite.optional if name not in left_out]
    _pip(ours, "install", "-c", str(frozen), str(wheel), release, *suite.needs, *had)
    _pip(without, "download", "--no-deps", "--no-binary", suite.name, "-d", str(folder), release)
    (archive,) = folder.glob("*.tar.gz")
    for base in (without, ours):
        _unpack(archive, base / "suite")
        (base / "plugin").mkdir()
        shutil.copy(Path(outcomes.__file__), base / "plugin")
    return Side(suite, without, left_out), Side(suite, ours, left_out)


def _unpack(archive: Path, destination: Path) -> None:
    with tarfile.open(archive) as file:
        file.extractall(destination.parent, filter="data")
    (destination.parent / archive.name.removesuffix(".tar.gz")).rename(destination)
    shutil.rmtree(destination / "src")  # what is installed is tested, not this


def _read(path: Path) -> Outcomes:
    found: dict[str, list[str]] = {}
    for line in path.read_text(encoding="ascii").splitlines():
        test, when, outcome = json.loads(line)
        found.setdefault(test, []).append(outcome if when == "call" else f"{outcome} in {when}")
    return {test: ", ".join(sorted(several)) for test, several in found.items()}


def _installs(base: Path, name: str) -> bool:
    try:
        _pip(base, "install", name)
    except RuntimeError:
        return False
    return True


def _pip(base: Path, *arguments: str) -> str:
    return _call([str(base / "venv" / "bin" / "python"), "-m", "pip", "-q", *arguments], cwd=base)


def _call(command: Sequence[str], *, cwd: Path) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=dict(_kept(os.environ.items())), text=True, capture_output=True, timeout=_INSTALL_S
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def _kept(variables: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    """Where pip finds its indexes; nothing of the pytest or tox around this."""
    for key, value in variables:
        if key in {"HOME", "LANG", "PATH", "TMPDIR"} or key.startswith("PIP_") or key.lower().endswith("_proxy"):
            yield key, value
