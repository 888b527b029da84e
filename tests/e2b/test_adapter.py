"""The adapter through the real SDK: each error is the right one, nothing is tried twice, nothing stays."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from pytest_sandboxbench.errors import (
    CreateFailed,
    DestroyFailed,
    ExecFailed,
    ExecTimeout,
    NotReady,
    OperationTimeout,
    Rejected,
    SandboxError,
    SandboxGone,
    TransportLost,
    UsageError,
)
from pytest_sandboxbench.model import SandboxSpec
from pytest_sandboxbench.providers.e2b import factory, plan

from .conftest import E2B, Run
from .server import KEY, Local, serving


async def gone(local: Local) -> None:
    """What is still on its way is waited for a moment."""
    for _ in range(100):
        if not local.sandboxes:
            return
        await asyncio.sleep(0.05)
    assert local.sandboxes == {}


@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        ("401", CreateFailed, "401: Unauthorized"),
        ("404", CreateFailed, "404: "),
        ("409", CreateFailed, "409: "),
        ("429", Rejected, "429: Rate limit exceeded"),
        ("429:1", Rejected, "429: Rate limit exceeded"),
        ("500", CreateFailed, "500: "),
        ("503", Rejected, "503"),
        ("drop", TransportLost, ""),
        ("lose", TransportLost, ""),
    ],
)
def test_a_create_that_fails(e2b: Run, local: Local, fault: str, kind: type[SandboxError], said: str) -> None:
    async def test(one: E2B) -> None:
        before = local.requests.get("create", 0)
        local.fault(f"create={fault}")
        with pytest.raises(kind) as raised:
            await one.create()
        assert type(raised.value) is kind
        assert said in raised.value.said
        assert local.requests["create"] == before + 1, "nothing was tried again"
        if isinstance(raised.value, Rejected):
            assert raised.value.limit == ("capacity" if fault == "503" else "rate")
        if fault == "401":
            assert "E2B_API_KEY" in raised.value.cure
            assert KEY not in str(raised.value)
        await gone(local)

    e2b(test)


@pytest.mark.parametrize("fault", ["slow:1", "hang"])
def test_a_create_that_is_late(e2b: Run, local: Local, fault: str) -> None:
    async def test(one: E2B) -> None:
        local.fault(f"create={fault}")
        begin = time.monotonic()
        with pytest.raises(OperationTimeout):
            await one.create(deadline_s=0.3)
        assert time.monotonic() - begin < 0.9
        if fault == "slow:1":
            await asyncio.sleep(1)
        await gone(local)

    e2b(test)


def test_a_create_that_is_cancelled(e2b: Run, local: Local) -> None:
    async def test(one: E2B) -> None:
        for after_s in (0.0, 0.005, 0.02, 0.05):
            task = asyncio.create_task(one.create())
            await asyncio.sleep(after_s)
            task.cancel()
            await asyncio.wait({task})
        for made in one.made:  # it was faster than its end
            await one.provider.destroy(made.ref, deadline_s=5)
        await asyncio.sleep(0.3)
        await gone(local)

    e2b(test)


@pytest.mark.parametrize(
    ("operation", "fault", "kind"),
    [
        ("exec", "500", ExecFailed),
        ("exec", "429", Rejected),
        ("exec", "503", SandboxError),
        ("exec", "drop", TransportLost),
        ("files", "500", ExecFailed),
        ("files", "429", Rejected),
        ("files", "drop", TransportLost),
        ("pause", "404", SandboxGone),
        ("pause", "500", SandboxError),
        ("pause", "503", Rejected),
        ("connect", "404", SandboxGone),
        ("connect", "429", Rejected),
        ("kill", "500", DestroyFailed),
        ("kill", "401", DestroyFailed),
        ("kill", "hang", OperationTimeout),
        ("kill", "drop", TransportLost),
        ("list", "500", SandboxError),
        ("list", "401", SandboxError),
    ],
)
def test_any_other_call_that_fails(
    e2b: Run, local: Local, operation: str, fault: str, kind: type[SandboxError]
) -> None:
    async def test(one: E2B) -> None:
        sandbox = await one.create()
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "exec": lambda: sandbox.exec(["true"], deadline_s=5),
            "files": lambda: sandbox.write_file("a", b"b", deadline_s=5),
            "pause": lambda: sandbox.pause(kind="memory", deadline_s=5),
            "connect": lambda: sandbox.resume(deadline_s=5),
            "kill": lambda: one.provider.destroy(sandbox.ref, deadline_s=0.5),
            "list": lambda: one.provider.round_trip(),
        }
        before = local.requests.get(operation, 0)
        local.fault(f"{operation}={fault}")
        with pytest.raises(kind):
            await calls[operation]()
        assert local.requests[operation] == before + 1, "nothing was tried again"

    e2b(test)


def test_gone_is_done_and_paused_can_be_destroyed(e2b: Run, local: Local) -> None:
    async def test(one: E2B) -> None:
        first, second = await one.create(), await one.create()
        await second.pause(kind="filesystem", deadline_s=5)
        assert {ref.id for ref in await one.provider.owned("run-of-a-test")} == {first.ref.id, second.ref.id}
        for sandbox in (first, second, first):
            await one.provider.destroy(sandbox.ref, deadline_s=5)
        assert await one.provider.owned("run-of-a-test") == []
        with pytest.raises(SandboxGone):
            await first.exec(["true"], deadline_s=5)

    e2b(test)


def test_somebody_elses_sandboxes_are_not_ours(e2b: Run, local: Local) -> None:
    from e2b import AsyncSandbox

    async def test(one: E2B) -> None:
        other = await AsyncSandbox.create(metadata={"sandboxbench-owner": "no owner of ours"}, retries=0)
        try:
            assert await one.provider.owned() == []
        finally:
            await other.kill()

    e2b(test)


def test_output_is_bytes(e2b: Run) -> None:
    everything = bytes(range(256)) * 300

    async def test(one: E2B) -> None:
        sandbox = await one.create()
        echoed = await sandbox.exec(["cat"], stdin=everything, deadline_s=20)
        assert echoed.stdout == everything
        both = await sandbox.exec(["sh", "-c", "printf '\\200'; printf '\\377' >&2; kill -TERM $$"], deadline_s=5)
        assert (both.exit_code, both.stdout, both.stderr) == (-15, b"\x80", b"\xff")

    e2b(test)


def test_an_output_held_open_holds_nothing_up(e2b: Run) -> None:
    """The service tells the end of a command when its output is closed."""

    async def test(one: E2B) -> None:
        sandbox = await one.create()
        begin = time.monotonic()
        ended = await sandbox.exec(["sh", "-c", "echo said; sleep 61 & exit 3"], deadline_s=20)
        assert time.monotonic() - begin < 5
        assert (ended.exit_code, ended.stdout) == (3, b"said\n")

    e2b(test)


def test_a_slow_reader_of_a_stream_is_not_cancelled_by_its_deadline(e2b: Run) -> None:
    async def test(one: E2B) -> None:
        sandbox = await one.create()
        pieces = sandbox.stream(["sh", "-c", "echo one; sleep 61"], deadline_s=0.5)
        assert (await anext(aiter(pieces))).data == b"one\n"
        await asyncio.sleep(0.8)  # the deadline passes here, and is told to whoever asks next
        with pytest.raises(ExecTimeout):
            await anext(aiter(pieces))
        left = await sandbox.exec(["sh", "-c", "cat /proc/[0-9]*/cmdline"], deadline_s=5)
        assert b"sleep\x0061" not in left.stdout

    e2b(test)


def test_not_ready_is_not_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        provider = factory("e2b", {})
        sandbox = await provider.create(SandboxSpec(), owner=E2B_OWNER, deadline_s=10)
        with pytest.raises(NotReady):
            await sandbox.exec(["true"], deadline_s=5)
        await provider.destroy(sandbox.ref, deadline_s=5)
        await provider.aclose()

    from pytest_sandboxbench.owners import this_process

    E2B_OWNER = this_process("later")
    with serving("--ready-after", "600") as local:
        for key, value in local.env.items():
            monkeypatch.setenv(key, value)
        asyncio.run(test())


def test_cpu_and_memory_are_those_of_the_template(e2b: Run, local: Local) -> None:
    async def test(one: E2B) -> None:
        with pytest.raises(CreateFailed, match=r"template base has \d+ vCPU and \d+ MiB.*sandboxbench template"):
            await one.create(vcpus=1000)
        made = await one.create(vcpus=1000, memory_mib=1, pids=5, allow_unenforced=True)
        assert made.unenforced == {"vcpus", "memory_mib", "pids"}
        with pytest.raises(CreateFailed, match="no limit of processes"):
            await one.create(pids=5)
        with pytest.raises(CreateFailed, match="'nope' not found"):
            await one.create(image="nope")

    e2b(test)


def test_preflight_says_what_it_found(e2b: Run, local: Local) -> None:
    async def test(one: E2B) -> None:
        answer = await one.provider.preflight()
        assert answer.ready, answer
        facts = dict(answer.facts)
        assert facts["service"] == f"an imitation on this machine ({local.url}), which says nothing of E2B"
        assert facts["retries"] == "0 of a request, 0 of a connection"
        assert facts["connections"].startswith("kept, 256")
        assert KEY not in repr(answer)
        assert local.requests["health"] >= 1, "the data plane was connected to as well"

    e2b(test)


def test_a_key_that_is_not_taken_is_missing(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("E2B_API_KEY", "e2b_wrong")
    answer = asyncio.run(factory("e2b", {}).preflight())
    assert not answer.ready
    assert "401" in answer.reason
    assert "E2B_API_KEY" in answer.cure
    assert "e2b_wrong" not in repr(answer)


def test_a_service_that_is_not_there_is_missing_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("E2B_API_KEY", KEY)
    monkeypatch.setenv("E2B_API_URL", "http://127.0.0.1:9")
    begin = time.monotonic()
    answer = asyncio.run(factory("e2b", {}).preflight())
    assert not answer.ready
    assert "http://127.0.0.1:9 cannot be reached" in answer.reason
    assert time.monotonic() - begin < 3


def test_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("E2B_API_URL", "E2B_DOMAIN"):
        monkeypatch.delenv(name, raising=False)
    smallest = plan({})
    assert smallest is not None
    assert (smallest.name, smallest.max_live, smallest.create_rate) == ("hobby", 20, 1)
    assert plan({"plan": "unlimited"}) is None
    assert plan({"domain": "sandboxes.example"}) is None, "nothing is known of a deployment of one's own"
    with pytest.raises(UsageError, match="auto, hobby, pro, unlimited"):
        plan({"plan": "huge"})
