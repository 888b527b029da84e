"""What the lives of sandboxes are made of: where they are led, what a life holds, what is done in it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hypothesis import strategies as st

from pytest_sandboxbench.load.guard import GuardedSandbox
from pytest_sandboxbench.model import ExecResult, PauseKind
from pytest_sandboxbench.providers.protocol import Provider

__all__ = ["DATA", "IN_MEMORY", "TEXT", "Life", "World", "cancelled", "commands", "expected", "streamed"]

T = TypeVar("T")

IN_MEMORY = "/dev/shm/"

# No NUL: neither an argument nor a variable can hold one. No surrogate: that is no text.
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
DATA = st.binary(max_size=60) | st.sampled_from([b"", b"\0", b"\r\n\0", bytes(range(256)), b"\0\xff" * 70_000])


@dataclass(frozen=True)
class World:
    """What lives are led in.

    ``make``     a provider for the run of this name; asked twice, both see the same sandboxes where ``shared``
    ``paths``    file names that mean the same to the provider's calls and to the guest, on its disk or in its memory
    ``virtual``  on the clock that jumps
    ``run``      what the names of all runs start with
    """

    make: Callable[[str], Provider]
    paths: tuple[str, ...]
    virtual: bool
    shared: bool
    run: str = field(default_factory=lambda: f"lives-{uuid.uuid4().hex[:8]}")
    made: set[str] = field(default_factory=set)


@dataclass(eq=False, repr=False)
class Life:
    """One sandbox as it should be."""

    sandbox: GuardedSandbox
    run: int
    name: str
    home: str
    files: dict[str, bytes] = field(default_factory=dict)
    paused: PauseKind | None = None
    there: bool = True

    def __repr__(self) -> str:
        return f"<{self.sandbox.id} of run {self.run}>"


def commands() -> st.SearchStrategy[tuple[str, ...]]:
    words = TEXT.filter(lambda word: not word.startswith("-"))
    return (
        st.sampled_from([("true",), ("/bin/true",), ("false",), ("pwd",), ("printenv", "NAME"), ("no-such-command",)])
        | st.lists(words, max_size=3).map(lambda found: ("echo", *found))
        | st.integers(0, 255).map(lambda code: ("sh", "-c", f"exit {code}"))
        | st.just(("cat",))
    )


def expected(life: Life, argv: tuple[str, ...], stdin: bytes) -> tuple[int, bytes]:
    """Exit code and output of one of these commands."""
    match argv:
        case ["false"]:
            return 1, b""
        case ["pwd"]:
            return 0, life.home.encode()
        case ["printenv", _]:
            return 0, f"{life.name}\n".encode()
        case ["cat"]:
            return 0, stdin
        case ["echo", *words]:
            return 0, " ".join(words).encode() + b"\n"
        case ["sh", "-c", script]:
            return int(script.split()[1]), b""
        case ["no-such-command"]:
            return 127, b""
    return 0, b""


async def streamed(sandbox: GuardedSandbox, argv: tuple[str, ...], stdin: bytes) -> ExecResult:
    """A stream, put together to what ``exec`` gives."""
    pieces = [piece async for piece in sandbox.stream(argv, stdin=stdin)]
    assert [piece.stream == "exit" for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    out, err = (b"".join(piece.data for piece in pieces if piece.stream == name) for name in ("stdout", "stderr"))
    code = pieces[-1].exit_code
    assert code is not None
    return ExecResult(code, out, err)


async def cancelled(act: Coroutine[Any, Any, T], after_s: float) -> T | None:
    """Its result, where it was quicker than the cancellation."""
    task = asyncio.ensure_future(act)
    await asyncio.sleep(after_s)
    task.cancel()
    try:
        return await task
    except asyncio.CancelledError:
        return None
