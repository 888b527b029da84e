"""Several processes that share one scripted provider through a folder."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from pytest_sandboxbench.errors import Rejected
from pytest_sandboxbench.providers.fake import factory
from pytest_sandboxbench.providers.fake_clock import run_virtual

from .scripted import create, failure

WORKER = """
import asyncio, json, sys
from pytest_sandboxbench.errors import SandboxError
from pytest_sandboxbench.model import Owner, SandboxSpec
from pytest_sandboxbench.providers.fake import factory

async def main():
    provider = factory("fake", json.loads(sys.argv[1]))
    owner = Owner("run-1", "here", 1, "0")
    lanes = [provider.create(SandboxSpec(), owner=owner, deadline_s=9) for _ in range(int(sys.argv[2]))]
    print("ready", flush=True)
    sys.stdin.readline()
    for result in await asyncio.gather(*lanes, return_exceptions=True):
        print(result.outcome if isinstance(result, SandboxError) else "ok" if hasattr(result, "ref") else result)

asyncio.run(main())
"""


def workers(count: int, lanes: int, **options: Any) -> list[str]:
    """Create in several processes at once; the outcomes of all lanes."""
    command = [sys.executable, "-c", WORKER, json.dumps(options), str(lanes)]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(count)
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return [line for process in started for line in process.communicate(timeout=20)[0].split()]


def test_processes_share_quota_sandboxes_and_scripts(tmp_path: Path) -> None:
    options = {"max_live": 5, "create": "0.01,error,0.01", "state_dir": str(tmp_path / "state")}
    results = workers(3, 4, **options)

    assert results.count("failed") == 1, "the second create of all, not of each process"
    made = results.count("ok")
    assert made in (4, 5), "whether the failed one made room in time for another is not determined"
    assert results.count("rejected(quota)") == 11 - made

    async def test() -> None:
        provider = factory("fake", options)
        refs = await provider.owned("run-1")
        assert len(refs) == made
        for ref in refs:
            await provider.destroy(ref, deadline_s=1)
        assert provider.live == ()
        await create(provider)

    asyncio.run(test())


def test_processes_share_the_lock(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    results = workers(2, 3, create=0.02, lock="serial", state_dir=str(tmp_path / "state"), log=str(log))

    assert results == ["ok"] * 6
    calls = [json.loads(line) for line in log.read_text().splitlines()]
    assert len({call["pid"] for call in calls}) == 2
    assert max(call["end_ns"] for call in calls) - min(call["start_ns"] for call in calls) >= 6 * 20_000_000


def text_of(file: Path) -> str:
    try:
        return file.read_text()
    except FileNotFoundError:
        return ""


def test_who_was_killed_neither_makes_nor_waits_any_more(tmp_path: Path) -> None:
    options = {"create": "hang,0", "max_live": 1, "state_dir": str(tmp_path)}
    command = [sys.executable, "-c", WORKER, json.dumps(options), "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        deadline = time.monotonic() + 10
        while '"create": 1' not in text_of(tmp_path / "fake.json"):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert isinstance(run_virtual(failure(create(factory("fake", options)))), Rejected)
        process.kill()

    run_virtual(create(factory("fake", options)))


def test_instances_in_one_folder_do_not_mix(tmp_path: Path) -> None:
    async def test() -> None:
        one, two = (factory(name, {"max_live": 1, "state_dir": str(tmp_path)}) for name in ("one", "t/w o"))
        await create(one)
        assert two.live == ()
        await create(two)
        assert set(one.live) != set(two.live)

    run_virtual(test())
