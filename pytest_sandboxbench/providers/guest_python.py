"""Which Python runs inside local sandboxes: the same file, with the same flags, on the floor and in the sandbox.

By default the interpreter that runs the harness, when whoever runs the guest may read it; else ``/usr/bin/python3``;
else none. It matters: ``print(1)`` costs three times as much on one build as on another, so the choice is a fact
of every result.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..errors import UsageError

__all__ = ["HOST_UID", "GuestPython", "find_guest_python", "guest_uid", "readable_by"]

HOST_UID = 60978
"""Who runs the guests of a harness that is root, as the host sees it: a user that exists nowhere.

From the range that systemd's list of uids calls unused. Were it root itself, then every interface of the host that
asks for the user and not for a capability would be open to the guest: ``/proc/sys/kernel/core_pattern`` for one.
"""

_SYSTEM = Path("/usr/bin/python3")
_ASK = "import sys; print(sys.prefix, sys.base_prefix, '.'.join(map(str, sys.version_info[:3])), sep='\\n')"
# Binding one of these would show the guest far more than an interpreter.
_TOO_MUCH = frozenset(
    Path("/", name)
    for name in ("", "home", "root", "etc", "var", "tmp", "var/tmp", "opt", "srv", "mnt", "proc", "sys", "dev", "run")
)


@dataclass(frozen=True, slots=True)
class GuestPython:
    """An interpreter and the host folders outside ``/usr`` that it needs, at their own paths (``binds``).

    ``alias``   its folder holds no ``python3`` that is this interpreter: the provider has to make one
    ``reason``  why another than the harness's own was taken
    """

    executable: str
    version: str
    binds: tuple[str, ...] = ()
    alias: bool = False
    reason: str = ""

    @property
    def folder(self) -> str:
        return str(Path(self.executable).parent)

    def facts(self) -> dict[str, str]:
        facts = {"guest_python": self.executable, "guest_python_version": self.version}
        if self.reason:
            facts["guest_python_reason"] = self.reason
        return facts


def guest_uid() -> int:
    """Who runs the guests of local sandboxes, as the host sees it: the harness's user, or for root ``HOST_UID``.

    A root of a container that has no such user (rootless, one user mapped) stays itself.
    """
    if sys.platform == "win32":
        return 0
    own = os.geteuid()
    if own != 0 or sys.platform != "linux":
        return own
    ranges = (list(map(int, line.split())) for line in Path("/proc/self/uid_map").read_text().splitlines())
    return HOST_UID if any(first <= HOST_UID < first + count for first, _, count in ranges) else own


def find_guest_python(option: str | None = None, *, uid: int | None = None) -> GuestPython | None:
    """``option`` is a path that overrides the choice; ``uid`` is who runs the guest (default: :func:`guest_uid`).

    ``UsageError`` when ``option`` is no Python, or cannot be read by ``uid``.
    """
    if uid is None:
        uid = guest_uid()
    if option is not None:
        return _asked_for(option, uid)
    own = _harness_python()
    if own is None:
        reason = "the harness's own interpreter has no file that a guest could use"
    elif unreadable := [path for path in (own.executable, *own.binds) if not readable_by(Path(path), uid)]:
        reason = f"user {uid}, who runs the guest, cannot read {unreadable[0]}"
    else:
        return own
    if not os.access(_SYSTEM, os.X_OK):
        return None
    prefix, base, version = _ask(_SYSTEM)
    return GuestPython(str(_SYSTEM), version, _outside_usr(prefix, base), reason=reason)


def _harness_python() -> GuestPython | None:
    """The real interpreter behind ``sys.executable``: a virtual environment's own is only a link to it."""
    base = Path(sys.base_prefix).resolve()
    if base in _TOO_MUCH or base == Path.home():
        return None
    names = ("python3", f"python3.{sys.version_info.minor}")
    found = next((base / "bin" / name for name in names if _is_own(base / "bin" / name)), None)
    if found is None:
        return None
    version = ".".join(map(str, sys.version_info[:3]))
    return GuestPython(str(found), version, _outside_usr(base), alias=found.name != "python3")


def _is_own(path: Path) -> bool:
    """Is it the harness's interpreter? ``/usr/bin/python3`` is another where python3.13 stands beside it."""
    real = path.resolve()
    versioned = f"python3.{sys.version_info.minor}"
    return os.access(real, os.X_OK) and (real.name.startswith(versioned) or real == Path(sys.executable).resolve())


def _asked_for(option: str, uid: int) -> GuestPython:
    path = Path(option).expanduser().absolute()
    try:
        prefix, base, version = _ask(path)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise UsageError(
            f"python={option} is no Python that runs here ({error}); one that would do: {_SYSTEM}"
        ) from None
    binds = _outside_usr(prefix, base)
    if bad := [bind for bind in binds if Path(bind) in _TOO_MUCH]:
        raise UsageError(f"python={option} would need all of {bad[0]} inside; use one with a folder of its own")
    if bad := [place for place in (str(path), *binds) if not readable_by(Path(place), uid)]:
        raise UsageError(f"python={option}: user {uid}, who runs the guest, cannot read {bad[0]}")
    sibling = path.parent / "python3"
    alias = not (sibling.exists() and sibling.samefile(path))
    return GuestPython(str(path if alias else sibling), version, binds, alias=alias)


@lru_cache(maxsize=8)
def _ask(path: Path) -> tuple[Path, Path, str]:
    done = subprocess.run([path, "-I", "-c", _ASK], capture_output=True, timeout=10, check=True, text=True)
    prefix, base, version = done.stdout.split("\n")[:3]
    return Path(prefix).resolve(), Path(base).resolve(), version


def _outside_usr(*prefixes: Path) -> tuple[str, ...]:
    kept = [path for path in dict.fromkeys(prefixes) if not path.is_relative_to("/usr")]
    return tuple(str(path) for path in kept if not any(path != other and path.is_relative_to(other) for other in kept))


def readable_by(path: Path, uid: int) -> bool:
    """Can ``uid``, without any group, walk to ``path`` and read it? By the permission bits; root always can."""
    if uid == 0 or sys.platform == "win32":
        return True
    if uid == os.geteuid():
        return os.access(path, os.R_OK | (os.X_OK if path.is_dir() else 0))
    real = path.resolve()
    try:
        checks = [(real.stat(), 5 if real.is_dir() else 4), *((parent.stat(), 1) for parent in real.parents)]
    except OSError:
        return False
    return all((info.st_mode >> (6 if info.st_uid == uid else 0)) & need == need for info, need in checks)
