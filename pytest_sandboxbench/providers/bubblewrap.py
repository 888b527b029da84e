"""bubblewrap: the embedded default on Linux. Namespaces and read-only binds, no daemon, no image, no root.

A sandbox is a bwrap process whose guest is ``cat`` on a pipe: it echoes one byte when all mounts are in place, and it
ends, and with it every process inside, when the pipe closes because the harness is gone (if it is paused then: once
somebody thaws or continues it). Commands enter by ``nsenter``. The guest sees the host's ``/usr`` and the guest's
Python read-only, a small ``/etc``, and a folder of its own on the host's disk as ``/work``; no network unless asked
for.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import uuid
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from ..errors import CreateFailed, DestroyFailed, OperationTimeout, SandboxError
from ..model import Capabilities, ExecResult, Owner, Preflight, SandboxRef, SandboxSpec
from ..owners import standing, this_process
from . import proc
from .bubblewrap_command import ALIAS_FOLDER, GUEST_UID, CommandLines, guest_end
from .bubblewrap_host import NotHere, bwrap_version, find_bwrap, find_tool, why_not
from .bubblewrap_sandbox import BubblewrapSandbox
from .bubblewrap_spans import SPANS
from .cgroups import CannotLimit, CgroupHost, Freezer, Limits, group_name, groups_of_process, remove_group, thaw
from .guest_etc import make_etc
from .guest_python import find_guest_python, guest_uid
from .local import (
    LIFETIME,
    LIMITS,
    HolderFailed,
    base_env,
    by_hand,
    info_file,
    limit_details,
    no_processes,
    run_floor,
    start_holder,
    to_result,
)
from .one_process import Command, Ended, Wake, supervise
from .processes import Processes
from .settings import read_settings
from .user_namespace import NoUserNamespace, open_user_namespace
from .work_folders import WorkFolders

__all__ = ["BubblewrapProvider", "BubblewrapSettings", "factory"]

T = TypeVar("T")
_KIND, _TRIAL = "bubblewrap", "preflight"
_of_closed: dict[str, BubblewrapSandbox] = {}
"""Sandboxes whose instance was closed: they end with the harness, not with the object that made them."""


@dataclass(frozen=True, slots=True)
class BubblewrapSettings:
    """``bwrap``, ``python``: other programs than those found. ``work_root``: where the guests' /work lies on the host.

    ``binds``: more host paths to show the guest, read-only. ``cgroup``: use only this version, or none.
    """

    bwrap: str | None = None
    python: str | None = None
    work_root: str | None = None
    binds: tuple[str, ...] = ()
    cgroup: Literal["auto", "off", "v1", "v2"] = "auto"


def factory(name: str, options: Mapping[str, Any]) -> BubblewrapProvider:
    return BubblewrapProvider(name, read_settings(BubblewrapSettings, name, options))


class BubblewrapProvider:
    def __init__(self, name: str, settings: BubblewrapSettings) -> None:
        self.name = name
        self._settings = settings
        self._uid = guest_uid()
        mapped = sys.platform == "linux" and self._uid != os.geteuid()
        self._mapped = mapped
        self._processes = Processes(f"sandboxbench-{name}", no_new_privs=True, clear_groups=mapped)
        self._python = find_guest_python(settings.python, uid=self._uid)
        self._folders = WorkFolders(_KIND, settings.work_root, self._uid)
        versions = {"auto": (1, 2), "off": (), "v1": (1,), "v2": (2,)}[settings.cgroup]
        self._cgroups = CgroupHost.discover(versions)
        self._lock = threading.Lock()
        self._made: CommandLines | None = None
        self._live: dict[str, BubblewrapSandbox] = {}
        self._once: dict[str, Limits] = {}

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            isolation="namespaces",
            pause=("frozen", "stopped") if "freezer" in self._cgroups.places else ("stopped",),
            stream=True,
            files=True,
            network_off=True,
            one_shot=True,
            limits=self._cgroups.limits,
            labels=True,
            spans=SPANS,
        )

    def _lines(self) -> CommandLines:
        """Find and make what all sandboxes share, once. ``NotHere`` with the reason."""
        with self._lock:
            if self._made is None:
                self._made = self._make_lines()
            return self._made

    def _make_lines(self) -> CommandLines:
        bwrap = find_bwrap(self._settings.bwrap)
        nsenter = find_tool("nsenter")
        try:
            self._folders.prepare()
            etc = make_etc(self._folders.base, self._uid, GUEST_UID)
        except OSError as error:
            cure = f"--sandbox-option {self.name}.work_root=FOLDER names another place"
            raise NotHere(f"no folder to work in: {error}", cure) from error
        namespace = None
        if self._mapped:
            try:
                namespace = open_user_namespace(find_tool("unshare"), GUEST_UID, self._uid)
            except NoUserNamespace as error:
                raise why_not(str(error)) from error
        return CommandLines(bwrap, nsenter, etc, self._python, self._settings.binds, namespace)

    async def preflight(self) -> Preflight:
        try:
            return Preflight(True, facts=await self._processes.call(self._try_out))
        except NotHere as error:
            return Preflight(False, error.reason, error.cure)
        except OSError as error:
            cure = (
                no_processes(error, "preflight", CreateFailed).cure or "see whether its binary and folder can be used"
            )
            return Preflight(False, f"a trial does not start or end: {error}", cure)

    def _try_out(self, wake: Wake) -> dict[str, str]:
        """A whole life of a sandbox with the real command lines; the freezer is really used."""
        lines = self._lines()
        version = bwrap_version(lines.bwrap)
        self._cgroups = self._cgroups.probed(f"probe-{os.getpid()}")
        self._clear_trials()
        owner = this_process(_TRIAL)
        deadline = time.monotonic() + 10
        try:
            sandbox = self._start(SandboxSpec(), owner, uuid.uuid4().hex[:12], wake, deadline)
        except HolderFailed as error:
            raise why_not(error.said) from None
        try:
            sandbox.try_out(wake, deadline)
        except SandboxError as error:
            raise NotHere(f"a sandbox comes up, but no command: {error}", "install util-linux 2.38 or newer") from error
        except OSError:
            places = {name: place for name, place in self._cgroups.places.items() if name != "freezer"}
            self._cgroups = CgroupHost(places)
        finally:
            sandbox.end(5)
        return self._facts(lines, version)

    def _clear_trials(self) -> None:
        """What a process left that was killed in the middle of its trial: no run knows of it."""
        for label, sandbox in self._folders.found():
            owner = Owner.parse(label)
            if owner is not None and owner.run_id == _TRIAL and standing(owner) == "dead":
                with suppress(OSError):
                    self._end_foreign(SandboxRef(self.name, sandbox))

    def _facts(self, lines: CommandLines, version: str) -> dict[str, str]:
        facts = {
            "bwrap": lines.bwrap,
            "bwrap_version": version,
            "cgroup": self._cgroups.mode,
            "limits": ", ".join(sorted(self._cgroups.limits)) or "none",
            "pause": ", ".join(self.capabilities.pause),
            "euid": str(os.geteuid()),
            "guest_user_on_host": str(self._uid),
            "user_namespace": "one for all sandboxes" if self._mapped else "one a sandbox",
            "work_root": str(self._folders.root),
        }
        return facts | (self._python.facts() if self._python is not None else {"guest_python": "none"})

    async def create(self, spec: SandboxSpec, *, owner: Owner, deadline_s: float) -> BubblewrapSandbox:
        begin = time.monotonic()
        sandbox = uuid.uuid4().hex[:12]

        def work(wake: Wake) -> BubblewrapSandbox:
            return self._start(spec, owner, sandbox, wake, begin + deadline_s)

        made = await self._guarded(
            self._processes.call(work, undo=lambda made: made.end(deadline_s)), "create", sandbox, begin
        )
        self._live[sandbox] = made
        return made

    async def _guarded(self, act: Awaitable[T], tried: str, sandbox: str, begin: float) -> T:
        """The errors of starting a sandbox, as the protocol's."""
        try:
            return await act
        except NotHere as error:
            raise CreateFailed(tried, said=error.reason, cure=error.cure) from error
        except CannotLimit as error:
            said = f"{error.limit} cannot be set: {error.reason}"
            raise CreateFailed(tried, sandbox=sandbox, said=said, cure=error.cure) from error
        except HolderFailed as error:
            after_s = time.monotonic() - begin
            if error.why == "deadline":
                raise OperationTimeout(tried, sandbox=sandbox, after_s=after_s) from None
            cure = why_not(error.said).cure
            raise CreateFailed(tried, sandbox=sandbox, after_s=after_s, said=error.said, cure=cure) from None
        except OSError as error:
            raise no_processes(error, tried, CreateFailed, sandbox) from error

    def _limit(self, spec: SandboxSpec, sandbox: str) -> tuple[Limits, frozenset[str]]:
        """Set what was asked for; what cannot be set is an error, or listed where that is allowed."""
        if spec.image is not None:
            cure = "leave the image out: guests see the host's /usr"
            raise CreateFailed(f"create with image {spec.image}", said="bubblewrap has no images", cure=cure)
        asked = {name: float(amount) for name in LIMITS if (amount := getattr(spec, name)) is not None}
        unenforced: set[str] = set()
        if spec.lifetime_s is not None:
            if not spec.allow_unenforced:
                cure = f"leave {LIFETIME} out, or allow it to be unenforced (allow_unenforced)"
                raise CreateFailed(f"create with {LIFETIME}", said="no sandbox here ends by itself", cure=cure)
            unenforced.add(LIFETIME)
        while True:
            try:
                return self._cgroups.limit(sandbox, asked), frozenset(unenforced)
            except CannotLimit as error:
                if not spec.allow_unenforced:
                    raise
                unenforced.add(error.limit)
                del asked[error.limit]

    def _environment(self, spec: SandboxSpec, owner: Owner, sandbox: str) -> dict[str, str]:
        alias = ALIAS_FOLDER if self._python is not None and self._python.alias else None
        base = base_env(self._python, alias, home="/work", tmp="/tmp")
        return base | dict(spec.env) | proc.labels_for(owner, _KIND, sandbox)

    def _start(self, spec: SandboxSpec, owner: Owner, sandbox: str, wake: Wake, deadline: float) -> BubblewrapSandbox:
        lines = self._lines()
        limits, unenforced = self._limit(spec, sandbox)
        env = self._environment(spec, owner, sandbox)
        freezer = self._cgroups.freezer(sandbox, limits)
        try:
            if freezer is not None and freezer.version == 1:
                freezer.make()
            folder = self._folders.make(owner, sandbox)
            with info_file() as info:
                command = Command(
                    lines.new(["cat"], work=folder, network=spec.network, info_fd=info, joins=limits.joins),
                    env=env,
                    pass_fds=(info, *lines.pass_fds),
                    kill=lambda pid: proc.kill_tree(proc.SANDBOX_LABEL, sandbox, pid),
                    around=freezer.born_inside if freezer is not None else nullcontext,
                )
                holder = start_holder(command, wake, deadline, info_fd=info)
        except BaseException:
            self._clean(sandbox, limits, freezer)
            raise
        groups = {*limits.groups, *([freezer.group] if freezer is not None else [])}
        details = {
            "folder": str(folder),
            "owner": owner.label(),
            "pid": str(holder.pid),
            "started": holder.started,
            "bwrap": str(holder.process.pid),
            "cgroups": ":".join(sorted(map(str, groups))),
            **limit_details(limits.enforced(), unenforced),
        }
        return BubblewrapSandbox(
            SandboxRef(self.name, sandbox, details),
            self._processes,
            lines,
            self._folders,
            holder,
            env,
            network=spec.network,
            limits=limits,
            freezer=freezer,
            unenforced=unenforced,
        )

    def _clean(self, sandbox: str, limits: Limits, freezer: Freezer | None = None) -> None:
        for group in {*limits.groups, *([freezer.group] if freezer is not None else [])}:
            remove_group(group)
        self._folders.remove(sandbox)

    async def owned(self, run_id: str | None = None) -> Sequence[SandboxRef]:
        return await self._processes.call(lambda wake: self._owned(run_id))

    def _owned(self, run_id: str | None) -> list[SandboxRef]:
        """From the labels of processes, and from the folders of those whose processes are all gone."""
        found = {sandbox: {"owner": label} for label, sandbox in self._folders.found()}
        for pid, labels in proc.sandboxes(_KIND, {self._uid, os.geteuid()}):
            details = found.setdefault(labels[proc.SANDBOX_LABEL], {})
            details["owner"] = labels.get(proc.OWNER_LABEL, "")
            if proc.is_namespace_init(pid):
                details["pid"] = str(pid)
                details["started"] = proc.start_time(pid) or ""
        return [
            SandboxRef(self.name, sandbox, details)
            for sandbox, details in sorted(found.items())
            if run_id is None or details["owner"].partition("/")[0] == run_id
        ]

    async def destroy(self, ref: SandboxRef, *, deadline_s: float) -> None:
        sandbox = self._live.pop(ref.id, None) or _of_closed.pop(ref.id, None)
        once = self._once.pop(ref.id, None)

        def work(wake: Wake) -> None:
            if sandbox is not None:
                sandbox.end(deadline_s)
            elif once is not None:
                # bwrap was reaped, and with the first process inside everything was gone.
                self._clean(ref.id, once)
            else:
                self._end_foreign(ref)

        try:
            await self._processes.call(work)
        except OSError as error:
            cure = await self._processes.call(lambda wake: by_hand(self._folders, ref.id))
            raise DestroyFailed("destroy", sandbox=ref.id, said=str(error), cure=cure) from error

    def _end_foreign(self, ref: SandboxRef) -> None:
        """Made by another process, or by one that is dead. Kills by label alone: a pid may be somebody else's now."""
        pids = proc.labelled(proc.SANDBOX_LABEL, ref.id)
        listed = {Path(path) for path in ref.details.get("cgroups", "").split(":") if path}
        groups = {path for path in listed if path.name == group_name(ref.id)} | self._cgroups.groups_of(ref.id)
        for pid in pids:
            groups |= groups_of_process(pid, ref.id)
        for group in groups:
            thaw(group)
        proc.kill_labelled(proc.SANDBOX_LABEL, ref.id)
        if left := proc.labelled(proc.SANDBOX_LABEL, ref.id):
            raise OSError(f"processes {left} did not end after SIGKILL")
        for group in groups:
            remove_group(group)
        self._folders.remove(ref.id)

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
        tried = f"run_once {list(argv)}"

        def work(wake: Wake) -> tuple[Ended, dict[str, str]]:
            lines = self._lines()
            limits, unenforced = self._limit(spec, sandbox)
            self._once[sandbox] = limits
            folder = self._folders.make(owner, sandbox)
            command = Command(
                lines.new(argv, work=folder, network=spec.network, joins=limits.joins),
                stdin,
                self._environment(spec, owner, sandbox),
                pass_fds=lines.pass_fds,
                kill=lambda pid: proc.kill_tree(proc.SANDBOX_LABEL, sandbox, pid),
            )
            ended = supervise(command, wake, begin + deadline_s)
            return ended, limit_details(limits.enforced(), unenforced)

        def undo(_: object = None) -> None:
            self._clean(sandbox, self._once.pop(sandbox, Limits()))

        try:
            ended, limited = await self._guarded(self._processes.call(work, undo=undo), tried, sandbox, begin)
            result = to_result(guest_end(ended), tried, sandbox, time.monotonic() - begin, gone=False)
        except SandboxError:
            await self._processes.call(lambda wake: undo())
            raise
        details = {"folder": str(self._folders.path(owner.label(), sandbox)), "owner": owner.label()}
        return result, SandboxRef(self.name, sandbox, details | limited)

    async def round_trip(self) -> None:
        lines = await self._guarded(self._processes.call(lambda wake: self._lines()), "round_trip", "", 0)
        await run_floor(self._processes, [lines.bwrap, "--version"], {})

    async def aclose(self) -> None:
        _of_closed.update(self._live)
        self._live.clear()
        self._processes.close()
        if self._made is not None and self._made.userns_fd is not None:
            # Live sandboxes keep the namespace by themselves.
            os.close(self._made.userns_fd)
        self._made = None
