"""What workers of xdist left that were killed: at the end their controller destroys it."""

from __future__ import annotations

from . import threads
from .ending import to_its_end
from .ledger import books, folder_of_user
from .load.deadlines import describe
from .news import News
from .providers.registry import Registry

__all__ = ["reap_workers"]

_REST = "what killed workers left may still exist: the next run destroys it, or `sandboxbench reap` now"


def reap_workers(registry: Registry, run_id: str, news: News, *, interrupted: bool) -> None:
    """What came of it is in the news. ``KeyboardInterrupt`` after an interrupt; ``interrupted`` says of one before."""
    folder = folder_of_user()
    try:
        if not any(book.standing == "dead" for book in books(folder) if book.owner.run_id == run_id):
            return
    except OSError:
        return  # the workers said so
    from .reaping import reap_ledgers

    done = False

    async def reap() -> None:
        nonlocal done
        news.reaped(await reap_ledgers(registry, folder, run_id=run_id), own=True)
        done = True

    try:
        threads.run(to_its_end(reap(), interrupted=interrupted))
    except Exception as error:
        news.note(f"{_REST}; {describe(error)}")
    except KeyboardInterrupt:
        if not done:
            news.note(_REST)
        raise
