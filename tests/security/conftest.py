"""The suite of benches that the tests of the plugin run, here too."""

from __future__ import annotations

from tests.plugin.conftest import suite

__all__ = ["suite"]
