"""Lives of several sandboxes at once, step by step, against a model of what a provider promises.

The model is a few dictionaries: which sandboxes exist, which of them are paused and how, what their files hold. Every
step is one that both the scripted guest and a real one know, so that the same machine runs on all providers.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import uuid
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar, get_args

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule

from pytest_sandboxbench.errors import ExecFailed, ExecTimeout, SandboxError, SandboxGone, Unsupported
from pytest_sandboxbench.load.guard import GuardedProvider, Pulse
from pytest_sandboxbench.model import ExecResult, Owner, PauseKind, SandboxRef, SandboxSpec
from pytest_sandboxbench.providers import proc
from pytest_sandboxbench.providers.fake_clock import VirtualLoop
from pytest_sandboxbench.providers.protocol import Provider

from .world import DATA, IN_MEMORY, TEXT, Life, World, cancelled, commands, expected, streamed

__all__ = ["Lives"]

T = TypeVar("T")

DEADLINE_S = 30.0
MOST_LIVE = 4


LIFE: st.SearchStrategy[Life] = st.runner().flatmap(lambda machine: st.sampled_from(machine.candidates()))


class Lives(RuleBasedStateMachine):
    leftovers = Bundle("leftovers")

    world: World
    """Set in a subclass."""

    def __init__(self) -> None:
        super().__init__()
        world = self.world
        self.runner = asyncio.Runner(loop_factory=VirtualLoop if world.virtual else None)
        example = f"{world.run}-{uuid.uuid4().hex[:8]}"
        # One name starts with the other: neither run owns what is the other's.
        self.names = (example, example + "1")
        self.all: list[Life] = []
        self.once: list[tuple[int, str]] = []
        self.provider = world.make(example)
        self.other = world.make(example) if world.shared else None
        pid = os.getpid()
        self.guards = [
            GuardedProvider(
                self.provider,
                owner=Owner(name, socket.gethostname(), pid, proc.start_time(pid) or "0"),
                spec=SandboxSpec(),
                timeout_s=DEADLINE_S,
                pulse=Pulse(DEADLINE_S),
            )
            for name in self.names
        ]
        assert self.call(self.provider.preflight()).ready
        self.kinds = self.provider.capabilities.pause

    def call(self, act: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(act)

    def refused(self, act: Coroutine[Any, Any, Any], *kinds: type[SandboxError]) -> None:
        """It fails as one of ``kinds``, in one line that can be printed."""
        with pytest.raises(SandboxError) as caught:
            self.call(act)
        assert caught.type in kinds
        assert str(caught.value).isprintable()

    def running(self, life: Life, act: Coroutine[Any, Any, T]) -> T | None:
        """Something that needs a running sandbox; None where it is refused, as it must be."""
        if life.there and life.paused is None:
            return self.call(act)
        self.refused(act, SandboxGone if not life.there else Unsupported)
        return None

    # Beginnings and ends

    @initialize(one=TEXT, other=TEXT)
    def begin(self, one: str, other: str) -> None:
        self.create(0, one)
        self.create(1, other)

    @precondition(lambda self: len(self.living()) < MOST_LIVE)
    @rule(run=st.integers(0, 1), name=TEXT)
    def another(self, run: int, name: str) -> None:
        self.create(run, name)

    def living(self) -> list[Life]:
        return [life for life in self.all if life.there]

    def candidates(self) -> list[Life]:
        """For a step: those that live, more often than those that did so last."""
        gone = [life for life in self.all if not life.there]
        return self.living() * 2 + gone[-2:]

    def ended(self, life: Life) -> None:
        """One lives at any time, or most steps would be done to the dead."""
        life.there = False
        if not self.living():
            self.create(life.run, life.name)

    def create(self, run: int, name: str) -> None:
        async def act() -> Life:
            sandbox = await self.guards[run].create(SandboxSpec(env={"NAME": name}))
            home = await sandbox.exec(["pwd"])
            life = Life(sandbox, run, name, home.stdout.decode())
            last = self.world.paths[-1]
            await sandbox.write_file(last, name.encode())
            life.files[last] = name.encode()
            return life

        life = self.call(act())
        assert life.sandbox.id not in self.world.made, "an id is used once"
        self.world.made.add(life.sandbox.id)
        self.all.append(life)

    @rule(life=LIFE, how=st.sampled_from(["itself", "by reference", "from elsewhere"]))
    def destroy(self, life: Life, how: str) -> None:
        """Again, and while paused, is as good."""
        if how == "from elsewhere" and self.other is not None:
            self.call(self.destroy_from_elsewhere(life, self.other))
        else:
            self.call(self.guards[life.run].destroy(life.sandbox if how == "itself" else life.sandbox.ref))
        self.call(self.guards[life.run].destroy(SandboxRef(self.provider.name, "0123456789ab")))  # nobody's
        self.ended(life)

    async def destroy_from_elsewhere(self, life: Life, other: Provider) -> None:
        """By a reference that another instance of the provider found, as a process that clears up after us has it."""
        found = [ref for ref in await other.owned(self.names[life.run]) if ref.id == life.sandbox.id]
        assert len(found) == life.there
        for ref in found:
            await other.destroy(ref, deadline_s=DEADLINE_S)

    @rule(life=LIFE)
    def destroy_while_a_command_runs(self, life: Life) -> None:
        async def act() -> ExecResult:
            command = asyncio.ensure_future(life.sandbox.exec(["sleep", "20"]))
            await asyncio.sleep(0.005)
            await self.guards[life.run].destroy(life.sandbox)
            return await command

        self.refused(act(), Unsupported if life.there and life.paused else SandboxGone)
        self.ended(life)

    @rule(target=leftovers, run=st.integers(0, 1), code=st.integers(0, 127), data=DATA)
    def run_once(self, run: int, code: int, data: bytes) -> tuple[int, SandboxRef]:
        """What is left of it is owned until it is destroyed."""
        argv = ["sh", "-c", f"exit {code}"] if code else ["cat"]
        result, ref = self.call(self.guards[run].run_once(argv, stdin=data))
        assert (result.exit_code, result.stdout) == (code, b"" if code else data)
        assert ref.id not in self.world.made
        self.world.made.add(ref.id)
        self.once.append((run, ref.id))
        return run, ref

    @rule(left=consumes(leftovers))
    def destroy_what_is_left(self, left: tuple[int, SandboxRef]) -> None:
        run, ref = left
        self.call(self.guards[run].destroy(ref))
        self.once.remove((run, ref.id))

    # Inside

    @rule(life=LIFE, argv=commands(), data=DATA, stream=st.booleans())
    def run(self, life: Life, argv: tuple[str, ...], data: bytes, stream: bool) -> None:
        call = streamed(life.sandbox, argv, data) if stream else life.sandbox.exec(argv, stdin=data)
        result = self.running(life, call)
        if result is None:
            return
        assert (result.exit_code, result.stdout) == expected(life, argv, data)
        assert bool(result.stderr) == (argv == ("no-such-command",))

    @rule(life=LIFE, name=TEXT, cwd=st.sampled_from(["/", "/usr"]))
    def run_elsewhere(self, life: Life, name: str, cwd: str) -> None:
        """Folder and variables of one call are of that call."""

        async def act() -> list[bytes]:
            given = [
                (["printenv", "NAME"], None, {"NAME": name}),
                (["pwd"], cwd, None),
                (["printenv", "NAME"], cwd, {}),
            ]
            return [(await life.sandbox.exec(argv, cwd=cwd, env=env)).stdout for argv, cwd, env in given]

        result = self.running(life, act())
        assert result in (None, [f"{name}\n".encode(), f"{cwd}\n".encode(), f"{life.name}\n".encode()])

    @rule(life=LIFE, path=st.integers(0, 99), data=st.none() | DATA)
    def write_file(self, life: Life, path: int, data: bytes | None) -> None:
        """Or remove it, by a command."""
        name = self.path(path)

        async def act() -> bool:
            if data is None:
                assert await life.sandbox.exec(["rm", "-f", name]) == ExecResult(0, b"", b"")
            else:
                await life.sandbox.write_file(name, data)
            return True

        if self.running(life, act()):
            life.files.pop(name, None)
            if data is not None:
                life.files[name] = data

    @rule(life=LIFE, path=st.integers(0, 99), by_cat=st.booleans())
    def read_file(self, life: Life, path: int, by_cat: bool) -> None:
        name = self.path(path)
        if by_cat:
            result = self.running(life, life.sandbox.exec(["cat", name]))
            if result is not None:
                missing = name not in life.files
                assert (result.exit_code, result.stdout) == (int(missing), life.files.get(name, b""))
                assert bool(result.stderr) == missing
        elif name in life.files or not life.there or life.paused:
            assert self.running(life, life.sandbox.read_file(name)) in (None, life.files.get(name))
        else:
            self.refused(life.sandbox.read_file(name), ExecFailed)

    def path(self, number: int) -> str:
        return self.world.paths[number % len(self.world.paths)]

    @rule()
    def all_at_once(self) -> None:
        """Every running one says its own name and shows its own files, whatever the others do."""
        running = [life for life in self.all if life.there and life.paused is None]

        async def act() -> list[ExecResult]:
            asked: list[Awaitable[ExecResult]] = []
            for life in running:
                asked += [life.sandbox.exec(["printenv", "NAME"]), life.sandbox.exec(["cat", *sorted(life.files)])]
            return await asyncio.gather(*asked)

        wanted = []
        for life in running:
            wanted += [f"{life.name}\n".encode(), b"".join(life.files[name] for name in sorted(life.files))]
        assert [result.stdout for result in self.call(act())] == wanted

    # Time

    @rule(life=LIFE)
    def run_past_a_deadline(self, life: Life) -> None:
        """The command is killed, and the sandbox is as good as before."""
        act = life.sandbox.exec(["sleep", "20"], deadline_s=0.05)
        if life.there and life.paused is None:
            self.refused(act, ExecTimeout)
        else:
            self.running(life, act)

    @rule(life=LIFE, create=st.booleans(), after_s=st.sampled_from([0, 0.001, 0.003, 0.008]))
    def cancel(self, life: Life, create: bool, after_s: float) -> None:
        """Nothing stays of a command. None comes of a create, or one that is booked, so that it can be destroyed."""
        guard = self.guards[life.run]
        before = set(guard.live)

        async def act() -> None:
            if not create:
                assert await cancelled(life.sandbox.exec(["sleep", "20"]), after_s) is None
                return
            await cancelled(guard.create(), after_s)
            for id_ in set(guard.live) - before:
                await guard.destroy(guard.live[id_])

        if create or (life.there and life.paused is None):
            self.call(act())

    # Pauses

    @rule(life=LIFE, kind=st.sampled_from(get_args(PauseKind)), number=st.none() | st.integers(0, 99))
    def pause(self, life: Life, kind: PauseKind, number: int | None) -> None:
        """Mostly as it can."""
        if number is not None:
            kind = self.kinds[number % len(self.kinds)]
        act = life.sandbox.pause(kind=kind)
        if kind not in self.kinds:
            self.refused(act, *([Unsupported] if life.there else [Unsupported, SandboxGone]))
        elif life.there and life.paused in (None, kind):
            self.call(act)
            life.paused = kind
        elif not life.there:
            self.refused(act, SandboxGone)
        else:
            # "Already paused is done": also in another way, or not.
            with contextlib.suppress(Unsupported):
                self.call(act)

    @rule(life=LIFE)
    def resume(self, life: Life) -> None:
        act = life.sandbox.resume()
        if not life.there:
            self.refused(act, SandboxGone)
            return
        self.call(act)
        if life.paused == "filesystem":
            life.files = {name: data for name, data in life.files.items() if not name.startswith(IN_MEMORY)}
        life.paused = None
        for number in range(len(self.world.paths)):
            self.read_file(life, number, by_cat=False)

    @rule(life=LIFE, number=st.integers(0, 99))
    def pause_while_a_command_runs(self, life: Life, number: int) -> None:
        """It goes on after the resume as if nothing had been."""
        kinds = [kind for kind in self.kinds if kind != "filesystem"]

        async def act() -> ExecResult:
            command = asyncio.ensure_future(life.sandbox.exec(["sleep", "0.02"]))
            await asyncio.sleep(0.005)
            await life.sandbox.pause(kind=kinds[number % len(kinds)])
            await life.sandbox.resume()
            return await command

        if life.there and life.paused is None:
            assert self.call(act()) == ExecResult(0, b"", b"")

    # At every step

    @invariant()
    def what_is_owned_is_what_lives(self) -> None:
        async def act() -> list[set[str]]:
            return [{ref.id for ref in await self.provider.owned(name)} for name in self.names]

        owned = self.call(act())
        for run in (0, 1):
            wanted = {life.sandbox.id for life in self.all if life.there and life.run == run}
            wanted |= {id_ for of, id_ in self.once if of == run}
            assert owned[run] == wanted
            assert owned[run] <= set(self.guards[run].live)

    @invariant()
    def who_is_paused_is_known(self) -> None:
        for life in self.all:
            assert not life.there or life.sandbox.paused == (life.paused is not None)

    def teardown(self) -> None:
        """Whatever went wrong before: what was made is destroyed, and that is checked after all machines have run."""
        try:
            left = [self.call(guard.destroy_all()) for guard in self.guards]
            owned = [self.call(self.provider.owned(name)) for name in self.names]
            assert (left, [len(found) for found in owned]) == ([[], []], [0, 0])
        finally:
            for provider in filter(None, (self.provider, self.other)):
                self.call(provider.aclose())
            self.runner.close()
