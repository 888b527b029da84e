"""Command line options and ini keys: what they are called, how they are read, what a mistake is answered with.

Only the stem ``--sandbox`` is registered here, since this plugin is loaded in every pytest run of its environment;
``benches/conftest.py`` adds the short forms. Imports nothing heavy.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .baseline.bridge import Wishes
    from .run_settings import Settings

__all__ = ["NAMES", "SHORT", "add_options", "add_short_options", "get", "given", "has_budgets", "seconds", "settings"]


def _names(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if not names:
        raise argparse.ArgumentTypeError(f"{text!r} names no provider; write for example bubblewrap,null")
    return names


def _levels(text: str) -> tuple[int, ...]:
    try:
        levels = tuple(int(part) for part in text.split(","))
    except ValueError:
        levels = (0,)
    if not all(1 <= level <= 10_000 for level in levels) or len(set(levels)) < len(levels):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of different numbers of lanes from 1 to 10000; write for example 1,16,50,100"
        )
    return levels


def _at_least(lowest: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = lowest - 1
        if value < lowest:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a whole number from {lowest} on; write for example {lowest + 19}"
            )
        return value

    return read


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0; write for example 30 or 0.5")
    return value


def _option(text: str) -> tuple[str, str, str]:
    from .providers.registry import parse_option

    try:
        return parse_option(text)
    except ValueError as error:
        from .records.redaction import hide

        raise argparse.ArgumentTypeError(hide(str(error))) from None


def _shape(text: str) -> str:
    from .load.shapes import parse_shape

    try:
        return str(parse_shape(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _folder(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("it names no folder; write for example records/today")
    return text


def _file(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("it names no file; write for example budgets.toml")
    return text


def _budget(text: str) -> str:
    from .budgets.sources import from_option
    from .errors import UsageError

    try:
        from_option([text])
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("--sandbox-budget: ")) from None
    return text


def _floor(text: str) -> str:
    if text not in FLOORS:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(FLOORS)}; write for example all")
    return text


def _command(text: str) -> str:
    import shlex

    try:
        words = shlex.split(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a command: {error}; write for example 'node -e 1'") from None
    if not words:
        raise argparse.ArgumentTypeError(f"{text!r} is not a command; write for example 'node -e 1'")
    return text


FLOORS = ("auto", "all", "none")

# name -> (reader, default, metavar, help); the ini key is the same with underscores.
_VALUES: dict[str, tuple[Any, Any, str, str]] = {
    "provider": (
        _names,
        None,
        "NAME,...",
        "Providers to measure, side by side (default: bubblewrap; null elsewhere than on Linux).",
    ),
    "concurrency": (_levels, (1,), "N,...", "Levels: how many lanes are released at one instant (default: 1)."),
    "shape": (
        _shape,
        "burst",
        "SHAPE",
        "How the lanes of a round are let go: burst (at one instant), closed-100 (each begins again when it ends, "
        "until 100 requests were begun) or closed-10s (for 10 s), rate-20 (20 arrivals a second by the clock), "
        "stagger-50ms (50 ms apart); default: burst.",
    ),
    "samples": (
        _at_least(1),
        None,
        "N",
        "Rounds measured for each series (default: 60; 20 for bursts of several lanes, 6 in other shapes; at most 10 "
        "where a hosted provider takes part).",
    ),
    "warmup": (_at_least(0), None, "N", "Rounds before those, recorded as warm-up and in no statistic (default: 1)."),
    "max-samples": (
        _at_least(1),
        None,
        "N",
        "Measure up to N rounds of a series whose budget is not decided yet (default: four times the rounds; none more "
        "where --sandbox-samples says how many, or a hosted provider takes part).",
    ),
    "max-sandboxes": (
        _at_least(1),
        None,
        "N",
        "Make N sandboxes in all, and no more: what is not measured by then fails (default: no limit).",
    ),
    "max-seconds": (
        seconds,
        None,
        "S",
        "Stop a block after S seconds, with the rounds it has by then (default: no limit).",
    ),
    "budget-file": (_file, None, "FILE", 'A TOML file with budgets = ["startup median 44ms..52ms", ...].'),
    "seed": (
        _at_least(0),
        None,
        "N",
        "Seed of the order in which providers take turns (default: drawn, and recorded).",
    ),
    "timeout": (seconds, 60.0, "S", "Deadline of every single operation (default: 60)."),
    "records": (_folder, None, "DIR", "Folder for the raw records of this run (default: a new one in .sandboxbench/)."),
    "floor": (
        _floor,
        "auto",
        "WHICH",
        "What runs on this host without a sandbox as well, as the floor: auto (built-in operations), all (acts and "
        "commands of your own too), none (default: auto).",
    ),
    "held": (
        _at_least(0),
        0,
        "MIB",
        "MiB of memory that a process holds in each sandbox before it is paused; read again after the resume (default: "
        "0).",
    ),
    "written": (
        _at_least(0),
        0,
        "MIB",
        "MiB written to a file in each sandbox before it is paused; read again after the resume (default: 0).",
    ),
    "command": (
        _command,
        None,
        "CMD",
        "Also time this command in a new sandbox, for example --sandbox-command 'node -e 1'.",
    ),
}

NAMES = tuple(_VALUES)

SHORT = ("provider", "concurrency", "budget")
"""Options that the suites' own conftest.py offers without the stem."""

