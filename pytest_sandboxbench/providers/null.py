"""The floor: a bare process without any isolation. What it costs is what the host costs.

A sandbox is a private folder and a process group. The group is led by a holder, ``cat`` on a pipe: it echoes one byte
when it runs, and it ends by itself when the harness is gone. Every command joins the group, so that destroying it
ends background children too. A command that leaves the group with ``setsid`` is still found by its labels, by
``owned`` and by the ``destroy`` of another process.

Paths: a relative path, and ``/work/...`` and ``/tmp/...`` in ``write_file``, ``read_file`` and ``cwd``, mean the
sandbox's folder. It is a single one, because to remove a folder can cost more than all the rest of a destroy.
Arguments of a command are not touched: a portable benchmark uses relative paths in them.
"""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import (
    CreateFailed,
    DestroyFailed,
    OperationTimeout,
    SandboxError,
)
from ..model import (
    Capabilities,
    ExecResult,
    Owner,
    Preflight,
    SandboxRef,
    SandboxSpec,
    SpanDeclaration,
)
from . import proc
from .guest_python import find_guest_python
from .local import (
    LIFETIME,
    LIMITS,
    PATH,
    HolderFailed,
    base_env,
    by_hand,
    limit_details,
    no_processes,
    run_floor,
    start_holder,
    to_result,
)
from .null_sandbox import NullSandbox
from .one_process import Command, Ended, Wake, kill_group, supervise
from .processes import Processes
from .settings import read_settings
from .work_folders import WorkFolders

__all__ = ["NullProvider", "NullSandbox", "NullSettings", "factory"]

_KIND = "null"
_of_closed: dict[str, NullSandbox] = {}
"""Sandboxes whose instance was closed: they end with the harness, not with the object that made them."""

_SPANS = (
    SpanDeclaration("create", end="a folder was made and a process that stays for the sandbox's life echoed a byte"),
    SpanDeclaration("exec", end="the process exited; it was started directly, without any isolation"),
    SpanDeclaration("cold_run", end="the process exited; a folder was made for it"),
    SpanDeclaration("write_file", end="written by the harness itself to the host's file system, not synced"),
    SpanDeclaration("read_file", end="read by the harness itself from the host's file system"),
    SpanDeclaration(
        "pause",
        end="SIGSTOP to the process group, and every known process of it was seen stopped",
        resolution_s=0.0002,
        polling="/proc, every 0.2 ms",
    ),
    SpanDeclaration("resume", end="SIGCONT was sent to the process group"),
    SpanDeclaration(
        "destroy",
        end="the group was killed, its leader reaped and the folder removed",
        resolution_s=0.0005,
        polling="none where the leader was alone in its group; for others, that the group is gone: every 0.5 ms; "
        "a folder that a process still fills, every 5 ms",
    ),
    SpanDeclaration("round_trip", end="a process of `true` was started and reaped"),
)


@dataclass(frozen=True, slots=True)
class NullSettings:
    """``python``: the interpreter of the guest; ``work_root``: where the folders are made (``/var/tmp``)."""

    python: str | None = None
    work_root: str | None = None


def factory(name: str, options: Mapping[str, Any]) -> NullProvider:
    return NullProvider(name, read_settings(NullSettings, name, options))


