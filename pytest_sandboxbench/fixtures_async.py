"""The asynchronous half of the fixtures. All of it runs on the session's one event loop, where the clients live."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio

from .errors import SandboxbenchError
from .load.guard import GuardedProvider, GuardedSandbox
from .measuring import Measuring
from .model import SandboxSpec
from .session import provider_name, session_of
from .threads import use_daemons

__all__: list[str] = []


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def _sandboxbench_measuring(request: pytest.FixtureRequest) -> AsyncIterator[Measuring]:
    use_daemons(asyncio.get_running_loop())
    session = session_of(request.config)
    measuring = session.start()
    session.news.reaped(await measuring.reap(), own=False)
    yield measuring
    try:
        await measuring.aclose(interrupts=session.termination.interrupts)
    finally:
        session.news.tell()


@pytest_asyncio.fixture(loop_scope="session")
async def _sandboxbench_provider(
    request: pytest.FixtureRequest, _sandboxbench_measuring: Measuring
) -> AsyncIterator[GuardedProvider]:
    name = provider_name(request.node)
    answer = await _sandboxbench_measuring.preflight(name)
    if not answer.ready:
        session_of(request.config).missing(request.node, name, answer)
    provider = _sandboxbench_measuring.guarded(name)
    with _sandboxbench_measuring.watching():
        yield provider
        hurried = session_of(request.config).termination.interrupts > 1
        left = [] if hurried else await provider.destroy_all()
    if left:
        pytest.fail("sandboxes were left: " + "; ".join(reason for _ref, reason in left), pytrace=False)


@pytest_asyncio.fixture(loop_scope="session")
async def _sandboxbench_factory(
    request: pytest.FixtureRequest, _sandboxbench_provider: GuardedProvider
) -> Callable[..., Awaitable[GuardedSandbox]]:
    async def make(spec: SandboxSpec | None = None) -> GuardedSandbox:
        return await _sandboxbench_provider.create(spec)

    return make


@pytest_asyncio.fixture(loop_scope="session")
async def _sandboxbench_sandbox(_sandboxbench_provider: GuardedProvider) -> GuardedSandbox:
    from .load.lanes import until_ready

    try:
        made = await _sandboxbench_provider.create()
        await until_ready(made, _sandboxbench_provider.timeout_s)
        return made
    except SandboxbenchError as error:
        reason = str(error)
    # Outside of the handler: its error is no context of this one.
    pytest.fail(reason, pytrace=False)
