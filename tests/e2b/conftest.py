"""A server that the tests of this folder share, and a provider of the real SDK in front of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from pytest_sandboxbench.model import Owner, SandboxSpec
from pytest_sandboxbench.owners import this_process
from pytest_sandboxbench.providers.e2b import E2BProvider, factory
from pytest_sandboxbench.providers.e2b_sandbox import E2BSandbox
from tests.plugin.conftest import Suite, suite

from .server import Local, serving

__all__ = ["E2B", "Suite", "suite"]


class E2B:
    """A provider, and sandboxes of it that are gone when the test ends."""

    def __init__(self, provider: E2BProvider, owner: Owner) -> None:
        self.provider = provider
        self.owner = owner
        self.made: list[E2BSandbox] = []

    async def create(self, deadline_s: float = 30, **spec: Any) -> E2BSandbox:
        made = await self.provider.create(SandboxSpec(**spec), owner=self.owner, deadline_s=deadline_s)
        self.made.append(made)
        return made


@pytest.fixture(scope="session")
def shared() -> Iterator[Local]:
    with serving() as local:
        yield local


@pytest.fixture
def local(shared: Local, monkeypatch: pytest.MonkeyPatch) -> Iterator[Local]:
    """The server, without a fault, and the environment that leads to it."""
    for key, value in shared.env.items():
        monkeypatch.setenv(key, value)
    monkeypatch.delenv("E2B_DOMAIN", raising=False)
    yield shared
    shared.fault(*(f"{name}=ok" for name in ("create", "connect", "pause", "kill", "get", "list", "exec", "files")))


Run = Callable[[Callable[[E2B], Awaitable[None]]], None]


@pytest.fixture
def e2b(local: Local) -> Run:
    """Runs an asynchronous test with a provider; whatever it made is destroyed."""

    def run(test: Callable[[E2B], Awaitable[None]], **settings: object) -> None:
        async def whole() -> None:
            provider = factory("e2b", settings)
            one = E2B(provider, this_process("run-of-a-test"))
            try:
                await test(one)
            finally:
                for made in one.made:
                    await provider.destroy(made.ref, deadline_s=30)
                await provider.aclose()

        asyncio.run(whole())

    return run