class NullProvider:
    def __init__(self, name: str, settings: NullSettings) -> None:
        self.name = name
        self._processes = Processes(f"sandboxbench-{name}")
        self._python = find_guest_python(settings.python)
        self._uid = os.geteuid() if sys.platform != "win32" else 0
        self._folders = WorkFolders(_KIND, settings.work_root, self._uid)
        self._live: dict[str, NullSandbox] = {}
        self._once: dict[str, int] = {}
        stoppable = sys.platform == "linux"
        self.capabilities = Capabilities(
            isolation="none",
            pause=("stopped",) if stoppable else (),
            stream=True,
            files=True,
            one_shot=True,
            labels=stoppable,
            spans=_SPANS,
        )

    async def preflight(self) -> Preflight:
        if sys.platform == "win32":
            return Preflight(False, "bare processes need a POSIX system", "run it on Linux or macOS")
        try:
            self._folders.prepare()
        except OSError as error:
            cure = f"--sandbox-option {self.name}.work_root=FOLDER names another place"
            return Preflight(False, f"no folder to work in: {error}", cure)
        facts = {"work_root": str(self._folders.root), "euid": str(os.geteuid())}
        facts.update(self._python.facts() if self._python is not None else {"guest_python": "none"})
        return Preflight(True, facts=facts)

    async def create(self, spec: SandboxSpec, *, owner: Owner, deadline_s: float) -> NullSandbox:
        begin = time.monotonic()
        sandbox = uuid.uuid4().hex[:12]
        unenforced = self._unenforced(spec)

        def work(wake: Wake) -> NullSandbox:
            return self._start(spec, owner, sandbox, unenforced, wake, begin + deadline_s)

        try:
            made = await self._processes.call(work, undo=lambda made: made.end(deadline_s))
        except HolderFailed as error:
            after_s = time.monotonic() - begin
            if error.why == "deadline":
                raise OperationTimeout("create", sandbox=sandbox, after_s=after_s) from None
            raise CreateFailed("create", sandbox=sandbox, after_s=after_s, said=error.said) from None
        except OSError as error:
            raise no_processes(error, "create", CreateFailed, sandbox) from error
        self._live[sandbox] = made
        return made

    def _unenforced(self, spec: SandboxSpec) -> frozenset[str]:
        asked = frozenset(name for name in (*LIMITS, LIFETIME) if getattr(spec, name) is not None)
        if spec.image is not None:
            cure = "leave the image out: it runs on the host's own files"
            raise CreateFailed(f"create with image {spec.image}", said="a bare process has no image", cure=cure)
        if asked and not spec.allow_unenforced:
            cure = "leave the limit out, or allow it to be unenforced (allow_unenforced)"
            raise CreateFailed(
                f"create with {', '.join(sorted(asked))}", said="nothing limits a bare process", cure=cure
            )
        return asked

    def _environment(self, folder: Path, spec: SandboxSpec, owner: Owner, sandbox: str) -> dict[str, str]:
        alias = None
        if self._python is not None and self._python.alias:
            alias = folder / ".bin"
            alias.mkdir()
            (alias / "python3").symlink_to(self._python.executable)
        base = base_env(self._python, str(alias) if alias else None, home=str(folder), tmp=str(folder))
        return base | dict(spec.env) | proc.labels_for(owner, _KIND, sandbox)

    def _start(
        self,
        spec: SandboxSpec,
        owner: Owner,
        sandbox: str,
        unenforced: frozenset[str],
        wake: Wake,
        deadline: float,
    ) -> NullSandbox:
        folder = self._folders.path(owner.label(), sandbox)
        try:
            self._folders.make(owner, sandbox)
            env = self._environment(folder, spec, owner, sandbox)
            holder = start_holder(Command(["cat"], env=env, cwd=str(folder), process_group=0), wake, deadline)
        except BaseException:
            self._folders.remove_folder(folder)
            raise
        details = {
            "folder": str(folder),
            "owner": owner.label(),
            "pid": str(holder.pid),
            "started": holder.started,
            **limit_details({}, unenforced),
        }
        ref = SandboxRef(self.name, sandbox, details)
        return NullSandbox(ref, self._processes, self._folders, holder, env, unenforced)

    async def owned(self, run_id: str | None = None) -> Sequence[SandboxRef]:
        return await self._processes.call(lambda wake: self._owned(run_id))

    def _owned(self, run_id: str | None) -> list[SandboxRef]:
        found = {sandbox: label for label, sandbox in self._folders.found()}
        for _pid, labels in proc.sandboxes(_KIND, {self._uid}):
            found[labels[proc.SANDBOX_LABEL]] = labels.get(proc.OWNER_LABEL, "")
        return [
            SandboxRef(self.name, sandbox, {"owner": label})
            for sandbox, label in sorted(found.items())
            if run_id is None or label.partition("/")[0] == run_id
        ]

    async def destroy(self, ref: SandboxRef, *, deadline_s: float) -> None:
        sandbox = self._live.pop(ref.id, None) or _of_closed.pop(ref.id, None)
        try:
            if sandbox is not None:
                await self._processes.call(lambda wake: sandbox.end(deadline_s))
            else:
                group = self._once.pop(ref.id, None)
                await self._processes.call(lambda wake: self._end_by_id(ref.id, group))
        except OSError as error:
            cure = await self._processes.call(lambda wake: by_hand(self._folders, ref.id))
            raise DestroyFailed("destroy", sandbox=ref.id, said=str(error), cure=cure) from error

    def _end_by_id(self, sandbox: str, group: int | None = None) -> None:
        """A one-shot's rest by its group; what another process made by labels: its pids may be somebody else's now."""
        if group is not None and proc.start_time(group) is None:
            # The leader is reaped and its pid not used again: either the group is this one or there is none.
            kill_group(group)
        else:
            proc.kill_labelled(proc.SANDBOX_LABEL, sandbox)
        self._folders.remove(sandbox)

    async def run_once(
        self,
        spec: SandboxSpec,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        owner: Owner,
        deadline_s: float,
    ) -> tuple[ExecResult, SandboxRef]:
        begin = time.monotonic()
        sandbox = uuid.uuid4().hex[:12]
        unenforced = self._unenforced(spec)
        tried = f"run_once {list(argv)}"
        folder = self._folders.path(owner.label(), sandbox)

        def on_end(pid: int) -> None:
            self._once[sandbox] = pid

        def work(wake: Wake) -> Ended:
            self._folders.make(owner, sandbox)
            env = self._environment(folder, spec, owner, sandbox)
            kill = partial(proc.kill_labelled, proc.SANDBOX_LABEL, sandbox)
            command = Command(argv, stdin, env, str(folder), kill=lambda pid: kill(below=pid), on_end=on_end)
            return supervise(command, wake, begin + deadline_s)

        try:
            ended = await self._processes.call(work, undo=lambda ended: self._end_by_id(sandbox))
            result = to_result(ended, tried, sandbox, time.monotonic() - begin, gone=False)
        except OSError as error:
            await self._processes.call(lambda wake: self._end_by_id(sandbox))
            raise no_processes(error, tried, CreateFailed, sandbox) from error
        except SandboxError:
            await self._processes.call(lambda wake: self._end_by_id(sandbox))
            raise
        details = {"folder": str(folder), "owner": owner.label(), **limit_details({}, unenforced)}
        return result, SandboxRef(self.name, sandbox, details)

    async def round_trip(self) -> None:
        await run_floor(self._processes, ["true"], {"PATH": PATH})

    async def aclose(self) -> None:
        _of_closed.update(self._live)
        self._live.clear()
        self._processes.close()
