"""What this project itself costs, as ratios with intervals: ``python -m tests.perf``. None is a test."""
