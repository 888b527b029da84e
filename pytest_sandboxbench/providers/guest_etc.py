"""A small ``/etc`` for guests: what programs need to run and nothing that is the host's own business.

Made once and bound as a whole, because every bind of a single file would cost each create. Its name says what it was
made of: a host that changed gets a new one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

__all__ = ["make_etc"]

# Loader, time zone, certificates, names of services; on Debian the links of alternatives, which /usr/bin points to.
_FROM_HOST = (
    "alternatives",
    "ld.so.cache",
    "localtime",
    "mime.types",
    "pki/ca-trust/extracted",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "protocols",
    "services",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
)


def make_etc(base: Path, uid: int, guest_uid: int) -> Path:
    """The folder below ``base``, for a guest that is user ``guest_uid`` inside and ``uid`` on the host."""
    own = {
        "passwd": f"root:x:0:0:root:/root:/bin/sh\nsandbox:x:{guest_uid}:{guest_uid}:sandbox:/work:/bin/sh\n",
        "group": f"root:x:0:\nsandbox:x:{guest_uid}:\n",
        "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
        "resolv.conf": "",
    }
    print_of = hashlib.sha256(repr((sorted(own.items()), uid)).encode())
    sources = [(Path("/etc", name), name) for name in _FROM_HOST]
    for source, name in sources:
        if source.exists():
            info = source.stat()
            print_of.update(f"{name} {info.st_mtime_ns} {info.st_size}\n".encode())
    folder = base / f".etc-{print_of.hexdigest()[:16]}"
    if folder.is_dir():
        return folder
    making = Path(tempfile.mkdtemp(prefix=".etc-making-", dir=base))
    try:
        for source, name in sources:
            _copy(source, making / name)
        for name, text in own.items():
            (making / name).write_text(text)
        _give_away(making, uid)
        try:
            making.rename(folder)
        except OSError:
            # Somebody else was faster, with the same content.
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return folder


def _copy(source: Path, target: Path) -> None:
    """Files by content, folders with their links as links; what this user may not read is left out."""
    if not source.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, ignore_dangling_symlinks=True)
        elif source.is_file():
            shutil.copyfile(source, target)
    except (OSError, shutil.Error):
        pass


def _give_away(folder: Path, uid: int) -> None:
    folder.chmod(0o755)
    if uid != os.geteuid():
        for path in (folder, *folder.rglob("*")):
            os.chown(path, uid, uid, follow_symlinks=False)
