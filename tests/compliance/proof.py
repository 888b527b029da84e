"""The proof of a group of checks: each holds on our own providers, and fails for the fault that it is there for."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Protocol, TypeVar

import pytest

from pytest_sandboxbench.compliance.check import Check
from pytest_sandboxbench.compliance.run import Verdict, run_check
from pytest_sandboxbench.errors import ProviderMissing
from pytest_sandboxbench.providers.registry import Registry

__all__ = ["Fault", "Proof", "faults_in", "is_found", "is_left_out", "passes"]

_TIMEOUT_S = 20.0

_OWN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "fake": ("fake", {}),
    "fake-shared": ("fake", {"state_dir": "", "max_live": 4, "pause_kinds": ["frozen", "stopped", "filesystem"]}),
    "fake-one": ("fake", {"max_live": 1, "limits": ["none"], "one_shot": "false"}),
    "null": ("null", {}),
    "bubblewrap": ("bubblewrap", {}),
}

# Why a check may be left out on our own providers; of bubblewrap also what the host's cgroups cannot.
_LEFT_OUT = {
    "fake": "has no shell|has no labels|enforces every limit|declares no max_live",
    "fake-shared": "has no shell|enforces every limit",
    "fake-one": "has no shell|has no labels|has no one-shot run|does not limit|enforces no limit|holds 1 at once",
    "null": "does not limit|enforces no limit|cannot switch the network off|declares no max_live",
    "bubblewrap": "enforces every limit|declares no max_live|does not limit|enforces no limit",
}


class Fault(Protocol):
    """A provider that breaks one promise.

    ``fails``   the checks, of the group that the fault is about, that fail: name -> pattern of what is said
    ``every``   it fails further checks as well, whatever they are about
    """

    fails: ClassVar[Mapping[str, str]]
    every: ClassVar[bool]

    @classmethod
    def found(cls, check: Check, folder: Path) -> Verdict:
        """What a check finds. The folder is for what the provider may have to keep."""
        ...


F = TypeVar("F")


def faults_in(module: Mapping[str, object], kind: type[F]) -> list[type[F]]:
    """The faults of a kind that a test module defines: its ``globals()``."""
    return [one for one in module.values() if isinstance(one, type) and issubclass(one, kind) and one.fails]  # type: ignore[attr-defined]


class Proof:
    """Subclass it in a test module.

    ``slow``  checks that take a second: the fast tests have them on one provider only
    """

    group: ClassVar[ModuleType]
    faults: ClassVar[Iterable[type[Fault]]]
    slow: ClassVar[Mapping[str, str]] = {}

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        names = metafunc.fixturenames
        if "says" in names:
            metafunc.parametrize(("fault", "check", "says"), self._found())
        elif "fault" in names:
            metafunc.parametrize("fault", [fault for fault in self.faults if not fault.every])
        elif "check" in names:
            metafunc.parametrize(("provider", "check"), self._on_our_own())

    def _on_our_own(self) -> list[Any]:
        return [
            pytest.param(
                provider,
                check,
                marks=[pytest.mark.full] if self.slow.get(check.name, provider) != provider else [],
                id=f"{provider}-{check.name}",
            )
            for provider in _OWN
            for check in self.group.CHECKS
        ]

    def _found(self) -> list[Any]:
        """The first fault of a check proves that it can fail; the further ones are for the full tier."""
        checks = {check.name: check for check in self.group.CHECKS}
        found, proved = [], set()
        for fault in sorted(self.faults, key=lambda fault: len(fault.fails)):
            for name, says in fault.fails.items():
                marks = [pytest.mark.full] if name in proved else []
                proved.add(name)
                found.append(pytest.param(fault, checks[name], says, marks=marks, id=f"{fault.__name__}-{name}"))
        return found

    def test_it_holds_on_our_own(self, provider: str, check: Check, tmp_path: Path) -> None:
        """It passes, or is left out for what the provider declares."""
        name, options = _OWN[provider]
        if "state_dir" in options:
            options = {**options, "state_dir": str(tmp_path)}
        registry = Registry(None)
        registry._tables[name] = {"kind": name, **options}
        try:
            found = asyncio.run(run_check(registry, name, check, _TIMEOUT_S))
        except ProviderMissing as error:
            assert name == "bubblewrap"
            pytest.skip(str(error))
        if found.outcome == "left out":
            assert re.search(_LEFT_OUT[provider], found.said)
        else:
            assert (found.outcome, found.said) == ("passed", "")

    def test_a_fault_is_found(self, fault: type[Fault], check: Check, says: str, tmp_path: Path) -> None:
        is_found(fault, check, says, tmp_path)

    @pytest.mark.full
    def test_a_fault_fails_no_other_check(self, fault: type[Fault], tmp_path: Path) -> None:
        found = [fault.found(check, tmp_path) for check in self.group.CHECKS if check.name not in fault.fails]
        assert {str(one.check): one.said for one in found if one.outcome == "failed"} == {}

    def test_each_check_can_fail(self) -> None:
        proved = {name for fault in self.faults for name in fault.fails}
        assert {check.name for check in self.group.CHECKS} == proved


def is_found(fault: type[Fault], check: Check, says: str, folder: Path) -> None:
    """The check fails for the fault, and says what matters."""
    found = fault.found(check, folder)
    assert found.outcome == "failed", found
    assert re.search(says, found.said), found.said


def passes(provider: type[Fault], check: Check, folder: Path) -> None:
    found = provider.found(check, folder)
    assert (found.outcome, found.said) == ("passed", "")


def is_left_out(provider: type[Fault], check: Check, says: str, folder: Path) -> None:
    found = provider.found(check, folder)
    assert found.outcome == "left out", found.said
    assert re.search(says, found.said), found.said
