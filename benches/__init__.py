"""The suites that users run: ``pytest benches/`` or ``pytest --pyargs pytest_sandboxbench.benches``."""
