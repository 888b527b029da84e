"""The inside of a scripted sandbox: commands, files, and what a pause and a resume leave of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pytest_sandboxbench.errors import (
    ExecFailed,
    ExecTimeout,
    NotReady,
    Unsupported,
)
from pytest_sandboxbench.load.state import NONCE_FILE, check, check_file, held, plant
from pytest_sandboxbench.providers.fake import FakeProvider
from pytest_sandboxbench.providers.fake_clock import loop_ns, run_virtual
from pytest_sandboxbench.providers.fake_sandbox import FakeSandbox, PausableFakeSandbox

from .scripted import create, failure, fake, on_virtual_clock, pausable, run, seconds

# The guest


@pytest.mark.parametrize(
    ("argv", "stdin", "exit_code", "stdout"),
    [
        (["true"], b"", 0, b""),
        (["/bin/true"], b"", 0, b""),
        (["false"], b"", 1, b""),
        (["echo", "a", "b"], b"", 0, b"a b\n"),
        (["cat"], b"\x00\xff", 0, b"\x00\xff"),
        (["cat", "/none"], b"", 1, b""),
        (["pwd"], b"", 0, b"/work\n"),
        (["printenv", "A", "B"], b"", 0, b"spec\ncall\n"),
        (["printenv", "NONE"], b"", 1, b""),
        (["mkdir", "-p", "/x"], b"", 0, b""),
        (["python3", "-c", "print(1)"], b"", 0, b"1\n"),
        (["python3", "-c", "import sys; print('a', 6*-7); sys.exit(5)"], b"", 5, b"a -42\n"),
        (["python3", "-c", "print(9876543*1234567)"], b"", 0, b"12193254061881\n"),
        (["python3", "-c", "print(open('a'))"], b"", 2, b""),
        (["python3", "-c", "print("], b"", 1, b""),
        (["python3", "script.py"], b"", 2, b""),
        (["sh", "-c", "exit 7"], b"", 7, b""),
        (["sh", "-c", "echo 'a b'"], b"", 0, b"a b\n"),
        (["sh", "-c", ""], b"", 0, b""),
        (["sh", "-c", "a | b"], b"", 2, b""),
        (["sh", "-c", "'"], b"", 2, b""),
        (["sh", "-c", "nope"], b"", 127, b""),
        (["nope"], b"", 127, b""),
        (["node"], b"", 0, b"v22\n"),
        (["pip", "install", "x"], b"", 0, b""),
    ],
)
def test_the_guest_knows_a_few_commands(argv: list[str], stdin: bytes, exit_code: int, stdout: bytes) -> None:
    async def test() -> None:
        sandbox = await create(fake(commands="node:v22,pip"), env={"A": "spec", "B": "spec"})
        result = await run(sandbox, *argv, stdin=stdin, cwd="/work", env={"B": "call"})
        assert (result.exit_code, result.stdout) == (exit_code, stdout)
        silent = exit_code in (0, 5, 7) or argv[:1] in (["false"], ["printenv"])
        assert (result.stderr == b"") == silent

    run_virtual(test())


@on_virtual_clock
async def test_files_are_kept_until_removed() -> None:
    sandbox = await create(fake())
    await sandbox.write_file("/d/a", b"\x00" * 1_048_576, deadline_s=1)

    assert (await run(sandbox, "cat", "/d/a", "-", stdin=b"end")).stdout == b"\x00" * 1_048_576 + b"end"
    assert (await run(sandbox, "rm", "-r", "/d")).exit_code == 0
    error = await failure(sandbox.read_file("/d/a", deadline_s=1))
    assert isinstance(error, ExecFailed)
    assert error.said == "No such file or directory"


@on_virtual_clock
async def test_no_path_holds_a_nul() -> None:
    sandbox = await create(fake())
    for act in (sandbox.write_file("a\0b", b"", deadline_s=1), sandbox.read_file("a\0b", deadline_s=1)):
        error = await failure(act)
        assert isinstance(error, ExecFailed)
        assert error.said == "a path holds no NUL byte"


@on_virtual_clock
async def test_planted_nonces_do_not_mix() -> None:
    sandbox = await create(fake())
    one, two = [int((await run(sandbox, *plant(nonce))).stdout) for nonce in ("one", "two")]

    assert held((await run(sandbox, *check(one))).stdout, "one")
    assert held((await run(sandbox, *check(two))).stdout, "two")
    assert (await run(sandbox, *check(one + two))).exit_code == 1
    assert await sandbox.read_file(NONCE_FILE, deadline_s=1) == b"two"


@on_virtual_clock
async def test_facts_come_from_the_spec_and_the_setting() -> None:
    async def facts(provider: FakeProvider, **spec: Any) -> str:
        return (await run(await create(provider, **spec), "sh", "-c", "# sandboxbench: facts\nuname")).stdout.decode()

    assert await facts(fake()) == "kernel=fake\nvcpus=2\nmemory_mib=4096\npython=3.0-fake\n"
    assert "vcpus=0.5\nmemory_mib=64\n" in await facts(fake(), vcpus=0.5, memory_mib=64)
    lying = await facts(fake(facts="vcpus:8,sqlite:3.40.1"), vcpus=1)
    assert "vcpus=8\n" in lying
    assert "sqlite=3.40.1\n" in lying


@on_virtual_clock
async def test_sleep_sleeps_and_runs_into_the_deadline_of_its_call() -> None:
    sandbox = await create(fake(exec=0.1))

    assert await seconds(run(sandbox, "sleep", "2")) == pytest.approx(2.1)
    error = await failure(run(sandbox, "sleep", "60", deadline_s=0.5))
    assert isinstance(error, ExecTimeout)
    assert error.after_s == pytest.approx(0.5)
    assert (await run(sandbox, "sleep", "long")).exit_code == 1


@on_virtual_clock
async def test_a_stream_yields_line_by_line_then_the_exit() -> None:
    provider = fake(exec="0.1", stream_gap="0.5")
    sandbox = await create(provider)
    start_ns = loop_ns()
    pieces = [
        (piece.stream, piece.data, piece.exit_code, round((loop_ns() - start_ns) / 1e9, 3))
        async for piece in sandbox.stream(["cat"], stdin=b"a\nb", deadline_s=9)
    ]

    assert pieces == [
        ("stdout", b"a\n", None, 0.1),
        ("stdout", b"b", None, 0.6),
        ("exit", b"", 0, 1.1),
    ]
    last = [piece async for piece in sandbox.stream(["nope"], deadline_s=9)]
    assert [piece.stream for piece in last] == ["stderr", "exit"]
    assert last[-1].exit_code == 127
    assert provider.calls["stream"] == 2


# Pause and resume


async def planted(provider: FakeProvider) -> tuple[PausableFakeSandbox, int]:
    sandbox = await pausable(provider)
    pid = int((await run(sandbox, *plant("n0nce"))).stdout)
    await sandbox.write_file("/dev/shm/a", b"memory", deadline_s=1)
    return sandbox, pid


async def state(sandbox: FakeSandbox, pid: int) -> tuple[bool, bool, bool]:
    """Whether the process's memory, the file in memory and the file on disk are still there."""
    memory = await run(sandbox, *check(pid))
    assert memory.exit_code == (0 if held(memory.stdout, "n0nce") else 1)
    shm = await run(sandbox, "cat", "/dev/shm/a")
    disk = await run(sandbox, *check_file())
    return memory.exit_code == 0, shm.stdout == b"memory", disk.stdout == b"n0nce"


