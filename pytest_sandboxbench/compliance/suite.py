"""The checks as tests of pytest, for the test suite of whoever writes a provider."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ..errors import ProviderMissing
from ..providers.registry import Registry
from .check import Check
from .checks import CHECKS
from .run import run_check

__all__ = ["ComplianceSuite"]


class ComplianceSuite:
    """Subclass it in a test module, name the provider, and every check is a test of its own::

        from pytest_sandboxbench.compliance.suite import ComplianceSuite

        class TestMyCloud(ComplianceSuite):
            provider = "mycloud"

    ``options`` are settings as in ``pyproject.toml``; ``timeout_s`` is the deadline of each call. A provider that
    cannot run here skips all of them with its reason; what it does not declare skips the checks that need it.
    """

    provider: ClassVar[str] = ""
    options: ClassVar[Mapping[str, Any]] = {}
    timeout_s: ClassVar[float] = 30.0

    @pytest.mark.parametrize("check", CHECKS, ids=str)
    def test_compliance(self, check: Check, request: pytest.FixtureRequest) -> None:
        registry = Registry(
            Path(request.config.rootpath), [(self.provider, key, value) for key, value in self.options.items()]
        )
        try:
            verdict = asyncio.run(run_check(registry, self.provider, check, self.timeout_s))
        except ProviderMissing as error:
            pytest.skip(str(error))
        if verdict.outcome == "left out":
            pytest.skip(f"{self.provider} {verdict.said}")
        if verdict.outcome == "failed":
            pytest.fail(f"{check.about}\n{verdict.said}", pytrace=False)
