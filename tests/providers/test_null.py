"""The floor: what it promises of itself, and that it leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from pytest_sandboxbench.errors import (
    CreateFailed,
    ExecFailed,
    ExecTimeout,
    OperationTimeout,
    SandboxGone,
    Unsupported,
    UsageError,
)
from pytest_sandboxbench.model import ExecResult, Owner, SandboxRef, SandboxSpec
from pytest_sandboxbench.providers import bubblewrap, null, proc, protocol
from pytest_sandboxbench.providers.guest_python import find_guest_python
from pytest_sandboxbench.providers.null import NullProvider
from pytest_sandboxbench.providers.null_sandbox import NullSandbox

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="local sandboxes need a POSIX system")
T = TypeVar("T")
D = 20.0


def within(owner: Owner, act: Callable[[NullProvider, NullSandbox], Awaitable[T]]) -> T:
    """``act`` with a fresh sandbox, which is destroyed afterwards whatever happens."""

    async def main() -> T:
        provider = null.factory("null", {})
        assert (await provider.preflight()).ready
        sandbox = await provider.create(SandboxSpec(), owner=owner, deadline_s=D)
        try:
            return await act(provider, sandbox)
        finally:
            await provider.destroy(sandbox.ref, deadline_s=D)
            await provider.aclose()

    return asyncio.run(main())


def run(owner: Owner, *argv: str, stdin: bytes = b"", cwd: str | None = None, **env: str) -> ExecResult:
    return within(owner, lambda p, s: s.exec(argv, stdin=stdin, cwd=cwd, env=env, deadline_s=D))


async def started(sandbox: NullSandbox) -> set[int]:
    """Its running commands, as soon as there is one."""
    for _ in range(1000):
        if sandbox._running:
            break
        await asyncio.sleep(0.002)
    return set(sandbox._running)


def test_it_is_a_provider_with_its_powers() -> None:
    provider: protocol.Provider = null.factory("floor", {"python": sys.executable} if os.geteuid() else {})
    assert provider.name == "floor"
    assert isinstance(provider, protocol.OneShot)
    assert issubclass(NullSandbox, protocol.Pausable)
    assert provider.capabilities.isolation == "none"


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(UsageError, match="no setting 'colour'"):
        null.factory("null", {"colour": "red"})


def test_preflight_says_which_python_and_is_quick(tmp_path: Path) -> None:
    start = time.monotonic()
    found = asyncio.run(null.factory("null", {"work_root": str(tmp_path)}).preflight())
    assert found.ready
    assert found.facts["guest_python"]
    assert time.monotonic() - start < 1


def test_a_folder_that_is_somebody_elses_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "null").mkdir(mode=0o755)
    found = asyncio.run(null.factory("null", {"work_root": str(tmp_path)}).preflight())
    assert not found.ready
    assert "0700" in found.reason
    assert "work_root" in found.cure


@pytest.mark.parametrize(
    ("argv", "code"),
    [(["true"], 0), (["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -9 $$"], -9), (["/no/such"], 127)],
)
def test_exit_codes(owner: Owner, argv: list[str], code: int) -> None:
    assert run(owner, *argv).exit_code == code


def test_working_folder_environment_stdin(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_HARNESS", "x")
    result = run(owner, "sh", "-c", "pwd; env; cat", stdin="grüße".encode(), MORE="ü 1")
    lines = result.stdout.decode().splitlines()
    assert owner.run_id in lines[0]
    assert f"HOME={lines[0]}" in lines
    assert "MORE=ü 1" in lines
    assert lines[-1] == "grüße"
    assert not any("SECRET" in line for line in lines)


@pytest.mark.parametrize(("cwd", "own"), [("/tmp", True), ("/work", True), (".", True), ("/", False)])
def test_cwd(owner: Owner, cwd: str, own: bool) -> None:
    assert (owner.run_id in run(owner, "pwd", cwd=cwd).stdout.decode()) is own


def test_a_cwd_that_is_not_there(owner: Owner) -> None:
    assert run(owner, "true", cwd="/work/none").exit_code == 126


def test_what_no_kernel_takes_is_a_typed_error(owner: Owner) -> None:
    async def act(provider: NullProvider, sandbox: NullSandbox) -> None:
        for argv, env in ((["echo", "a\0b"], {}), (["true"], {"A": "a\0b"}), (["true"], {"A=B": ""})):
            with pytest.raises(ExecFailed, match=r"embedded null byte|illegal environment variable name"):
                await sandbox.exec(argv, env=env, deadline_s=D)
            with pytest.raises(ExecFailed):
                _ = [item async for item in sandbox.stream(argv, env=env, deadline_s=D)]
        with pytest.raises(ExecFailed, match="Argument list too long"):
            await sandbox.exec(["echo", "x" * (4 << 20)], deadline_s=D)
        with pytest.raises(CreateFailed, match="embedded null byte"):
            await provider.run_once(SandboxSpec(), ["a\0b"], owner=owner, deadline_s=D)
        with pytest.raises(CreateFailed, match="embedded null byte"):
            await provider.create(SandboxSpec(env={"A": "\0"}), owner=owner, deadline_s=D)
        assert len(await provider.owned(owner.run_id)) == 1

    within(owner, act)


def test_python3_is_the_guests_python(owner: Owner) -> None:
    python = find_guest_python()
    if python is None:
        pytest.skip("no Python that a guest could use")
    code = "import sys; print('.'.join(map(str, sys.version_info[:3])))"
    assert run(owner, "python3", "-c", code).stdout.decode().strip() == python.version


def test_files(owner: Owner) -> None:
    data = os.urandom(1 << 20)

    async def act(provider: NullProvider, sandbox: NullSandbox) -> None:
        await sandbox.write_file("a.bin", data, deadline_s=D)
        await sandbox.write_file("/tmp/b.txt", b"two", deadline_s=D)
        assert await sandbox.read_file("/work/a.bin", deadline_s=D) == data
        assert (await sandbox.exec(["cat", "a.bin"], deadline_s=D)).stdout == data
        result = await sandbox.exec(["sh", "-c", 'cat "$TMPDIR/b.txt"; mkfifo pipe'], deadline_s=D)
        assert result.stdout == b"two"
        with pytest.raises(ExecFailed, match="No such file"):
            await sandbox.read_file("none", deadline_s=D)
        with pytest.raises(ExecFailed, match="not a regular file"):
            await sandbox.read_file("pipe", deadline_s=D)
        with pytest.raises(ExecFailed, match="No such file"):
            await sandbox.write_file("none/x", b"", deadline_s=D)
        with pytest.raises(ExecFailed, match="null byte"):
            await sandbox.write_file("a\0b", b"", deadline_s=D)
        with pytest.raises(ExecFailed, match="null byte"):
            await sandbox.read_file("a\0b", deadline_s=D)

    within(owner, act)


def test_a_stream_ends_with_the_exit_code(owner: Owner) -> None:
    async def act(provider: NullProvider, sandbox: NullSandbox) -> list[tuple[str, bytes, int | None]]:
        stream = sandbox.stream(["sh", "-c", "echo one; exit 3"], deadline_s=D)
        return [(item.stream, item.data, item.exit_code) async for item in stream]

    assert within(owner, act) == [("stdout", b"one\n", None), ("exit", b"", 3)]


@pytest.mark.parametrize("command", ["sleep 60", "sleep 61 & sleep 60", "setsid sleep 62 & sleep 60"])
def test_ac14_a_deadline_kills_what_the_command_started_and_nothing_else(owner: Owner, command: str) -> None:
    async def act(provider: NullProvider, sandbox: NullSandbox) -> None:
        other = asyncio.create_task(sandbox.exec(["sleep", "1.6"], deadline_s=D))
        start = time.monotonic()
        with pytest.raises(ExecTimeout):
            await sandbox.exec(["sh", "-c", command], deadline_s=0.4)
        assert time.monotonic() - start < 1.4
        assert len(proc.labelled(proc.SANDBOX_LABEL, sandbox.ref.id)) <= 2
        assert (await other).exit_code == 0

    within(owner, act)


def test_ac14_a_background_child_ends_with_the_sandbox(owner: Owner) -> None:
    async def act(provider: NullProvider, sandbox: NullSandbox) -> int:
        result = await sandbox.exec(["sh", "-c", "sleep 61 & echo $!; exit 0"], deadline_s=D)
        assert proc.state(int(result.stdout)) not in ("", "Z")
        return int(result.stdout)

    assert proc.state(within(owner, act)) in ("", "Z")


def test_pause_stops_and_resume_continues(owner: Owner) -> None:
    async def act(provider: NullProvider, sandbox: NullSandbox) -> None:
        running = asyncio.create_task(sandbox.exec(["sh", "-c", "sleep 0.2; echo done"], deadline_s=D))
        pids = await started(sandbox)
        await sandbox.pause(kind="stopped", deadline_s=D)
        await sandbox.pause(kind="stopped", deadline_s=D)
        # D is a shell in mid-vfork: it waits in the kernel for its child, which is stopped.
        assert {proc.state(pid) for pid in pids} <= {"T", "D"}
        with pytest.raises(Unsupported, match="resume it first"):
            await sandbox.exec(["true"], deadline_s=D)
        await asyncio.sleep(0.4)
        assert not running.done()
        await sandbox.resume(deadline_s=D)
        assert (await running).stdout == b"done\n"
        with pytest.raises(Unsupported, match="only be stopped"):
            await sandbox.pause(kind="frozen", deadline_s=D)

    within(owner, act)


def test_paused_and_resumed_over_and_over_beside_commands(owner: Owner) -> None:
    async def act(provider: NullProvider, sandbox: NullSandbox) -> None:
        for _ in range(8):
            running = [asyncio.create_task(sandbox.exec(["true"], deadline_s=D)) for _ in range(3)]
            await asyncio.sleep(0.0005)
            await sandbox.pause(kind="stopped", deadline_s=D)
            await sandbox.resume(deadline_s=D)
            for result in await asyncio.gather(*running, return_exceptions=True):
                assert isinstance(result, Unsupported) or (isinstance(result, ExecResult) and result.exit_code == 0)

    within(owner, act)


def test_destroyed_while_paused_and_twice(owner: Owner) -> None:
    async def act(provider: NullProvider, sandbox: NullSandbox) -> None:
        await sandbox.pause(kind="stopped", deadline_s=D)
        start = time.monotonic()
        await provider.destroy(sandbox.ref, deadline_s=D)
        await provider.destroy(sandbox.ref, deadline_s=D)
        assert time.monotonic() - start < 0.5
        with pytest.raises(SandboxGone):
            await sandbox.exec(["true"], deadline_s=D)
        with pytest.raises(SandboxGone):
            await sandbox.resume(deadline_s=D)
        with pytest.raises(SandboxGone):
            await sandbox.pause(kind="stopped", deadline_s=D)

    within(owner, act)


def test_a_command_that_runs_while_its_sandbox_is_destroyed(owner: Owner) -> None:
    async def act(provider: NullProvider, sandbox: NullSandbox) -> None:
        running = asyncio.create_task(sandbox.exec(["sleep", "60"], deadline_s=D))
        await started(sandbox)
        await provider.destroy(sandbox.ref, deadline_s=D)
        with pytest.raises(SandboxGone):
            await running

    within(owner, act)


def test_owned_and_destroy_from_another_instance(owner: Owner) -> None:
    async def act(provider: NullProvider, sandbox: NullSandbox) -> None:
        other = null.factory("other", {})
        assert [ref.id for ref in await other.owned(owner.run_id)] == [sandbox.ref.id]
        assert sandbox.ref.id in [ref.id for ref in await other.owned()]
        assert await other.owned("somebody-else") == []
        await sandbox.exec(["sh", "-c", "setsid sleep 63 & exit 0"], deadline_s=D)
        await other.destroy(SandboxRef("other", sandbox.ref.id), deadline_s=D)
        assert await other.owned(owner.run_id) == []
        await other.aclose()

    within(owner, act)


def test_a_pid_that_is_somebody_elses_now_is_not_killed(owner: Owner) -> None:
    bystander = subprocess.Popen(["sleep", "30"])
    try:
        details = {"pid": str(bystander.pid), "started": proc.start_time(bystander.pid) or ""}
        ref = SandboxRef("null", "0123456789ab", details)
        asyncio.run(null.factory("null", {}).destroy(ref, deadline_s=D))
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_one_shot(owner: Owner) -> None:
    async def main() -> ExecResult:
        provider = null.factory("null", {})
        argv = ["sh", "-c", "cat; sleep 61 & exit 4"]
        result, ref = await provider.run_once(SandboxSpec(), argv, stdin=b"in", owner=owner, deadline_s=D)
        assert [found.id for found in await provider.owned(owner.run_id)] == [ref.id]
        await provider.destroy(ref, deadline_s=D)
        with pytest.raises(ExecTimeout):
            await provider.run_once(SandboxSpec(), ["sleep", "60"], owner=owner, deadline_s=0.2)
        await provider.round_trip()
        await provider.aclose()
        return result

    result = asyncio.run(main())
    assert (result.exit_code, result.stdout) == (4, b"in")


def test_limits_are_an_error_or_said_to_be_unenforced(owner: Owner) -> None:
    async def main() -> None:
        provider = null.factory("null", {})
        with pytest.raises(CreateFailed, match="nothing limits a bare process"):
            await provider.create(SandboxSpec(memory_mib=64), owner=owner, deadline_s=D)
        spec = SandboxSpec(memory_mib=64, pids=9, allow_unenforced=True)
        sandbox = await provider.create(spec, owner=owner, deadline_s=D)
        assert sandbox.unenforced == {"memory_mib", "pids"}
        await provider.destroy(sandbox.ref, deadline_s=D)

    asyncio.run(main())


def test_a_create_past_its_deadline_leaves_nothing(owner: Owner) -> None:
    async def main() -> None:
        with pytest.raises(OperationTimeout):
            await null.factory("null", {}).create(SandboxSpec(), owner=owner, deadline_s=0)

    asyncio.run(main())


def test_a_cancelled_create_leaves_nothing(owner: Owner) -> None:
    async def main() -> None:
        provider = null.factory("null", {})
        for delay in (0, 0.0005, 0.001, 0.002, 0.004):
            task = asyncio.create_task(provider.create(SandboxSpec(), owner=owner, deadline_s=D))
            await asyncio.sleep(delay)
            if not task.cancel():
                await provider.destroy(task.result().ref, deadline_s=D)
                continue
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())


def test_sixteen_at_once(owner: Owner) -> None:
    async def main() -> set[bytes]:
        provider = null.factory("null", {})
        made = await asyncio.gather(*(provider.create(SandboxSpec(), owner=owner, deadline_s=D) for _ in range(16)))
        results = await asyncio.gather(*(box.exec(["pwd"], deadline_s=D) for box in made))
        await asyncio.gather(*(provider.destroy(box.ref, deadline_s=D) for box in made))
        return {result.stdout for result in results}

    assert len(asyncio.run(main())) == 16


def test_a_one_shot_that_fails_is_not_cleaned_up_on_the_loops_thread(
    owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[str] = set()

    async def main() -> None:
        provider = null.factory("null", {})
        end = provider._end_by_id

        def end_by_id(*args: Any) -> None:
            threads.add(threading.current_thread().name)
            end(*args)

        monkeypatch.setattr(provider, "_end_by_id", end_by_id)
        with pytest.raises(ExecTimeout):
            await provider.run_once(SandboxSpec(), ["sleep", "60"], owner=owner, deadline_s=0.05)
        await provider.aclose()

    asyncio.run(main())
    assert threads
    assert threading.main_thread().name not in threads


def test_what_is_polled_is_declared() -> None:
    for provider in (null.factory("x", {}), bubblewrap.factory("x", {})):
        capabilities = provider.capabilities
        for operation in ("destroy", "pause"):
            span = capabilities.span(operation)
            assert span is not None
            assert span.polling != "none"
            assert span.resolution_s > 0
