"""Who this process is, and whether the process that an owner names lives, as far as pids tell."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from functools import cache
from pathlib import Path

from .facts import process_start
from .model import Owner

__all__ = ["standing", "this_process"]

_FIRST_PID_NAMESPACE = 0xEFFFFFFC  # include/linux/proc_ns.h: PROC_PID_INIT_INO
_MACHINE_IDS = ("/etc/machine-id", "/var/lib/dbus/machine-id")
_LONGEST_NAME = 40


def this_process(run_id: str) -> Owner:
    """The owner that this process is."""
    return Owner(run_id, _host(), os.getpid(), process_start(os.getpid()))


def _host() -> str:
    """This machine: its name, a few digits that no other of that name has, and a pid namespace below the machine's.

    Short, printable ASCII without ``/``. It goes to providers, in labels.
    """
    name = os.uname().nodename if hasattr(os, "uname") else ""
    host = re.sub(r"[^!-.0-~]", "_", name)[:_LONGEST_NAME]
    machine = _machine()
    if machine:
        host += f"-{machine}"
    try:
        namespace = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        namespace = _FIRST_PID_NAMESPACE
    return host if namespace == _FIRST_PID_NAMESPACE else f"{host}+{namespace}"


@cache
def _machine() -> str:
    """Digits of a hash of what names this machine for good, which itself is nobody's business; empty without any."""
    found = _machine_id() if sys.platform.startswith("linux") else _hardware_address()
    return hashlib.sha256(f"sandboxbench {found}".encode()).hexdigest()[:8] if found else ""


def _machine_id() -> str:
    for place in _MACHINE_IDS:
        try:
            found = Path(place).read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if re.fullmatch(r"[0-9a-f]{32}", found):  # it is "uninitialized" for a while, and empty in images
            return found
    return ""


def _hardware_address() -> str:
    import uuid

    found = uuid.getnode()
    made_up = found >> 40 & 1  # anew in each process, says RFC 9562
    return "" if made_up else f"{found:012x}"


def standing(owner: Owner) -> str:
    """``alive``, ``dead``, or ``elsewhere`` for a process that cannot be seen from here.

    Without start times (not on Linux) a pid that is used again counts as alive; a ledger's lock tells more.
    """
    if owner.host != _host():
        return "elsewhere"
    started = process_start(owner.pid)
    if started or owner.started:
        return "alive" if started == owner.started else "dead"
    return "alive" if owner.pid > 0 and _answers(owner.pid) else "dead"


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
