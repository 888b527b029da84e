"""Benchmarks of code sandboxes as pytest test suites."""

__version__ = "0.1.0"
