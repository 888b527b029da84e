"""Baselines: what earlier runs and published tables say. ``bridge`` is all that knows pytest-benchmark."""
