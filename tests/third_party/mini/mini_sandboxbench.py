"""A sandbox that is a folder: commands run as bare processes, with no isolation. For Linux, which has /proc."""

import asyncio
import os
import shutil
import signal
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from urllib.parse import quote, unquote

from pytest_sandboxbench.errors import CreateFailed, DestroyFailed, ExecFailed, ExecTimeout, SandboxGone
from pytest_sandboxbench.model import Capabilities, ExecResult, Owner, Preflight, SandboxRef, SandboxSpec
from pytest_sandboxbench.providers.settings import read_settings

Env = Mapping[str, str] | None


@dataclass(frozen=True)
class Settings:
    root: str = f"{Path.home()}/.cache/mini-sandboxbench"


def kill_all(label: str, deadline_s: float) -> bool:
    """Kill every process with this in its environment, which its children inherit. False when some stay."""
    ends, quiet = time.monotonic() + deadline_s, 0
    while quiet < 2 and time.monotonic() < ends:  # twice: in the middle of its start a program has no environment
        quiet += 1
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended, or is somebody else's
                if label.encode() in (process / "environ").read_bytes().split(b"\0"):
                    quiet = 0
                    os.kill(int(process.name), signal.SIGKILL)
    return quiet == 2


class MiniSandbox:
    path = "cold"

    def __init__(self, ref: SandboxRef, folder: Path, env: Mapping[str, str], unenforced: frozenset[str]) -> None:
        self.ref, self.folder, self.env, self.unenforced = ref, folder, env, unenforced

    def check(self, tried: str) -> None:
        if not self.folder.exists():
            raise SandboxGone(tried, sandbox=self.ref.id, cure="create a new one")

    @contextmanager
    def errors(self, tried: str) -> Iterator[None]:
        self.check(tried)
        try:
            yield
        except (OSError, ValueError) as error:
            raise ExecFailed(tried, sandbox=self.ref.id, said=str(error)) from error
        self.check(tried)  # was it destroyed meanwhile?

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Env = None,
        deadline_s: float,
    ) -> ExecResult:
        # Files, not pipes: a process left in the background may hold them open, and no size blocks the command.
        with TemporaryFile() as out, TemporaryFile() as err:
            code = await self.run(argv, stdin, out.fileno(), err.fileno(), cwd, env, deadline_s)
            out.seek(0)
            err.seek(0)
            return ExecResult(code, out.read(), err.read())

    async def run(
        self, argv: Sequence[str], stdin: bytes, out: int, err: int, cwd: str | None, env: Env, deadline_s: float
    ) -> int:
        """Run a command to its end, or kill it; its output goes to these files. Returns its exit code."""
        tried, token, where = f"run {list(argv)!r:.200}", uuid.uuid4().hex, self.folder / (cwd or ".")
        variables = {**self.env, **(env or {}), "MINI_EXEC": token}
        if not argv:
            raise ExecFailed(tried, sandbox=self.ref.id, said="no command")
        with self.errors(tried), TemporaryFile() as into:
            into.write(stdin)
            into.seek(0)
            start = asyncio.create_subprocess_exec(
                *argv, stdin=into, stdout=out, stderr=err, cwd=where, env=variables, start_new_session=True
            )
            starting = asyncio.create_task(start)  # shielded: asyncio loses the process of a start that is cancelled
            try:
                async with asyncio.timeout(deadline_s):
                    return await (await asyncio.shield(starting)).wait()
            except (FileNotFoundError, PermissionError) as error:
                os.write(err, str(error).encode())
                return 127 if isinstance(error, FileNotFoundError) else 126
            except BaseException as error:  # late, or cancelled: what it started goes with it
                process = await starting
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                kill_all(f"MINI_EXEC={token}", 5)
                await process.wait()
                if isinstance(error, TimeoutError):
                    raise ExecTimeout(tried, sandbox=self.ref.id, after_s=deadline_s) from None
                raise

    async def write_file(self, path: str, data: bytes, *, deadline_s: float) -> None:
        with self.errors(f"write_file {path}"):
            (self.folder / path).write_bytes(data)

    async def read_file(self, path: str, *, deadline_s: float) -> bytes:
        with self.errors(f"read_file {path}"):
            return (self.folder / path).read_bytes()


class Mini:
    capabilities = Capabilities(isolation="none", files=True, labels=True)

    def __init__(self, name: str, settings: Settings) -> None:
        self.name, self.root = name, Path(settings.root)

    async def preflight(self) -> Preflight:
        return Preflight(sys.platform == "linux", "there is no /proc", "run it on Linux", {"root": str(self.root)})

    async def create(self, spec: SandboxSpec, *, owner: Owner, deadline_s: float) -> MiniSandbox:
        settings = ("image", "vcpus", "memory_mib", "pids", "lifetime_s")
        asked = {name: getattr(spec, name) for name in settings if getattr(spec, name) is not None}
        if "image" in asked or (asked and not spec.allow_unenforced):
            raise CreateFailed(f"create with {asked}", said="a folder has none of this", cure="leave it out")
        made = uuid.uuid4().hex[:12]
        folder = self.root / f"{made}@{quote(owner.label(), safe='')}"  # one act: no sandbox without its owner
        folder.mkdir(mode=0o700, parents=True)
        env = {"PATH": os.defpath, "HOME": str(folder), **spec.env, "MINI_SANDBOX": made}
        return MiniSandbox(SandboxRef(self.name, made, {"owner": owner.label()}), folder, env, frozenset(asked))

    def folders(self) -> dict[str, Path]:
        return {path.name.partition("@")[0]: path for path in self.root.glob("*@*")}

    async def owned(self, run_id: str | None = None) -> list[SandboxRef]:
        found = [(id_, unquote(path.name.partition("@")[2])) for id_, path in self.folders().items()]
        return [SandboxRef(self.name, id_, {"owner": who}) for id_, who in found if run_id in (None, who.split("/")[0])]

    async def destroy(self, ref: SandboxRef, *, deadline_s: float) -> None:
        killed = kill_all(f"MINI_SANDBOX={ref.id}", deadline_s)
        if folder := self.folders().get(ref.id):
            shutil.rmtree(folder, ignore_errors=True)
        if not killed or ref.id in self.folders():
            raise DestroyFailed("destroy", sandbox=ref.id, said="processes or files stay", cure=f"look at {folder}")

    async def round_trip(self) -> None:
        self.folders()

    async def aclose(self) -> None:
        pass


def factory(name: str, options: Mapping[str, Any]) -> Mini:
    return Mini(name, read_settings(Settings, name, options))
