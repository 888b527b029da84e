"""How long an act waited for a thread of the adapter's own: the load generator's lag, not the sandbox system's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

__all__ = ["queueing", "was_queued"]

_BOOK: ContextVar[list[tuple[int, int]] | None] = ContextVar("sandboxbench_queued", default=None)


def was_queued(asked_ns: int, began_ns: int) -> None:
    """An adapter handed work to a thread of its own, or to a pool, which began with it later."""
    book = _BOOK.get()
    if book is not None:
        book.append((asked_ns, began_ns))


@contextmanager
def queueing() -> Iterator[list[tuple[int, int]]]:
    """Collects the waits of all calls that are made in the context: when each was asked for, and when it began (ns)."""
    book: list[tuple[int, int]] = []
    token = _BOOK.set(book)
    try:
        yield book
    finally:
        with suppress(ValueError):  # a coroutine that was left behind is thrown away in another context
            _BOOK.reset(token)
