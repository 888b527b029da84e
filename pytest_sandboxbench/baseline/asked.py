"""What the options of pytest-benchmark ask of our measuring.

Nothing here imports pytest_benchmark; every reader also works where it is not installed or is blocked.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pytest

__all__ = ["NO_WISHES", "Wishes", "is_active", "is_worker", "read_wishes", "table_wanted", "was_given", "xdist_is_on"]

# Option -> the value that it has when nobody asked. Taken from pytest-benchmark 5.3.
_DEFAULTS = {
    "min_rounds": 5,
    "max_time": "1.0",
    "warmup": False,
    "warmup_iterations": 100_000,
    "sort": "min",
    "group_by": "group",
    "name": "normal",
    "verbose": False,
    "time_unit": None,
}


class Wishes(NamedTuple):
    """What the user asked through pytest-benchmark's options; ``None`` where nothing was asked.

    ``min_rounds``     ``--benchmark-min-rounds``
    ``max_time_s``     ``--benchmark-max-time``, seconds for one series
    ``warmup_rounds``  0 for ``--benchmark-warmup=off``; ``on`` is 1, or the number of
                       ``--benchmark-warmup-iterations``; ``auto`` asks nothing
    ``disabled``       ``--benchmark-disable`` without ``-enable``: one round, nothing is published
    ``only``, ``skip`` ``--benchmark-only`` (which beats ``--benchmark-skip``) and ``--benchmark-skip``
    """

    min_rounds: int | None = None
    max_time_s: float | None = None
    warmup_rounds: int | None = None
    disabled: bool = False
    only: bool = False
    skip: bool = False


NO_WISHES = Wishes()


def is_active(config: pytest.Config) -> bool:
    """Is pytest-benchmark loaded? It goes by its entry point's name, or by its module's with ``-p``."""
    manager = config.pluginmanager
    return manager.hasplugin("benchmark") or manager.hasplugin("pytest_benchmark.plugin")


def is_worker(config: pytest.Config) -> bool:
    """Is this process a worker of pytest-xdist?"""
    return hasattr(config, "workerinput")


def xdist_is_on(config: pytest.Config) -> bool:
    """Does xdist hand out the tests of this run? True in the controller and in its workers."""
    return is_worker(config) or config.getoption("dist", "no") != "no"


def read_wishes(config: pytest.Config) -> Wishes:
    """The user's wishes. Read them before `take_over` clears options, or use what `take_over` returns."""
    if not is_active(config):
        return NO_WISHES
    option = config.option
    only = bool(option.benchmark_only)
    return Wishes(
        min_rounds=int(option.benchmark_min_rounds) if was_given(config, "min_rounds") else None,
        max_time_s=float(option.benchmark_max_time) if was_given(config, "max_time") else None,
        warmup_rounds=_warmup_rounds(config),
        disabled=bool(option.benchmark_disable) and not option.benchmark_enable,
        only=only,
        skip=bool(option.benchmark_skip) and not only,
    )


def table_wanted(config: pytest.Config) -> bool:
    """Did the user ask for pytest-benchmark's own table? A comparison has no other place to be shown."""
    option = config.option
    return (
        bool(option.benchmark_columns and _text_after(config, "columns") is not None)
        or bool(option.benchmark_compare or option.benchmark_compare_fail)
        or any(was_given(config, name) for name in ("sort", "group_by", "name", "verbose", "time_unit"))
    )


def was_given(config: pytest.Config, name: str) -> bool:
    """Was ``--benchmark-NAME`` given: by command line, ``PYTEST_ADDOPTS``, ``addopts``, or set by a conftest?"""
    return getattr(config.option, f"benchmark_{name}") != _DEFAULTS[name] or _text_after(config, name) is not None


def _warmup_rounds(config: pytest.Config) -> int | None:
    text = (_text_after(config, "warmup") or "").strip().lower()
    value = config.option.benchmark_warmup
    if text in ("off", "false", "no"):
        return 0
    if was_given(config, "warmup_iterations"):
        return int(config.option.benchmark_warmup_iterations)
    # A bare --benchmark-warmup has the value None: its users mean "on".
    asked = _text_after(config, "warmup") is not None or value is True
    return 1 if asked and text != "auto" else None


def _text_after(config: pytest.Config, name: str) -> str | None:
    """The text given to ``--benchmark-NAME`` last; "" for an option without a value; None if it was not given.

    pytest keeps only the parsed values, in which a default and the same value typed by hand look alike.
    """
    flag = f"--benchmark-{name.replace('_', '-')}"
    words = _words(config)
    found = None
    for i, word in enumerate(words):
        if word == flag:
            following = words[i + 1] if i + 1 < len(words) else ""
            found = "" if following.startswith("-") else following
        elif word.startswith(flag + "="):
            found = word[len(flag) + 1 :]
    return found


def _words(config: pytest.Config) -> list[str]:
    return [
        *config.getini("addopts"),
        *shlex.split(os.environ.get("PYTEST_ADDOPTS", "")),
        *(str(word) for word in config.invocation_params.args),
    ]
