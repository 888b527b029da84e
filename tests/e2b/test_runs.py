"""Runs of the shipped suites on E2B's imitation, as a user makes them: what they show, and that nothing is left."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.plugin.conftest import Suite, clean, workers, workers_always

from .server import KEY, Local, serving

__all__ = ["workers", "workers_always"]

ONE = "benches/test_startup.py"
FEW = ("--sandbox-samples=2", "--sandbox-warmup=1")


@pytest.fixture
def benches(suite: Suite) -> Suite:
    suite.init()
    return suite


def run(suite: Suite, *arguments: str) -> pytest.RunResult:
    command = suite.command("--sandbox-provider=e2b", *arguments)
    return suite.pytester.run(*command, timeout=120)


def outcomes(suite: Suite, operation: str) -> Counter[str]:
    return Counter(sample["outcome"] for sample in suite.samples() if f"e2b:{operation}@" in sample["series"])


def everything_written(suite: Suite) -> str:
    """Records, reports and whatever else the run left, as one text."""
    found = [path for path in suite.path.rglob("*") if path.is_file()]
    return "".join(path.read_text(errors="replace") for path in found)


@pytest.mark.full
def test_all_benches(benches: Suite, local: Local, workers_always: tuple[str, ...]) -> None:
    text = clean(
        run(benches, "benches", *FEW, "--benchmark-json=out.json", "--junit-xml=out.xml", *workers_always),
        0,
    )
    assert "15 passed, 2 skipped" in text
    operations = {bench["params"]["operation"] for bench in benches.json()}
    assert {"startup", "create", "exec", "pause", "resume_to_first_exec", "round_trip", "cold_run"} <= operations
    assert "e2b: hosted, sdk e2b " in text
    assert "an imitation on this machine" in re.sub(r"\s+", " ", text)
    assert local.sandboxes == {}
    assert KEY not in text
    assert KEY not in everything_written(benches)


@pytest.mark.full
def test_a_sweep_to_a_hundred_lanes(benches: Suite, local: Local) -> None:
    levels = "--sandbox-concurrency=1,16,50,100"
    text = clean(run(benches, ONE, levels, "--sandbox-samples=2", "-n", "4"), 0)
    assert "100/100" in text
    assert outcomes(benches, "startup") == {"ok": 2 * 167 + 167}
    assert local.sandboxes == {}


def test_case_10_a_quota(benches: Suite, workers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """40 lanes where 20 may be: half of them are told no, once, and stay out of the latencies."""
    with serving("--max-live", "20") as local:
        for key, value in local.env.items():
            monkeypatch.setenv(key, value)
        arguments = (ONE, "--sandbox-concurrency=40", "--sandbox-samples=1", "--sandbox-warmup=0")
        text = clean(run(benches, *arguments, *workers), 0)
        assert outcomes(benches, "startup") == {"ok": 20, "rejected(quota)": 20}
        assert local.requests["create"] == 40, "nothing was tried again"
        assert local.requests["kill"] == 20
    assert "maximum number of concurrent E2B sandboxes (20)" in re.sub(r"\s+", " ", text)
    assert re.search(r"^    rejected\(quota\) +20 ", text, re.MULTILINE)


@pytest.mark.parametrize("again", ["429", "429:1"])
def test_rate_is_not_quota(benches: Suite, local: Local, again: str) -> None:
    before = local.requests.get("create", 0)
    local.fault(f"create={again}")
    clean(run(benches, ONE, "--sandbox-samples=2", "--sandbox-warmup=0"), 0)
    assert outcomes(benches, "startup") == {"ok": 1, "rejected(rate)": 1}
    assert local.requests["create"] == before + 2


def test_case_19_ready_later(benches: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving("--ready-after", "0.8") as local:
        for key, value in local.env.items():
            monkeypatch.setenv(key, value)
        arguments = ("-k", "test_startup or test_create or test_first_exec", "--sandbox-samples=2")
        clean(run(benches, "benches", *arguments, "--benchmark-json=out.json"), 0)
    medians = {bench["params"]["operation"]: bench["stats"]["median"] for bench in benches.json()}
    assert medians["create"] < 0.5
    assert 0.8 <= medians["startup"] <= 1.4
    assert abs(medians["startup"] - medians["create"] - medians["first_exec"]) < 0.1


@pytest.mark.full
def test_case_19_never_ready(benches: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving("--ready-after", "600") as local:
        for key, value in local.env.items():
            monkeypatch.setenv(key, value)
        options = ("--sandbox-samples=1", "--sandbox-warmup=0", "--sandbox-timeout=1")
        text = clean(run(benches, ONE, *options), 1)
        assert local.sandboxes == {}
    words = re.sub(r"\s+", " ", text)
    assert "found the sandbox not ready after" in words
    assert "port is not open" in words
    assert "first command (attempt " in words


def test_a_destroy_that_is_stuck_is_a_leak_with_its_id(benches: Suite, local: Local) -> None:
    local.fault("kill=500,...")
    text = clean(run(benches, ONE, "--sandbox-samples=1", "--sandbox-warmup=0", "--sandbox-timeout=5"), 1)
    (left,) = local.sandboxes
    assert "sandbox leaks" in text
    assert left in text
    local.fault("kill=ok")
    reap(benches)
    assert local.sandboxes == {}


def reap(suite: Suite) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "pytest_sandboxbench.cli", "reap", "e2b"],
        cwd=suite.path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill"])
def test_interrupted(benches: Suite, local: Local, number: signal.Signals, workers_always: tuple[str, ...]) -> None:
    """In the middle of it: after Ctrl-C the run clears up by itself, after SIGKILL ``reap`` does."""
    levels = ("--sandbox-concurrency=8", "--sandbox-samples=200")
    command = benches.command("--sandbox-provider=e2b", "benches/test_lifecycle.py", *levels, *workers_always)
    process = subprocess.Popen(
        command, cwd=benches.path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        ends = time.monotonic() + 60
        while len(local.sandboxes) < 4:
            assert process.poll() is None
            assert time.monotonic() < ends, "it made none"
            time.sleep(0.02)
        if number == signal.SIGINT:
            process.send_signal(number)
        else:
            os.killpg(process.pid, number)
        process.wait(60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if number == signal.SIGKILL:
        time.sleep(0.5)  # what was on its way when it died
        assert local.sandboxes
        reap(benches)
    assert local.sandboxes == {}


def test_what_is_held_before_a_pause_is_there_after_it(benches: Suite, local: Local) -> None:
    held = ("--sandbox-held=20", "--sandbox-written=5", *FEW)
    clean(run(benches, "benches/test_lifecycle.py", "-k", "test_pause", *held), 0)
    assert "e2b:pause{held=20MiB,kind=memory,written=5MiB}@1/burst" in benches.series()


def test_a_guest_without_what_was_asked_for_is_not_measured(benches: Suite, local: Local) -> None:
    build = [sys.executable, "-m", "pytest_sandboxbench.cli", "template", "e2b", "wide", "--vcpus", "64"]
    built = subprocess.run(build, capture_output=True, text=True, timeout=60, check=True)
    assert "--sandbox-option e2b.image=wide --sandbox-option e2b.vcpus=64" in built.stdout
    options = ("--sandbox-option=e2b.image=wide", "--sandbox-option=e2b.vcpus=64", *FEW)
    text = clean(run(benches, ONE, *options), 1)
    assert f"inside there is vcpus={os.cpu_count()}" in text
    assert outcomes(benches, "startup") == {"failed": 3}


def test_without_a_key_it_is_skipped_and_no_sdk_is_loaded(benches: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("E2B_API_KEY", raising=False)
    benches.write(
        conftest_too="""
        import sys
        def pytest_sessionfinish(session):
            loaded = {"e2b", "httpx", "pyqwest"} & set(sys.modules)
            assert not loaded, loaded
        """
    )
    begin = time.monotonic()
    text = clean(run(benches, ONE, "-rs", "-p", "conftest_too"), 5)
    assert "E2B_API_KEY is not set" in text
    assert "https://e2b.dev/dashboard?tab=keys" in text
    assert time.monotonic() - begin < 20
    assert "1 skipped" in text


class TestBeforeAnythingIsMade:
    """At E2B itself; nothing is sent."""

    @pytest.fixture(autouse=True)
    def _a_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("E2B_API_URL", "E2B_SANDBOX_URL", "E2B_DOMAIN"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("E2B_API_KEY", KEY)

    def test_levels_beyond_the_plan_are_refused(self, benches: Suite, workers: tuple[str, ...]) -> None:
        text = clean(run(benches, ONE, "--sandbox-concurrency=1,16,50,100", *workers), 4)
        assert "plan hobby has 20 sandboxes at once, and level 50, 100 needs more" in text
        assert "--concurrency 1,16" in text

    def test_the_plan_of_a_run(self, benches: Suite) -> None:
        levels = ("--sandbox-concurrency=1,16", "--sandbox-plan")
        text = clean(run(benches, ONE, "benches/test_lifecycle.py", "-k", "startup or round_trip", *levels), 0)
        assert "e2b: plan hobby: 20 at once, 1 creates a second" in text
        assert re.search(r"^  start@16 +176 sandboxes, 16 at once, in 10 rounds and 1 to warm up$", text, re.MULTILINE)
        assert re.search(r"^  round_trip@16 +0 sandboxes, 0 at once", text, re.MULTILINE)
        assert "in all 187 sandboxes, 16 at once; 3 min 7 s at least, by 1 creates a second" in text
        assert not list(Path(benches.path).glob(".sandboxbench/*"))

    def test_a_larger_plan(self, benches: Suite) -> None:
        options = ("--sandbox-option=e2b.plan=pro", "--sandbox-concurrency=100", "--sandbox-plan")
        text = clean(run(benches, ONE, *options), 0)
        assert "plan pro: 100 at once, 5 creates a second" in text
        assert "in all 1100 sandboxes, 100 at once; 3 min 40 s at least" in text

    def test_no_more_than_asked_for(self, benches: Suite, local: Local) -> None:
        before = local.requests.get("create", 0)
        text = clean(run(benches, "benches", *FEW, "--sandbox-max-sandboxes=7", "--benchmark-json=out.json"), 1)
        assert local.requests["create"] == before + 7
        assert "as many sandboxes as --sandbox-max-sandboxes 7 allows were made" in text
        assert json.loads((benches.path / "out.json").read_text())["benchmarks"]
        assert local.sandboxes == {}
