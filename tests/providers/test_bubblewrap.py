"""bubblewrap: what a sandbox does, how it is paused and limited, and that it leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
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
    Unsupported,
    UsageError,
)
from pytest_sandboxbench.model import ExecResult, Owner, PauseKind, SandboxRef, SandboxSpec
from pytest_sandboxbench.providers import bubblewrap, null, proc, protocol
from pytest_sandboxbench.providers.bubblewrap import BubblewrapProvider
from pytest_sandboxbench.providers.bubblewrap_sandbox import BubblewrapSandbox

from .bubblewrap_runs import D, run, shell, started, within

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap needs Linux"),
    pytest.mark.usefixtures("bubblewrap_ready"),
]

KINDS: list[tuple[PauseKind, str]] = [("frozen", "v1"), ("frozen", "v2"), ("stopped", "off")]


def kinds_here() -> list[Any]:
    """The ways to pause that work on this host; the others are skipped by name."""
    found = []
    for kind, cgroup in KINDS if sys.platform == "linux" else []:
        works = kind in bubblewrap.factory("bubblewrap", {"cgroup": cgroup}).capabilities.pause
        marks = [] if works else [pytest.mark.skip(reason=f"no writable freezer of cgroup {cgroup}")]
        found.append(pytest.param(kind, cgroup, marks=marks, id=f"{kind}-{cgroup}"))
    return found


@pytest.fixture
def left_behind(owner: Owner) -> Iterator[list[int]]:
    """Pids that have to be gone at the end."""
    pids: list[int] = []
    yield pids
    assert not [pid for pid in pids if proc.state(pid) not in ("", "Z")]


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
        for path in ("a.bin", "/tmp/ü $x 'y'", "-n"):
            await sandbox.write_file(path, data, deadline_s=D)
            assert await sandbox.read_file(path, deadline_s=D) == data
        await sandbox.write_file("empty", b"", deadline_s=D)
        assert await sandbox.read_file("/work/empty", deadline_s=D) == b""
        with pytest.raises(ExecFailed, match="No such file"):
            await sandbox.read_file("none", deadline_s=D)
        with pytest.raises(ExecFailed, match="none/x"):
            await sandbox.write_file("none/x", b"x", deadline_s=D)

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


@pytest.mark.parametrize("command", ["sleep 60", "sleep 61 & sleep 60", "setsid -f sleep 62; sleep 60", "yes"])
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


def test_ac14_a_background_child_ends_with_the_sandbox(owner: Owner, left_behind: list[int]) -> None:
    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        start = time.monotonic()
        result = await sandbox.exec(["sh", "-c", "sleep 61 & setsid sleep 62 & echo hi; exit 0"], deadline_s=D)
        assert (result.exit_code, result.stdout) == (0, b"hi\n")
        assert time.monotonic() - start < 5
        left_behind.extend(proc.descendants([sandbox._holder.pid]))
        assert len(left_behind) >= 3

    within(owner, act)


def counter(sandbox: BubblewrapSandbox) -> int:
    """How often a guest that counts did so, seen on the host: the guest may be paused."""
    return Path(sandbox.ref.details["folder"], "n").stat().st_size


@pytest.mark.parametrize(("kind", "cgroup"), kinds_here())
def test_a_pause_stops_everything_and_a_resume_keeps_it(owner: Owner, kind: PauseKind, cgroup: str) -> None:
    script = "import time\nwhile True: open('n', 'a').write('x'); time.sleep(0.002)"

    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        await sandbox.exec(["sh", "-c", f'python3 -c "{script}" > /dev/null & sleep 0.1'], deadline_s=D)
        running = asyncio.create_task(sandbox.exec(["sh", "-c", "sleep 0.3; echo done"], deadline_s=D))
        await started(sandbox)
        await sandbox.pause(kind=kind, deadline_s=D)
        await sandbox.pause(kind=kind, deadline_s=D)
        before = counter(sandbox)
        start = time.monotonic()
        for act in (sandbox.exec(["true"], deadline_s=D), sandbox.read_file("n", deadline_s=D)):
            with pytest.raises(Unsupported, match="resume it first"):
                await act
        assert time.monotonic() - start < 0.3
        await asyncio.sleep(0.5)
        assert counter(sandbox) == before, "something ran on"
        assert not running.done()
        await sandbox.resume(deadline_s=D)
        await sandbox.resume(deadline_s=D)
        assert (await running).stdout == b"done\n"
        await asyncio.sleep(0.1)
        assert counter(sandbox) > before, "it does not run on"

    within(owner, act, cgroup=cgroup)


@pytest.mark.parametrize(("kind", "cgroup"), kinds_here())
def test_paused_and_resumed_over_and_over_beside_commands(owner: Owner, kind: PauseKind, cgroup: str) -> None:
    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        for _ in range(8):
            running = [asyncio.create_task(sandbox.exec(["true"], deadline_s=D)) for _ in range(3)]
            await asyncio.sleep(0.001)
            await sandbox.pause(kind=kind, deadline_s=D)
            await sandbox.resume(deadline_s=D)
            for result in await asyncio.gather(*running, return_exceptions=True):
                # One that had not started when the pause began is refused; none hangs.
                assert isinstance(result, Unsupported) or (isinstance(result, ExecResult) and result.exit_code == 0)

    within(owner, act, cgroup=cgroup)


@pytest.mark.parametrize(("kind", "cgroup"), kinds_here())
@pytest.mark.parametrize("busy", [False, True])
def test_destroyed_while_paused(owner: Owner, kind: PauseKind, cgroup: str, busy: bool, left_behind: list[int]) -> None:
    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        running = asyncio.create_task(sandbox.exec(["sh", "-c", "while :; do :; done"], deadline_s=D)) if busy else None
        if busy:
            await started(sandbox)
        await sandbox.pause(kind=kind, deadline_s=D)
        left_behind.extend(sandbox._members())
        start = time.monotonic()
        await provider.destroy(sandbox.ref, deadline_s=D)
        assert time.monotonic() - start < 0.7
        await provider.destroy(sandbox.ref, deadline_s=D)
        if running is not None:
            with pytest.raises(SandboxGone):
                await running
        for act in (sandbox.exec(["true"], deadline_s=D), sandbox.resume(deadline_s=D)):
            with pytest.raises(SandboxGone):
                await act

    within(owner, act, cgroup=cgroup)


@pytest.mark.parametrize(("kind", "cgroup"), kinds_here())
def test_a_deadline_that_passes_while_paused(owner: Owner, kind: PauseKind, cgroup: str) -> None:
    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        running = asyncio.create_task(sandbox.exec(["sleep", "60"], deadline_s=0.5))
        await started(sandbox)
        await sandbox.pause(kind=kind, deadline_s=D)
        start = time.monotonic()
        with pytest.raises(ExecTimeout):
            await running
        assert time.monotonic() - start < 4
        await sandbox.resume(deadline_s=D)
        assert (await sandbox.exec(["true"], deadline_s=D)).exit_code == 0

    within(owner, act, cgroup=cgroup)


def test_orphans_are_collected(owner: Owner) -> None:
    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> bytes:
        await sandbox.exec(["sh", "-c", "for n in 1 2 3 4 5; do sleep 0.01 & done; exit 0"], deadline_s=D)
        await asyncio.sleep(0.3)
        return (await sandbox.exec(["ps", "-eo", "stat,args"], deadline_s=D)).stdout

    assert b"sleep" not in within(owner, act)


def test_a_kind_of_pause_that_it_does_not_have(owner: Owner) -> None:
    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        kinds: list[PauseKind] = ["memory", "filesystem", "frozen"]
        for kind in kinds:
            with pytest.raises(Unsupported, match=f"pause of kind {kind}"):
                await sandbox.pause(kind=kind, deadline_s=D)

    within(owner, act, cgroup="off")


def test_a_guest_that_kills_its_holder(owner: Owner) -> None:
    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        with pytest.raises(SandboxGone):
            await sandbox.exec(["sh", "-c", "kill -9 1 2; sleep 60"], deadline_s=D)
        with pytest.raises(SandboxGone):
            await sandbox.exec(["true"], deadline_s=D)

    within(owner, act)


def test_owned_and_destroy_from_another_instance(owner: Owner, left_behind: list[int]) -> None:
    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> None:
        other = bubblewrap.factory("other", {})
        (ref,) = await other.owned(owner.run_id)
        assert (ref.id, ref.details["pid"]) == (sandbox.ref.id, sandbox.ref.details["pid"])
        assert ref.details["owner"] == owner.label()
        assert await other.owned("somebody-else") == []
        await sandbox.pause(kind=provider.capabilities.pause[0], deadline_s=D)
        left_behind.extend(sandbox._members())
        await other.destroy(ref, deadline_s=D)
        assert await other.owned(owner.run_id) == []
        await other.aclose()

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


HARNESS = """
import asyncio, os, sys
from pytest_sandboxbench.model import Owner, SandboxSpec
from pytest_sandboxbench.providers import bubblewrap, proc

