"""Latency budgets: what a person writes, which series it means, and whether it holds. Knows no pytest."""
