"""The command ``sandboxbench``: what can run here, what a run measured, and the suites to edit.

Exit status: 0; 1 for a check that failed, a report that lacks rows or a machine that is not ready; 4 for a mistake in
what was typed; 130 after Ctrl-C in a check.
"""

from __future__ import annotations

import argparse
import errno
import gc
import io
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from .. import __version__
from ..errors import UsageError

if TYPE_CHECKING:
    from ..model import Preflight

__all__ = ["main"]

USAGE = 4

_PATIENCE_S = 8.0  # 5 s for the answer, the rest for the import of an SDK


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    try:
        status = _main(argv)
        if sys.stdout is not None:  # closed by who started it
            sys.stdout.flush()
    except UsageError as error:
        return _told(str(error), USAGE)
    except KeyboardInterrupt:
        return _told("interrupted", 130)
    except BrokenPipeError:
        _drop_output()  # the reader (head, less) has seen enough
        return 0
    except OSError as error:
        if _is_of_output(error):
            _drop_output()
            return _told(f"standard output: {error.strerror}", 1)
        return _told(str(error), USAGE)
    return status


def _is_of_output(error: OSError) -> bool:
    """What could not be written is still to be; under PYTHONUNBUFFERED it is gone, and the error tells no more."""
    if sys.stdout is None:
        return False
    try:
        sys.stdout.flush()
    except OSError:
        return True
    through: bool = getattr(sys.stdout, "write_through", False)
    return through and error.errno == errno.ENOSPC and error.filename is None


def _told(said: str, status: int) -> int:
    from ..report.text import harmless

    print(f"sandboxbench: {harmless(said, 2000)}", file=sys.stderr)
    return status


def _drop_output() -> None:
    """Or Python complains once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _main(argv: Sequence[str] | None) -> int:
    from . import sandboxes, serve, template

    parser = _Parser(prog="sandboxbench", description="Benchmarks of code sandboxes as pytest test suites.")
    parser.add_argument("--version", action="version", version=f"pytest-sandboxbench {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", parser_class=_Parser)

    providers = commands.add_parser("providers", help="which providers are ready here, and what the others lack")
    providers.add_argument("names", nargs="*", metavar="NAME", help="only these (default: all)")
    providers.set_defaults(run=_providers)

    check = commands.add_parser("check", help="whether a provider keeps the promises of the protocol, as a card")
    check.add_argument("name", nargs="?", metavar="NAME", help="the provider")
    check.add_argument(
        "-k", dest="text", action="append", default=[], metavar="TEXT", help="only checks with this in their name"
    )
    check.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting, as in pyproject.toml",
    )
    check.add_argument(
        "--timeout", type=_seconds, default=30.0, metavar="S", help="deadline of each call (default: 30)"
    )
    check.add_argument("-x", dest="first", action="store_true", help="stop at the first check that fails")
    check.add_argument("--list", action="store_true", help="print all checks with their promises, as Markdown")
    check.set_defaults(run=_check)

    sandboxes.add_commands(commands, _seconds)
    serve.add_command(commands, _seconds)
    template.add_command(commands)

    doctor = commands.add_parser("doctor", help="whether this machine can measure, and what would disturb it")
    doctor.set_defaults(run=_doctor)

    report = commands.add_parser("report", help="print the tables of a run again, from its records")
    report.add_argument(
        "folder", nargs="?", type=Path, metavar="DIR", help="records (default: the newest in .sandboxbench/)"
    )
    report.add_argument("--width", type=int, help="columns to fill (default: the terminal's)")
    report.add_argument(
        "--partial", action="store_true", help="print what there is although planned rows have no samples"
    )
    report.add_argument(
        "--all", action="store_true", help="also operations that were measured along with those asked for"
    )
    report.add_argument(
        "--format",
        choices=("text", "github-action-benchmark"),
        default="text",
        help="text, or the medians as JSON for github-action-benchmark (tool: customSmallerIsBetter)",
    )
    report.set_defaults(run=_report)

    budgets = commands.add_parser(
        "budgets", help="which budgets apply to which series, and where they stand; measures nothing"
    )
    budgets.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="ARGS", help="what pytest would be called with: benches/ -k ..."
    )
    budgets.set_defaults(run=_budgets)

    operations = commands.add_parser("operations", help="what each operation times, as Markdown")
    operations.set_defaults(run=_operations)

    init = commands.add_parser("init", help="copy the suites out, for editing")
    init.add_argument("folder", nargs="?", type=Path, default=Path("benches"), metavar="DEST", help="default: benches")
    init.set_defaults(run=_init)

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without "µ" gets "?", not a traceback
    arguments = parser.parse_args(argv)
    status: int = arguments.run(arguments)
    return status


def _seconds(text: str) -> float:
    from ..options import seconds  # with it comes pytest, which nothing else here needs

    return seconds(text)


def _check(arguments: argparse.Namespace) -> int:
    from .check import run

    return run(arguments)


def _providers(arguments: argparse.Namespace) -> int:
    answers = _preflights(arguments.names)
    labels = [name if name == kind else f"{name} ({kind})" for name, kind, _ in answers]
    width = max(map(len, labels))
    for label, (_, _, answer) in zip(labels, answers, strict=True):
        print(f"{label:<{width}}  {_status(answer)}")
    return 0 if any(answer.ready for _, _, answer in answers) else 1


def _status(answer: Preflight) -> str:
    from ..report.text import harmless

    if answer.ready:
        facts = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in answer.facts.items())
        return "ready" + (f": {harmless(facts)}" if facts else "")
    return f"missing: {harmless(answer.reason)}. {harmless(answer.cure)}"


def _preflights(names: Sequence[str]) -> list[tuple[str, str, Preflight]]:
    """Ask all at once, each in a thread of its own: one that blocks takes no time from the others."""
    from ..load.preflight import SILENT, ask, secrets_of
    from ..model import Preflight
    from ..providers.registry import Registry
    from ..records.redaction import hide_values
    from ..threads import run

    registry = Registry(Path.cwd())
    registry.check(names)
    answers: dict[str, Preflight | UsageError] = {}
    loaded: set[str] = set()

    def question(name: str) -> None:
        try:
            answers[name] = run(ask(registry, name, lambda: loaded.add(name)))
        except UsageError as error:
            answers[name] = UsageError(hide_values(str(error), secrets_of(registry)))

    chosen = list(names) or registry.names
    threads = [threading.Thread(target=question, args=(name,), daemon=True) for name in chosen]
    # What an SDK prints, logs or warns of is no part of an answer, and may hold its key.
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        for thread in threads:
            thread.start()
        ends = time.monotonic() + _PATIENCE_S
        for thread in threads:
            thread.join(max(0.0, ends - time.monotonic()))
    unloaded = Preflight(
        False, f"it was not loaded within {_PATIENCE_S:g} s", "what takes long belongs into create, with its import"
    )
    out = []
    for name in chosen:
        answer = answers.get(name) or (SILENT if name in loaded else unloaded)
        if isinstance(answer, UsageError):
            raise answer
        out.append((name, registry.kind(name), answer))
    return out


def _doctor(_arguments: argparse.Namespace) -> int:
    from ..doctor import examine

    answers = _preflights(())
    problems = 0
    for finding in examine(answers):
        print(f"{finding.level:<4}  {finding.text}" + (f"\n      {finding.cure}" if finding.cure else ""))
        problems += finding.level == "bad"
    return 1 if problems else 0


def _report(arguments: argparse.Namespace) -> int:
    """Without the collector: a million samples hold no circles, and it would look at them again and again."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _print_report(arguments)
    finally:
        if collecting:
            gc.enable()


