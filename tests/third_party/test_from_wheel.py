"""A provider of somebody else joins from outside: its wheel and ours in a fresh environment, nothing of this tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
MINI = Path(__file__).parent / "mini"


def execute(*command: object, cwd: Path, status: int = 0) -> str:
    """Run a command that must end with this status, with none of the settings of the pytest or tox around this test."""
    kept = {key: value for key, value in os.environ.items() if key in {"HOME", "LANG", "PATH", "TMPDIR"}}
    kept |= {key: value for key, value in os.environ.items() if key.startswith("PIP_") or key.endswith("_proxy")}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=kept | {"COLUMNS": "100", "XDG_STATE_HOME": str(cwd / "state")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == status, f"{' '.join(map(str, command))}\n{done.stdout}"
    return done.stdout


def wheel(source: Path, folder: Path) -> Path:
    execute(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", folder, source, cwd=folder)
    (made,) = folder.glob("*.whl")
    return made


def lying(folder: Path) -> Path:
    """The source of another provider, ``liar``: the same, but that it declares streams, of which it has none."""
    source = shutil.copytree(MINI, folder / "source")
    module = (source / "mini_sandboxbench.py").read_text(encoding="utf-8")
    assert module.count("files=True, ") == 1
    lie = module.replace("files=True, ", "files=True, stream=True, ")
    (source / "liar_sandboxbench.py").write_text(lie, encoding="utf-8")
    project = (source / "pyproject.toml").read_text(encoding="utf-8")
    (source / "pyproject.toml").write_text(project.replace("mini", "liar"), encoding="utf-8")
    return source


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment with three wheels: ours, the provider, and the provider that lies."""
    base = tmp_path_factory.mktemp("third")
    sources = {"ours": ROOT, "mini": MINI, "liar": lying(tmp_path_factory.mktemp("lying"))}
    wheels = []
    for name, source in sources.items():
        (base / name).mkdir()
        wheels.append(wheel(source, base / name))
    execute(sys.executable, "-m", "venv", base / "venv", cwd=base)
    execute(base / "venv/bin/python", "-m", "pip", "install", "--quiet", *wheels, cwd=base)
    return base / "venv" / "bin"


def test_its_own_tests_pass(scripts: Path, tmp_path: Path) -> None:
    test = shutil.copy(MINI / "test_mini.py", tmp_path)
    assert len(Path(test).read_text(encoding="utf-8").splitlines()) < 30
    out = execute(scripts / "pytest", "-rs", "-n", "2", test, cwd=tmp_path)
    assert "mini: cannot pause" in out


def test_the_card(scripts: Path, tmp_path: Path) -> None:
    out = execute(scripts / "sandboxbench", "check", "mini", cwd=tmp_path)
    assert "mini keeps its promises: " in out
    assert "cannot     stream, one-shot run, network off" in out


def test_it_is_listed(scripts: Path, tmp_path: Path) -> None:
    out = execute(scripts / "sandboxbench", "providers", cwd=tmp_path)
    assert any(line.split()[:2] == ["mini", "ready:"] for line in out.splitlines()), out


def test_it_is_measured(scripts: Path, tmp_path: Path) -> None:
    suites = ("--pyargs", "pytest_sandboxbench.benches", "--provider=mini")
    out = execute(scripts / "pytest", *suites, "-k", "startup", "--sandbox-samples", "3", cwd=tmp_path)
    (row,) = (line for line in out.splitlines() if line.startswith("  mini "))
    assert "100 %" in row


def test_a_declaration_that_is_not_true_fails(scripts: Path, tmp_path: Path) -> None:
    out = execute(scripts / "sandboxbench", "check", "liar", "-k", "stream", "--timeout", "5", cwd=tmp_path, status=1)
    assert "FAILED  stream-the_last_item_is_the_exit" in out
    assert "liar does not pass: " in out


def test_nothing_is_left(scripts: Path, tmp_path: Path) -> None:
    out = execute(scripts / "sandboxbench", "list", "mini", cwd=tmp_path)
    assert "no sandbox of this project exists" in out
