"""The limits of one control group, of either version: written, and read back."""

from __future__ import annotations

from pathlib import Path

__all__ = ["limit_file", "limits_in", "set_limit"]

_PERIOD_US = 100_000
_FILES = {
    1: {"memory_mib": "memory.limit_in_bytes", "pids": "pids.max", "vcpus": "cpu.cfs_quota_us"},
    2: {"memory_mib": "memory.max", "pids": "pids.max", "vcpus": "cpu.max"},
}
# v1 has no word for "no limit" of memory: it is the largest whole number of pages.
_NO_LIMIT = 2**60


def limit_file(name: str, version: int) -> str:
    return _FILES[version][name]


def set_limit(group: Path, name: str, version: int, amount: float) -> None:
    main = group / limit_file(name, version)
    if name == "memory_mib":
        size = str(int(amount * 2**20))
        main.write_text(size)
        # Without this a guest over its limit is swapped out and not stopped.
        swap = group / ("memory.memsw.limit_in_bytes" if version == 1 else "memory.swap.max")
        if swap.exists():
            swap.write_text(size if version == 1 else "0")
    elif name == "pids":
        main.write_text(str(int(amount)))
    elif version == 1:
        (group / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
        main.write_text(str(int(amount * _PERIOD_US)))
    else:
        main.write_text(f"{int(amount * _PERIOD_US)} {_PERIOD_US}")


def limits_in(group: Path, version: int) -> dict[str, str]:
    """What the kernel enforces in a group, in the units of a spec. A group that is gone enforces nothing."""
    found: dict[str, str] = {}
    for name, file in _FILES[version].items():
        try:
            words = (group / file).read_text().split()
            if name == "vcpus" and version == 1:
                words += (group / "cpu.cfs_period_us").read_text().split()
        except OSError:
            continue
        if words[0] in ("max", "-1") or int(words[0]) >= _NO_LIMIT:
            continue
        amount = int(words[0]) / {"memory_mib": 2**20, "pids": 1}.get(name, int(words[-1]))
        found[name] = str(int(amount)) if amount.is_integer() else str(amount)
    return found
