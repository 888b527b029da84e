"""The one clock: monotonic nanoseconds, comparable between all processes of one Linux host."""

import os
from contextlib import suppress
from time import monotonic_ns as now_ns

__all__ = ["NS_PER_S", "clock_name", "now_ns"]

NS_PER_S = 1_000_000_000


def clock_name() -> str:
    """Two processes with one name read one clock: the boot of the host, and the time namespace of the process."""
    parts = []
    with suppress(OSError):
        with open("/proc/sys/kernel/random/boot_id") as file:  # noqa: PTH123 -- every run with xdist loads this
            parts.append(file.read().strip())
        parts.append(os.readlink("/proc/self/ns/time"))  # noqa: PTH115
    if not parts:
        import platform

        return platform.node()
    return "/".join(parts)