async def main():
    label, pause = sys.argv[1:]
    run_id, host, pid, started = label.split("/")
    owner = Owner(run_id, host, int(pid), started)
    provider = bubblewrap.factory("bubblewrap", {})
    sandbox = await provider.create(SandboxSpec(), owner=owner, deadline_s=20)
    await sandbox.exec(["sh", "-c", "setsid sleep 65 & exit 0"], deadline_s=20)
    running = asyncio.create_task(sandbox.exec(["sh", "-c", "setsid sleep 66 & sleep 67"], deadline_s=60))
    while not sandbox._running:
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.2)
    if pause == "yes":
        await sandbox.pause(kind=provider.capabilities.pause[0], deadline_s=20)
    print(sandbox.ref.id, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("pause", ["no", "yes"])
def test_a_killed_harness_leaves_nothing_that_a_reaper_does_not_find(owner: Owner, pause: str) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    harness = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HARNESS), owner.label(), pause],
        stdout=subprocess.PIPE,
        env=env,
        text=True,
    )
    try:
        assert harness.stdout is not None
        sandbox = harness.stdout.readline().strip()
        assert sandbox
    finally:
        harness.send_signal(signal.SIGKILL)
        harness.wait()
        harness.stdout.close()  # type: ignore[union-attr]
    if pause == "no":
        deadline = time.monotonic() + 5
        while proc.labelled(proc.SANDBOX_LABEL, sandbox) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not proc.labelled(proc.SANDBOX_LABEL, sandbox), "the sandbox outlived its harness"

    async def reap() -> None:
        provider = bubblewrap.factory("bubblewrap", {})
        (ref,) = await provider.owned(owner.run_id)
        assert ref.id == sandbox
        assert bool(proc.labelled(proc.SANDBOX_LABEL, sandbox)) is (pause == "yes")
        start = time.monotonic()
        await provider.destroy(ref, deadline_s=D)
        assert time.monotonic() - start < 1.5
        assert await provider.owned(owner.run_id) == []

    asyncio.run(reap())


def test_shell_is_a_shell(owner: Owner) -> None:
    assert shell(owner, "echo $0") == "sh\n"
