"""Writing records as they happen, so that what was measured before a kill is on disk."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from .redaction import redact

__all__ = ["Spool", "write_header"]


class Spool:
    """Appends rows to one file. A full disk costs the rows, never the run: ``problem`` says what was lost."""

    def __init__(self, folder: Path, name: str = "samples.jsonl") -> None:
        self.folder = folder
        self.path = folder / name
        self.problem = ""
        self._descriptor: int | None = None

    def append(self, text: bytes) -> None:
        """Write whole lines in one call to the kernel, so that a kill between two turns tears nothing."""
        if not text or self.problem:
            return
        try:
            if self._descriptor is None:
                self.folder.mkdir(parents=True, exist_ok=True)
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
                self._descriptor = os.open(self.path, flags, 0o644)
            left = memoryview(text)
            while left:
                left = left[os.write(self._descriptor, left) :]
        except OSError as error:
            self.problem = f"records are incomplete: {self.path}: {error.strerror or error}"

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def write_header(folder: Path, header: Mapping[str, Any]) -> str:
    """Replace ``run.json`` at once and whole. Returns what went wrong, empty for nothing."""
    temporary = folder / f".run.json.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)  # it may be somebody's link to another file
        with temporary.open("x", encoding="ascii") as file:
            file.write(json.dumps(redact(header), indent=1, ensure_ascii=True) + "\n")
        temporary.replace(folder / "run.json")
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        return f"records are incomplete: {folder / 'run.json'}: {error.strerror or error}"
    return ""
