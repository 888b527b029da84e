"""The card of a provider whose author made a mistake that touches everything: what it prints, and what it says."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_sandboxbench.providers import fake
from pytest_sandboxbench.providers.registry import Registry
from tests.test_cli import run, write_config
from tests.test_cli_check import COMMAND, LISTED, ROOT, SECRET, card


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


class Own:
    """The scripted provider, with a mistake in its code."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self.inner = fake.factory(name, {})

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Talks(Own):
    """Prints and logs its key wherever it is called."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(name, {})
        self.key = options["api_key"]

    def tell(self) -> None:
        print("using", self.key)
        print("in", "pieces", self.key[:5], sep="", end="")
        print(self.key[5:])
        sys.stderr.buffer.write(f"bytes {self.key}".encode())
        logging.warning("refused %s", self.key)
        logging.getLogger("cloud").error("%r", {"key": self.key})

    async def preflight(self) -> Any:
        self.tell()
        return await self.inner.preflight()

    async def aclose(self) -> None:
        self.tell()
        await self.inner.aclose()


@pytest.mark.parametrize("command", ["check", "providers", "doctor"])
def test_what_a_provider_prints_holds_no_secret(tmp_path: Path, command: str) -> None:
    write_config(cloud=f'kind = "cloud"\napi_key = "{SECRET}"')
    (tmp_path / "cloud.py").write_text(f"from {__name__} import Talks as factory\n")
    (tmp_path / "cloud-1.dist-info").mkdir()
    (tmp_path / "cloud-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: cloud\nVersion: 1\n")
    (tmp_path / "cloud-1.dist-info" / "entry_points.txt").write_text(
        "[sandboxbench.providers]\ncloud = cloud:factory\n"
    )
    words = {"check": ["cloud", "-k", "idempotent"], "providers": ["cloud"], "doctor": []}[command]
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run(
        [*COMMAND[:-1], command, *words],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env=os.environ | {"PYTHONPATH": path},
    )
    text = done.stdout + done.stderr
    assert "cloud" in text
    assert SECRET not in text
    assert SECRET[5:] not in text
    if command == "check":
        assert done.returncode == 0
        assert "using ***\n" in done.stdout
        assert "inpieces***\n" in done.stdout
        assert "refused ***\n" in done.stderr
        assert "bytes ***" in done.stderr


class NothingDeclared(Own):
    @property
    def capabilities(self) -> Any:
        raise KeyError("region")


class NotAsync(Own):
    def round_trip(self) -> None:
        """It lacks its `async`."""


def known(monkeypatch: pytest.MonkeyPatch, kind: type[Own]) -> None:
    """As provider ``own``."""
    targets = {"own": f"{__name__}:{kind.__name__}"}
    init = Registry.__init__

    def made(self: Registry, *arguments: Any) -> None:
        init(self, *arguments)
        self._targets.update(targets)

    monkeypatch.setattr(Registry, "__init__", made)


class DestroysNothing(Own):
    async def destroy(self, ref: object, *, deadline_s: float) -> None:
        """It returns."""


def test_a_destroy_that_does_nothing_is_said_once_and_waited_for_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known(monkeypatch, DestroysNothing)
    monkeypatch.setattr("pytest_sandboxbench.compliance.run._BETWEEN_LOOKS_S", 0.1)
    started = time.monotonic()
    lines = card(capsys, 1, "own", "-k", "files-", "-k", LISTED)
    assert time.monotonic() - started < 8
    failed = [line for line in lines if line.startswith("FAILED")]
    assert len(failed) > 5
    came = [line for line in lines if line.startswith("  came ")]
    assert len(came) == 1
    text = " ".join(map(str.strip, lines))
    said = f"{len(failed)} checks: destroy of a sandbox returned, and owned still lists it: the first is own-"
    assert said in text


@pytest.mark.parametrize("command", ["check", "providers"])
def test_capabilities_that_raise(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    known(monkeypatch, NothingDeclared)
    assert run(command, "own") == 1
    said = "".join(capsys.readouterr())
    assert "KeyError: 'region' (test_card.py, line " in said
    assert "a provider declares what it can do: docs/providers.md" in said


def test_a_method_that_is_not_async(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    known(monkeypatch, NotAsync)
    assert "is it `async def`?" in " ".join(map(str.strip, card(capsys, 1, "own", "-k", "a_round_trip")))
