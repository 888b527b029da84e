"""The proof that a resume brought back what was paused, and not a new boot.

A nonce is put into the environment of a process that keeps running in the guest: the environment lives in that
process's memory and can be read back only while that very process exists. A file keeps the same nonce on disk.

What a sandbox holds besides, if somebody asks for it, is random, so that no snapshot can leave it out or press it
together: memory of one process, and a file. Both are summed up before the pause and after the resume.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NONCE_FILE", "State", "check", "check_file", "held", "plant"]

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


_FILE = "sandboxbench-written"
_SUM = "sandboxbench-held"

# Fills its memory, and writes down the sum of it: once it is full, and at each SIGUSR1.
_HOLD = f"""
import os, signal, sys, zlib
data = bytearray()
for _ in range(int(sys.argv[1])):
    data += os.urandom(1 << 20)
def tell(*_):
    with open("{_SUM}.new", "w") as file:
        file.write(f"{{zlib.crc32(data)}}")
    os.rename("{_SUM}.new", "{_SUM}")
signal.signal(signal.SIGUSR1, tell)
tell()
while True:
    signal.pause()
"""
_WAIT = f'until [ -e {_SUM} ]; do kill -0 "$p" 2>/dev/null || exit 3; sleep 0.02; done'
_RSS = 'while read -r key value rest; do [ "$key" != VmRSS: ] || echo "$((value / 1024))"; done <"/proc/$p/status"'
_START = f'rm -f {_SUM}; python3 -c "$1" "$2" </dev/null >/dev/null 2>&1 & p=$!; {_WAIT}; echo "$p"; cat {_SUM}; echo'
_AGAIN = f'p=$1; rm -f {_SUM}; kill -USR1 "$p" || exit 3; {_WAIT}; cat {_SUM}; echo; {_RSS}'
_WRITE = f'dd if=/dev/urandom of={_FILE} bs=1048576 count="$1" conv=fsync 2>/dev/null && cksum <{_FILE}'


@dataclass(frozen=True, slots=True)
class State:
    """What a sandbox holds before it is paused, in MiB: memory of a process, and a file."""

    held_mib: int = 0
    written_mib: int = 0

    def __bool__(self) -> bool:
        return bool(self.held_mib or self.written_mib)

    @property
    def variants(self) -> tuple[tuple[str, str], ...]:
        """As it stands in the key of a series."""
        amounts = (("held", self.held_mib), ("written", self.written_mib))
        return tuple((name, f"{mib}MiB") for name, mib in amounts if mib)

    def hold(self) -> list[str]:
        """Command that starts the process and waits until it is full; prints its pid, and the sum of its memory."""
        return ["sh", "-c", _START, "sh", _HOLD, str(self.held_mib)]

    def hold_again(self, pid: str) -> list[str]:
        """Command that prints the sum of what the process holds now, and its resident memory in MiB."""
        return ["sh", "-c", _AGAIN, "sh", pid]

    def write(self) -> list[str]:
        """Command that writes the file to the disk; prints its sum and size."""
        return ["sh", "-c", _WRITE, "sh", str(self.written_mib)]

    def read(self) -> list[str]:
        """Command that prints the sum and size of the file."""
        return ["sh", "-c", f"cksum <{_FILE}"]