def _print_report(arguments: argparse.Namespace) -> int:
    from ..records.read import read_run
    from ..report.notes import notes
    from ..report.scaling import scaling
    from ..report.table import build, render
    from ..report.text import harmless

    folder = arguments.folder or _newest(Path(".sandboxbench"))
    run = read_run(folder)
    missing = run.missing()
    if missing and not arguments.partial:
        print(
            f"sandboxbench: {harmless(str(folder), 1000)}: planned rows have no samples: "
            f"{harmless('; '.join(missing), 2000)}. --partial prints what there is",
            file=sys.stderr,
        )
        return 1
    width = max(60, arguments.width or shutil.get_terminal_size().columns)
    groups = build(run.series, run.header, everything=arguments.all)
    if arguments.format == "github-action-benchmark":
        from ..report.ci import benchmark_entries

        print(json.dumps(benchmark_entries(groups), indent=1, ensure_ascii=False))
        return 0
    lines = [*render(groups, run.header, width), *notes(groups, run.header, width)]
    lines += scaling(groups, run.header, width, getattr(sys.stdout, "encoding", None))
    for line in lines:
        print(line.text)
    if run.torn:
        print("a last line was cut off, as by a kill; it is left out", file=sys.stderr)
    return 0


def _budgets(arguments: argparse.Namespace) -> int:
    import pytest

    return int(pytest.main(["--sandbox-budgets", *arguments.arguments]))


def _operations(_arguments: argparse.Namespace) -> int:
    from ..report.definitions import definitions

    print(definitions(), end="")
    return 0


def _newest(base: Path) -> Path:
    runs = sorted(path.parent for path in base.glob("*/run.json"))
    if not runs:
        raise UsageError(f"no records in {base.absolute()}; name a folder, or run `pytest benches/` first")
    return runs[-1]


def _init(arguments: argparse.Namespace) -> int:
    target: Path = arguments.folder
    source = Path(__file__).parents[1] / "benches"
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target} is there already and not empty; name another folder")
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.glob("*.py")):
        shutil.copyfile(path, target / path.name)
    print(f"copied the suites to {target}: pytest {target}")
    return 0
