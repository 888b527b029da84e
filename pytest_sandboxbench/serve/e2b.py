"""A local imitation of E2B: its control plane and its data plane on one port, with real bubblewrap sandboxes behind.

It speaks the protocol of e2b-dev/infra (spec/openapi.yml, packages/envd/spec) as far as the SDK's sandboxes, commands
and files need it. What it measures is this machine, and says nothing about E2B: each answer says so in its ``Server``
header. It listens on the loopback interface only.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, cast
from urllib.parse import parse_qs, unquote

from aiohttp import web

from .. import __version__
from ..errors import UsageError
from .e2b_envd import Envd
from .e2b_house import House, Refused, Template, Tenant
from .faults import Faults

__all__ = ["ENVD_VERSION", "KEY", "SERVER", "Imitation"]

KEY = "e2b_local"
"""The key that it takes unless it is told another one."""

SERVER = f"sandboxbench-serve-e2b/{__version__} (local imitation)"
ENVD_VERSION = "0.6.13"
_DISK_MIB = 10240
_PAGE = 100
_LONGEST_S = 24 * 3600.0

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Imitation:
    """The application. ``counts`` are the requests by operation, whatever became of them."""

    def __init__(self, house: House, faults: Faults | None = None, *, key: str = KEY) -> None:
        self.house = house
        self.faults = faults or Faults()
        self.counts: Counter[str] = Counter()
        self.connections: set[int] = set()
        self._key = key
        self._builds: dict[str, Template] = {}
        self._envd = Envd(house, self._faulty)
        self.app = web.Application(client_max_size=1 << 30)
        self.app.on_response_prepare.append(_sign)
        self.app.add_routes(self._routes())

    def _routes(self) -> list[web.RouteDef]:
        found = [
            web.get("/_sandboxbench", self._about),
            web.post("/_sandboxbench/faults", self._add_faults),
            *self._envd.routes(),
        ]
        for version in ("", "/v2"):
            found += [
                web.post(f"{version}/sandboxes", self._control("create", self._create)),
                web.get(f"{version}/sandboxes", self._control("list", self._list)),
                web.post(f"{version}/sandboxes/{{id}}/connect", self._control("connect", self._connect)),
            ]
        return [
            *found,
            web.post("/sandboxes/{id}/resume", self._control("connect", self._connect)),
            web.post("/sandboxes/{id}/pause", self._control("pause", self._pause)),
            web.post("/sandboxes/{id}/timeout", self._control("get", self._timeout)),
            web.get("/sandboxes/{id}", self._control("get", self._get)),
            web.delete("/sandboxes/{id}", self._control("kill", self._kill)),
            web.post("/v3/templates", self._control("get", self._request_build)),
            web.post("/v2/templates/{id}/builds/{build}", self._control("get", self._start_build)),
            web.get("/templates/{id}/builds/{build}/status", self._control("get", self._build_status)),
            web.get("/health", self._control("health", self._health)),
        ]

    # -- around every request

    def _control(self, operation: str, answer: Answer) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def serve(request: web.Request) -> web.StreamResponse:
            if operation != "health" and request.headers.get("X-API-KEY") != self._key:
                self._count(operation, request)
                return _error(401, "Invalid API key")
            return await self._faulty(operation, request, answer, _error)

        return serve

    def _count(self, operation: str, request: web.Request) -> None:
        self.counts[operation] += 1
        if request.transport is not None:
            self.connections.add(id(request.transport))

    async def _faulty(
        self,
        operation: str,
        request: web.Request,
        answer: Answer,
        refuse: Callable[[int, str], web.Response],
    ) -> web.StreamResponse:
        """Serve a request, or do what the next step of the operation's script says."""
        self._count(operation, request)
        fault = self.faults.next(operation)
        if fault.status is not None:
            said = refuse(fault.status, f"asked for by --fault {operation}={fault.what}")
            if fault.number is not None:
                said.headers["Retry-After"] = f"{fault.number:g}"
            return said
        if fault.what == "slow":
            await asyncio.sleep(fault.number or 0)
        elif fault.what == "hang":
            await asyncio.sleep(_LONGEST_S)
        try:
            reply = _dropped(request) if fault.what == "drop" else await answer(request)
        except Refused as error:
            reply = refuse(error.status, error.message)
        return _dropped(request) if fault.what == "lose" else reply

    async def _about(self, request: web.Request) -> web.Response:
        """What is here, for tests and for the curious."""
        return web.json_response(
            {
                "server": SERVER,
                "sandboxes": {tenant.id: tenant.state for tenant in self.house.tenants.values()},
                "requests": dict(self.counts),
                "connections": len(self.connections),
            }
        )

    async def _add_faults(self, request: web.Request) -> web.Response:
        try:
            for script in await request.json():
                self.faults.add(script)
        except (UsageError, TypeError, ValueError) as error:
            return _error(400, str(error))
        return web.Response(status=204)

    # -- the control plane

    async def _create(self, request: web.Request) -> web.Response:
        body = await _body(request)
        name = body.get("templateID")
        if not isinstance(name, str) or not name:
            raise Refused(400, "templateID is missing")
        tenant = await self.house.create(
            name,
            lifetime_s=_lifetime(body, 15.0 if request.path.startswith("/sandboxes") else 300.0),
            metadata=_texts(body, "metadata"),
            env=_texts(body, "envVars"),
            network=body.get("allow_internet_access") is not False,
            pauses_at_end=bool(body.get("autoPause")),
        )
        return web.json_response(_sandbox(tenant), status=201)

    async def _connect(self, request: web.Request) -> web.Response:
        body = await _body(request)
        tenant = self.house.find(request.match_info["id"])
        resumed = await self.house.connect(tenant, _lifetime(body, 300.0))
        return web.json_response(_sandbox(tenant), status=201 if resumed else 200)

    async def _pause(self, request: web.Request) -> web.Response:
        body = await _body(request) if request.can_read_body else {}
        await self.house.pause(self.house.find(request.match_info["id"]), memory=body.get("memory") is not False)
        return web.Response(status=204)

    async def _timeout(self, request: web.Request) -> web.Response:
        self.house.lives(self.house.find(request.match_info["id"]), _lifetime(await _body(request), 15.0))
        return web.Response(status=204)

    async def _get(self, request: web.Request) -> web.Response:
        tenant = self.house.find(request.match_info["id"])
        return web.json_response({**_listed(tenant), "envdAccessToken": tenant.token, "domain": None})

    async def _kill(self, request: web.Request) -> web.Response:
        await self.house.end(self.house.find(request.match_info["id"]))
        return web.Response(status=204)

    async def _list(self, request: web.Request) -> web.Response:
        asked = request.query
        wanted = {unquote(key): unquote(found[0]) for key, found in parse_qs(asked.get("metadata", "")).items()}
        states = set(",".join(asked.getall("state", [])).split(",")) - {""}
        if request.path.startswith("/sandboxes"):
            states = {"running"}
        found = [
            tenant
            for tenant in self.house.tenants.values()
            if (not states or tenant.state in states)
            and all(tenant.metadata.get(key) == value for key, value in wanted.items())
        ]
        found.sort(key=lambda tenant: (tenant.started, tenant.id), reverse=asked.get("order") != "asc")
        try:
            first, most = int(asked.get("nextToken", 0)), min(_PAGE, int(asked.get("limit", _PAGE)))
        except ValueError:
            raise Refused(400, "limit and nextToken are numbers") from None
        reply = web.json_response([_listed(tenant) for tenant in found[first : first + most]])
        if first + most < len(found):
            reply.headers["X-Next-Token"] = str(first + most)
        return reply

    async def _health(self, request: web.Request) -> web.StreamResponse:
        if "E2b-Sandbox-Id" in request.headers:
            return await self._envd.health(request)
        return web.Response(status=200)

    # -- templates: a build is over at once, and what it says of CPU and memory is what sandboxes of it are said to have

    async def _request_build(self, request: web.Request) -> web.Response:
        body = await _body(request)
        name = str(body.get("name") or body.get("alias") or "")
        if not name:
            raise Refused(400, "name is missing")
        name = name.partition(":")[0]
        made = self.house.build(name, int(body.get("cpuCount") or 2), int(body.get("memoryMB") or 1024))
        build = f"00000000-0000-4000-8000-{len(self._builds):012d}"
        self._builds[build] = made
        reply = {
            "templateID": made.id,
            "buildID": build,
            "public": False,
            "aliases": [name],
            "names": [name],
            "tags": [],
        }
        return web.json_response(reply, status=202)

    async def _start_build(self, request: web.Request) -> web.Response:
        self._built(request)
        return web.Response(status=202)

    async def _build_status(self, request: web.Request) -> web.Response:
        made = self._built(request)
        build = request.match_info["build"]
        return web.json_response(
            {"templateID": made.id, "buildID": build, "status": "ready", "logs": [], "logEntries": []}
        )

    def _built(self, request: web.Request) -> Template:
        made = self._builds.get(request.match_info["build"])
        if made is None or made.id != request.match_info["id"]:
            raise Refused(404, "build not found")
        return made


