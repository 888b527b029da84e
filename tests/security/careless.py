"""A provider of a third party that says a text, a secret or a hostile one, wherever an adapter can say anything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.plugin.conftest import Suite

__all__ = ["BENCHES", "command", "install", "ours"]

# TEXT is what stands in the setting `api_key`, or a hostile text; MODE what goes wrong.
_PROVIDER = """
import logging
import os
import sys
import warnings

from pytest_sandboxbench.errors import CreateFailed, DestroyFailed, ExecFailed
from pytest_sandboxbench.model import Capabilities, ExecResult, Preflight, SandboxRef, SpanDeclaration

LOG = logging.getLogger("careless")


class Careless(Exception):
    def __init__(self, text):
        self.text = text
        super().__init__(text, {"key": text})


def tell(text):
    print(text)
    print(repr(text), file=sys.stderr)
    LOG.warning("told %s", text)
    try:
        raise Careless(text)
    except Careless:
        LOG.exception("an error with %r", text)
    warnings.warn(f"deprecated: {text}")


class Cloud:
    def __init__(self, name, options):
        self.name = name
        self.mode = options.pop("mode", "")
        self.text = HOSTILE or options.pop("api_key", "") + " " + os.environ.get("CLOUD_API_KEY", "")
        self.made = {}
        self.count = 0
        self.capabilities = Capabilities(
            isolation="hosted", hosted=True, files=False, stream=False,
            spans=(SpanDeclaration("exec", start=self.text, end=self.text, state=self.text),),
        )
        if self.mode == "settings":
            from pytest_sandboxbench.errors import UsageError
            raise UsageError(f"provider {name!r}: no such region for {self.text}")
        if self.mode == "load":
            raise Careless(self.text)

    async def preflight(self):
        tell(self.text)
        if self.mode == "missing":
            return Preflight(False, f"refused {self.text}", f"export KEY={self.text}")
        if self.mode == "preflight":
            raise Careless(self.text)
        return Preflight(True, facts={"version": self.text, "sdk": repr(self.text), "endpoint": f"https://{self.text}/"})

    async def create(self, spec, *, owner, deadline_s):
        tell(self.text)
        if self.mode == "create":
            raise CreateFailed("create", said=self.text, cure=self.text)
        self.count += 1
        ref = SandboxRef(self.name, f"{self.text}-{self.count}", {"url": self.text})
        self.made[ref.id] = ref
        return Box(self, ref)

    async def owned(self, run_id=None):
        return list(self.made.values())

    async def destroy(self, ref, *, deadline_s):
        if self.mode == "destroy":
            raise DestroyFailed("destroy", sandbox=ref.id, said=self.text)
        self.made.pop(ref.id, None)

    async def round_trip(self):
        pass

    async def aclose(self):
        tell(self.text)
        if self.mode == "aclose":
            raise Careless(self.text)


class Box:
    def __init__(self, cloud, ref):
        self.cloud, self.ref, self.path = cloud, ref, cloud.text
        self.unenforced = frozenset({cloud.text})
        self.enforced = {"pids": cloud.text}

    def phases(self):
        return {self.cloud.text: (1, 2), "boot": (1, 2)}

    async def exec(self, argv, *, stdin=b"", cwd=None, env=None, deadline_s=0):
        text = self.cloud.text
        if "sandboxbench: facts" in str(argv):
            said = f"vcpus={text}\\nmemory_mib={text}\\n{text}=1\\nhostname={text}\\n"
            return ExecResult(0, said.encode(errors="surrogatepass"), b"")
        if self.cloud.mode == "exec":
            return ExecResult(1, b"", text.encode(errors="surrogatepass"))
        if self.cloud.mode == "exec-raises":
            raise ExecFailed(f"exec {argv}", sandbox=self.ref.id, said=text)
        if self.cloud.mode == "foreign":
            raise Careless(text)
        return ExecResult(0, text.encode(errors="surrogatepass"), text.encode(errors="surrogatepass"))


HOSTILE = HOSTILE_TEXT

def factory(name, options):
    return Cloud(name, dict(options))
"""

BENCHES = """
import pytest

@pytest.mark.sandbox_bench("exec")
async def test_exec(sandbox_bench):
    await sandbox_bench.measure()

async def test_use(sandbox):
    assert sandbox.id == "another"

async def test_error(sandbox_factory):
    for _ in range(2):
        made = await sandbox_factory()
        done = await made.exec(["sh"])
        raise ValueError(done.stdout.decode(errors="replace"), made.ref)
"""


def install(suite: Suite, hostile: str = "") -> None:
    """Make the provider ``cloud`` known to pytest in this folder, and its benches; PYTHONPATH is the caller's."""
    suite.write(careless=_PROVIDER.replace("HOSTILE_TEXT", ascii(hostile)), test_one=BENCHES)
    folder = suite.path / "careless-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: careless\nVersion: 1\n")
    (folder / "entry_points.txt").write_text("[sandboxbench.providers]\ncloud = careless:factory\n")


def command(suite: Suite, *arguments: str) -> str:
    """What ``sandboxbench`` prints in this folder."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest_sandboxbench.cli", *arguments],
        cwd=suite.path,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return (done.stdout + done.stderr).decode()


def ours(suite: Suite) -> set[Path]:
    """The files that the test wrote itself."""
    return {path for path in suite.path.rglob("*") if path.is_file()}
