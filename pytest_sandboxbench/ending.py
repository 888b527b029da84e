"""An end that somebody interrupts: the first time it goes on to its end all the same, the second time it stops."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from .load.deadlines import stop

__all__ = ["STOPS_S", "to_its_end"]

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
                await stop(task, STOPS_S)
                raise
            cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # that it was interrupted says more
        raise cancelled
    task.result()
