"""E2B: hosted microVMs, through their own SDK (extra ``[e2b]``), whose retries are off.

The key is ``E2B_API_KEY``. A sandbox carries its owner in its metadata, where the list finds it, running or paused.
What a template has of CPU and memory is what its sandboxes have: the service takes neither with a create.
"""

from __future__ import annotations

import asyncio
import math
import os
import secrets
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import urlsplit

from ..errors import CreateFailed, DestroyFailed, OperationTimeout, Rejected, SandboxError, TransportLost
from ..model import Capabilities, Owner, Preflight, SandboxRef, SandboxSpec
from .e2b_errors import translated
from .e2b_sandbox import E2BSandbox
from .e2b_spans import SPANS
from .limits import Plan
from .settings import read_settings

if TYPE_CHECKING:
    from e2b import AsyncSandbox

__all__ = ["E2BProvider", "E2BSettings", "factory", "plan"]

T = TypeVar("T")

OWNER, RUN, MARK = "sandboxbench-owner", "sandboxbench-run", "sandboxbench"
_HOSTED = "e2b.app"
# https://e2b.dev/docs/sandbox/rate-limits
_PLANS = {found.name: found for found in (Plan("hobby", 20, 1.0, 3600.0), Plan("pro", 100, 5.0, 24 * 3600.0))}
_ANSWERS_S = 4.0
_SETTLES_S = 0.1
_LATE_S = 60.0
"""How long a create whose caller has gone is waited for, to destroy what comes of it."""

_KEPT = 256
"""Idle connections that the SDK keeps to a host. Its own default of 20 is too few for 100 lanes over HTTP/1.1."""


@dataclass(frozen=True, slots=True)
class E2BSettings:
    """``api_key``: instead of ``E2B_API_KEY``. ``domain``: of a deployment of one's own; ``api_url``, ``sandbox_url``.

    ``plan``: what the account may do. ``auto`` is hobby, the smallest; at another address than E2B's it is unlimited.
    ``connections``: kept alive, or a new one for each request.
    """

    api_key: str | None = None
    domain: str | None = None
    api_url: str | None = None
    sandbox_url: str | None = None
    plan: Literal["auto", "hobby", "pro", "unlimited"] = "auto"
    connections: Literal["kept", "cold"] = "kept"


def factory(name: str, options: Mapping[str, Any]) -> E2BProvider:
    return E2BProvider(name, read_settings(E2BSettings, name, options))


def plan(options: Mapping[str, Any]) -> Plan | None:
    """What the account may do: its plan was named, or is the smallest; None where nothing is known of it."""
    known = {key: value for key, value in options.items() if key in E2BSettings.__slots__}
    return _plan(read_settings(E2BSettings, "e2b", known))


def _plan(settings: E2BSettings) -> Plan | None:
    auto = "hobby" if _is_of_e2b(settings) else "unlimited"
    return _PLANS.get(auto if settings.plan == "auto" else settings.plan)


def _address(settings: E2BSettings) -> str:
    """Where the control plane is."""
    domain = settings.domain or os.environ.get("E2B_DOMAIN") or _HOSTED
    return settings.api_url or os.environ.get("E2B_API_URL") or f"https://api.{domain}"


def _is_of_e2b(settings: E2BSettings) -> bool:
    return _address(settings).rstrip("/") == f"https://api.{_HOSTED}"


def _service(settings: E2BSettings) -> str:
    """Whose numbers these are, for whoever reads them."""
    if _is_of_e2b(settings):
        return _HOSTED
    host = urlsplit(_address(settings)).hostname or ""
    if host == "localhost" or host.startswith("127."):
        return f"an imitation on this machine ({_address(settings)}), which says nothing of E2B"
    return f"not E2B's own, but {_address(settings)}"


