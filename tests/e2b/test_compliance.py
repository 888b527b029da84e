"""Every promise of the protocol, kept by the adapter through the real SDK."""

from __future__ import annotations

import pytest

from pytest_sandboxbench.compliance.suite import ComplianceSuite

from .server import Local


@pytest.mark.full
class TestE2B(ComplianceSuite):
    provider = "e2b"

    @pytest.fixture(autouse=True)
    def _served(self, local: Local) -> None:
        """The local imitation."""