@pytest.mark.parametrize(
    ("kind", "resume", "kept"),
    [
        ("frozen", "0", (True, True, True)),
        ("stopped", "0", (True, True, True)),
        ("memory", "0", (True, True, True)),
        ("filesystem", "0", (False, False, True)),
        ("memory", "fresh-boot", (False, False, True)),
        ("memory", "0.1+wiped", (False, False, False)),
    ],
)
def test_what_a_resume_brings_back(kind: Any, resume: str, kept: tuple[bool, bool, bool]) -> None:
    async def test() -> None:
        sandbox, pid = await planted(fake(pause_kinds="frozen,stopped,memory,filesystem", resume=resume))
        assert await state(sandbox, pid) == (True, True, True)
        boot = await sandbox.read_file("/proc/sys/kernel/random/boot_id", deadline_s=1)
        await sandbox.pause(kind=kind, deadline_s=1)
        await sandbox.resume(deadline_s=1)
        assert await state(sandbox, pid) == kept
        assert (await sandbox.read_file("/proc/sys/kernel/random/boot_id", deadline_s=1) == boot) == kept[0]

    run_virtual(test())


@on_virtual_clock
async def test_a_paused_sandbox_answers_at_once_that_it_is_paused() -> None:
    sandbox = await pausable(fake(exec=5))
    await sandbox.pause(kind="memory", deadline_s=1)
    await sandbox.pause(kind="memory", deadline_s=1)

    for awaitable in (
        run(sandbox, "true"),
        sandbox.read_file("a", deadline_s=1),
        sandbox.write_file("a", b"", deadline_s=1),
    ):
        error = failure(awaitable)
        assert await seconds(error) == 0.0
    assert isinstance(await failure(run(sandbox, "true")), Unsupported)
    await sandbox.resume(deadline_s=1)
    assert (await run(sandbox, "true")).exit_code == 0


@on_virtual_clock
async def test_a_kind_that_it_cannot_do_is_unsupported() -> None:
    sandbox = await pausable(fake(pause_kinds="frozen"))

    assert isinstance(await failure(sandbox.pause(kind="memory", deadline_s=1)), Unsupported)
    assert (await run(sandbox, "true")).exit_code == 0


@on_virtual_clock
async def test_a_failed_pause_leaves_it_running_and_a_failed_resume_paused() -> None:
    sandbox = await pausable(fake(pause="error,0", resume="error,0"))

    await failure(sandbox.pause(kind="memory", deadline_s=1))
    await run(sandbox, "true")
    await sandbox.pause(kind="memory", deadline_s=1)
    await failure(sandbox.resume(deadline_s=1))
    assert isinstance(await failure(run(sandbox, "true")), Unsupported)


@on_virtual_clock
async def test_a_new_boot_is_ready_after_ready_after_again() -> None:
    sandbox = await pausable(fake(ready_after=1, pause_kinds="filesystem"))
    await asyncio.sleep(1)
    await sandbox.pause(kind="filesystem", deadline_s=1)
    await sandbox.resume(deadline_s=1)

    assert isinstance(await failure(run(sandbox, "true")), NotReady)
    await asyncio.sleep(1)
    await run(sandbox, "true")