_BUDGET: dict[str, Any] = {"action": "append", "type": _budget, "default": [], "dest": "sandbox_budget"}


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("sandboxbench", "benchmarks of sandboxes")
    for name, (reader, _default, metavar, text) in _VALUES.items():
        group.addoption(f"--sandbox-{name}", type=reader, default=None, metavar=metavar, dest=_dest(name), help=text)
        parser.addini(_dest(name), text, default="")
    group.addoption(
        "--sandbox-option",
        action="append",
        type=_option,
        default=[],
        metavar="NAME.KEY=VALUE",
        help="Set one setting of a provider, for example bubblewrap.memory_mib=512; may be given several times.",
    )
    group.addoption(
        "--sandbox-budget",
        **_BUDGET,
        metavar="BUDGET",
        help="A limit that a series must keep, for example 'startup median 44ms..52ms @1,16,50,100'; may be given "
        "several times.",
    )
    group.addoption(
        "--sandbox-budgets",
        action="store_true",
        default=False,
        help="Show which budgets apply to which series, and where they stand; measure nothing.",
    )
    group.addoption(
        "--sandbox-plan",
        action="store_true",
        default=False,
        help="Show which sandboxes a run would make, how many, and how long it would take at least; make none.",
    )
    group.addoption(
        "--sandbox-strict",
        action="store_true",
        default=False,
        help="A provider that is missing is a failure, not a skip, and so is a budget that cannot be decided.",
    )
    parser.addini("sandbox_strict", "The same as --sandbox-strict.", type="bool", default=False)


def add_short_options(parser: pytest.Parser) -> None:
    """``--provider`` for ``--sandbox-provider`` and so on; for the conftest of a suite of benches.

    A word that is taken, by somebody else or by a second copy of the suites, stays with who has it.
    """
    group = parser.getgroup("sandboxbench")
    for name in SHORT:
        text = f"The same as --sandbox-{name}."
        if _is_taken(parser, f"--{name}"):
            continue
        if name == "budget":
            group.addoption("--budget", **_BUDGET, metavar="BUDGET", help=text)
        else:
            reader, _, metavar, _ = _VALUES[name]
            group.addoption(f"--{name}", type=reader, default=None, metavar=metavar, dest=_dest(name), help=text)


def _is_taken(parser: pytest.Parser, word: str) -> bool:
    """Asked by parsing: what a second registration raises, and when, differs between releases of pytest."""
    try:
        _, unknown = parser.parse_known_and_unknown_args([f"{word}=x"])
    except (SystemExit, pytest.UsageError):  # its owner does not like the value
        return True
    return not unknown


def _dest(name: str) -> str:
    return "sandbox_" + name.replace("-", "_")


def given(config: pytest.Config, name: str) -> bool:
    """Whether a person chose a value, on the command line or in an ini file."""
    return config.getoption(_dest(name), None) is not None or bool(_ini(config, name))


def get(config: pytest.Config, name: str) -> Any:
    """The value of an option: command line, else ini file, else default. ``UsageError`` for a bad one in the file."""
    value = config.getoption(_dest(name), None)
    if value is not None:
        return value
    reader, default, _metavar, _help = _VALUES[name]
    text = _ini(config, name)
    if not text:
        return default
    try:
        return reader(text)
    except argparse.ArgumentTypeError as error:
        where = os.fspath(config.inipath) if config.inipath else "ini file"
        raise pytest.UsageError(f"{where}: {_dest(name)}: {error}") from None


def check(config: pytest.Config) -> None:
    """Read every value, so that a mistake in an ini file is told before anything runs. ``UsageError``."""
    for name in _VALUES:
        get(config, name)


def strict(config: pytest.Config) -> bool:
    return bool(config.getoption("sandbox_strict", False) or config.getini("sandbox_strict"))


def settings(config: pytest.Config, wishes: Wishes, seed: int) -> Settings:
    """How much is measured; ``wishes`` are those that pytest-benchmark's own options say."""
    from .run_settings import Settings

    return Settings(
        rounds=get(config, "samples"),
        warmup=get(config, "warmup") if given(config, "warmup") else wishes.warmup_rounds,
        seed=seed,
        timeout_s=get(config, "timeout"),
        max_time_s=get(config, "max-seconds") or wishes.max_time_s,
        min_rounds=wishes.min_rounds or 1,
        floor=get(config, "floor"),
        most_rounds=get(config, "max-samples"),
        max_sandboxes=get(config, "max-sandboxes"),
        quick=wishes.disabled,
    )


def has_budgets(config: pytest.Config) -> bool:
    """Whether anything but a marker may have budgets. A process that has none need not load what judges them."""
    if config.getoption("sandbox_budget") or given(config, "budget-file"):
        return True
    if config.hook.pytest_sandboxbench_budgets.get_hookimpls():
        return True
    return _project_has_budgets(config.rootpath / "pyproject.toml")


def _project_has_budgets(path: Path) -> bool:
    """Whether its table has anything but providers: a misspelled key is a mistake, and who reads budgets tells it."""
    try:
        data = path.read_bytes()
    except OSError:
        return False
    if b"sandboxbench" not in data:
        return False
    import tomllib

    try:
        table = tomllib.loads(data.decode()).get("tool", {}).get("sandboxbench", {})
        return bool(table.keys() - {"providers"})
    except (ValueError, RecursionError, AttributeError):  # no TOML, or no tables: told as well
        return True


def _ini(config: pytest.Config, name: str) -> str:
    value = config.getini(_dest(name))
    return ",".join(map(str, value)) if isinstance(value, list) else str(value or "")
