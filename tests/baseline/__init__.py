"""Tests of the bridge to pytest-benchmark and of the published references."""
