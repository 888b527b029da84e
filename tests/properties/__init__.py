"""What must hold for any input: lives of sandboxes against a model, parsers, statistics, records."""

from __future__ import annotations

from hypothesis import settings

__all__ = ["REPEATABLE"]

REPEATABLE = settings(derandomize=True, deadline=None, database=None)
"""The same examples in every run: a property that fails on a colleague's machine fails in CI as well."""
