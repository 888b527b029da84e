"""``create`` and ``exec`` of E2B through adapter and SDK, over the same requests of a bare client with one connection.

All ask the local imitation, which runs in a process of its own, and take turns sandbox by sandbox. The bare client and
the SDK by itself send the very command line that the adapter makes, and read the answer to its end.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import random
import socket
import time
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from pytest_sandboxbench.model import SandboxSpec
from pytest_sandboxbench.owners import this_process
from pytest_sandboxbench.providers.e2b import E2BProvider, factory
from pytest_sandboxbench.providers.e2b_sandbox import command_line
from pytest_sandboxbench.stats import median_interval, ratio_interval
from tests.e2b.server import KEY, Local, serving

from .table import Row, show, shuffled

__all__ = ["measure"]

MARK = "-0123456789abcdef01234567-"


class Bare:
    """One connection, and nothing around its requests."""

    def __init__(self, local: Local) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(local.url).netloc)
        self._connection.connect()
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> bytes:
        self._connection.request(method, path, body, headers)
        reply = self._connection.getresponse()
        data = reply.read()
        assert reply.status < 300, data
        return data

    def turn(self, commands: int) -> tuple[int, list[int]]:
        key = {"X-API-KEY": KEY, "Content-Type": "application/json"}
        body = json.dumps({"templateID": "base", "metadata": {"of": "bare"}, "timeout": 300}).encode()
        begin = time.perf_counter_ns()
        made = json.loads(self.ask("POST", "/v2/sandboxes", body, key))
        create = time.perf_counter_ns() - begin
        to = {
            "E2b-Sandbox-Id": made["sandboxID"],
            "X-Access-Token": made["envdAccessToken"],
            "Content-Type": "application/connect+json",
            "Connect-Protocol-Version": "1",
        }
        line = ["-l", "-c", command_line(["true"], MARK)]
        asked = json.dumps({"process": {"cmd": "/bin/bash", "args": line}, "stdin": False}).encode()
        execs = []
        for _ in range(commands):
            begin = time.perf_counter_ns()
            said = self.ask("POST", "/process.Process/Start", b"\0" + len(asked).to_bytes(4, "big") + asked, to)
            execs.append(time.perf_counter_ns() - begin)
            assert b'"exitCode": 0' in said
        self.ask("DELETE", f"/sandboxes/{made['sandboxID']}", None, key)
        return create, execs


async def _turn(provider: E2BProvider, commands: int) -> tuple[int, list[int]]:
    begin = time.perf_counter_ns()
    sandbox = await provider.create(SandboxSpec(), owner=this_process("perf"), deadline_s=60)
    create = time.perf_counter_ns() - begin
    execs = []
    for _ in range(commands):
        begin = time.perf_counter_ns()
        ended = await sandbox.exec(["true"], deadline_s=60)
        execs.append(time.perf_counter_ns() - begin)
        assert ended.exit_code == 0
    await provider.destroy(sandbox.ref, deadline_s=60)
    return create, execs


async def _sdk_turn(provider: E2BProvider, commands: int) -> tuple[int, list[int]]:
    options = provider.options(60)
    begin = time.perf_counter_ns()
    sandbox = await provider.sdk.create(metadata={"of": "sdk"}, **options)
    create = time.perf_counter_ns() - begin
    execs = []
    for _ in range(commands):
        begin = time.perf_counter_ns()
        ended = await sandbox.commands.run(command_line(["true"], MARK))
        execs.append(time.perf_counter_ns() - begin)
        assert ended.exit_code == 0
    await sandbox.kill()
    return create, execs


def measure(*, quick: bool = False) -> list[Row]:
    with serving() as local:
        before = {key: os.environ.get(key) for key in local.env}
        os.environ.update(local.env)
        try:
            return asyncio.run(_measure(local, 8 if quick else 200))
        finally:
            for key, value in before.items():
                os.environ.pop(key) if value is None else os.environ.update({key: value})


async def _measure(local: Local, rounds: int) -> list[Row]:
    draw = random.Random()
    bare, provider = Bare(local), factory("e2b", {})
    assert (await provider.preflight()).ready
    creates: list[dict[str, int]] = []
    execs: list[dict[str, int]] = []
    try:
        for number in range(-1, rounds):
            found: dict[str, tuple[int, list[int]]] = {}
            for name in shuffled(["adapter", "SDK", "bare"], draw):
                if name == "bare":
                    found[name] = bare.turn(3)
                else:
                    found[name] = await (_turn if name == "adapter" else _sdk_turn)(provider, 3)
            if number >= 0:  # the first one warms up
                creates.append({name: create for name, (create, _) in found.items()})
                execs.append({name: sorted(times)[1] for name, (_, times) in found.items()})
    finally:
        await provider.aclose()
    return [*_rows("create", creates), *_rows("exec, the middle one of three,", execs)]


def _rows(name: str, turns: Sequence[Mapping[str, int]]) -> list[Row]:
    def ratio(over: str, under: str) -> Row:
        found = ratio_interval([(turn[over], turn[under]) for turn in turns])
        return Row(f"{name} {over} / {under}", show(found), "", "sandbox by sandbox")

    bare = median_interval([turn["bare"] for turn in turns])
    return [
        ratio("adapter", "bare"),
        ratio("adapter", "SDK"),
        ratio("SDK", "bare"),
        Row(f"{name} by the bare client", show(bare, 1e-6, "ms", 2)),
    ]
