"""What a check is: a coroutine function with a docstring that states a promise, and what a provider needs for it."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeVar

from ..errors import SandboxbenchError, SandboxError
from ..load.deadlines import describe, stop
from ..load.guard import GuardedProvider, GuardedSandbox
from ..load.lanes import until_ready
from ..model import Capabilities, Owner, SandboxSpec

__all__ = [
    "Check",
    "CheckFailed",
    "Instances",
    "NotInGuest",
    "Raised",
    "Trial",
    "brief",
    "check",
    "cut_short",
    "expect",
    "moments",
    "raises",
    "running",
    "shown",
]

Need = Literal[
    "exec", "files", "labels", "memory_mib", "network_off", "one_shot", "pause", "pids", "shell", "stream", "vcpus"
]

_LACKS: Mapping[str, str] = {
    "exec": "runs one command per sandbox only",
    "files": "has no files API",
    "labels": "has no labels",
    "network_off": "cannot switch the network off",
    "one_shot": "has no one-shot run",
    "pause": "cannot pause",
    "shell": "has no shell in its guest",
    "stream": "cannot stream",
}
_LIMITS = ("vcpus", "memory_mib", "pids")
_SHORT = 50
_SCRIPT, _HEAD = 100, 30
_GIVEN_TO_A_SHELL = re.compile(r"""('-c', )('(?:[^'\\]|\\.)*'?|"(?:[^"\\]|\\.)*"?)""", re.DOTALL)
"""A script in the text of a list; it may be cut off before its end."""
_BETWEEN_LISTS_S = 0.1
_STOPS_S = 2.0

T = TypeVar("T")


class CheckFailed(SandboxbenchError):
    """A promise is not kept. The text says what was expected and what came."""


class NotInGuest(SandboxbenchError):
    """There is nothing to check this with: the guest lacks python3, or no limit is left that it does not enforce."""


@dataclass(frozen=True, slots=True)
class Check:
    """One promise. ``group`` is its subject, ``about`` one line for people, ``needs`` capabilities it is gated by."""

    group: str
    name: str
    about: str
    needs: tuple[Need, ...]
    run: Callable[[Trial], Awaitable[None]]

    def __str__(self) -> str:
        return f"{self.group}-{self.name}"

    def lacks(self, can: Capabilities) -> str:
        """Why it does not apply to a provider with these capabilities; empty when it does."""
        for need in self.needs:
            if need in _LIMITS:
                if need not in can.limits:
                    return f"does not limit {need}"
            elif not getattr(can, need):
                return _LACKS[need]
        return ""


def check(*needs: Need) -> Callable[[Callable[[Trial], Awaitable[None]]], Check]:
    """Make a check of a coroutine function: its module is the group, the first line of its docstring ``about``."""

    def made(run: Callable[[Trial], Awaitable[None]]) -> Check:
        group = run.__module__.rpartition(".")[2]
        about = (run.__doc__ or "").strip().partition("\n")[0]
        return Check(group, run.__name__, about, needs, run)

    return made


class Instances(Protocol):
    """How a trial comes to further instances of its provider. What is made through any of them is cleared up."""

    @property
    def name(self) -> str: ...

    async def another(self) -> GuardedProvider: ...

    def other_run(self, provider: GuardedProvider, run_id: str) -> GuardedProvider: ...

    async def close(self, provider: GuardedProvider) -> None: ...


class Trial:
    """What a check gets: the provider with our deadlines around it, and ways to look at it from elsewhere.

    Everything made through it is destroyed afterwards, and then nothing of it may be listed any more.
    """

    def __init__(self, provider: GuardedProvider, owner: Owner, instances: Instances, *, patient: bool = True) -> None:
        self.provider = provider
        self.name = instances.name
        """The instance's name, as its factory was told."""
        self.can = provider.capabilities
        self.owner = owner
        self.run_id = owner.run_id
        self.timeout_s = provider.timeout_s
        self.slack_s = 3.0 if self.can.hosted else 0.5
        """How much later than its deadline a call may come back: the way there and back, and a busy machine."""
        self._instances = instances
        self._patient = patient

    async def sandbox(self, spec: SandboxSpec | None = None) -> GuardedSandbox:
        """A new sandbox that has answered its first command; where there is no exec, one that was created."""
        made = await self.provider.create(spec)
        if self.can.exec:
            await until_ready(made, self.timeout_s)
        return made

    async def another(self) -> GuardedProvider:
        """A second instance of the same settings, that knows of no sandbox: as another process would see them."""
        return await self._instances.another()

    def other_run(self, run_id: str) -> GuardedProvider:
        """The same instance, working for another run: what it makes belongs to that one."""
        return self._instances.other_run(self.provider, run_id)

    async def close(self, provider: GuardedProvider) -> None:
        """Close an instance now, and not again at the end."""
        await self._instances.close(provider)

    async def owned(self, provider: GuardedProvider | None = None) -> list[str]:
        """Ids of the sandboxes of this trial that the provider lists, in order."""
        refs = await (self.provider if provider is None else provider).owned(self.run_id)
        return sorted(ref.id for ref in refs)

    async def lists(self, when: str, *ids: str, provider: GuardedProvider | None = None) -> None:
        """``CheckFailed`` unless the provider lists just these for this trial; its list may lag behind a little."""
        until = time.monotonic() + (self.slack_s if ids or self._patient else 0)
        while True:
            listed = await self.owned(provider)
            if listed == sorted(ids):
                return
            expect(time.monotonic() < until, f"{when}, owned(run) gave {listed}; expected: {sorted(ids)}")
            await asyncio.sleep(_BETWEEN_LISTS_S)

    async def destroy_made(self) -> None:
        """Destroy what calls into the provider returned, also one that was cancelled a moment too late for it."""
        for ref in list(self.provider.live.values()):
            await self.provider.destroy(ref)

    def room(self, sandboxes: int) -> None:
        """``NotInGuest`` unless so many sandboxes may exist at once."""
        most = self.can.max_live
        if most is not None and most < sandboxes:
            raise NotInGuest(f"holds {most} at once, and this takes {sandboxes}")

    def asking(self, **changes: Any) -> SandboxSpec:
        """The spec of this instance with some fields changed."""
        return replace(self.provider.spec, **changes)

    async def sh(self, sandbox: GuardedSandbox, script: str, *arguments: str, stdin: bytes = b"") -> bytes:
        """Standard output of a shell script that must return 0."""
        result = await sandbox.exec(["sh", "-c", script, "sh", *arguments], stdin=stdin)
        expect(result.exit_code == 0, f"`{script}` returned {result.exit_code}: {shown(result.stderr)}")
        return result.stdout

    async def has(self, sandbox: GuardedSandbox, program: str) -> None:
        """``NotInGuest`` unless the guest has ``program``."""
        found = await sandbox.exec(["sh", "-c", f"command -v {program}"])
        if found.exit_code != 0:
            raise NotInGuest(f"the guest has no {program}")


