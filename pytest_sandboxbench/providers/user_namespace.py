"""A user namespace for the guests of a harness that is root: their user is nobody on the host.

Were it made by bwrap itself, user 1000 inside would be the host's root for every check that asks for the user and not
for a capability: ``/proc/sys/kernel/core_pattern`` could be written, a cgroup hierarchy mounted and written. Only
root may map another user than itself, so this is done here, once; every sandbox of the instance shares it.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

__all__ = ["NoUserNamespace", "open_user_namespace"]


class NoUserNamespace(Exception):
    """It cannot be made; the message says what the host said."""


def open_user_namespace(unshare: str, guest_uid: int, host_uid: int) -> int:
    """A file descriptor that keeps the namespace: ``guest_uid`` inside is ``host_uid`` outside, others are nobody."""
    process = subprocess.Popen(
        [unshare, "-U", "--", "cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        with process.stdin, process.stdout, process.stderr:
            try:
                process.stdin.write(b"\n")
            except BrokenPipeError:
                pass
            if not process.stdout.read(1):
                raise NoUserNamespace(process.stderr.read().decode(errors="replace").strip())
            for name in ("uid_map", "gid_map"):
                Path(f"/proc/{process.pid}/{name}").write_text(f"{guest_uid} {host_uid} 1\n")
            return os.open(f"/proc/{process.pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise NoUserNamespace(f"mapping user {guest_uid} to {host_uid}: {error}") from error
    finally:
        process.kill()
        process.wait()