class E2BProvider:
    def __init__(self, name: str, settings: E2BSettings) -> None:
        self.name = name
        self._settings = settings
        self._plan = _plan(settings)
        self._sdk: type[AsyncSandbox] | None = None
        self._has: dict[str, tuple[int, int]] = {}
        self._background: set[asyncio.Task[Any]] = set()
        self.capabilities = Capabilities(
            isolation="hosted",
            pause=("memory", "filesystem"),
            stream=True,
            files=True,
            network_off=True,
            labels=True,
            hosted=True,
            max_live=None if self._plan is None else self._plan.max_live,
            spans=SPANS,
        )

    # -- the client

    @property
    def sdk(self) -> type[AsyncSandbox]:
        """The SDK's class, imported with its connection retries off and with enough connections for all lanes."""
        if self._sdk is None:
            wanted = {"E2B_CONNECTION_RETRIES": "0"}
            if self._settings.connections == "cold":
                wanted["E2B_MAX_KEEPALIVE_CONNECTIONS"] = "0"
            elif "E2B_MAX_KEEPALIVE_CONNECTIONS" not in os.environ:
                wanted["E2B_MAX_KEEPALIVE_CONNECTIONS"] = str(_KEPT)
            before = {key: os.environ.get(key) for key in wanted}
            os.environ.update(wanted)  # read once, while it is imported
            try:
                from e2b import AsyncSandbox
            finally:
                for key, value in before.items():
                    if value is None:
                        del os.environ[key]
                    else:
                        os.environ[key] = value
            self._sdk = AsyncSandbox
        return self._sdk

    def options(self, deadline_s: float) -> dict[str, Any]:
        """What goes with each call: who we are, where the service is, no retries, and a deadline of the SDK's own."""
        given = {key: getattr(self._settings, key) for key in ("api_key", "domain", "api_url", "sandbox_url")}
        return {key: value for key, value in given.items() if value} | {
            "retries": 0,
            "debug": False,  # which would have no service at all
            "request_timeout": max(0.001, deadline_s),
        }

    async def preflight(self) -> Preflight:
        if find_spec("e2b") is None:
            return Preflight(False, "its SDK is not installed", "pip install 'pytest-sandboxbench[e2b]'")
        if not (self._settings.api_key or os.environ.get("E2B_API_KEY")):
            cure = (
                "export E2B_API_KEY=e2b_... with a key from https://e2b.dev/dashboard?tab=keys; "
                "`sandboxbench serve e2b` is an imitation that needs none"
            )
            return Preflight(False, "E2B_API_KEY is not set", cure)
        try:
            self.sdk  # noqa: B018 -- its import is no part of a round trip
            if (lacking := self._other_pool()) is not None:
                return lacking
            first, then = [await self._timed_round_trip() for _ in range(2)]
            with suppress(SandboxError):  # what it says of a sandbox that is none is no matter
                await self._warm_data_plane()
        except (TransportLost, OperationTimeout) as error:
            return Preflight(False, f"{_address(self._settings)} cannot be reached: {error.said or error}", error.cure)
        except SandboxError as error:
            return Preflight(False, f"{_address(self._settings)} says: {error.said or error}", error.cure)
        except ImportError as error:
            return Preflight(False, f"its SDK cannot be imported: {error}", "pip install 'pytest-sandboxbench[e2b]'")
        return Preflight(True, facts=self._facts(first, then))

    def _other_pool(self) -> Preflight | None:
        """The SDK has one pool of connections in a process, as it was when it was imported."""
        import e2b.api

        if (e2b.api.pool_max_idle_per_host == 0) == (self._settings.connections == "cold"):
            return None
        reason = f"connections={self._settings.connections}, and this process has loaded the SDK with the other kind"
        return Preflight(False, reason, "measure the two in runs of their own")

    async def _timed_round_trip(self) -> float:
        begin = time.monotonic()
        await self._call("preflight", self.sdk.list(limit=1, **self.options(_ANSWERS_S)).next_items(), CreateFailed)
        return time.monotonic() - begin

    async def _warm_data_plane(self) -> None:
        """Connect to where commands go, where that is one host for all sandboxes: to a sandbox that is none."""
        from e2b.connection_config import ConnectionConfig
        from packaging.version import Version

        config = ConnectionConfig(**self.options(_ANSWERS_S))
        nobody = self.sdk(
            sandbox_id="none",
            sandbox_domain=None,
            envd_version=Version("0.5.7"),
            envd_access_token=None,
            traffic_access_token=None,
            connection_config=config,
        )
        if "none" not in config.get_sandbox_url("none", ""):
            await self._call("preflight", nobody.is_running(), CreateFailed)

    def _facts(self, first: float, then: float) -> dict[str, str]:
        import e2b.api
        from e2b.api.metadata import package_version

        plan = "unlimited" if self._plan is None else self._plan.name
        return {
            "sdk": f"e2b {package_version}",
            "service": _service(self._settings),
            "plan": plan,
            "retries": f"0 of a request, {e2b.api.connection_retries} of a connection",
            "connections": f"{self._settings.connections}, {e2b.api.pool_max_idle_per_host} idle ones a host at most",
            "first_round_trip": f"{first * 1e3:.1f} ms",
            "second_round_trip": f"{then * 1e3:.1f} ms",
        }

    async def _call(self, tried: str, act: Coroutine[Any, Any, T], kind: type[SandboxError], sandbox: str = "") -> T:
        """One call of the SDK, its errors as ours."""
        begin = time.monotonic()
        try:
            return await act
        except Exception as error:
            raise translated(error, tried, kind, sandbox=sandbox, after_s=time.monotonic() - begin) from error

    # -- sandboxes

    async def create(self, spec: SandboxSpec, *, owner: Owner, deadline_s: float) -> E2BSandbox:
        """``spec.image`` is a template. Whether it has the CPU and memory asked for is asked once for each template."""
        unenforced = self._refuse(spec)
        begin = time.monotonic()
        token = secrets.token_hex(8)
        metadata = {MARK: token, RUN: owner.run_id, OWNER: owner.label()}
        lifetime: dict[str, Any] = {} if spec.lifetime_s is None else {"timeout": max(1, math.ceil(spec.lifetime_s))}
        act = self.sdk.create(
            spec.image,
            metadata=metadata,
            envs=dict(spec.env),
            allow_internet_access=spec.network,
            **lifetime,
            **self.options(deadline_s + _LATE_S),
        )
        task = asyncio.ensure_future(self._call("create", act, CreateFailed))
        try:
            async with asyncio.timeout(deadline_s):
                made = await asyncio.shield(task)
                unenforced |= await self._lacking(made, spec, begin + deadline_s)
        except BaseException as error:
            if not isinstance(error, Rejected):
                self._in_background(self._undo(task, token))
            if isinstance(error, TimeoutError):
                raise OperationTimeout("create", after_s=time.monotonic() - begin) from None
            raise
        details = {"owner": owner.label()}
        ref = SandboxRef(self.name, made.sandbox_id, details)
        return E2BSandbox(self, made, ref, frozenset(unenforced), spec.lifetime_s)

    def _refuse(self, spec: SandboxSpec) -> set[str]:
        if spec.pids is None:
            return set()
        if not spec.allow_unenforced:
            raise CreateFailed("create with pids", said="E2B has no limit of processes", cure="leave pids out")
        return {"pids"}

    async def _lacking(self, made: AsyncSandbox, spec: SandboxSpec, ends: float) -> set[str]:
        """Of ``vcpus`` and ``memory_mib``, those that were asked for and are not as the template has them."""
        asked = {key: getattr(spec, key) for key in ("vcpus", "memory_mib") if getattr(spec, key) is not None}
        if not asked:
            return set()
        template = spec.image or "base"
        if template not in self._has:
            left = max(0.001, ends - time.monotonic())
            info = await self._call("create", self.sdk.get_info(made.sandbox_id, **self.options(left)), CreateFailed)
            self._has[template] = (info.cpu_count, info.memory_mb)
        has = dict(zip(("vcpus", "memory_mib"), self._has[template], strict=True))
        unlike = {key for key, value in asked.items() if value != has[key]}
        if unlike and not spec.allow_unenforced:
            said = f"template {template} has {has['vcpus']} vCPU and {has['memory_mib']} MiB"
            wanted = ", ".join(f"{key}={value}" for key, value in asked.items())
            cure = "build one that has them: `sandboxbench template e2b --help`, and name it as image"
            raise CreateFailed(f"create with {wanted}", sandbox=made.sandbox_id, said=said, cure=cure)
        return unlike

    def _in_background(self, act: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(act)
        self._background.add(task)
        task.add_done_callback(self._settled)

    def _settled(self, task: asyncio.Task[None]) -> None:
        """What could not be undone is found by its label: nobody is told of it here."""
        self._background.discard(task)
        if not task.cancelled():
            task.exception()

    async def _undo(self, task: asyncio.Future[AsyncSandbox], token: str) -> None:
        """Destroy what a create made that nobody waits for: by its id, or by its label where no answer came."""
        try:
            async with asyncio.timeout(_LATE_S):
                ids = [(await task).sandbox_id]
        except (Exception, asyncio.CancelledError):
            ids = [ref.id for ref in await self._listed({MARK: token})]
        for id in ids:
            await self.sdk.kill(id, **self.options(_LATE_S))

    async def owned(self, run_id: str | None = None) -> Sequence[SandboxRef]:
        found = await self._listed({} if run_id is None else {RUN: run_id})
        return [ref for ref in found if Owner.parse(ref.details["owner"]) is not None]

    async def _listed(self, metadata: Mapping[str, str]) -> list[SandboxRef]:
        from e2b import SandboxQuery

        pages = self.sdk.list(query=SandboxQuery(metadata=dict(metadata)), **self.options(_LATE_S))
        found = []
        while pages.has_next:
            for info in await self._call("owned", pages.next_items(), SandboxError):
                found.append(SandboxRef(self.name, info.sandbox_id, {"owner": info.metadata.get(OWNER, "")}))
        return found

    async def destroy(self, ref: SandboxRef, *, deadline_s: float) -> None:
        act = self.sdk.kill(ref.id, **self.options(deadline_s + 1))
        try:
            async with asyncio.timeout(deadline_s):
                await self._call("destroy", act, DestroyFailed, ref.id)
        except TimeoutError:
            raise OperationTimeout("destroy", sandbox=ref.id, after_s=deadline_s) from None

    async def round_trip(self) -> None:
        """GET /v2/sandboxes, one entry: the same host, connection and authentication as a create."""
        await self._call("round_trip", self.sdk.list(limit=1, **self.options(_LATE_S)).next_items(), SandboxError)

    async def aclose(self) -> None:
        """What is under way in the background comes to its end. The SDK's connections are of the process.

        Its threads must not be in the middle of an answer when the interpreter ends, or abort the process then, as they
        did once in 14 times (pyqwest 0.12 on CPython 3.11; curioswitch/pyqwest#164).
        """
        if self._background:
            await asyncio.wait(self._background, timeout=_ANSWERS_S)
        if self._sdk is not None:
            await asyncio.sleep(_SETTLES_S)
