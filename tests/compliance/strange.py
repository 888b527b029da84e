"""Providers of which an attribute is missing, or is of another type or word than the protocol says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from pytest_sandboxbench.model import ExecResult, Owner, Preflight, SandboxRef, SandboxSpec
from tests.compliance.broken import Broken, BrokenSandbox


class OtherWords(Broken):
    """What has ``every`` fails more than one check."""

    fails: ClassVar = {
        "all_say_what_they_are": r"capabilities: `isolation` is 'namespace', not one of none, namespaces, .*; "
        r"capabilities: `pause` is \('freeze',\), not a tuple of these: frozen, .*; "
        r"capabilities: `limits` is \['pids'\], not a frozenset of these: vcpus, .*; "
        r"capabilities: `max_live` is True, not None or a whole number above 0"
    }
    every = True
    declares: ClassVar = {"isolation": "namespace", "pause": ("freeze",), "limits": ["pids"], "max_live": True}


class CapabilitiesOfItsOwn(Broken):
    fails: ClassVar = {"all_say_what_they_are": "capabilities is of type dict, not pytest_sandboxbench.model.Cap"}
    every = True

    @property
    def capabilities(self) -> Any:
        return {"isolation": "container"}


class OtherName(Broken):
    fails: ClassVar = {"all_say_what_they_are": "the provider: `name` is 'mine', not 'broken', as its factory was told"}

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, folder)
        self.name = "mine"


class StrangePreflight(Broken):
    fails: ClassVar = {"all_say_what_they_are": r"what preflight gave: `cure` is None, not a text; .*: `facts` is .*5"}

    async def preflight(self) -> Preflight:
        nothing: Any = None
        number: dict[str, Any] = {"version": 5}
        return replace(await super().preflight(), cure=nothing, facts=number)


class NoPath(Broken):
    fails: ClassVar = {
        "all_say_what_they_are": "the reference of the sandbox: `provider` is 'other', not 'broken', the name .*; "
        "the sandbox: `unenforced` is set.., not a frozenset of texts; "
        "the sandbox lacks the attribute `path`: one of cold, pool, snapshot",
        "a_reference_can_be_written_down": "create gave a reference of provider 'other'; expected: 'broken'",
    }

    class sandboxes(BrokenSandbox):
        unenforced: ClassVar[Any] = set()

        def __init__(self, inner: Any, provider: Any, spec: SandboxSpec) -> None:
            super().__init__(inner, provider, spec)
            self.ref = replace(self.ref, provider="other")

        def __getattribute__(self, name: str) -> Any:
            if name == "path":
                raise AttributeError(name)
            return super().__getattribute__(name)


class NoReference(Broken):
    fails: ClassVar = {
        "all_say_what_they_are": "create gave what is no sandbox; it has `ref` .*: AttributeError: 'str' object has no"
    }
    every = True

    async def create(self, spec: SandboxSpec, *, owner: Owner, deadline_s: float) -> BrokenSandbox:
        made = await super().create(spec, owner=owner, deadline_s=deadline_s)
        await self.destroy(made.ref, deadline_s=deadline_s)
        text: Any = made.ref.id
        made.ref = text
        return made


class TextAsResult(Broken):
    fails: ClassVar = {"all_say_what_they_are": "what exec gave: `stdout` is 'types.n', not bytes"}

    class sandboxes(BrokenSandbox):
        async def exec(self, argv: Sequence[str], **more: Any) -> ExecResult:
            result = await super().exec(argv, **more)
            text: Any = result.stdout.decode()
            return replace(result, stdout=text) if argv[0] == "echo" else result


class PairAsResult(Broken):
    fails: ClassVar = {"all_say_what_they_are": "what run_once gave is of type tuple, not ExecResult"}

    async def run_once(self, spec: SandboxSpec, argv: Sequence[str], **more: Any) -> tuple[ExecResult, SandboxRef]:
        result, ref = await super().run_once(spec, argv, **more)
        pair: Any = (result.exit_code, result.stdout)
        return pair, ref
