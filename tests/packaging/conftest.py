"""Builds of this tree, each made once in a test session."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Built:
    """What ``python -m build`` makes: the source archive, the wheel from it, and the wheel straight from the tree."""

    sdist: Path
    wheel_from_sdist: Path
    wheel_from_tree: Path


def build(destination: Path, *arguments: str) -> None:
    """Run ``python -m build`` with the build backend that is installed here: no network, no environment of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(destination), *arguments, str(ROOT)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    both = tmp_path_factory.mktemp("sdist-then-wheel")
    build(both)
    direct = tmp_path_factory.mktemp("wheel-from-tree")
    build(direct, "--wheel")
    (sdist,) = both.glob("*.tar.gz")
    (wheel_from_sdist,) = both.glob("*.whl")
    (wheel_from_tree,) = direct.glob("*.whl")
    return Built(sdist, wheel_from_sdist, wheel_from_tree)
