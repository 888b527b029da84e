"""The fixtures that bench authors use. The work behind them is in ``fixtures_async``, loaded with the first bench."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .bench import SandboxBench
    from .load.guard import GuardedProvider, GuardedSandbox

__all__ = ["concurrency", "sandbox", "sandbox_bench", "sandbox_factory", "sandbox_provider", "used_by"]


def used_by(item: pytest.Item) -> bool:
    """Whether a test uses these fixtures, and not others of the same names: those are somebody's own business."""
    known = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    return any(definition.func.__module__ == __name__ for definition in known.get("sandbox_provider", ())[-1:])


@pytest.fixture
def sandbox_provider(request: pytest.FixtureRequest) -> GuardedProvider:
    """The provider of this test, ready to use; a test runs once for each provider chosen. A missing one is a skip."""
    provider: GuardedProvider = request.getfixturevalue("_sandboxbench_provider")
    return provider


@pytest.fixture
def sandbox(sandbox_provider: Any, request: pytest.FixtureRequest) -> GuardedSandbox:
    """A sandbox that has answered its first command; destroyed after the test."""
    made: GuardedSandbox = request.getfixturevalue("_sandboxbench_sandbox")
    return made


@pytest.fixture
def sandbox_factory(sandbox_provider: Any, request: pytest.FixtureRequest) -> Callable[..., Awaitable[GuardedSandbox]]:
    """``await sandbox_factory()`` makes one more sandbox (of a ``SandboxSpec``); all are destroyed after the test."""
    make: Callable[..., Awaitable[GuardedSandbox]] = request.getfixturevalue("_sandboxbench_factory")
    return make


@pytest.fixture
def concurrency() -> int:
    """How many lanes are released at one instant: the level of this test."""
    return 1


@pytest.fixture
def sandbox_bench(sandbox_provider: Any, concurrency: int, request: pytest.FixtureRequest) -> SandboxBench:
    """Measures: ``await sandbox_bench.measure()`` for the operation of the marker, or with a function of your own."""
    from .session import session_of

    return session_of(request.config).bench(request.node, concurrency)
