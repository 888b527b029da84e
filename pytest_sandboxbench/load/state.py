"""The proof that a resume brought back what was paused, and not a new boot.

A nonce is put into the environment of a process that keeps running in the guest: the environment lives in that
process's memory and can be read back only while that very process exists. A file keeps the same nonce on disk.
"""

from __future__ import annotations

__all__ = ["NONCE_FILE", "check", "check_file", "held", "plant"]

NONCE_FILE = "sandboxbench-nonce"

_PLANT = f'printf %s "$1" >{NONCE_FILE}; SANDBOXBENCH_NONCE="$1" sleep 3600 </dev/null >/dev/null 2>&1 & echo "$!"'
_CHECK = '# sandboxbench: check\ntr "\\0" "\\n" <"/proc/$1/environ"'


def plant(nonce: str) -> list[str]:
    """Command that starts the process holding ``nonce``, writes the file, and prints the process's pid."""
    return ["sh", "-c", _PLANT, "sh", nonce]


def check(pid: int) -> list[str]:
    """Command that prints the environment of ``pid``; fails when that process is gone."""
    return ["sh", "-c", _CHECK, "sh", str(pid)]


def check_file() -> list[str]:
    """Command that prints the nonce kept on disk."""
    return ["cat", NONCE_FILE]


def held(output: bytes, nonce: str) -> bool:
    """Whether the output of :func:`check` shows the nonce."""
    return f"SANDBOXBENCH_NONCE={nonce}".encode() in output.splitlines()
