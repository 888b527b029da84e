"""Packages of others, which are built and installed before their own tests are run."""

collect_ignore = ["mini"]
