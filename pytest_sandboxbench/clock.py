"""The one clock: monotonic nanoseconds, comparable between all processes of one Linux host."""

from time import monotonic_ns as now_ns

__all__ = ["NS_PER_S", "now_ns"]

NS_PER_S = 1_000_000_000
