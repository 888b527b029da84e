"""The command lines of bubblewrap sandboxes: one for a new one, one to enter it. Every flag here has a reason.

What keeps the guest in: it is a user (1000) without capabilities in a user namespace, which on the host is an
ordinary user: whoever runs the harness or, for root, one that exists nowhere. With uid 0 inside, ``nsenter -U`` would
get all capabilities back, and the read-only binds with them.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from .guest_python import GuestPython
from .one_process import Ended

__all__ = ["ALIAS_FOLDER", "GUEST_UID", "CommandLines", "guest_end"]

GUEST_UID = 1000
ALIAS_FOLDER = "/opt/sandboxbench"

_DEVICES = ("null", "zero", "full", "random", "urandom")
# The first process inside is a shell that collects orphans while it waits for its child. When that ends the shell
# ends too, and with the first process of a pid namespace the kernel ends all others. bwrap's own first process would
# live on as long as anything inside does, and bwrap itself would not: `sleep 60 &` would survive a harness.
_FIRST = ("--as-pid-1", "--", "/bin/sh", "-c", '"$@"; exit $?', "sh")

_CD = 'cd -- "$0" || exit 126; exec "$@"'
_JOIN = 'n=$1; shift; while [ "$n" -gt 0 ]; do echo 0 > "$1" || exit 125; shift; n=$((n-1)); done; exec "$@"'


@dataclass(frozen=True, slots=True)
class CommandLines:
    """What all sandboxes of an instance share. ``userns_fd``: a user namespace made for the guests of root."""

    bwrap: str
    nsenter: str
    etc: Path
    python: GuestPython | None = None
    binds: tuple[str, ...] = ()
    userns_fd: int | None = None

    @property
    def pass_fds(self) -> tuple[int, ...]:
        return () if self.userns_fd is None else (self.userns_fd,)

    def new(
        self,
        argv: Sequence[str],
        *,
        work: Path,
        network: bool,
        info_fd: int | None = None,
        joins: Sequence[Path] = (),
    ) -> list[str]:
        """bwrap running ``argv`` in a new sandbox, which ends with it.

        Never with ``--die-with-parent``: the kernel means the *thread* that started it.
        """
        line = [*_joining(joins), self.bwrap]
        line += ["--unshare-user"] if self.userns_fd is None else ["--userns", str(self.userns_fd)]
        line += ["--uid", str(GUEST_UID), "--gid", str(GUEST_UID)]
        line += ["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup", "--hostname", "sandbox"]
        line += [] if network else ["--unshare-net"]
        line += [*_mounts(self, network), "--bind", str(work), "/work", "--remount-ro", "/"]
        line += ["--chdir", "/work"]
        line += [] if info_fd is None else ["--info-fd", str(info_fd)]
        return [*line, *_FIRST, *argv]

    def enter(
        self,
        pid: int,
        argv: Sequence[str],
        *,
        cwd: str | None,
        network: bool,
        joins: Sequence[Path] = (),
    ) -> list[str]:
        """nsenter running ``argv`` in the sandbox whose first process is ``pid``.

        ``-U`` always: without it root would enter as the host's root. ``-r`` and ``-w`` always bare: with a path they
        mean the host's. A working directory is changed to inside, for the same reason.
        """
        line = [*_joining(joins), self.nsenter, "-t", str(pid), "-U"]
        # Somebody else's namespace: become its user 1000 and drop all groups. One's own: one is that user already.
        line += ["--preserve-credentials"] if self.userns_fd is None else ["-S", str(GUEST_UID), "-G", str(GUEST_UID)]
        line += ["-m", "-p", "-i", "-u", "-C", *([] if network else ["-n"]), "-r", "-w", "--"]
        return [*line, *argv] if cwd is None else [*line, "/bin/sh", "-c", _CD, cwd, *argv]


@lru_cache(maxsize=8)
def _mounts(lines: CommandLines, network: bool) -> tuple[str, ...]:
    """What the sandboxes of an instance see of the host. The same for all: looking it up each time would be timed."""
    line = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            line += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            line += ["--ro-bind", str(path), str(path)]
    line += ["--ro-bind", str(lines.etc), "/etc"]
    if network:
        for name in ("resolv.conf", "hosts"):
            line += ["--ro-bind-try", str(Path("/etc", name).resolve()), f"/etc/{name}"]
    line += ["--proc", "/proc", "--perms", "0755", "--dir", "/dev"]
    # Not `--dev /dev`: it nests a second user namespace, which nsenter cannot enter for an ordinary user.
    for name in _DEVICES:
        line += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    for name, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        line += ["--symlink", f"/proc/self/{target}", f"/dev/{name}"]
    for scratch in ("/dev/shm", "/tmp"):
        line += ["--perms", "1777", "--tmpfs", scratch]
    for bind in (*(lines.python.binds if lines.python is not None else ()), *lines.binds):
        line += ["--ro-bind", bind, bind]
    if lines.python is not None and lines.python.alias:
        line += ["--symlink", lines.python.executable, f"{ALIAS_FOLDER}/python3"]
    # Where many hosted sandboxes have their home: what was written for those finds it here as well.
    line += ["--symlink", "/work", "/home/user"]
    return tuple(line)


def _joining(joins: Sequence[Path]) -> list[str]:
    """Join cgroups before anything else: what is started through nsenter does not get into the sandbox's by itself."""
    return ["/bin/sh", "-c", _JOIN, "sh", str(len(joins)), *map(str, joins)] if joins else []


def guest_end(ended: Ended) -> Ended:
    """The shell inside says 128 + N when the command was ended by signal N: that is -N here.

    A command that itself exits with such a number cannot be told from it.
    """
    number = ended.exit_code - 128
    if ended.why == "exit" and number in set(signal.Signals):
        return replace(ended, exit_code=-number)
    return ended
