"""The checks as tests of pytest, for the test suite of whoever writes a provider."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from .. import threads
from ..errors import ProviderMissing, UsageError
from ..providers.registry import Registry
from ..records.untrusted import harmless
from .check import Check
from .checks import CHECKS
from .run import Verdict, run_check

__all__ = ["ComplianceSuite"]

_ABSENT = pytest.StashKey[dict[str, str]]()
"""Suites whose provider cannot run here, with what it said: asked once, not for every check."""

_IN_VAIN = pytest.StashKey[set[str]]()
"""Suites of which a check waited in vain for its sandboxes to be gone from the list."""

_LONGEST = 2000


class _NotTheBase:
    """``__test__`` of a class: false for the suite itself, whatever ``python_classes`` says; unset below it."""

    def __get__(self, _instance: object, owner: type) -> bool:
        if owner.__dict__.get("__test__") is self:
            return False
        raise AttributeError("__test__")


class ComplianceSuite:
    """Subclass it in a test module, name the provider, and every check is a test of its own::

        from pytest_sandboxbench.compliance.suite import ComplianceSuite

        class TestMyCloud(ComplianceSuite):
            provider = "mycloud"

    ``options`` are settings as in ``pyproject.toml``; ``timeout_s`` is the deadline of each call. A provider that
    cannot run here skips all of them with its reason, and fails under ``--sandbox-strict``; what it does not declare
    skips the checks that need it.

    ``known_failures`` are checks that cannot pass, by name, each with the reason: expected to fail (xfail). One that
    passes after all fails the suite, so that the list never outlives its reasons.
    """

    __test__ = _NotTheBase()

    provider: ClassVar[str] = ""
    options: ClassVar[Mapping[str, Any]] = {}
    timeout_s: ClassVar[float] = 30.0
    known_failures: ClassVar[Mapping[str, str]] = {}

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each check. What is wrong with the suite itself is said once, not by each of them."""
        if "check" not in metafunc.fixturenames:
            return
        if mistake := self._mistake(metafunc.config):
            pytest.fail(f"{type(self).__name__}: {mistake}", pytrace=False)
        metafunc.parametrize("check", [self._parameter(check) for check in CHECKS])

    def test_compliance(self, check: Check, request: pytest.FixtureRequest) -> None:
        verdict = self._verdict(check, request)
        said = harmless(verdict.said, _LONGEST)
        if verdict.outcome == "left out":
            pytest.skip(f"{self.provider}: {said}")
        if verdict.outcome == "failed":
            pytest.fail(f"{check.about}\n{said}", pytrace=False)

    def _verdict(self, check: Check, request: pytest.FixtureRequest) -> Verdict:
        absent = request.config.stash.setdefault(_ABSENT, {})
        in_vain = request.config.stash.setdefault(_IN_VAIN, set())
        suite = request.node.nodeid.partition("[")[0]
        if suite not in absent:
            try:
                # With a factory of its own it leaves the loop alone that other plugins may have put in place.
                registry = self._registry(request.config)
                patient = suite not in in_vain
                checked = run_check(registry, self.provider, check, self.timeout_s, patient=patient)
                verdict = threads.run(checked, loop_factory=asyncio.new_event_loop)
            except UsageError as error:
                pytest.fail(harmless(str(error), _LONGEST), pytrace=False)
            except ProviderMissing as error:
                absent[suite] = harmless(str(error), _LONGEST)
            else:
                if verdict.still_listed:
                    in_vain.add(suite)
                return verdict
        if _is_strict(request.config):
            pytest.fail(absent[suite], pytrace=False)
        pytest.skip(absent[suite])

    def _mistake(self, config: pytest.Config) -> str:
        if not self.provider:
            return 'it names no provider; write for example provider = "bubblewrap" in the class'
        try:
            self._registry(config).spec(self.provider)
        except UsageError as error:
            return harmless(str(error), _LONGEST)
        names = [str(check) for check in CHECKS]
        for name, reason in self.known_failures.items():
            if name not in names:
                near = difflib.get_close_matches(name, names, n=1)
                hint = f"did you mean {near[0]!r}?" if near else "`sandboxbench check --list` prints all"
                return f"known_failures: there is no check {name!r}; {hint}"
            if not reason.strip():
                return f"known_failures: {name!r} has no reason; say why it cannot pass"
        return ""

    def _registry(self, config: pytest.Config) -> Registry:
        registry = Registry(config.rootpath, [(self.provider, key, value) for key, value in self.options.items()])
        registry.kind(self.provider)
        return registry

    def _parameter(self, check: Check) -> Any:
        reason = self.known_failures.get(str(check))
        marks = () if reason is None else (pytest.mark.xfail(reason=reason, strict=True),)
        return pytest.param(check, id=str(check), marks=marks)


def _is_strict(config: pytest.Config) -> bool:
    try:
        return bool(config.getoption("sandbox_strict", False) or config.getini("sandbox_strict"))
    except ValueError:  # the plugin is switched off
        return False