def expect(truth: bool, said: str) -> None:
    """``CheckFailed`` with ``said`` unless it is true."""
    if not truth:
        raise CheckFailed(said)


def expect_same(what: str, got: bytes, wanted: bytes) -> None:
    """``CheckFailed`` unless they are equal; of long ones the message shows the place where they part."""
    if got == wanted:
        return
    if max(len(got), len(wanted)) <= 3 * _SHORT:
        raise CheckFailed(f"{what}: expected {shown(wanted)}, got {shown(got)}")
    at = 0
    for step in (1 << 16, 1 << 8, 1):
        while at < len(wanted) and got[at : at + step] == wanted[at : at + step]:
            at += step
    raise CheckFailed(
        f"{what}: expected {len(wanted)} bytes, got {len(got)}; from byte {at} on "
        f"{shown(wanted[at : at + _SHORT])} was expected, {shown(got[at : at + _SHORT])} came"
    )


def shown(data: bytes | str, most: int = 200) -> str:
    """Data from a guest for a message: short, printable, with its length where it is cut."""
    text = ascii(data)
    return text if len(text) <= most else f"{text[:most]}... ({len(data)} in all)"


def brief(said: str) -> str:
    """A message in which the scripts that are given to a shell are cut in the middle: what fails is at their end."""

    def cut(found: re.Match[str]) -> str:
        script = found[2]
        return found[0] if len(script) <= _SCRIPT else f"{found[1]}{script[:_HEAD]} ... {script[_HEAD - _SCRIPT :]}"

    return _GIVEN_TO_A_SHELL.sub(cut, said)


@asynccontextmanager
async def running(call: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """A call that goes on beside the block, and not beyond it: nobody is left to hear of its error."""
    task = asyncio.ensure_future(call)
    try:
        yield task
    finally:
        await stop(task, _STOPS_S)


async def cut_short(what: str, call: Coroutine[Any, Any, object], after_s: float, within_s: float) -> str:
    """Cancel a call after so many seconds; it may have been done by then. Returns how it ended, for a message.

    ``CheckFailed`` when it takes longer than ``within_s`` to end, or raises what is no error of a provider.
    """
    async with running(call) as task:
        await asyncio.sleep(after_s)
        asked = task.cancel()
        await asyncio.wait({task}, timeout=within_s)
        expect(task.done(), f"{what}, cancelled after {after_s:.3f} s, was still under way {within_s:g} s later")
    if task.cancelled():
        return "it raised CancelledError"
    error = task.exception()
    if error is None:
        return "it returned all the same" if asked else "it had returned by then"
    said = f"{what}, cancelled after {after_s:.3f} s, raised {type(error).__name__}: {describe(error)}"
    expect(isinstance(error, SandboxError), said)
    return f"it raised {type(error).__name__}"


def moments(seconds: float) -> tuple[float, ...]:
    """When to cancel what takes so long: at once, along the way, and just about its end."""
    return (0.0, *(seconds * part for part in (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)))


class Raised:
    """What a block of :func:`raises` raised, and how long it took."""

    error: SandboxError
    seconds: float


@contextmanager
def raises(what: str, *kinds: type[SandboxError]) -> Iterator[Raised]:
    """``CheckFailed`` unless the block raises one of ``kinds``, with a message that helps."""
    raised = Raised()
    started = time.monotonic()
    names = " or ".join(kind.__name__ for kind in kinds)
    try:
        yield raised
    except kinds as error:
        raised.error, raised.seconds = error, time.monotonic() - started
    except CheckFailed:
        raise
    except Exception as error:
        raise CheckFailed(f"{what} raised {type(error).__name__}, not {names}: {describe(error)}") from error
    else:
        raise CheckFailed(f"{what} raised nothing; {names} was expected")
    expect(bool(str(raised.error).strip()), f"{what} raised {type(raised.error).__name__} without a message")


def among(checks: Sequence[object]) -> tuple[Check, ...]:
    """The checks among the names of a module, in their order."""
    return tuple(one for one in checks if isinstance(one, Check))
