"""The folders of local sandboxes on the host's disk: made private, named so that a reaper knows whose they are.

``ROOT/KIND/OWNER~ID`` with the owner's label percent-encoded: a folder whose processes are all gone still says which
run it belongs to, and no file has to be written for that inside a create.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote

from ..model import Owner

__all__ = ["WorkFolders"]


class WorkFolders:
    """``uid`` is who runs the guests: the folders belong to that user, and nobody else can look inside."""

    def __init__(self, kind: str, root: str | None, uid: int) -> None:
        self._own_root = root is None
        self._uid = uid
        self._prepared = False
        self.root = Path(root).expanduser().absolute() if root else Path(f"/var/tmp/sandboxbench-{uid}")
        self.base = self.root / kind

    def prepare(self) -> None:
        """Make the folder of all sandboxes of this kind. ``OSError`` when it is not ours alone, or cannot be made.

        ``/var/tmp`` is open to all: somebody else may have made a folder of that name first.
        """
        if self._own_root:
            self._private(self.root)
        else:
            self.root.mkdir(parents=True, exist_ok=True)
        self._private(self.base)
        self._prepared = True

    def _private(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        # Made by us a moment ago or by another process of this user, which has not given it away yet, or was killed
        # before it could.
        private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
        if private and found.st_uid == os.geteuid() != self._uid and not any(folder.iterdir()):
            os.chown(folder, self._uid, self._uid, follow_symlinks=False)
            found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != self._uid or found.st_mode & 0o077:
            raise PermissionError(f"{folder} is not a folder of user {self._uid} with mode 0700; remove it")

    def path(self, owner_label: str, sandbox: str) -> Path:
        return self.base / f"{quote(owner_label, safe='')}~{sandbox}"

    def make(self, owner: Owner, sandbox: str) -> Path:
        if not self._prepared:
            self.prepare()
        folder = self.path(owner.label(), sandbox)
        folder.mkdir(mode=0o700)
        if self._uid != os.geteuid():
            os.chown(folder, self._uid, self._uid)
        return folder

    def found(self) -> Iterator[tuple[str, str]]:
        """Owner label and sandbox of each folder there is."""
        try:
            names = [entry.name for entry in self.base.iterdir()]
        except OSError:
            return
        for name in names:
            label, tilde, sandbox = name.rpartition("~")
            if tilde:
                yield unquote(label), sandbox

    def remove(self, sandbox: str) -> None:
        """Remove a sandbox's folder, whatever the guest made of it; never follows a link. ``OSError`` if it stays."""
        for label, found in list(self.found()):
            if found == sandbox:
                self.remove_folder(self.path(label, sandbox))

    def remove_folder(self, folder: Path) -> None:
        for _ in range(3):
            try:
                shutil.rmtree(folder)
            except FileNotFoundError:
                pass
            except (OSError, RecursionError):
                # Folders without permissions, nested deeper than Python recurses, or a process that is just ending.
                # Both programs work on open folders and do not follow links either.
                for program in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
                    subprocess.run([*program, "--", str(folder)], capture_output=True, check=False)
            if not os.path.lexists(folder):
                return
            time.sleep(0.005)
        raise OSError(f"{folder} could not be removed")
