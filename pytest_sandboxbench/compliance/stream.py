"""Output while it is written."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from ..errors import OperationTimeout, SandboxError
from ..load.guard import GuardedSandbox
from ..model import Output
from .check import CheckFailed, Trial, among, check, expect, expect_same, shown
from .marks import Mark
from .material import EVERY_BYTE, NAP, SIXTY_FOUR_MIB, pattern, plenty

__all__ = ["CHECKS"]

_MIB = 1 << 20
_LARGEST = 16 * _MIB
"""A piece that is larger was collected, not streamed."""


@dataclass(slots=True)
class _Came:
    """All that a stream gave, and when."""

    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    exits: list[Output] = field(default_factory=list)
    first_s: float = 0.0
    last_s: float = 0.0
    largest: int = 0
    after_exit: int = 0

    @property
    def exit_code(self) -> int | None:
        return self.exits[-1].exit_code if self.exits else None


async def _came(
    sandbox: GuardedSandbox,
    argv: Sequence[str],
    *,
    stdin: bytes = b"",
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    deadline_s: float | None = None,
    each: Callable[[Output], None] | None = None,
) -> _Came:
    came = _Came()
    started = time.monotonic()
    stream = sandbox.stream(argv, stdin=stdin, cwd=cwd, env=env, deadline_s=deadline_s)
    async with aclosing(stream) as pieces:  # type: ignore[type-var]
        async for piece in pieces:
            came.last_s = time.monotonic() - started
            came.first_s = came.first_s or came.last_s
            came.after_exit += len(came.exits)
            came.largest = max(came.largest, len(piece.data))
            if piece.stream == "exit":
                came.exits.append(piece)
                continue
            expect(
                piece.stream in ("stdout", "stderr"),
                f"a piece came of stream {piece.stream!r}; there are stdout, stderr and exit",
            )
            if each is not None:
                each(piece)
            else:
                (came.stdout if piece.stream == "stdout" else came.stderr).extend(piece.data)
    return came


def _ended(came: _Came, code: int, what: str) -> None:
    expect(
        came.exit_code == code,
        f"{what}: the last item was to say exit code {code}, it says {came.exit_code}; "
        f"stderr: {shown(bytes(came.stderr))}",
    )


@check("stream")
async def the_last_item_is_the_exit(trial: Trial) -> None:
    """The last item of a stream, and only that one, has stream `exit` and the exit code."""
    sandbox = await trial.sandbox()
    for argv, code in ((["true"], 0), (["echo", "text"], 0), (["false"], 1)):
        came = await _came(sandbox, argv)
        expect(bool(came.exits), f"the stream of {argv} ended without an item of stream `exit`")
        expect(len(came.exits) == 1, f"the stream of {argv} has {len(came.exits)} items of stream `exit`")
        expect(not came.after_exit, f"the stream of {argv} went on after the item of stream `exit`")
        _ended(came, code, f"the stream of {argv}")
        expect(not came.exits[0].data, f"the exit of {argv} has data: {shown(came.exits[0].data)}")


@check("stream")
async def a_failure_is_an_item(trial: Trial) -> None:
    """A command that fails, or is not there, ends its stream with an exit code, not with an error."""
    sandbox = await trial.sandbox()
    for argv, code in ((["false"], 1), (["sandboxbench-no-such-command"], 127)):
        try:
            came = await _came(sandbox, argv)
        except SandboxError as error:
            raise CheckFailed(f"the stream of {argv} was to end with exit code {code}, it raised: {error}") from error
        _ended(came, code, f"the stream of {argv}")


@check("stream", "shell")
async def output_comes_as_it_is_written(trial: Trial) -> None:
    """What a command writes is yielded while it runs, not when it ends."""
    sandbox = await trial.sandbox()
    lasts_s = 2 if trial.can.hosted else 1
    came = await _came(sandbox, ["sh", "-c", f"echo first; sleep {lasts_s}; echo last"])
    _ended(came, 0, "a stream")
    expect_same("the whole of it", bytes(came.stdout), b"first\nlast\n")
    between_s = came.last_s - came.first_s
    expect(
        between_s >= lasts_s / 2,
        f"`echo first; sleep {lasts_s}`: the first piece came {between_s:.2f} s before the end, not {lasts_s} s",
    )


@check("stream", "exec", "shell")
async def other_commands_run_meanwhile(trial: Trial) -> None:
    """While a stream is open, other commands run in the sandbox, and it shows what they bring about."""
    sandbox = await trial.sandbox()
    seen: list[bytes] = []
    script = f"echo up; until [ -e go ]; do {NAP}; done; echo went"
    stream = sandbox.stream(["sh", "-c", script], deadline_s=min(15.0, trial.timeout_s))
    async with aclosing(stream) as pieces:  # type: ignore[type-var]
        async for piece in pieces:
            if not seen:
                await trial.sh(sandbox, ": >go")
            seen.append(piece.data)
    expect_same("a stream that waits for another command", b"".join(seen), b"up\nwent\n")


@check("stream", "shell")
async def pieces_are_in_order(trial: Trial) -> None:
    """Pieces come in the order in which they were written: 3000 numbered lines."""
    sandbox = await trial.sandbox()
    came = await _came(sandbox, ["sh", "-c", "i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); done"])
    _ended(came, 0, "a stream of 3000 lines")
    expect_same("3000 numbered lines", bytes(came.stdout), b"".join(b"%d\n" % i for i in range(3000)))


@check("stream", "shell")
async def streams_are_apart(trial: Trial) -> None:
    """Pieces of standard output and of standard error are told apart."""
    sandbox = await trial.sandbox()
    came = await _came(sandbox, ["sh", "-c", "echo out; echo err >&2; echo out again"])
    expect_same("stdout, streamed", bytes(came.stdout), b"out\nout again\n")
    expect_same("stderr, streamed", bytes(came.stderr), b"err\n")


@check("stream")
async def every_byte_is_streamed(trial: Trial) -> None:
    """All 256 byte values pass unchanged, whatever the place at which pieces part."""
    sandbox = await trial.sandbox()
    data = (EVERY_BYTE + "ünï→🦀".encode()) * 100
    came = await _came(sandbox, ["cat"], stdin=data)
    _ended(came, 0, "the stream of `cat`")
    expect_same("the stream of `cat`", bytes(came.stdout), data)


@check("stream")
async def stdin_of_a_stream_ends(trial: Trial) -> None:
    """A streamed command without standard input finds its end at once."""
    sandbox = await trial.sandbox()
    try:
        came = await _came(sandbox, ["cat"], deadline_s=min(10.0, trial.timeout_s))
    except OperationTimeout as error:
        raise CheckFailed(f"the stream of `cat` without stdin was to end at once, it raised: {error}") from error
    _ended(came, 0, "the stream of `cat` without stdin")


@check("stream")
async def a_stream_has_env_and_cwd(trial: Trial) -> None:
    """A streamed command gets its variables and its working directory as any other."""
    sandbox = await trial.sandbox()
    came = await _came(sandbox, ["printenv", "SANDBOXBENCH_CHECK"], env={"SANDBOXBENCH_CHECK": "two  words"})
    expect_same("`printenv`, streamed", bytes(came.stdout), b"two  words\n")
    home = bytes((await _came(sandbox, ["pwd"])).stdout).decode().removesuffix("\n")
    folder = home.rstrip("/") + "/below"
    _ended(await _came(sandbox, ["mkdir", folder]), 0, f"`mkdir {folder}`, streamed")
    came = await _came(sandbox, ["pwd"], cwd=folder)
    expect_same(f"`pwd` with cwd={folder}, streamed", bytes(came.stdout), folder.encode() + b"\n")


@check("stream", "shell")
async def sixty_four_mib_are_streamed(trial: Trial) -> None:
    """64 MiB come in pieces, to the byte."""
    sandbox = await trial.sandbox()
    wanted = pattern()
    twice = wanted * 2
    at = 0

    def each(piece: Output) -> None:
        nonlocal at
        if piece.stream == "stderr":
            raise CheckFailed(f"a command that writes 64 MiB wrote on stderr: {shown(piece.data)}")
        for begin in range(0, len(piece.data), len(wanted)):
            part = piece.data[begin : begin + len(wanted)]
            place = at % len(wanted)
            expect_same(f"64 MiB from byte {at} on", part, twice[place : place + len(part)])
            at += len(part)

    came = await _came(sandbox, ["sh", "-c", SIXTY_FOUR_MIB], stdin=wanted, deadline_s=plenty(trial), each=each)
    _ended(came, 0, "a command that writes 64 MiB")
    expect(at == 1024 * len(wanted), f"of {1024 * len(wanted)} bytes {at} came")
    expect(came.largest <= _LARGEST, f"a piece has {came.largest} bytes: yield what there is, do not collect it")


@check("stream", "shell")
async def a_background_process_holds_no_stream_up(trial: Trial) -> None:
    """A stream is over when its command exits, though something in the background holds its output open."""
    sandbox = await trial.sandbox()
    deadline_s = min(10.0, trial.timeout_s)
    try:
        came = await _came(sandbox, ["sh", "-c", "echo started; sleep 61 & exit 3"], deadline_s=deadline_s)
    except OperationTimeout as error:
        raise CheckFailed(f"the stream of `sleep 61 & exit 3` was open after {deadline_s:g} s: {error}") from error
    _ended(came, 3, "the stream of `sleep 61 & exit 3`")
    expect_same("what it wrote before it exited", bytes(came.stdout), b"started\n")


@check("stream", "exec", "shell")
async def closing_kills_the_command(trial: Trial) -> None:
    """A stream that is closed early ends its command, silent or writing, and all that this started."""
    sandbox = await trial.sandbox()
    for what, script in (
        ("silent", "sleep 61 & echo up; sleep 62"),
        ("writing", "sleep 61 & while echo up; do :; done"),
    ):
        mark = await Mark.of(trial, sandbox)
        stream = sandbox.stream(mark.argv(script), env=mark.env)
        async with aclosing(stream) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                expect(piece.data.startswith(b"up"), f"a command that writes at once and goes on gave first {piece}")
                break
        await mark.expect_none(f"after the stream of a {what} command was closed early")
    expect_same("`echo` after closed streams", await trial.sh(sandbox, "echo works"), b"works\n")


CHECKS = among(tuple(globals().values()))
