"""An end that somebody interrupts: the first time it goes on to its end all the same, the second time it stops."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from .load.deadlines import forget

__all__ = ["STOPS_S", "stop", "to_its_end"]

STOPS_S = 1.5
"""How long what is stopped gets to write down how far it came: a call under way has a second of it."""


async def to_its_end(work: Coroutine[Any, Any, None], *, interrupted: bool = False) -> None:
    """Wait for ``work``, also after an interrupt, which is raised then; not where it was ``interrupted`` before."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            if interrupted or cancelled is not None:
                await stop(task)
                raise
            cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # that it was interrupted says more
        raise cancelled
    task.result()


async def stop(task: asyncio.Task[Any], limit_s: float = STOPS_S) -> None:
    """Cancel a task, and leave it behind if it does not end."""
    task.cancel()
    try:
        await asyncio.wait({task}, timeout=limit_s)
    finally:
        if not task.done():
            forget(task)
        elif not task.cancelled():
            task.exception()
