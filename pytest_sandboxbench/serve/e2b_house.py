"""The sandboxes behind a local imitation of E2B: bubblewrap's, with the ids, lifetimes, limits and states of E2B."""

from __future__ import annotations

import asyncio
import os
import secrets
import string
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from ..errors import SandboxError
from ..ledger import Ledger
from ..model import SandboxSpec
from ..owners import this_process
from ..providers.bubblewrap import BubblewrapProvider, BubblewrapSettings
from ..providers.bubblewrap_sandbox import BubblewrapSandbox
from .guest_process import GuestProcess

__all__ = ["House", "Refused", "Template", "Tenant"]

KIND = "bubblewrap"
_ID = string.ascii_lowercase + string.digits
_DEADLINE_S = 60.0
# A reboot, as far as a guest can tell: no process of it is left but the first two, which are the sandbox itself, and
# what lies in memory is empty.
_REBOOT = """rm -rf /tmp/..?* /tmp/.[!.]* /tmp/* /dev/shm/* 2>/dev/null
n=0; while [ $n -lt 2 ]; do n=$((n + 1)); for p in /proc/[0-9]*; do p=${p#/proc/}
[ "$p" -le 2 ] || [ "$p" = $$ ] || ! kill -KILL "$p" 2>/dev/null || n=0; done; done"""


class Refused(Exception):
    """An answer of the control plane that is an error: its status, and the words of the service."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True)
class Template:
    """What a sandbox is made from. On the service it decides CPU and memory; here it says what the machine has."""

    id: str
    name: str
    cpus: int
    memory_mib: int


@dataclass(slots=True)
class Tenant:
    """One sandbox as its client knows it."""

    id: str
    template: Template
    inner: BubblewrapSandbox
    metadata: Mapping[str, str]
    env: Mapping[str, str]
    token: str
    started: datetime
    ends: datetime
    ready_at: float = 0.0
    pauses_at_end: bool = False
    state: Literal["running", "paused"] = "running"
    keeps_memory: bool = True
    processes: dict[int, GuestProcess] = field(default_factory=dict)
    clock: asyncio.TimerHandle | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by whoever changes its state."""


