"""The launcher: exit codes, output, deadlines, cancellation, streams; and that nothing is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_sandboxbench.model import Output
from pytest_sandboxbench.providers import one_process, proc
from pytest_sandboxbench.providers.local import Holder
from pytest_sandboxbench.providers.one_process import Command, Ended, Wake
from pytest_sandboxbench.providers.processes import Processes

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="local sandboxes need a POSIX system")
PY = sys.executable


@pytest.fixture
def launcher() -> Iterator[Processes]:
    launcher = Processes("test")
    yield launcher
    launcher.close()


def run(launcher: Processes, *argv: str, stdin: bytes = b"", deadline_s: float = 30, **more: object) -> Ended:
    return asyncio.run(launcher.run(Command(argv, stdin=stdin, **more), deadline_s=deadline_s))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (("true",), 0),
        (("sh", "-c", "exit 7"), 7),
        (("sh", "-c", "kill -9 $$"), -9),
        (("sh", "-c", "kill -15 $$"), -15),
        (("/no/such/command",), 127),
        (("/etc/passwd",), 126),
    ],
)
def test_exit_codes(launcher: Processes, argv: tuple[str, ...], code: int) -> None:
    ended = run(launcher, *argv)
    assert (ended.exit_code, ended.why) == (code, "exit")


def test_both_streams_stdin_and_bytes_that_are_no_text(launcher: Processes) -> None:
    data = bytes(range(256))
    ended = run(launcher, "sh", "-c", "cat; cat /no/such >&2; exit 3", stdin=data)
    assert (ended.exit_code, ended.stdout) == (3, data)
    assert b"/no/such" in ended.stderr


def test_much_stdin_and_much_output_at_the_same_time(launcher: Processes) -> None:
    data = os.urandom(1 << 20) * 16
    assert run(launcher, "cat", stdin=data).stdout == data


def test_64_mib_of_output(launcher: Processes) -> None:
    ended = run(launcher, "head", "-c", str(64 << 20), "/dev/zero")
    assert (ended.exit_code, len(ended.stdout)) == (0, 64 << 20)


def test_a_command_that_does_not_read_its_stdin_is_no_error(launcher: Processes) -> None:
    assert run(launcher, "true", stdin=b"x" * (4 << 20)).exit_code == 0


def test_more_output_than_is_kept_kills_the_command(launcher: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_process, "MAX_OUTPUT", 1 << 20)
    assert run(launcher, "yes").why == "output"


def test_the_end_is_the_exit_and_not_the_end_of_the_pipe(launcher: Processes) -> None:
    start = time.monotonic()
    pids: list[int] = []
    ended = run(launcher, "sh", "-c", "sleep 60 & echo $!; exit 4", on_start=pids.append)
    assert (ended.exit_code, time.monotonic() - start < 5) == (4, True)
    os.kill(int(ended.stdout), 9)


def test_output_of_the_last_instant_is_read(launcher: Processes) -> None:
    ended = run(launcher, PY, "-S", "-c", "import os; os.write(1, b'x' * 65536); os._exit(5)")
    assert (ended.exit_code, len(ended.stdout)) == (5, 65536)


def test_a_deadline_kills_the_whole_group(launcher: Processes) -> None:
    start = time.monotonic()
    ended = run(launcher, "sh", "-c", "sleep 60 & echo $!; sleep 60", deadline_s=0.3)
    assert ended.why == "deadline"
    assert 0.3 <= time.monotonic() - start < 1.3
    assert proc.wait_gone(int(ended.stdout), proc.start_time(int(ended.stdout)), 1)


def test_a_command_that_the_kill_function_spares_is_killed_all_the_same(launcher: Processes) -> None:
    start = time.monotonic()
    assert run(launcher, "sleep", "60", deadline_s=0.1, kill=lambda pid: None).exit_code == -9
    assert time.monotonic() - start < 0.1 + one_process.REAP_S + 1


def test_a_cancelled_caller_leaves_nothing(launcher: Processes) -> None:
    async def main() -> list[int]:
        pids: list[int] = []
        started = asyncio.Event()
        loop = asyncio.get_running_loop()

        def on_start(pid: int) -> None:
            pids.append(pid)
            loop.call_soon_threadsafe(started.set)

        task = asyncio.create_task(launcher.run(Command(["sleep", "60"], on_start=on_start), deadline_s=60))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert proc.state(pids[0]) == "", "still there when the cancellation was passed on"
        return pids

    assert asyncio.run(main())


def test_what_succeeded_while_it_was_cancelled_is_undone(launcher: Processes) -> None:
    undone: list[str] = []

    async def main() -> None:
        running = asyncio.Event()
        loop = asyncio.get_running_loop()

        def work(wake: Wake) -> str:
            loop.call_soon_threadsafe(running.set)
            while not wake.cancelled:
                time.sleep(0.001)
            return "made"

        task = asyncio.create_task(launcher.call(work, undo=undone.append))
        await running.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert undone == ["made"]


def test_as_many_at_once_as_are_asked_for(launcher: Processes) -> None:
    async def main() -> float:
        start = time.monotonic()
        await asyncio.gather(*(launcher.run(Command(["sleep", "0.5"]), deadline_s=30) for _ in range(40)))
        return time.monotonic() - start

    assert asyncio.run(main()) < 1.0


def test_a_stream_yields_as_it_is_written(launcher: Processes) -> None:
    async def main() -> tuple[list[tuple[str, bytes]], float, Ended]:
        start = time.monotonic()
        first = 0.0
        items: list[tuple[str, bytes]] = []
        ended = None
        command = Command(["sh", "-c", "echo one; sleep 0.4; echo two >&2; exit 3"])
        async for item in launcher.stream(command, deadline_s=30):
            if isinstance(item, Output):
                first = first or time.monotonic() - start
                items.append((item.stream, item.data))
            else:
                ended = item
        assert ended is not None
        return items, first, ended

    items, first, ended = asyncio.run(main())
    assert items == [("stdout", b"one\n"), ("stderr", b"two\n")]
    assert first < 0.3
    assert (ended.exit_code, ended.why) == (3, "exit")


def test_a_slow_reader_of_a_stream_holds_the_command_back(launcher: Processes) -> None:
    async def main() -> int:
        got = 0
        command = Command(["head", "-c", str(32 << 20), "/dev/zero"])
        async for item in launcher.stream(command, deadline_s=30):
            if isinstance(item, Output):
                if not got:
                    await asyncio.sleep(0.2)
                got += len(item.data)
        return got

    assert asyncio.run(main()) == 32 << 20


def test_closing_a_stream_early_kills_the_command(launcher: Processes) -> None:
    async def main() -> int:
        pids: list[int] = []
        stream = launcher.stream(Command(["yes"], on_start=pids.append), deadline_s=60)
        async for _ in stream:
            break
        await stream.aclose()
        return pids[0]

    assert not Path(f"/proc/{asyncio.run(main())}").exists()


def test_a_stream_at_its_deadline(launcher: Processes) -> None:
    async def main() -> object:
        return [item async for item in launcher.stream(Command(["sleep", "60"]), deadline_s=0.1)][-1]

    assert asyncio.run(main()) == Ended(-9, why="deadline")


@pytest.mark.skipif(sys.platform != "linux", reason="an attribute of Linux threads")
def test_what_the_threads_gave_up_their_children_never_had() -> None:
    launcher = Processes(no_new_privs=True, clear_groups=os.geteuid() == 0)
    before = Path("/proc/self/status").read_text()
    status = run(launcher, "cat", "/proc/self/status").stdout.decode()
    launcher.close()
    assert "NoNewPrivs:\t1" in status
    if os.geteuid() == 0:
        assert "Groups:\t \n" in status
    assert "NoNewPrivs:\t0" in before or "NoNewPrivs:\t1" in before
    assert [line for line in Path("/proc/self/status").read_text().splitlines() if "NoNewPrivs" in line] == [
        line for line in before.splitlines() if "NoNewPrivs" in line
    ], "the harness itself changed"


def test_the_way_without_pidfd_says_the_same(launcher: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_process, "_watch", one_process._communicate)
    assert run(launcher, "sh", "-c", "cat; exit 7", stdin=b"x" * (1 << 20)) == Ended(7, b"x" * (1 << 20))
    assert run(launcher, "sleep", "60", deadline_s=0.1).why == "deadline"


def test_a_child_is_not_lost_when_what_surrounds_its_start_fails(launcher: Processes) -> None:
    pids: list[int] = []
    ended: list[int] = []

    @contextlib.contextmanager
    def around() -> Iterator[None]:
        yield
        raise OSError(5, "the way out")

    with pytest.raises(OSError, match="the way out"):
        run(launcher, "sleep", "63", around=around, on_start=pids.append, on_end=ended.append)
    assert pids == ended
    assert proc.state(pids[0]) == ""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_what_is_born_while_its_parent_is_being_killed_is_killed_too() -> None:
    """Children without labels, as those of bwrap seem to be while they change their user namespace."""
    for attempt in range(5):
        length = f"64.{os.getpid()}{attempt}"
        script = f"n=0; while [ $n -lt 300 ]; do env -i /bin/sleep {length} & n=$((n+1)); done; wait"
        root = subprocess.Popen(["sh", "-c", script], env={proc.SANDBOX_LABEL: length})
        time.sleep(0.03)
        proc.kill_tree(proc.SANDBOX_LABEL, length, root.pid)
        root.wait(5)
        time.sleep(0.02)
        left = [pid for pid in proc.pids() if length.encode() in command_line(pid)]
        proc.send(left, 9)
        assert not left


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_stream_whose_work_never_starts_ends() -> None:
    launcher = Processes("closed")
    launcher.close()

    async def main() -> None:
        async for _ in launcher.stream(Command(["true"]), deadline_s=5):
            pass

    for _ in range(2):
        before = len(list(Path("/dev/fd").iterdir()))
        with pytest.raises(RuntimeError, match="shutdown"):
            asyncio.run(asyncio.wait_for(main(), 5))
        assert len(list(Path("/dev/fd").iterdir())) == before


@pytest.mark.skipif(sys.platform != "linux", reason="needs waitid")
def test_a_holder_that_somebody_else_reaped_is_gone() -> None:
    """As in a harness that ignores SIGCHLD: the kernel reaps, and there is nothing to wait for."""
    process = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    holder = Holder(process, process.pid, "")
    os.waitpid(process.pid, 0)
    assert not holder.alive()
    assert holder.release(1)
