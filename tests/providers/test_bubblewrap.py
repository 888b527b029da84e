"""bubblewrap: what a sandbox does, and that it leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_sandboxbench.errors import (
    CreateFailed,
    ExecFailed,
    ExecTimeout,
    OperationTimeout,
    SandboxGone,
    UsageError,
)
from pytest_sandboxbench.model import ExecResult, Owner, SandboxRef, SandboxSpec
from pytest_sandboxbench.providers import bubblewrap, null, one_process, proc, protocol
from pytest_sandboxbench.providers.bubblewrap import BubblewrapProvider
from pytest_sandboxbench.providers.bubblewrap_sandbox import BubblewrapSandbox

from .bubblewrap_runs import D, run, shell, within

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap needs Linux"),
    pytest.mark.usefixtures("bubblewrap_ready"),
]


def test_it_is_a_provider_with_its_powers() -> None:
    provider: protocol.Provider = bubblewrap.factory("bw", {})
    assert provider.name == "bw"
    assert isinstance(provider, protocol.OneShot)
    assert issubclass(BubblewrapSandbox, protocol.Pausable)
    assert issubclass(BubblewrapSandbox, protocol.Timings)
    assert provider.capabilities.isolation == "namespaces"
    assert provider.capabilities.network_off
    span = provider.capabilities.span("exec")
    assert span is not None
    assert "nsenter" in span.end


def test_settings_are_checked() -> None:
    with pytest.raises(UsageError, match="has: bwrap, python, work_root, binds, cgroup"):
        bubblewrap.factory("bubblewrap", {"colour": "red"})
    with pytest.raises(UsageError, match="one of auto, off, v1, v2"):
        bubblewrap.factory("bubblewrap", {"cgroup": "v3"})


def test_preflight_is_quick_and_says_what_there_is(owner: Owner) -> None:
    start = time.monotonic()
    found = asyncio.run(bubblewrap.factory("bubblewrap", {}).preflight())
    assert found.ready
    assert time.monotonic() - start < 1.5
    assert {"bwrap", "bwrap_version", "guest_python", "cgroup", "pause", "euid"} <= found.facts.keys()


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["true"], 0),
        (["sh", "-c", "exit 7"], 7),
        (["sh", "-c", "kill -9 $$"], -9),
        (["sh", "-c", "kill -15 $$"], -15),
        (["/no/such"], 127),
        (["/etc/passwd"], 126),
    ],
)
def test_exit_codes(owner: Owner, argv: list[str], code: int) -> None:
    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        assert (await sandbox.exec(argv, deadline_s=D)).exit_code == code
        result, ref = await provider.run_once(SandboxSpec(), argv, owner=owner, deadline_s=D)
        await provider.destroy(ref, deadline_s=D)
        assert result.exit_code == code

    within(owner, act)


def test_stdin_environment_cwd(owner: Owner) -> None:
    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        result = await sandbox.exec(
            ["sh", "-c", 'pwd; echo "$MORE"; cat'], stdin="grüße".encode(), env={"MORE": "ü 1"}, deadline_s=D
        )
        assert result.stdout.decode() == "/work\nü 1\ngrüße"
        await sandbox.exec(["mkdir", "-p", "/tmp/ä b", "sub"], deadline_s=D)
        assert (await sandbox.exec(["pwd"], cwd="/tmp/ä b", deadline_s=D)).stdout.decode() == "/tmp/ä b\n"
        assert (await sandbox.exec(["pwd"], cwd="sub", deadline_s=D)).stdout == b"/work/sub\n"
        assert (await sandbox.exec(["pwd"], cwd="/none", deadline_s=D)).exit_code == 126
        assert (await sandbox.exec(["printf", "%s", "a\nb  'c' \"d\" $e"], cwd="/", deadline_s=D)).stdout == (
            b"a\nb  'c' \"d\" $e"
        )

    within(owner, act)


def test_the_environment_of_the_spec(owner: Owner) -> None:
    assert run(owner, "printenv", "ASKED", spec=SandboxSpec(env={"ASKED": "for"})).stdout == b"for\n"


def test_64_mib_of_output_and_16_mib_of_input(owner: Owner) -> None:
    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        result = await sandbox.exec(["head", "-c", str(64 << 20), "/dev/zero"], deadline_s=D)
        assert len(result.stdout) == 64 << 20
        data = os.urandom(1 << 20) * 16
        assert (await sandbox.exec(["cat"], stdin=data, deadline_s=D)).stdout == data

    within(owner, act)


def test_files(owner: Owner) -> None:
    data = os.urandom(1 << 20)

    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        for path in ("a.bin", "/tmp/ü $x 'y'", "-n", "-"):
            await sandbox.write_file(path, data, deadline_s=D)
            assert await sandbox.read_file(path, deadline_s=D) == data
        await sandbox.write_file("empty", b"", deadline_s=D)
        assert await sandbox.read_file("/work/empty", deadline_s=D) == b""
        with pytest.raises(ExecFailed, match="No such file"):
            await sandbox.read_file("none", deadline_s=D)
        with pytest.raises(ExecFailed, match="none/x"):
            await sandbox.write_file("none/x", b"x", deadline_s=D)
        with pytest.raises(ExecFailed, match="null byte"):
            await sandbox.read_file("a\0b", deadline_s=D)

    within(owner, act)


def test_a_stream(owner: Owner) -> None:
    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        stream = sandbox.stream(["sh", "-c", "echo one; exit 3"], deadline_s=D)
        assert [(item.stream, item.data, item.exit_code) async for item in stream] == [
            ("stdout", b"one\n", None),
            ("exit", b"", 3),
        ]
        stream = sandbox.stream(["yes"], deadline_s=D)
        async for _ in stream:
            break
        await stream.aclose()  # type: ignore[attr-defined]
        assert sandbox._members() == {sandbox._holder.pid, *proc.children(sandbox._holder.pid)}
        with pytest.raises(ExecTimeout):
            async for _ in sandbox.stream(["sleep", "60"], deadline_s=0.2):
                pass

    within(owner, act)


def test_the_guests_python_is_the_floors(owner: Owner) -> None:
    code = "import sys; print(sys.executable, sys.version, sys.flags, sys.base_prefix)"

    async def floor() -> ExecResult:
        provider = null.factory("null", {})
        result, ref = await provider.run_once(SandboxSpec(), ["python3", "-c", code], owner=owner, deadline_s=D)
        await provider.destroy(ref, deadline_s=D)
        await provider.aclose()
        return result

    bare = asyncio.run(floor())
    assert bare.exit_code == 0
    assert run(owner, "python3", "-c", code).stdout == bare.stdout


def test_an_alias_for_a_python_that_is_not_called_so(owner: Owner, tmp_path: Path) -> None:
    name = next(
        (Path("/usr/bin") / f"python3.{n}" for n in range(20, 7, -1) if Path(f"/usr/bin/python3.{n}").exists()), None
    )
    if name is None:
        pytest.skip("no /usr/bin/python3.N")
    other = BubblewrapProvider("x", bubblewrap.BubblewrapSettings())
    assert other._python is not None
    other._python = replace(other._python, executable=str(name), alias=True, binds=())

    async def main() -> bytes:
        result, ref = await other.run_once(
            SandboxSpec(), ["sh", "-c", "command -v python3; python3 -c 'print(1)'"], owner=owner, deadline_s=D
        )
        await other.destroy(ref, deadline_s=D)
        return result.stdout

    assert asyncio.run(main()) == b"/opt/sandboxbench/python3\n1\n"


def test_multiprocessing_and_threads_work_inside(owner: Owner) -> None:
    code = "import multiprocessing as m; print(m.Pool(2).map(abs, [1, -2])); q = m.Queue(); q.put(3); print(q.get())"
    assert run(owner, "python3", "-c", code).stdout == b"[1, 2]\n3\n"


@pytest.mark.parametrize(
    "command", ["sleep 60", "sleep 61 & sleep 60", "setsid -f sleep 62; sleep 60", "yes > /dev/null"]
)
def test_ac14_a_deadline_kills_what_the_command_started_and_nothing_else(owner: Owner, command: str) -> None:
    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        other = asyncio.create_task(sandbox.exec(["sleep", "1.6"], deadline_s=D))
        start = time.monotonic()
        with pytest.raises(ExecTimeout):
            await sandbox.exec(["sh", "-c", command], deadline_s=0.4)
        assert time.monotonic() - start < 1.4
        left = (await sandbox.exec(["ps", "-eo", "args"], deadline_s=D)).stdout.decode()
        assert "sleep 6" not in left
        assert "yes" not in left
        assert (await other).exit_code == 0
        start = time.monotonic()
        await provider.destroy(sandbox.ref, deadline_s=D)
        assert time.monotonic() - start < 0.5, "a destroy after a deadline waits for nobody"

    within(owner, act)


def test_a_command_that_stopped_is_killed_as_quickly_as_any(owner: Owner) -> None:
    """nsenter stops with its child, and does not see it die before it goes on."""

    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> float:
        start = time.monotonic()
        with pytest.raises(ExecTimeout):
            await sandbox.exec(["sh", "-c", "kill -STOP $$; sleep 60"], deadline_s=0.3)
        return time.monotonic() - start

    assert within(owner, act) < 0.3 + one_process.REAP_S


def test_a_command_cancelled_before_nsenter_has_started_it_is_not_started_later(owner: Owner) -> None:
    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        slowest = 0.0
        for step in range(60):
            task = asyncio.ensure_future(sandbox.exec(["sh", "-c", "sleep 61 & sleep 62"], deadline_s=D))
            await asyncio.sleep(step * 0.0001)
            start = time.monotonic()
            task.cancel()
            await asyncio.wait({task})
            slowest = max(slowest, time.monotonic() - start)
        left = (await sandbox.exec(["ps", "-eo", "args"], deadline_s=D)).stdout.decode()
        assert "sleep 6" not in left
        assert slowest < one_process.REAP_S

    within(owner, act)


def test_ac14_a_background_child_ends_with_the_sandbox(owner: Owner, left_behind: list[int]) -> None:
    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        start = time.monotonic()
        result = await sandbox.exec(["sh", "-c", "sleep 61 & setsid sleep 62 & echo hi; exit 0"], deadline_s=D)
        assert (result.exit_code, result.stdout) == (0, b"hi\n")
        assert time.monotonic() - start < 5
        left_behind.extend(proc.descendants([sandbox._holder.pid]))
        assert len(left_behind) >= 3

    within(owner, act)


def test_orphans_are_collected(owner: Owner) -> None:
    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> bytes:
        await sandbox.exec(["sh", "-c", "for n in 1 2 3 4 5; do sleep 0.01 & done; exit 0"], deadline_s=D)
        await asyncio.sleep(0.3)
        return (await sandbox.exec(["ps", "-eo", "stat,args"], deadline_s=D)).stdout

    assert b"sleep" not in within(owner, act)


def test_a_guest_that_kills_its_holder(owner: Owner) -> None:
    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        with pytest.raises(SandboxGone):
            await sandbox.exec(["sh", "-c", "kill -9 1 2; sleep 60"], deadline_s=D)
        with pytest.raises(SandboxGone):
            await sandbox.exec(["true"], deadline_s=D)

    within(owner, act)


def test_a_pid_that_is_somebody_elses_now_is_not_killed(owner: Owner) -> None:
    bystander = subprocess.Popen(["sleep", "30"])
    try:
        details = {
            "pid": str(bystander.pid),
            "started": proc.start_time(bystander.pid) or "",
            "cgroups": "/sys/fs/cgroup:/tmp/sandboxbench-other",
            "folder": "/tmp",
        }
        asyncio.run(bubblewrap.factory("x", {}).destroy(SandboxRef("x", "0123456789ab", details), deadline_s=D))
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_one_shot(owner: Owner) -> None:
    async def main() -> ExecResult:
        provider = bubblewrap.factory("bubblewrap", {})
        argv = ["sh", "-c", "cat; sleep 61 & exit 4"]
        result, ref = await provider.run_once(SandboxSpec(), argv, stdin=b"in", owner=owner, deadline_s=D)
        assert not proc.labelled(proc.SANDBOX_LABEL, ref.id)
        assert [found.id for found in await provider.owned(owner.run_id)] == [ref.id]
        await provider.destroy(ref, deadline_s=D)
        assert not proc.labelled(proc.SANDBOX_LABEL, ref.id)
        assert await provider.owned(owner.run_id) == []
        with pytest.raises(ExecTimeout):
            await provider.run_once(SandboxSpec(), ["sh", "-c", "setsid sleep 60"], owner=owner, deadline_s=0.3)
        await provider.round_trip()
        await provider.aclose()
        return result

    result = asyncio.run(main())
    assert (result.exit_code, result.stdout) == (4, b"in")


@pytest.mark.parametrize("delay", [0, 0.001, 0.003, 0.006, 0.012])
def test_cancelled_acts_leave_nothing(owner: Owner, delay: float) -> None:
    async def main() -> None:
        provider = bubblewrap.factory("bubblewrap", {})
        acts: list[Any] = [
            provider.create(SandboxSpec(), owner=owner, deadline_s=D),
            provider.run_once(SandboxSpec(), ["sleep", "60"], owner=owner, deadline_s=D),
        ]
        for act in acts:
            task = asyncio.ensure_future(act)
            await asyncio.sleep(delay)
            if task.cancel():
                with pytest.raises(asyncio.CancelledError):
                    await task
            else:
                await provider.destroy(task.result().ref, deadline_s=D)
        await provider.aclose()

    asyncio.run(main())


def test_a_create_past_its_deadline_leaves_nothing(owner: Owner) -> None:
    async def main() -> None:
        provider = bubblewrap.factory("bubblewrap", {})
        for deadline_s in (0, 0.0005):
            with pytest.raises(OperationTimeout):
                await provider.create(SandboxSpec(), owner=owner, deadline_s=deadline_s)

    asyncio.run(main())


def test_a_create_that_fails_says_bwraps_own_words(owner: Owner) -> None:
    with pytest.raises(CreateFailed, match="/no/such/folder"):
        run(owner, "true", binds=("/no/such/folder",))


def test_sixteen_at_once(owner: Owner) -> None:
    async def main() -> set[bytes]:
        provider = bubblewrap.factory("bubblewrap", {})
        made = await asyncio.gather(*(provider.create(SandboxSpec(), owner=owner, deadline_s=D) for _ in range(16)))
        assert len(await provider.owned(owner.run_id)) == 16
        results = await asyncio.gather(*(box.exec(["readlink", "/proc/self/ns/pid"], deadline_s=D) for box in made))
        await asyncio.gather(*(provider.destroy(box.ref, deadline_s=D) for box in made))
        await provider.aclose()
        return {result.stdout for result in results}

    assert len(asyncio.run(main())) == 16


def test_sixteen_commands_at_once_in_one(owner: Owner) -> None:
    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> set[bytes]:
        echo = [sandbox.exec(["echo", str(n)], deadline_s=D) for n in range(16)]
        return {result.stdout for result in await asyncio.gather(*echo)}

    assert len(within(owner, act)) == 16


def test_shell_is_a_shell(owner: Owner) -> None:
    assert shell(owner, "echo $0") == "sh\n"
