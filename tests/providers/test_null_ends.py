"""The ends of bare processes, and what races with them."""

from __future__ import annotations

import asyncio
import sys

import pytest

from pytest_sandboxbench.errors import SandboxGone
from pytest_sandboxbench.model import Owner, SandboxSpec
from pytest_sandboxbench.providers import null

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="local sandboxes need a POSIX system")
D = 20.0


def test_a_command_that_starts_while_its_sandbox_is_destroyed_does_not_outlive_it(owner: Owner) -> None:
    """One in two hundred did, and kept the destroy waiting until it had come to its own end."""

    async def main() -> list[object]:
        provider = null.factory("null", {})
        found: list[object] = []
        for number in range(100):
            sandbox = await provider.create(SandboxSpec(), owner=owner, deadline_s=D)
            commands = [asyncio.ensure_future(sandbox.exec(["sleep", "20"], deadline_s=D)) for _ in range(4)]
            await asyncio.sleep(number % 20 * 0.0003)
            await provider.destroy(sandbox.ref, deadline_s=D)
            found += await asyncio.gather(*commands, return_exceptions=True)
        await provider.aclose()
        return found

    assert {type(one) for one in asyncio.run(main())} == {SandboxGone}
