"""The test suites of pytest-xdist and pytest-benchmark end the same with this plugin installed as without it.

``python -m tests.upstream`` runs both whole; ``pytest -m full tests/upstream`` runs all but what ``Suite.slow`` names,
which takes about 15 minutes of CPU time. ``tox -e full`` leaves them out.
Each suite is the one of the release that is installed beside the plugin, and gets two virtual environments: one with
what it asks for, and one with that and a wheel of this tree. An option would not do: the suites start pytest in
subprocesses, which load what is installed.
"""
