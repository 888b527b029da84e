"""The scripted provider: what it is, who owns what, one-shot runs, preflight and log."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from pytest_sandboxbench.errors import (
    CreateFailed,
    NotReady,
    SandboxGone,
)
from pytest_sandboxbench.model import ExecResult, Owner, SandboxRef, SandboxSpec
from pytest_sandboxbench.providers.fake import FakeProvider, OneShotFakeProvider, factory
from pytest_sandboxbench.providers.fake_clock import loop_ns, run_virtual
from pytest_sandboxbench.providers.protocol import OneShot, Pausable, Provider, ProviderFactory, Sandbox, Timings

from .scripted import OWNER, TRUE, call, create, failure, fake, on_virtual_clock, pausable, run, seconds

# What it is


@on_virtual_clock
async def test_it_keeps_the_protocols() -> None:
    build: ProviderFactory = factory
    provider: Provider = build("fake", {})
    sandbox: Sandbox = await provider.create(SandboxSpec(), owner=OWNER, deadline_s=1)

    assert provider.name == sandbox.ref.provider == "fake"
    assert isinstance(provider, OneShot)
    assert isinstance(sandbox, Pausable)
    assert isinstance(sandbox, Timings)


@on_virtual_clock
async def test_without_settings_all_is_instant_and_succeeds() -> None:
    async def life() -> None:
        provider = fake()
        assert (await provider.preflight()).ready
        sandbox = await pausable(provider)
        await sandbox.write_file("a", b"1", deadline_s=1)
        assert await sandbox.read_file("a", deadline_s=1) == b"1"
        assert (await run(sandbox, "true")).exit_code == 0
        await sandbox.pause(kind="memory", deadline_s=1)
        await sandbox.resume(deadline_s=1)
        await provider.round_trip()
        assert [ref.id for ref in await provider.owned()] == [sandbox.ref.id]
        await provider.destroy(sandbox.ref, deadline_s=1)
        assert provider.live == ()
        await provider.aclose()

    assert await seconds(life()) == 0.0


@on_virtual_clock
async def test_a_powerless_one_has_neither_methods_nor_capabilities() -> None:
    provider = fake(one_shot="false", pause_kinds="none")

    assert not isinstance(provider, OneShot)
    assert not isinstance(await create(provider), Pausable)
    assert not provider.capabilities.one_shot
    assert provider.capabilities.pause == ()


def test_capabilities_come_from_the_settings() -> None:
    plain = fake().capabilities
    assert (plain.isolation, plain.labels, plain.one_shot, plain.hosted, plain.max_live) == (
        "scripted",
        False,
        True,
        False,
        None,
    )
    assert plain.pause == ("memory",)
    assert plain.limits == {"vcpus", "memory_mib", "pids"}
    assert plain.spans == ()

    options = {"hosted": "yes", "max_live": "7", "pause_kinds": "frozen,filesystem", "limits": "pids"}
    other = factory("fake", {**options, "spans": "destroy:0.1,create:HTTP 201 read"}).capabilities
    assert other.hosted
    assert other.max_live == 7
    assert other.pause == ("frozen", "filesystem")
    assert other.limits == {"pids"}
    destroy, create_span = other.span("destroy"), other.span("create")
    assert destroy is not None
    assert create_span is not None
    assert (destroy.resolution_s, destroy.polling) == (0.1, "every 0.1 s")
    assert (create_span.resolution_s, create_span.end) == (0.0, "HTTP 201 read")


@on_virtual_clock
async def test_an_image_of_a_registry_that_cannot_be_is_missing() -> None:
    provider = fake()
    assert (await create(provider, image="registry.example/python:3")).ref.id
    with pytest.raises(CreateFailed, match=r"with image nobody\.invalid/python:3 .*no such image"):
        await create(provider, image="nobody.invalid/python:3")
    assert len(await provider.owned()) == 1


# Owners and destroying


@on_virtual_clock
async def test_owned_tells_the_runs_apart() -> None:
    provider = fake()
    mine = await create(provider)
    other = await provider.create(SandboxSpec(), owner=Owner("run-2", "here", 1, "0"), deadline_s=1)

    assert [ref.id for ref in await provider.owned()] == [mine.ref.id, other.ref.id]
    assert await provider.owned("run-1") == [mine.ref]
    assert await provider.owned("run-3") == []
    assert mine.ref.details == {"run_id": "run-1", "owner": OWNER.label()}


@on_virtual_clock
async def test_destroy_is_idempotent_and_works_while_paused() -> None:
    provider = fake()
    sandbox = await pausable(provider)
    await sandbox.pause(kind="memory", deadline_s=1)

    for ref in (sandbox.ref, sandbox.ref, SandboxRef("fake", "never-was")):
        await provider.destroy(ref, deadline_s=1)
    assert provider.live == ()


@on_virtual_clock
async def test_everything_on_a_destroyed_sandbox_says_gone() -> None:
    provider = fake()
    sandbox = await pausable(provider)
    await provider.destroy(sandbox.ref, deadline_s=1)

    calls: list[Awaitable[Any]] = [
        run(sandbox, "true"),
        anext(sandbox.stream(TRUE, deadline_s=1)),
        sandbox.write_file("a", b"", deadline_s=1),
        sandbox.read_file("a", deadline_s=1),
        sandbox.pause(kind="memory", deadline_s=1),
        sandbox.resume(deadline_s=1),
    ]
    for awaitable in calls:
        assert isinstance(await failure(awaitable), SandboxGone)


@on_virtual_clock
async def test_a_command_notices_that_its_sandbox_is_destroyed_meanwhile() -> None:
    provider = fake(exec=1)
    sandbox = await create(provider)
    running = asyncio.ensure_future(run(sandbox, "true"))
    await asyncio.sleep(0.5)
    await provider.destroy(sandbox.ref, deadline_s=1)

    assert isinstance(await failure(running), SandboxGone)


@on_virtual_clock
async def test_a_lifetime_ends() -> None:
    provider = fake()
    sandbox = await create(provider, lifetime_s=10)

    await asyncio.sleep(9)
    await run(sandbox, "true")
    await asyncio.sleep(2)
    assert isinstance(await failure(run(sandbox, "true")), SandboxGone)
    assert await provider.owned() == []


# Readiness


@on_virtual_clock
async def test_commands_are_answered_from_ready_after_on() -> None:
    provider = fake(create=0.1, ready_after=0.8, exec="exit:0")
    start_ns = loop_ns()
    sandbox = await create(provider)
    assert (loop_ns() - start_ns) / 1e9 == pytest.approx(0.1)

    attempts = 0
    while True:
        attempts += 1
        try:
            assert (await run(sandbox, "true")).exit_code == 0
            break
        except NotReady:
            await asyncio.sleep(0.05)
    assert (loop_ns() - start_ns) / 1e9 == pytest.approx(0.9, abs=0.06)
    assert provider.calls["exec"] == attempts > 10


@on_virtual_clock
async def test_not_ready_is_said_at_once_and_does_not_use_up_the_script() -> None:
    sandbox = await create(fake(ready_after=1, exec="0.3+exit:7,0"))

    for awaitable in (
        run(sandbox, "true"),
        sandbox.write_file("a", b"", deadline_s=1),
        sandbox.read_file("a", deadline_s=1),
    ):
        assert await seconds(failure(awaitable)) == 0.0
    await asyncio.sleep(1)
    assert (await run(sandbox, "true")).exit_code == 7


@on_virtual_clock
async def test_never_ready() -> None:
    provider = fake(ready_after="never")
    sandbox = await create(provider)

    await asyncio.sleep(1e6)
    error = await failure(run(sandbox, "true"))
    assert isinstance(error, NotReady)
    assert error.said == "connection refused"
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(call(provider, "run_once"), 60)
    assert provider.live == (sandbox.ref.id,)


# One-shot runs


@on_virtual_clock
async def test_a_one_shot_run_leaves_a_sandbox_for_destroy() -> None:
    provider = fake(run_once=0.2, create=9, exec=9)
    assert isinstance(provider, OneShotFakeProvider)
    result, ref = await provider.run_once(SandboxSpec(), ["cat"], stdin=b"in", owner=OWNER, deadline_s=1)

    assert result == ExecResult(0, b"in", b"")
    assert provider.log[-1][3] - provider.log[-1][2] == pytest.approx(200_000_000, abs=1000)
    assert await provider.owned("run-1") == [ref]
    await provider.destroy(ref, deadline_s=1)
    assert provider.live == ()


@on_virtual_clock
async def test_a_one_shot_run_without_a_script_is_a_create_and_an_exec() -> None:
    provider = fake(create=0.2, create_phases="boot:0.1", exec="0.3+exit:4,gone", ready_after=0.4)

    start_ns = loop_ns()
    result, _ = await call(provider, "run_once")
    assert result.exit_code == 4
    assert (loop_ns() - start_ns) / 1e9 == pytest.approx(1.0)
    assert isinstance(await failure(call(provider, "run_once")), SandboxGone)
    assert len(provider.live) == 1
    assert provider.calls == {"run_once": 2}


@on_virtual_clock
async def test_a_one_shot_run_has_its_own_exit_code_limits_and_errors() -> None:
    assert (await call(fake(run_once="exit:3"), "run_once"))[0].exit_code == 3
    assert (await failure(call(fake(max_live=0), "run_once"))).outcome == "rejected(quota)"
    assert isinstance(await failure(call(fake(create="error"), "run_once")), CreateFailed)


@on_virtual_clock
async def test_a_cancelled_one_shot_run_leaves_nothing() -> None:
    provider = fake(exec="hang")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(call(provider, "run_once"), 1)

    assert provider.live == ()


# Preflight


@on_virtual_clock
async def test_it_can_be_missing() -> None:
    provider = fake(missing="no key")
    answer = await provider.preflight()
    assert (answer.ready, answer.reason) == (False, "no key")
    assert answer.cure == "Remove the setting fake.missing."
    assert (await failure(create(provider))).said == "no key"

    assert (await fake(missing="no key", cure="Buy one.").preflight()).cure == "Buy one."


@on_virtual_clock
async def test_facts_of_the_run_hold_the_settings() -> None:
    facts = (await fake(create="0.1,error", max_live=3).preflight()).facts

    assert facts == {"kind": "scripted", "create": "0.1,error", "max_live": "3"}


# The log


def test_the_log_file_has_one_line_a_call(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"

    async def test() -> FakeProvider:
        provider = fake(create="0.25,error", exec="hang", destroy="raise", max_live=2, log=str(file))
        sandbox = await create(provider)
        await failure(create(provider))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(run(sandbox, "true"), 1)
        with pytest.raises(RuntimeError):
            await provider.destroy(sandbox.ref, deadline_s=1)
        return provider

    provider = run_virtual(test())
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(line["op"], line["outcome"], line["error"]) for line in lines] == [
        ("create", "ok", ""),
        ("create", "failed", "CreateFailed"),
        ("exec", "cancelled", ""),
        ("destroy", "crashed", "RuntimeError"),
    ]
    assert [(line["op"], line["sandbox"], line["start_ns"], line["end_ns"]) for line in lines] == provider.log
    assert lines[0]["end_ns"] - lines[0]["start_ns"] == pytest.approx(250_000_000, abs=1000)
    assert {line["pid"] for line in lines} == {os.getpid()}
    assert {line["provider"] for line in lines} == {"fake"}
    assert provider.calls == {"create": 2, "exec": 1, "destroy": 1}
