"""What names a run: its id, and the folder of its records. Imports nothing heavy: xdist's controller asks it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from . import options
from .clock import clock_name, now_ns
from .stash import SHARED

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pytest

__all__ = ["check_writable", "hide_from_git", "new_run_id", "share"]


def new_run_id() -> str:
    """Sorts by time, and two runs of one second differ."""
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime()) + "-" + os.urandom(3).hex()


def share(config: pytest.Config) -> Mapping[str, str]:
    """What all processes of a run must know: decided once, by whoever asks first in the controller. Makes nothing."""
    shared = config.stash.get(SHARED, None)
    if shared is None:
        run_id = new_run_id()
        seed = options.get(config, "seed")
        shared = config.stash[SHARED] = {
            "run_id": run_id,
            "records": str(_records_folder(config, run_id)),
            "seed": str(int.from_bytes(os.urandom(4), "big") if seed is None else seed),
            "origin_ns": str(now_ns()),
            "clock": clock_name(),
        }
    return shared


def _records_folder(config: pytest.Config, run_id: str) -> Path:
    """Where the records of this run go. ``UsageError`` for a folder that holds another run's."""
    import pytest

    chosen = options.get(config, "records")
    if chosen is None:
        return config.rootpath / ".sandboxbench" / run_id
    folder: Path = config.invocation_params.dir / chosen
    if (folder / "run.json").exists() or folder.is_file():
        raise pytest.UsageError(f"--sandbox-records {chosen}: it holds records already; name a new or empty folder")
    return folder


def check_writable(folder: Path) -> None:
    """``UsageError`` where no records can be written: told before anything is measured. Makes the folder above them."""
    import pytest

    base = folder if folder.is_dir() else folder.parent
    try:
        base.mkdir(parents=True, exist_ok=True)
        probe = base / f".sandboxbench-{folder.name}"
        probe.touch()
        probe.unlink(missing_ok=True)  # another worker may have tried at the same time
    except OSError as error:
        raise pytest.UsageError(
            f"records cannot be written to {base}: {error.strerror or error}; name a folder: --sandbox-records DIR"
        ) from None


def hide_from_git(base: Path) -> None:
    """Raw records are nothing to commit by mistake."""
    try:
        base.mkdir(exist_ok=True)
        if not (base / ".gitignore").exists():
            (base / ".gitignore").write_text("# Raw records of benchmark runs.\n*\n", encoding="ascii")
    except OSError:
        pass  # said with the records that cannot be written