class House:
    """Makes, pauses and ends sandboxes. ``max_live`` of them at once, running ones only, as the service counts."""

    def __init__(
        self, *, max_live: int | None = None, create_rate: float | None = None, ready_after: float = 0.0
    ) -> None:
        self.tenants: dict[str, Tenant] = {}
        self.max_live = max_live
        self.create_rate = create_rate
        self.ready_after = ready_after
        base = Template("base00000000000000000", "base", os.cpu_count() or 1, _memory_mib())
        self.templates = {base.id: base}
        self._provider = BubblewrapProvider(KIND, BubblewrapSettings())
        self._owner = this_process(f"serve-e2b-{secrets.token_hex(3)}")
        self._making = 0
        self._begun: deque[float] = deque()
        self._ending: set[asyncio.Task[None]] = set()

    async def open(self) -> str:
        """Why no sandbox can be made here; empty when they can."""
        from ..ledger import folder_of_user

        answer = await self._provider.preflight()
        if not answer.ready:
            return f"{answer.reason}. {answer.cure}"
        self._ledger = Ledger(folder_of_user(), self._owner)
        self._ledger.can(KIND, KIND, {}, self._provider.capabilities)
        return ""

    async def close(self) -> None:
        await asyncio.gather(*(self.end(tenant) for tenant in list(self.tenants.values())), return_exceptions=True)
        await asyncio.gather(*self._ending, return_exceptions=True)
        for ref in await self._provider.owned(self._owner.run_id):  # a create whose client had gone
            with suppress(SandboxError):
                await self._provider.destroy(ref, deadline_s=_DEADLINE_S)
                self._ledger.gone(ref)
        self._ledger.close()
        await self._provider.aclose()

    @property
    def running(self) -> int:
        return sum(tenant.state == "running" for tenant in self.tenants.values()) + self._making

    def template(self, name: str) -> Template:
        """``Refused`` for one that is not there."""
        plain = name.rpartition("/")[2].partition(":")[0]
        for template in self.templates.values():
            if plain in (template.id, template.name):
                return template
        raise Refused(404, f"template '{name}' not found")

    def build(self, name: str, cpus: int, memory_mib: int) -> Template:
        template = Template(_new_id(20), name, cpus, memory_mib)
        self.templates = {id: known for id, known in self.templates.items() if known.name != name}
        self.templates[template.id] = template
        return template

    async def create(
        self,
        name: str,
        *,
        lifetime_s: float,
        metadata: Mapping[str, str],
        env: Mapping[str, str],
        network: bool,
        pauses_at_end: bool = False,
    ) -> Tenant:
        template = self.template(name)
        self._admit()
        self._making += 1
        try:
            self._ledger.making(KIND)
            spec = SandboxSpec(network=network, env={"HOME": "/home/user", "USER": "user", "LOGNAME": "user", **env})
            try:
                inner = await self._provider.create(spec, owner=self._owner, deadline_s=_DEADLINE_S)
            except SandboxError as error:
                self._ledger.over(KIND)
                raise Refused(500, f"Failed to create sandbox: {error}") from error
            self._ledger.made(inner.ref)
            now = datetime.now(UTC)
            tenant = Tenant(
                f"i{_new_id(19)}",
                template,
                inner,
                dict(metadata),
                dict(env),
                secrets.token_hex(16),
                now,
                now,
                ready_at=time.monotonic() + self.ready_after,
                pauses_at_end=pauses_at_end,
            )
            self.tenants[tenant.id] = tenant
        finally:
            self._making -= 1
        self.lives(tenant, lifetime_s)
        return tenant

    def _admit(self) -> None:
        """``Refused`` where the plan has no room: in the words of the service."""
        if self.max_live is not None and self.running >= self.max_live:
            raise Refused(
                429,
                f"you have reached the maximum number of concurrent E2B sandboxes ({self.max_live}). If you need more, "
                "please visit 'https://e2b.dev/docs/billing'",
            )
        if self.create_rate is not None:
            now = time.monotonic()
            while self._begun and self._begun[0] <= now - 1:
                self._begun.popleft()
            if len(self._begun) >= self.create_rate:
                raise Refused(
                    429, f"you have reached the rate limit of {self.create_rate:g} sandbox creations per second"
                )
            self._begun.append(now)

    def find(self, id: str) -> Tenant:
        tenant = self.tenants.get(id)
        if tenant is None:
            raise Refused(404, f"Sandbox \"{id}\" doesn't exist or you don't have access to it")
        return tenant

    def lives(self, tenant: Tenant, seconds: float) -> None:
        """It ends, or is paused, so many seconds from now."""
        if tenant.clock is not None:
            tenant.clock.cancel()
        tenant.ends = datetime.now(UTC) + timedelta(seconds=seconds)
        tenant.clock = asyncio.get_running_loop().call_later(seconds, self._expire, tenant)

    def _expire(self, tenant: Tenant) -> None:
        act = self.pause(tenant, memory=True) if tenant.pauses_at_end else self.end(tenant)
        task = asyncio.ensure_future(act)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def pause(self, tenant: Tenant, *, memory: bool) -> None:
        """``Refused`` where it is paused already. The host keeps the memory; the service would free it."""
        async with tenant.lock:
            if tenant.state == "paused":
                raise Refused(409, f"Sandbox {tenant.id} is already paused")
            tenant.state, tenant.keeps_memory = "paused", memory
            if tenant.clock is not None:
                tenant.clock.cancel()
            try:
                if not memory:
                    with suppress(SandboxError):
                        await tenant.inner.exec(["/bin/sh", "-c", _REBOOT], deadline_s=_DEADLINE_S)
                await tenant.inner.pause(kind=self._provider.capabilities.pause[0], deadline_s=_DEADLINE_S)
            except SandboxError as error:
                tenant.state = "running"
                raise Refused(500, f"Error pausing sandbox: {error}") from error

    async def connect(self, tenant: Tenant, lifetime_s: float) -> bool:
        """Make it run. True when it was paused."""
        async with tenant.lock:
            resumed = tenant.state == "paused"
            if resumed:
                if self.max_live is not None and self.running >= self.max_live:
                    self._admit()
                try:
                    await tenant.inner.resume(deadline_s=_DEADLINE_S)
                except SandboxError as error:
                    raise Refused(500, f"Failed to resume sandbox: {error}") from error
                tenant.state = "running"
            self.lives(tenant, lifetime_s)
            return resumed

    async def end(self, tenant: Tenant) -> None:
        """Gone for its clients at once; here when everything of it is."""
        self.tenants.pop(tenant.id, None)
        if tenant.clock is not None:
            tenant.clock.cancel()
        try:
            await self._provider.destroy(tenant.inner.ref, deadline_s=_DEADLINE_S)
        except SandboxError as error:
            self.tenants[tenant.id] = tenant
            raise Refused(500, f"Error killing sandbox: {error}") from error
        self._ledger.gone(tenant.inner.ref)
        self._ledger.settle()


def _new_id(length: int) -> str:
    return "".join(secrets.choice(_ID) for _ in range(length))


def _memory_mib() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) // 1024
    return 0
