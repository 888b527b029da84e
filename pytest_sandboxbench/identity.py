"""What names a run: its id, and the folder of its records. Imports nothing heavy: xdist's controller asks it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from . import options

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pytest

__all__ = ["hide_from_git", "new_run_id", "share"]


def new_run_id() -> str:
    """Sorts by time, and two runs of one second differ."""
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime()) + "-" + os.urandom(3).hex()


def share(config: pytest.Config) -> Mapping[str, str]:
    """What xdist's workers must know to write into the same run: decided once, in the controller. Makes nothing."""
    run_id = new_run_id()
    return {"run_id": run_id, "records": str(_records_folder(config, run_id))}


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


def hide_from_git(base: Path) -> None:
    """Raw records are nothing to commit by mistake."""
    try:
        base.mkdir(exist_ok=True)
        if not (base / ".gitignore").exists():
            (base / ".gitignore").write_text("# Raw records of benchmark runs.\n*\n", encoding="ascii")
    except OSError:
        pass  # said with the records that cannot be written
