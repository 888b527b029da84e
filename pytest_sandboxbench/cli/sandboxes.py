"""``sandboxbench list`` and ``sandboxbench reap``: what exists of this project, and the end of what nobody owns."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import threads
from ..errors import UsageError

if TYPE_CHECKING:
    from ..ledger import Book
    from ..providers.registry import Registry
    from ..reaping import Found

__all__ = ["add_commands"]


def add_commands(commands: argparse._SubParsersAction[Any], seconds: Callable[[str], float]) -> None:
    show = commands.add_parser("list", help="the sandboxes of this project that exist, and whose they are")
    show.add_argument("names", nargs="*", metavar="NAME", help="only these providers (default: all that are ready)")
    show.add_argument("--run", dest="run_id", metavar="ID", help="only those of this run")
    show.set_defaults(run=_list)

    reap = commands.add_parser("reap", help="destroy what runs left whose process is gone")
    reap.add_argument("names", nargs="*", metavar="NAME", help="only these providers (default: all that are ready)")
    reap.add_argument(
        "--run",
        dest="run_id",
        metavar="ID",
        help="only what this run left, and also where its process cannot be seen from here (on another host)",
    )
    reap.add_argument(
        "--forget", metavar="ID", help="destroy nothing: drop what is written down of this run, after a look by hand"
    )
    for command in (show, reap):
        command.add_argument("--timeout", type=seconds, default=30.0, metavar="S", help="deadline of each call (30)")
    reap.set_defaults(run=_reap)


def _asked(arguments: argparse.Namespace) -> tuple[Registry, Sequence[str] | None, Path]:
    from ..ledger import folder_of_user
    from ..providers.registry import Registry

    registry = Registry(Path.cwd())
    registry.check(arguments.names)
    return registry, arguments.names or None, folder_of_user()


def _list(arguments: argparse.Namespace) -> int:
    from ..reaping import survey
    from ..report.text import harmless

    registry, names, folder = _asked(arguments)
    seen = threads.run(survey(registry, names, folder, timeout_s=arguments.timeout, run_id=arguments.run_id))
    rows = [("PROVIDER", "SANDBOX", "RUN", "AGE", "ITS PROCESS")]
    rows += [
        (found.ref.provider, found.ref.id, found.owner.run_id if found.owner else "?", _age(found), _whose(found))
        for found in sorted(seen.found, key=lambda found: (found.owner.run_id if found.owner else "", found.ref.id))
    ]
    if len(rows) == 1:
        print(
            "no sandbox of this project exists" + (f" of run {harmless(arguments.run_id)}" if arguments.run_id else "")
        )
    else:
        shown = [[harmless(cell, 200) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        for row in shown:
            print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
    for provider, number, run in seen.unknown:
        print(f"run {run} was ended in the middle of {number} creates on {provider}, which has no labels: look there")
    for problem in seen.problems:
        print(f"sandboxbench: {harmless(problem, 2000)}", file=sys.stderr)
    return 0


def _whose(found: Found) -> str:
    owner = found.owner
    if owner is None:
        return "unknown: it has no label of this project"
    if found.standing == "alive":
        return f"{owner.pid}, running"
    if found.standing == "dead" and found.proved:
        return f"{owner.pid}, gone: `sandboxbench reap`"
    if found.standing == "dead":
        return f"{owner.pid}, gone if it was on this machine: `sandboxbench reap --run {owner.run_id}`"
    return f"{owner.pid} on {owner.host or 'another host'}: `sandboxbench reap --run {owner.run_id}` if it is over"


def _age(found: Found) -> str:
    """From the run's id, which begins with the time of its start."""
    try:
        began = datetime.strptime(found.owner.run_id[:15] if found.owner else "", "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return "?"
    seconds = max(0.0, time.time() - began.timestamp())
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _reap(arguments: argparse.Namespace) -> int:
    from ..news import told_of
    from ..reaping import reap
    from ..report.text import harmless

    registry, names, folder = _asked(arguments)
    if arguments.forget:
        return _forget(folder, arguments.forget)
    if arguments.run_id is not None:
        _books_of_the_dead(folder, arguments.run_id)
    reaped = threads.run(reap(registry, names, folder, timeout_s=arguments.timeout, run_id=arguments.run_id))
    for line in told_of(reaped):
        print(harmless(line, 4000))
    for found in reaped.unproved:
        run = harmless(found.owner.run_id) if found.owner is not None else "?"
        print(
            f"left alone: {harmless(found.ref.provider)} {harmless(found.ref.id)}; no ledger proves that its process "
            f"ran on this machine: `sandboxbench reap --run {run}` if that run is over"
        )
    if not reaped.unproved and not reaped.destroyed and not reaped.left and not reaped.problems and not reaped.unknown:
        print("nothing is left of any run that is over" if not arguments.run_id else "nothing is left of that run")
    return 1 if reaped.left or reaped.problems or reaped.unknown else 0


def _forget(folder: Path, run: str) -> int:
    found = _books_of_the_dead(folder, run)
    if not found:
        raise UsageError(f"nothing is written down of a run {run}; `sandboxbench list` shows the runs there are")
    for book in found:
        book.path.unlink(missing_ok=True)
    print(f"forgot run {run}")
    return 0


def _books_of_the_dead(folder: Path, run: str) -> list[Book]:
    """The ledgers of a run that is over. ``UsageError`` for one that is not, and a folder that proves nothing."""
    from ..ledger import books

    try:
        found = [book for book in books(folder) if book.owner.run_id == run]
    except OSError as error:
        raise UsageError(f"the ledger cannot be read: {error}") from None
    if any(book.clearing for book in found):
        raise UsageError(f"another process is destroying what run {run} left: wait for it")
    living = sorted({book.owner.pid for book in found if book.standing == "alive"})
    if living:
        pids = ", ".join(map(str, living))
        raise UsageError(f"run {run} is not over: end process {pids} first, it destroys what it made")
    return found
