"""The data plane of the imitation: what envd answers inside an E2B sandbox, in Connect's JSON over HTTP."""

from __future__ import annotations

import asyncio
import base64
import json
import posixpath
import re
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from aiohttp import web

from ..errors import ExecFailed, SandboxError
from .e2b_house import House, Refused, Tenant
from .guest_process import GuestProcess, NoSuchFolder

__all__ = ["Envd"]

HOME = "/home/user"
_FILES_S = 600.0
_STATUS = {
    "invalid_argument": 400,
    "unauthenticated": 401,
    "not_found": 404,
    "unimplemented": 501,
    "internal": 500,
    "unavailable": 503,
}
_SIGNALS = {"SIGNAL_SIGTERM": "TERM", "SIGNAL_SIGKILL": "KILL"}

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
Faulty = Callable[[str, web.Request, Answer, Callable[[int, str], web.Response]], Awaitable[web.StreamResponse]]


class _RpcError(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Envd:
    def __init__(self, house: House, faulty: Faulty) -> None:
        self._house = house
        self._faulty = faulty

    def routes(self) -> list[web.RouteDef]:
        unary = {
            "List": self._list_processes,
            "SendSignal": self._send_signal,
            "SendInput": self._send_input,
            "CloseStdin": self._close_stdin,
        }
        return [
            web.post("/process.Process/Start", self._around("exec", self._start, _plain)),
            *(web.post(f"/process.Process/{name}", self._unary(act)) for name, act in unary.items()),
            web.post(r"/{service:(process|filesystem)\.\w+}/{method}", self._unknown),
            web.get("/files", self._around("files", self._read, _plain)),
            web.post("/files", self._around("files", self._write, _plain)),
        ]

    # -- who is meant

    def _tenant(self, request: web.Request) -> Tenant | web.Response:
        """The sandbox, or the answer of the proxy in front of it."""
        id = request.headers.get("E2b-Sandbox-Id", "")
        tenant = self._house.tenants.get(id)
        if tenant is None or tenant.state != "running":
            return _bad_gateway(id, "The sandbox was not found")
        if time.monotonic() < tenant.ready_at:
            return _bad_gateway(id, "The sandbox is running but port is not open")
        if request.headers.get("X-Access-Token") != tenant.token:
            return web.json_response({"code": "unauthenticated", "message": "unauthorized access"}, status=401)
        return tenant

    def _around(self, operation: str, answer: Answer, refuse: Callable[[int, str], web.Response]) -> Answer:
        async def serve(request: web.Request) -> web.StreamResponse:
            return await self._faulty(operation, request, answer, refuse)

        return serve

    def _unary(self, act: Callable[[Tenant, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]) -> Answer:
        async def serve(request: web.Request) -> web.StreamResponse:
            tenant = self._tenant(request)
            if isinstance(tenant, web.Response):
                return tenant
            try:
                return web.json_response(await act(tenant, json.loads(await request.read() or b"{}")))
            except _RpcError as error:
                return _rpc_error(error)
            except (TypeError, ValueError, AttributeError) as error:
                return _rpc_error(_RpcError("invalid_argument", str(error)))

        return serve

    async def _unknown(self, request: web.Request) -> web.StreamResponse:
        return _rpc_error(_RpcError("unimplemented", f"{request.path} is not imitated"))

    async def health(self, request: web.Request) -> web.StreamResponse:
        tenant = self._tenant(request)
        if isinstance(tenant, web.Response) and tenant.status != 401:  # envd's health needs no token
            return tenant
        return web.Response(status=204)

    # -- commands

    async def _start(self, request: web.Request) -> web.StreamResponse:
        """The client may go in the middle: the command goes on, and nobody is told of it."""
        reply = _stream()
        with suppress(ConnectionResetError):
            return await self._start_for(request, reply)
        return reply

    async def _start_for(self, request: web.Request, reply: web.StreamResponse) -> web.StreamResponse:
        tenant = self._tenant(request)
        if isinstance(tenant, web.Response):
            return tenant
        try:
            asked = _opened(await request.read())
            process = await self._started(tenant, asked, _timeout(request))
        except _RpcError as error:
            await reply.prepare(request)
            return await _end(reply, error.code, error.message)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            await reply.prepare(request)
            return await _end(reply, "invalid_argument", str(error))
        tenant.processes[process.pid] = process
        forget = asyncio.ensure_future(process.ended.wait())
        forget.add_done_callback(lambda _: tenant.processes.pop(process.pid, None))
        await reply.prepare(request)
        await reply.write(_envelope({"event": {"start": {"pid": process.pid}}}))
        async for stream, data in process.events():
            await reply.write(_envelope({"event": {"data": {stream: base64.b64encode(data).decode()}}}))
        if tenant.id not in self._house.tenants:
            return await _end(reply, "unavailable", f"the connection to sandbox {tenant.id} ended")
        if process.timed_out:
            return await _end(reply, "deadline_exceeded", "context deadline exceeded")
        await reply.write(_envelope({"event": {"end": _ended(process.exit_code or 0)}}))
        return await _end(reply)

    async def _started(self, tenant: Tenant, asked: Mapping[str, Any], timeout_s: float | None) -> GuestProcess:
        config = asked["process"]
        cwd = posixpath.join(HOME, config.get("cwd") or "")
        env = {str(key): str(value) for key, value in (config.get("envs") or {}).items()}
        argv = [str(config["cmd"]), *map(str, config.get("args") or [])]
        if "pty" in asked:
            raise _RpcError("unimplemented", "a terminal is not imitated")
        try:
            return await GuestProcess.start(
                tenant.inner,
                argv,
                cwd=cwd,
                env=env,
                stdin=asked.get("stdin", True) is not False,
                timeout_s=timeout_s,
            )
        except NoSuchFolder:
            raise _RpcError("invalid_argument", f"cwd '{cwd}' does not exist") from None
        except ExecFailed as error:
            raise _RpcError("invalid_argument", error.said or str(error)) from None
        except SandboxError as error:
            raise _RpcError("unavailable", str(error)) from None

    async def _list_processes(self, tenant: Tenant, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        return {
            "processes": [
                {"pid": pid, "config": {"cmd": process.argv[0], "args": process.argv[1:], "cwd": process.cwd}}
                for pid, process in tenant.processes.items()
            ]
        }

    def _process(self, tenant: Tenant, asked: Mapping[str, Any]) -> GuestProcess:
        pid = int(asked["process"].get("pid", 0))
        process = tenant.processes.get(pid)
        if process is None:
            raise _RpcError("not_found", f"process with pid {pid} not found")
        return process

    async def _send_signal(self, tenant: Tenant, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        process = self._process(tenant, asked)
        name = _SIGNALS.get(asked.get("signal", ""))
        if name is None:
            raise _RpcError("unimplemented", f"invalid signal: {asked.get('signal')}")
        await process.signal(name)
        return {}

    async def _send_input(self, tenant: Tenant, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        process = self._process(tenant, asked)
        try:
            await process.write(base64.b64decode(asked.get("input", {}).get("stdin", "")))
        except OSError as error:
            raise _RpcError("internal", f"error writing to stdin: {error}") from None
        return {}

    async def _close_stdin(self, tenant: Tenant, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        self._process(tenant, asked).close_stdin()
        return {}

    # -- files

    async def _read(self, request: web.Request) -> web.StreamResponse:
        tenant = self._tenant(request)
        if isinstance(tenant, web.Response):
            return tenant
        path = _path(request)
        try:
            data = await tenant.inner.read_file(path, deadline_s=_FILES_S)
        except SandboxError as error:
            raise _refused(path, error) from None
        return web.Response(body=data, content_type="application/octet-stream")

    async def _write(self, request: web.Request) -> web.StreamResponse:
        tenant = self._tenant(request)
        if isinstance(tenant, web.Response):
            return tenant
        written = []
        if request.content_type.startswith("multipart/"):
            async for part in await request.multipart():
                path = posixpath.join(HOME, request.query.get("path") or getattr(part, "filename", None) or "")
                data = bytes(await part.read(decode=False))  # type: ignore[union-attr]  # a part, not a nested multipart
                written.append(await _written(tenant, path, data))
        else:
            written.append(await _written(tenant, _path(request), await request.read()))
        return web.json_response(written)


async def _written(tenant: Tenant, path: str, data: bytes) -> dict[str, str]:
    """As envd does, with all folders on the way."""
    for again in (True, False):
        try:
            await tenant.inner.write_file(path, data, deadline_s=_FILES_S)
            break
        except SandboxError as error:
            folder = posixpath.dirname(path)
            if not again or not isinstance(error, ExecFailed) or "Directory nonexistent" not in error.said:
                raise _refused(path, error) from None
            await tenant.inner.exec(["mkdir", "-p", "--", folder], deadline_s=_FILES_S)
    return {"name": posixpath.basename(path), "type": "file", "path": path}


def _refused(path: str, error: SandboxError) -> Refused:
    if "No such file" in error.said:
        return Refused(404, f"path '{path}' does not exist")
    return Refused(400 if isinstance(error, ExecFailed) else 500, error.said or str(error))


def _path(request: web.Request) -> str:
    return posixpath.join(HOME, request.query.get("path", ""))


# -- Connect


def _opened(body: bytes) -> Mapping[str, Any]:
    """The one message of an enveloped request."""
    length = int.from_bytes(body[1:5], "big")
    found = json.loads(body[5 : 5 + length])
    if not isinstance(found, dict):
        raise ValueError("no object")
    return found


def _envelope(message: object, flags: int = 0) -> bytes:
    data = json.dumps(message).encode()
    return bytes([flags]) + len(data).to_bytes(4, "big") + data


def _timeout(request: web.Request) -> float | None:
    text = request.headers.get("Connect-Timeout-Ms", "")
    return int(text) / 1000 if text.isdigit() and int(text) else None


def _stream() -> web.StreamResponse:
    return web.StreamResponse(headers={"Content-Type": "application/connect+json"})


async def _end(reply: web.StreamResponse, code: str = "", message: str = "") -> web.StreamResponse:
    error = {"error": {"code": code, "message": message}} if code else {}
    await reply.write(_envelope(error, 2))
    await reply.write_eof()
    return reply


def _ended(code: int) -> dict[str, Any]:
    """As Go says it of a process: -1 for one that a signal ended, with the signal's name."""
    if code >= 0:
        status = f"exit status {code}"
        return {"exitCode": code, "exited": True, "status": status, **({"error": status} if code else {})}
    name = re.sub(r"^(.)", lambda found: found[1].lower(), signal.strsignal(-code) or f"signal {-code}")
    return {"exitCode": -1, "exited": False, "status": f"signal: {name}", "error": f"signal: {name}"}


def _rpc_error(error: _RpcError) -> web.Response:
    return web.json_response({"code": error.code, "message": error.message}, status=_STATUS[error.code])


def _plain(status: int, message: str) -> web.Response:
    return web.json_response({"code": status, "message": message}, status=status)


def _bad_gateway(id: str, message: str) -> web.Response:
    return web.json_response({"sandboxId": id, "message": message, "code": 502}, status=502)
