"""What the local systems list: what is theirs to destroy, and for as long as it lives."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_sandboxbench.model import Owner, SandboxSpec
from pytest_sandboxbench.providers import bubblewrap, null, proc
from pytest_sandboxbench.providers.bubblewrap import BubblewrapProvider
from pytest_sandboxbench.providers.null import NullProvider

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
D = 20.0
SOMEBODY = 54321


@pytest.fixture(params=["null", "bubblewrap"])
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "bubblewrap":
        request.getfixturevalue("bubblewrap_ready")
    return str(request.param)


def made(kind: str) -> NullProvider | BubblewrapProvider:
    return null.factory(kind, {}) if kind == "null" else bubblewrap.factory(kind, {})


def move(path: str, to: str) -> None:
    Path(path).rename(to)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can read the labels of other users' processes")
def test_sandboxes_of_other_users_are_not_listed(kind: str, owner: Owner) -> None:
    env = {"PATH": os.defpath, **proc.labels_for(owner, kind, "somebody-elses")}
    with subprocess.Popen(["sleep", "60"], env=env, user=SOMEBODY, group=SOMEBODY, extra_groups=[], cwd="/") as other:
        try:
            until = time.monotonic() + 5
            while proc.labels(other.pid).get(proc.SANDBOX_LABEL) != "somebody-elses":
                assert time.monotonic() < until
                time.sleep(0.01)

            async def main() -> list[str]:
                provider = made(kind)
                listed = [ref.id for ref in await provider.owned(owner.run_id)]
                await provider.aclose()
                return listed

            assert asyncio.run(main()) == []
        finally:
            other.kill()


def test_a_sandbox_without_its_folder_is_listed_by_its_processes(kind: str, owner: Owner) -> None:
    async def main() -> tuple[list[str], str]:
        provider = made(kind)
        sandbox = await provider.create(SandboxSpec(), owner=owner, deadline_s=D)
        try:
            folder = sandbox.ref.details["folder"]
            move(folder, away := folder.replace("~", "."))
            listed = [ref.id for ref in await provider.owned(owner.run_id)]
            move(away, folder)
            return listed, sandbox.ref.id
        finally:
            await provider.destroy(sandbox.ref, deadline_s=D)
            await provider.aclose()

    listed, id_ = asyncio.run(main())
    assert listed == [id_]


def test_a_sandbox_outlives_the_instance_that_made_it(kind: str, owner: Owner, left_behind: list[int]) -> None:
    async def make() -> str:
        provider = made(kind)
        sandbox = await provider.create(SandboxSpec(), owner=owner, deadline_s=D)
        left_behind.append(int(sandbox.ref.details["pid"]))
        await provider.aclose()
        return sandbox.ref.id

    async def main() -> None:
        id_ = await make()
        gc.collect()  # closing the holder's pipe would end it
        await asyncio.sleep(0.1)
        provider = made(kind)
        assert proc.state(left_behind[0]) == "S"
        (ref,) = await provider.owned(owner.run_id)
        assert ref.id == id_
        await provider.destroy(ref, deadline_s=D)
        assert await provider.owned(owner.run_id) == []
        assert proc.state(left_behind[0]) == "", "reaped"
        await provider.aclose()

    asyncio.run(main())
