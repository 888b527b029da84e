"""Files of a ledger: private, locked, and whole from the moment they have their name."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

__all__ = ["SUFFIX", "append", "check_private", "create", "open_locked", "sweep", "sync"]

SUFFIX = ".jsonl"
_DRAFT = ".new"
_OLD_DRAFT_S = 3600.0
_FLAGS = os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) if sys.platform != "win32" else 0
_LOOKS = 10


def check_private(folder: Path) -> None:
    """Who can write here decides what we destroy."""
    if sys.platform == "win32":
        return
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise PermissionError(f"{folder} is not a folder that only user {os.geteuid()} can write")


def create(path: Path, text: bytes) -> int:
    """A descriptor of a file that is at ``path`` from now on, instead of what was there: locked, and on the disk.

    It has another name until it is: whoever finds it under this one finds all of ``text``, and the lock of whoever
    lives. ``OSError`` when there is nothing new at ``path``.
    """
    draft = path.with_name(path.name + _DRAFT)
    descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | _FLAGS, 0o600)
    try:
        _lock(descriptor, shared=False)
        append(descriptor, text)
        sync(descriptor)
        draft.replace(path)
    except BaseException:
        os.close(descriptor)
        with suppress(OSError):
            draft.unlink()
        raise
    with suppress(OSError):
        _sync_folder(path.parent)
    return descriptor


def sweep(folder: Path) -> None:
    """Remove what processes left that were killed in :func:`create`."""
    for draft in folder.glob(f"*{SUFFIX}{_DRAFT}"):
        with suppress(OSError):
            if time.time() - draft.lstat().st_mtime > _OLD_DRAFT_S:
                draft.unlink()


def append(descriptor: int, text: bytes) -> None:
    if os.write(descriptor, text) != len(text):
        raise OSError(errno.ENOSPC, "the disk is full")


def sync(descriptor: int) -> None:
    """Wait until it would outlast a power loss."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):  # a file system that cannot
            raise


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | _FLAGS)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_locked(path: Path, *, shared: bool) -> tuple[int, bool | None]:
    """A descriptor of what is at ``path``, and whether its lock could be taken; ``None`` where there are no locks.

    Its owner may put a new file in its place, and the lock of the old one then tells nothing.
    """
    for _ in range(_LOOKS):
        descriptor = _open(path)
        try:
            free = _lock(descriptor, shared=shared)
            if not free or os.path.samestat(os.fstat(descriptor), path.lstat()):
                return descriptor, free
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    return _open(path), None  # a file system that gives a file another number each time


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | _FLAGS)  # NFS gives an exclusive lock only to who may write
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        return os.open(path, os.O_RDONLY | _FLAGS)


def _lock(descriptor: int, *, shared: bool) -> bool | None:
    """Take the lock: true; false when another holds it, ``None`` where there are no locks."""
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
