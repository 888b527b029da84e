"""For this checkout's own tests: pytest's fixture for plugins. The suites' options are in ``benches/conftest.py``."""

pytest_plugins = ["pytester"]
