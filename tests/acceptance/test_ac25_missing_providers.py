"""Case 25: a provider that cannot run here is a skip in under a second, with the reason and one line of cure."""

from __future__ import annotations

import time

import pytest

from tests.plugin.conftest import Suite, clean, printed

# Providers of third parties: an SDK that is not installed, a key that is not set, a broken module.
THIRD = """
import os

from pytest_sandboxbench.errors import ProviderMissing
from pytest_sandboxbench.providers import fake

def no_sdk(name, options):
    import sdk_that_nobody_has

def no_key(name, options):
    return fake.factory(name, {"missing": "no key: CLOUD_API_KEY is not set", "cure": "export CLOUD_API_KEY=..."})

def refused(name, options):
    raise ProviderMissing(name, "the SDK is not installed", 'pip install "pytest-sandboxbench[cloud]"')
"""
POINTS = """
[sandboxbench.providers]
no-sdk = third:no_sdk
no-key = third:no_key
refused = third:refused
not-there = nowhere.at_all:factory
"""


@pytest.fixture
def third(benches: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    benches.write(third=THIRD)
    folder = benches.path / "third-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: third\nVersion: 1\n")
    (folder / "entry_points.txt").write_text(POINTS)
    monkeypatch.setenv("PYTHONPATH", str(benches.path))
    return benches


MISSING = [
    ("bubblewrap", ["--sandbox-option=bubblewrap.bwrap=/no/such/bwrap"], "/no/such/bwrap", ""),
    (
        "fake",
        ["--sandbox-option=fake.missing=no usable /dev/kvm", "--sandbox-option=fake.cure=modprobe kvm"],
        "no usable /dev/kvm",
        "modprobe kvm",
    ),
    ("fake", ["--sandbox-option=fake.preflight=hang"], "it did not answer within 5 s", "belongs into create"),
    ("fake", ["--sandbox-option=fake.preflight=raise:OSError"], "scripted bug of fake in preflight", "report it"),
    ("no-sdk", [], "No module named 'sdk_that_nobody_has'", "or install what it lacks"),
    ("not-there", [], "No module named 'nowhere'", "or install what it lacks"),
    ("no-key", [], "no key: CLOUD_API_KEY is not set", "export CLOUD_API_KEY=..."),
    ("refused", [], "the SDK is not installed", 'pip install "pytest-sandboxbench[cloud]"'),
]


@pytest.mark.parametrize(("name", "options", "reason", "cure"), MISSING)
def test_a_skip_with_its_cure(third: Suite, name: str, options: list[str], reason: str, cure: str) -> None:
    arguments = ["benches", f"--sandbox-provider={name}", *options, "-k", "test_startup or test_exec", "-rs"]
    started = time.monotonic()
    result = third.run_apart(*arguments)
    assert time.monotonic() - started < 5 + 6  # what pytest itself takes, on a busy machine
    text = clean(result, 5)
    result.assert_outcomes(skipped=2, deselected=15)
    told = [line for line in text.splitlines() if line.startswith(f"{name}: ")]
    assert len(told) == 1
    assert reason in told[0]
    assert cure in told[0]
    assert f"{name} is not ready: " in text


def test_strict(third: Suite) -> None:
    arguments = ("benches", "--sandbox-provider=no-sdk,fake", "-k", "test_exec", "--sandbox-strict")
    result = third.run_apart(*arguments)
    text = clean(result, 1)
    assert result.parseoutcomes()["passed"] == 1
    assert "no-sdk is not ready: " in text


def test_beside_one_that_runs(third: Suite) -> None:
    result = third.run_apart("benches", "--sandbox-provider=no-sdk,fake,no-key", "-k", "test_exec")
    clean(result, 0)
    result.assert_outcomes(passed=1, skipped=2, deselected=48)
    assert third.series() == {"fake:exec@1/burst": 3}


def test_a_provider_that_was_not_asked_for_is_not_loaded(third: Suite) -> None:
    third.write(third="raise SystemExit('loaded')")
    clean(third.run_apart("benches", "-k", "test_exec"), 0)


def test_the_preflight_makes_nothing(third: Suite) -> None:
    clean(third.run("benches", "--sandbox-option=fake.missing=gone"), 5)
    assert third.calls("create") == third.calls("owned") == []
    assert len(third.calls("preflight")) == 1, "asked once for all tests"


def test_the_key_is_not_printed(third: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUD_API_KEY", "k-0123456789abcdef")
    result = third.run_apart("benches", "--sandbox-provider=no-key", "-k", "test_exec", "-rs", "-vv")
    assert "k-0123456789abcdef" not in printed(result)
