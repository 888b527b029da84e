"""The scripted provider: sandboxes in memory that take as long, and fail as, their settings say.

For tests of benches, budgets, gates and of the harness itself. No processes and no isolation. Without ``state_dir``
each process has its own sandboxes and limits; with it, all that name the same folder share them.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

from ..clock import NS_PER_S
from ..errors import CreateFailed, Rejected, Unsupported
from ..model import Capabilities, ExecResult, Owner, Preflight, SandboxRef, SandboxSpec
from .fake_clock import loop_ns
from .fake_guest import Guest
from .fake_sandbox import FakeSandbox, PausableFakeSandbox
from .fake_script import Step
from .fake_settings import Plan, read_plan
from .fake_stage import Call, Stage, hang
from .fake_state import Live, State, Turnstile

__all__ = ["OWN_LIMITS", "FakeProvider", "OneShotFakeProvider", "factory"]

OWN_LIMITS = ("max_live", "max_queued", "create_rate")
"""What the scripted system does; the limits that this project keeps itself are ``limiter_max_live`` and so on here."""

_ROOM_POLL_S = 0.002


def factory(name: str, options: Mapping[str, Any]) -> FakeProvider:
    """Build an instance from its settings (:class:`.fake_settings.FakeSettings`)."""
    plan = read_plan(name, options)
    kind = OneShotFakeProvider if plan.capabilities.one_shot else FakeProvider
    return kind(name, plan)


class FakeProvider:
    """Beside the protocol: what tests read. ``calls`` counts calls by operation; ``log`` holds (operation, sandbox id,
    start_ns, end_ns) of each that ended, in the order of their ends; both are of this process."""

    def __init__(self, name: str, plan: Plan) -> None:
        self._name = name
        self._plan = plan
        self._stage = Stage(name, plan)
        self._state = self._stage.state
        self._queue = Turnstile(State(name, None), 1)
        self._prefix = f"{name}-{secrets.token_hex(3)}"
        self._asked = 0
        self._made = 0

    @property
    def name(self) -> str:
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        return self._plan.capabilities

    @property
    def max_queued(self) -> int:
        return self._plan.settings.max_queued or 0

    @property
    def calls(self) -> Counter[str]:
        return self._stage.calls

    @property
    def log(self) -> list[tuple[str, str, int, int]]:
        return self._stage.log

    @property
    def live(self) -> tuple[str, ...]:
        """Ids of the sandboxes that exist, oldest first; with ``state_dir`` those of all processes."""
        with self._state.table() as table:
            return tuple(table.live)

    async def preflight(self) -> Preflight:
        with self._stage.call("preflight") as call:
            await self._stage.perform(call)
        s = self._plan.settings
        facts = {"kind": "scripted", **self._plan.said}
        if s.missing is None:
            return Preflight(True, facts=facts)
        cure = s.cure or f"Remove the setting {self._name}.missing."
        return Preflight(False, s.missing, cure, facts)

    async def create(self, spec: SandboxSpec, *, owner: Owner, deadline_s: float) -> FakeSandbox:
        with self._stage.call("create") as call:
            sandbox, _ = await self._make(call, spec, owner, "create")
            return sandbox

    async def owned(self, run_id: str | None = None) -> Sequence[SandboxRef]:
        with self._stage.call("owned") as call:
            await self._stage.perform(call)
            with self._state.table() as table:
                return [self._ref(id_, live) for id_, live in table.live.items() if live.shows(run_id)]

    async def destroy(self, ref: SandboxRef, *, deadline_s: float) -> None:
        with self._stage.call("destroy", ref.id) as call:
            step, _ = await self._stage.perform(call)
            if step.word == "lie":
                return
            with self._state.table() as table:
                live = table.live.get(ref.id)
                stuck = step.word == "stuck" or (live is not None and live.stuck)
                if live is not None and stuck:
                    live.stuck = True
                if not stuck:
                    table.live.pop(ref.id, None)
            if stuck:
                raise call.failed("still running")

    async def round_trip(self) -> None:
        with self._stage.call("round_trip") as call:
            await self._stage.perform(call)

    async def aclose(self) -> None:
        with self._stage.call("aclose") as call:
            await self._stage.perform(call)

    async def _make(self, call: Call, spec: SandboxSpec, owner: Owner, script: str) -> tuple[FakeSandbox, Step]:
        if self._plan.settings.missing is not None:
            raise CreateFailed(call.tried, **call.about(self._plan.settings.missing))
        if spec.image is not None and spec.image.split("/")[0].endswith(".invalid"):
            tried = f"{call.tried} with image {spec.image}"
            raise CreateFailed(tried, **call.about("no such image", "name one of another registry: any is there"))
        asked = {limit for limit in ("vcpus", "memory_mib", "pids") if getattr(spec, limit) is not None}
        unenforced = frozenset(asked - self.capabilities.limits)
        if unenforced and not spec.allow_unenforced:
            said = f"cannot enforce {', '.join(sorted(unenforced))}"
            raise Unsupported(call.tried, **call.about(said, f"add it to the setting {self._name}.limits"))
        async with self._place(call):
            step, phases = await self._stage.perform(call, script)
            lifetime_ns = None if spec.lifetime_s is None else loop_ns() + int(spec.lifetime_s * NS_PER_S)
            live = Live(owner.run_id, owner.label(), lifetime_ns)
            if step.word == "late":
                live.from_ns = loop_ns() + int(step.seconds * NS_PER_S)
            with self._state.table() as table:
                table.making.pop(call.sandbox, None)
                table.live[call.sandbox] = live
            if step.word in ("leak", "late"):
                await hang()
            facts = {
                "kernel": "fake",
                "vcpus": f"{2 if spec.vcpus is None else spec.vcpus:g}",
                "memory_mib": f"{spec.memory_mib or 4096}",
                "python": "3.0-fake",
                **self._plan.facts,
            }
            guest = Guest(facts, self._plan.commands, spec.env)
            path = self._plan.paths.at(self._made)
            self._made += 1
            kind = PausableFakeSandbox if self.capabilities.pause else FakeSandbox
            ref = self._ref(call.sandbox, live)
            made = kind(self._stage, self._plan, ref, guest, path=path, unenforced=unenforced, phases=phases)
            return made, step

    @asynccontextmanager
    async def _place(self, call: Call) -> AsyncIterator[None]:
        """Room for one sandbox under the limits, given back when none comes of it."""
        self._asked += 1
        id_ = f"{self._prefix}-{self._asked}"
        try:
            answer = self._ask(id_)
            if answer == "wait":
                async with self._queue.turn():  # one poller a process, first come first served
                    while (answer := self._ask(id_)) == "wait":  # noqa: ASYNC110
                        await asyncio.sleep(_ROOM_POLL_S)  # an event would not come from another process
            if answer != "ok":
                await asyncio.sleep(self._plan.settings.reject_delay)
                raise Rejected(call.tried, answer, **call.about(self._limit_text(answer), "wait, or raise the limit"))
            call.sandbox = id_
            yield
        except BaseException:
            with self._state.table() as table:
                table.making.pop(id_, None)
                table.waiting.pop(id_, None)
            raise

    def _ask(self, id_: str) -> Literal["ok", "wait", "quota", "queue", "rate"]:
        s = self._plan.settings
        with self._state.table() as table:
            waits = id_ in table.waiting
            if s.create_rate is not None and not waits:
                # A burst of one second's worth, at least one; then as many as grow old.
                burst = max(1, int(s.create_rate))
                since_ns = loop_ns() - int(burst / s.create_rate * NS_PER_S)
                table.admitted_ns = [at for at in table.admitted_ns if at > since_ns]
                if len(table.admitted_ns) >= burst:
                    return "rate"
            full = s.max_live is not None and len(table.live) + len(table.making) >= s.max_live
            first = next(iter(table.waiting), id_) == id_
            if full or not first:
                if not s.max_queued:
                    return "quota"
                if not waits and len(table.waiting) >= s.max_queued:
                    return "queue"
                table.waiting[id_] = os.getpid()
                answer: Literal["ok", "wait"] = "wait"
            else:
                table.waiting.pop(id_, None)
                table.making[id_] = os.getpid()
                answer = "ok"
            if s.create_rate is not None and not waits:
                table.admitted_ns.append(loop_ns())
            return answer

    def _limit_text(self, limit: str) -> str:
        s = self._plan.settings
        return {
            "quota": f"max_live = {s.max_live} sandboxes exist",
            "queue": f"max_queued = {s.max_queued} creates wait already",
            "rate": f"more than create_rate = {s.create_rate} creates a second",
        }[limit]

    def _ref(self, id_: str, live: Live) -> SandboxRef:
        return SandboxRef(self._name, id_, {"run_id": live.run_id, "owner": live.owner})


class OneShotFakeProvider(FakeProvider):
    """With ``one_shot``. Where ``run_once`` has no script, those of ``create`` and ``exec`` are played in turn."""

    async def run_once(
        self,
        spec: SandboxSpec,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        owner: Owner,
        deadline_s: float,
    ) -> tuple[ExecResult, SandboxRef]:
        own = bool(self._plan.settings.run_once)
        with self._stage.call("run_once", tried=f"run_once {list(argv)!r}") as call:
            sandbox, step = await self._make(call, spec, owner, "run_once" if own else "create")
            try:
                result = await sandbox.run_first(call, step if own else None, argv, stdin, deadline_s)
            except BaseException:
                # Its ref never gets out, so nobody else could remove it.
                with self._state.table() as table:
                    table.live.pop(sandbox.ref.id, None)
                raise
            return result, sandbox.ref
