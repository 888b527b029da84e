"""What somebody else wrote, made fit to be shown and safe to be opened: texts, and the files of a folder."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

__all__ = ["depth_is_over", "harmless", "inert", "open_regular", "size_text", "writable"]

# What sets a colour, and nothing else: pytest's own output is full of it.
_COLOUR = re.compile(r"(\x1b\[[0-9;]{0,40}m)")


def harmless(text: str, limit: int = 300) -> str:
    """Text from a sandbox or provider on one line, without anything that a terminal would obey.

    >>> harmless("a\\x1b[31mb\\nc")
    'a\\\\x1b[31mb c'
    """
    cut = len(text) > 16 * limit  # a megabyte is not looked at for the sake of a line
    text = " ".join((text[: 16 * limit] if cut else text).split())
    out = "".join(map(_shown, text))
    return out[: limit - 1] + "…" if cut or len(out) > limit else out


def inert(text: str) -> str:
    """Text of several lines with nothing in it that a terminal would obey; lines, tabs and colours stay.

    >>> inert("\\x1b[31ma\\x1b[0m\\n\\tb\\x1b[2J\\r")
    '\\x1b[31ma\\x1b[0m\\n\\tb\\\\x1b[2J\\\\r'
    """
    if text.isascii() and text.isprintable():
        return text
    pieces = _COLOUR.split(text.replace("\r\n", "\n"))
    for at in range(0, len(pieces), 2):
        pieces[at] = "".join(c if c in "\n\t" else _shown(c) for c in pieces[at])
    return "".join(pieces)


def writable(text: str) -> str:
    """Text as UTF-8 can hold it: bytes that were no text reach Python as surrogates."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def _shown(c: str) -> str:
    return c if c.isprintable() else c.encode("unicode_escape").decode("ascii")


@contextmanager
def open_regular(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """A file and its size. ``OSError`` for what is no ordinary file: a pipe would never end, a device neither."""
    # Without O_NONBLOCK the open itself waits for the other end of a pipe.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    if path.exists() and not path.is_file():  # before it is opened: with some devices that is an act
        raise OSError(f"{path.name} is not an ordinary file")
    with os.fdopen(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path.name} is not an ordinary file")
        yield file, status.st_size


def depth_is_over(value: Any, most: int) -> bool:
    """Whether lists and objects of JSON lie more than ``most`` deep in each other; without recursion."""
    level = [value]
    for _ in range(most):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def size_text(size: int) -> str:
    """Bytes as people say them.

    >>> size_text(8 << 20)
    '8 MiB'
    """
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size} bytes"
