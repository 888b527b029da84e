"""Streams: each check passes on our own providers, and each finds the fault that it is there for."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import ClassVar

from pytest_sandboxbench.compliance import stream as checks
from pytest_sandboxbench.errors import ExecFailed
from pytest_sandboxbench.model import ExecResult, Output
from pytest_sandboxbench.providers.local import stream_command
from pytest_sandboxbench.providers.null_sandbox import NullSandbox
from tests.compliance.faulty import Call, FaultySandbox
from tests.compliance.proof import Proof, faults_in


class NoExit(FaultySandbox):
    fails: ClassVar = {
        "the_last_item_is_the_exit": r"the stream of \['true'\] ended without an item of stream `exit`",
        "a_failure_is_an_item": "the last item was to say exit code 1, it says None",
        "output_comes_as_it_is_written": "",
        "pieces_are_in_order": "",
        "every_byte_is_streamed": "",
        "stdin_of_a_stream_ends": "",
        "a_stream_has_env_and_cwd": "",
        "sixty_four_mib_are_streamed": "",
        "a_background_process_holds_no_stream_up": "",
    }

    async def pieces(self, call: Call) -> AsyncGenerator[Output, None]:
        async with aclosing(super().pieces(call)) as pieces:
            async for piece in pieces:
                if piece.stream != "exit":
                    yield piece


class TwoExits(FaultySandbox):
    fails: ClassVar = {"the_last_item_is_the_exit": "has 2 items of stream `exit`"}

    async def pieces(self, call: Call) -> AsyncGenerator[Output, None]:
        async with aclosing(super().pieces(call)) as pieces:
            async for piece in pieces:
                yield piece
                if piece.stream == "exit":
                    yield piece


class OutputAfterTheExit(FaultySandbox):
    fails: ClassVar = {"the_last_item_is_the_exit": "went on after the item of stream `exit`"}

    async def pieces(self, call: Call) -> AsyncGenerator[Output, None]:
        async with aclosing(super().pieces(call)) as pieces:
            async for piece in pieces:
                yield piece
        yield Output("stdout", b"")


class FailureRaises(FaultySandbox):
    fails: ClassVar = {
        "a_failure_is_an_item": r"\['false'\] was to end with exit code 1, it raised: stream failed: exit code 1",
        "the_last_item_is_the_exit": "stream failed: exit code 1",
        "a_background_process_holds_no_stream_up": "stream failed: exit code 3",
    }

    async def pieces(self, call: Call) -> AsyncGenerator[Output, None]:
        async with aclosing(super().pieces(call)) as pieces:
            async for piece in pieces:
                if piece.exit_code:
                    raise ExecFailed("stream", said=f"exit code {piece.exit_code}")
                yield piece


class Collects(FaultySandbox):
    timeout_s: ClassVar = 1.5
    fails: ClassVar = {
        "output_comes_as_it_is_written": r"the first piece came 0.0\d s before the end, not 1 s",
        "other_commands_run_meanwhile": "passed its deadline",
        "closing_kills_the_command": "passed its deadline",
    }

    async def pieces(self, call: Call) -> AsyncGenerator[Output, None]:
        async with aclosing(super().pieces(call)) as pieces:
            collected = [piece async for piece in pieces]
        for piece in collected:
            yield piece


class OneAtATime(FaultySandbox):
    timeout_s: ClassVar = 1.5
    fails: ClassVar = {"other_commands_run_meanwhile": "exec .*: >go.*passed its deadline"}

    def __init__(self, inner: NullSandbox) -> None:
        super().__init__(inner)
        self.lock = asyncio.Lock()

    async def run(self, call: Call) -> ExecResult:
        async with self.lock:
            return await super().run(call)

    async def pieces(self, call: Call) -> AsyncGenerator[Output, None]:
        async with self.lock, aclosing(super().pieces(call)) as pieces:
            async for piece in pieces:
                yield piece


class Swaps(FaultySandbox):
    """Now and then a later piece overtakes an earlier one."""

    fails: ClassVar = {
        "pieces_are_in_order": r"3000 numbered lines: expected \d+ bytes, got \d+; from byte \d+ on",
        "sixty_four_mib_are_streamed": r"64 MiB from byte \d+ on: expected",
    }

    async def pieces(self, call: Call) -> AsyncGenerator[Output, None]:
        count, held = 0, None
        async with aclosing(super().pieces(call)) as pieces:
            async for piece in pieces:
                count += 1
                if count == 4 and piece.stream != "exit":
                    held = piece
                    continue
                yield piece
                if held is not None:
                    yield held
                    held = None


class Merges(FaultySandbox):
    fails: ClassVar = {"streams_are_apart": r"stdout, streamed: expected b'out\\nout again\\n', got b'.*err"}

    async def pieces(self, call: Call) -> AsyncGenerator[Output, None]:
        async with aclosing(super().pieces(call)) as pieces:
            async for piece in pieces:
                yield piece if piece.stream == "exit" else replace(piece, stream="stdout")


class Decodes(FaultySandbox):
    """Each piece for itself, so that characters break where pieces part."""

    fails: ClassVar = {
        "every_byte_is_streamed": r"the stream of `cat`: expected \d+ bytes, got \d+; from byte 128 on b'\\x80",
        "sixty_four_mib_are_streamed": "",
    }

    async def pieces(self, call: Call) -> AsyncGenerator[Output, None]:
        async with aclosing(super().pieces(call)) as pieces:
            async for piece in pieces:
                yield replace(piece, data=piece.data.decode(errors="replace").encode())


class StdinStaysOpen(FaultySandbox):
    timeout_s: ClassVar = 1.5
    fails: ClassVar = {"stdin_of_a_stream_ends": "`cat` without stdin was to end at once, it raised: .* its deadline"}

    async def pieces(self, call: Call) -> AsyncGenerator[Output, None]:
        if call.argv == ["cat"] and not call.stdin:
            call = replace(call, argv=["sh", "-c", "sleep 61 | cat"])
        async with aclosing(super().pieces(call)) as pieces:
            async for piece in pieces:
                yield piece


class ForgetsCwd(FaultySandbox):
    fails: ClassVar = {"a_stream_has_env_and_cwd": "`pwd` with cwd=/.*/below, streamed: expected b'/"}

    async def pieces(self, call: Call) -> AsyncGenerator[Output, None]:
        async with aclosing(super().pieces(replace(call, cwd=None))) as pieces:
            async for piece in pieces:
                yield piece


class ForgetsEnv(FaultySandbox):
    fails: ClassVar = {
        "a_stream_has_env_and_cwd": r"`printenv`, streamed: expected b'two  words\\n', got b''",
        "closing_kills_the_command": "the variables given with the command did not reach it",
    }

    async def pieces(self, call: Call) -> AsyncGenerator[Output, None]:
        async with aclosing(super().pieces(replace(call, env={}))) as pieces:
            async for piece in pieces:
                yield piece


class LosesAPiece(FaultySandbox):
    fails: ClassVar = {"sixty_four_mib_are_streamed": r"64 MiB from byte \d{5,} on: expected"}

    async def pieces(self, call: Call) -> AsyncGenerator[Output, None]:
        total = 0
        async with aclosing(super().pieces(call)) as pieces:
            async for piece in pieces:
                total += len(piece.data)
                if not (1 << 20 <= total < (1 << 20) + len(piece.data)):
                    yield piece


class OnePiece(FaultySandbox):
    fails: ClassVar = {"sixty_four_mib_are_streamed": "a piece has 67109888 bytes: yield what there is"}

    async def pieces(self, call: Call) -> AsyncGenerator[Output, None]:
        kept = bytearray()
        async with aclosing(super().pieces(call)) as pieces:
            async for piece in pieces:
                if len(call.stdin) == 65537 and piece.stream == "stdout":
                    kept += piece.data
                    continue
                if kept:
                    yield Output("stdout", bytes(kept))
                yield piece


class WaitsForOutput(FaultySandbox):
    timeout_s: ClassVar = 1.5
    fails: ClassVar = {"a_background_process_holds_no_stream_up": "`sleep 61 & exit 3` was open after 1.5 s"}

    async def pieces(self, call: Call) -> AsyncGenerator[Output, None]:
        if "& exit" in call.script:
            call = replace(call, argv=["sh", "-c", '"$@" | cat', "sh", *call.argv])
        async with aclosing(super().pieces(call)) as pieces:
            async for piece in pieces:
                yield piece


class KillsTheChildOnly(FaultySandbox):
    fails: ClassVar = {
        "closing_kills_the_command": r"closed early, \d of its processes live on in the sandbox: .*: sleep 61"
    }

    async def pieces(self, call: Call) -> AsyncGenerator[Output, None]:
        box = self.inner
        command = replace(
            box._command(call.argv, call.stdin, call.cwd, call.env), kill=lambda pid: os.kill(pid, signal.SIGKILL)
        )
        stream = stream_command(box._processes, command, "stream", self.ref.id, call.deadline_s, box._gone)
        async with aclosing(stream):
            async for piece in stream:
                yield piece


FAULTS = faults_in(globals(), FaultySandbox)


class TestStream(Proof):
    group: ClassVar = checks
    faults: ClassVar = FAULTS
    slow: ClassVar = {"output_comes_as_it_is_written": "bubblewrap"}