async def _sign(request: web.Request, reply: web.StreamResponse) -> None:
    reply.headers["Server"] = SERVER


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"code": status, "message": message}, status=status)


def _dropped(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


async def _body(request: web.Request) -> dict[str, Any]:
    try:
        found = await request.json()
    except ValueError as error:
        raise Refused(400, f"Error when parsing request: {error}") from None
    if not isinstance(found, dict):
        raise Refused(400, "Error when parsing request: no object")
    return found


def _texts(body: Mapping[str, Any], key: str) -> dict[str, str]:
    found = body.get(key) or {}
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise Refused(400, f"{key} has to be an object of strings")
    return cast("dict[str, str]", found)


def _lifetime(body: Mapping[str, Any], default: float) -> float:
    seconds = body.get("timeout", default)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise Refused(400, "timeout has to be a number of seconds")
    if seconds > _LONGEST_S:
        raise Refused(400, f"Timeout cannot be greater than {_LONGEST_S / 3600:g} hours")
    return float(seconds)


def _sandbox(tenant: Tenant) -> dict[str, Any]:
    return {
        "templateID": tenant.template.id,
        "sandboxID": tenant.id,
        "clientID": "6532622b",
        "envdVersion": ENVD_VERSION,
        "envdAccessToken": tenant.token,
        "trafficAccessToken": None,
        "domain": None,
        "alias": tenant.template.name,
    }


def _listed(tenant: Tenant) -> dict[str, Any]:
    return {
        "templateID": tenant.template.id,
        "alias": tenant.template.name,
        "sandboxID": tenant.id,
        "clientID": "6532622b",
        "startedAt": _time(tenant.started),
        "endAt": _time(tenant.ends),
        "cpuCount": tenant.template.cpus,
        "memoryMB": tenant.template.memory_mib,
        "diskSizeMB": _DISK_MIB,
        "metadata": dict(tenant.metadata),
        "state": tenant.state,
        "envdVersion": ENVD_VERSION,
    }


def _time(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
