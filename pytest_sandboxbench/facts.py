"""Facts of the host and of a guest: what two runs must share before their numbers may be compared.

Everything is read, nothing is assumed; what cannot be read is left out.
"""

from __future__ import annotations

import os
import platform
import socket
import sys
from collections.abc import Mapping
from importlib import metadata
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .model import Capabilities, Preflight

__all__ = ["cpu_ticks", "guest_command", "host_facts", "load_average", "parse_guest", "process_start", "provider_facts"]

_PACKAGES = ("pytest", "pytest-benchmark", "pytest-asyncio", "pytest-xdist")

# POSIX sh and /proc only: runs wherever a guest has a shell. cgroup files show the limits that a guest can see.
_GUEST = """# sandboxbench: facts
echo "kernel=$(uname -sr 2>/dev/null)"
echo "machine=$(uname -m 2>/dev/null)"
echo "user=$(id -u 2>/dev/null)"
echo "vcpus=$(nproc 2>/dev/null)"
while read -r key value rest; do
  case "$key" in MemTotal:) echo "memory_mib=$((value / 1024))";; esac
done </proc/meminfo
while IFS=: read -r key value; do case "$key" in "model name"*) echo "cpu=${value# }"; break;; esac; done </proc/cpuinfo
for file in cpu.max cpu/cpu.cfs_quota_us memory.max memory/memory.limit_in_bytes pids.max pids/pids.max; do
  [ -r "/sys/fs/cgroup/$file" ] && read -r value <"/sys/fs/cgroup/$file" && echo "cgroup $file=$value"
done
count=0; while read -r line; do count=$((count + 1)); done </proc/self/mountinfo; echo "mounts=$count"
echo "python=$(python3 -c 'import sys; print(sys.version.split()[0], sys.executable)' 2>/dev/null)"
"""


def guest_command() -> list[str]:
    """The command that prints a guest's facts, one ``key=value`` a line."""
    return ["sh", "-c", _GUEST]


def parse_guest(output: bytes) -> dict[str, str]:
    """What :func:`guest_command` printed. The guest is not trusted: lengths and characters are bounded."""
    facts: dict[str, str] = {}
    for line in output[:16384].decode(errors="replace").splitlines():
        key, found, value = line.partition("=")
        if (
            found
            and value.strip()
            and key.replace(" ", "").replace(".", "").replace("/", "").replace("_", "").isalnum()
        ):
            facts[key[:64]] = "".join(c if c.isprintable() else "?" for c in value.strip())[:200]
    return facts


def host_facts() -> dict[str, Any]:
    """The machine and the software that drives the load, at the start of a run."""
    facts: dict[str, Any] = {
        "hostname": socket.gethostname(),
        "system": platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": _cpu_model(),
        "cpus": os.cpu_count(),
        "cpus_usable": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        "python_executable": sys.executable,
        "euid": os.geteuid() if hasattr(os, "geteuid") else None,
        "packages": _versions(),
        "load_average": load_average(),
    }
    memory = _meminfo_mib()
    if memory:
        facts["memory_mib"] = memory
    mounts = _read("/proc/self/mountinfo")
    if mounts:
        facts["mounts"] = mounts.count("\n")
    facts.update(_own_limits())
    return {key: value for key, value in facts.items() if value not in (None, "")}


def cpu_ticks() -> tuple[int, int] | None:
    """Ticks that the CPUs we may use were busy, and all their ticks, since boot; None where the host does not say.

    CPUs outside of the affinity mask are idle however busy we are, and would make a bound act look like a waiting one.
    """
    try:
        mine = {b"cpu%d" % cpu for cpu in os.sched_getaffinity(0)}
        with Path("/proc/stat").open("rb") as file:
            lines = [line.split()[:9] for line in takewhile(lambda line: line.startswith(b"cpu"), file)]
        found = [[int(text) for text in values] for name, *values in lines if name in mine]
    except (AttributeError, OSError, ValueError):
        return None
    if len(found) < len(mine):  # a container may number its CPUs anew
        return None
    ticks = sum(map(sum, found))
    idle = sum(sum(values[3:5]) for values in found)  # idle and waiting for a disk
    return ticks - idle, ticks


def load_average() -> list[float] | None:
    try:
        return [round(value, 2) for value in os.getloadavg()]
    except (AttributeError, OSError):
        return None


def process_start(pid: int) -> str:
    """Start time of a process in clock ticks since boot, as text; empty where it has ended, or /proc does not tell."""
    stat = _read(f"/proc/{pid}/stat")
    # The name in parentheses may hold spaces and parentheses; the 22nd field counts from the last one.
    fields = stat.rpartition(")")[2].split()
    return fields[19] if fields and fields[0] not in "ZX" else ""


def _versions() -> Mapping[str, str]:
    out = {}
    for name in ("pytest-sandboxbench", *_PACKAGES):
        try:
            out[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return out


def _cpu_model() -> str:
    for line in _read("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _meminfo_mib() -> int | None:
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) // 1024
    return None


def _own_limits() -> dict[str, str]:
    """CPU quota and memory limit of the harness's own cgroup: they bound everything local."""
    limits = {}
    for line in _read("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        for name, controller, file in (
            ("cpu_quota", "", "cpu.max"),
            ("memory_limit", "", "memory.max"),
            ("cpu_quota", "cpu", "cpu.cfs_quota_us"),
            ("memory_limit", "memory", "memory.limit_in_bytes"),
        ):
            if controller in controllers.split(","):
                text = _read(f"/sys/fs/cgroup/{controller}{path}/{file}").strip()
                # cgroup v1 writes "no limit" as a number near 2**63.
                if (
                    text
                    and text != "-1"
                    and not text.startswith("max")
                    and not (text.isdigit() and int(text) > 1 << 60)
                ):
                    limits[name] = text
    return limits


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def provider_facts(kind: str, options: Mapping[str, Any], can: Capabilities, answer: Preflight) -> dict[str, Any]:
    """How an instance is set up, what its provider declares, and what its preflight found."""
    return {
        "kind": kind,
        "isolation": can.isolation,
        "hosted": can.hosted,
        "pause": list(can.pause),
        "limits": sorted(can.limits),
        "options": dict(options),
        "facts": dict(answer.facts),
        "spans": {
            span.operation: {
                "start": span.start,
                "end": span.end,
                "clock": span.clock,
                "resolution_s": span.resolution_s,
                "polling": span.polling,
                "state": span.state,
            }
            for span in can.spans
        },
    }
