"""The bridge to pytest-benchmark: our series become results of its session.

So its saving, comparing, grouping and drawing work on them, with and without xdist, as does its command
``pytest-benchmark``. The folder's modules `asked`, `entry` and `hooks` belong to the bridge; nothing else in
the project knows pytest-benchmark. It is imported late, and everything works without it.
"""

from __future__ import annotations

import importlib.util
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_sandboxbench.baseline.asked import NO_WISHES, Wishes, is_active, is_worker, read_wishes, xdist_is_on

if TYPE_CHECKING:
    from pytest_sandboxbench.model import SeriesKey

__all__ = [
    "BridgeState",
    "PublishedSeries",
    "Regression",
    "Wishes",
    "baseline_samples",
    "check_collection",
    "is_active",
    "mark_items",
    "publish",
    "read_wishes",
    "regressions",
    "take_over",
]

_SHOWN = 50
_GROUPINGS = ("group", "name", "func", "fullname", "fullfunc", "param")


class PublishedSeries(NamedTuple):
    """A finished series as pytest-benchmark shall know it.

    ``name``          the item's name, ``test_startup[bubblewrap-c1]``
    ``key``           its canonical key; the text of it is what a baseline matches on
    ``latencies_ns``  of the successful samples, in the order measured
    ``extra_info``    facts for the JSON: success rate, interval, definition of the span, of the provider
    ``figures``       numbers that join pytest-benchmark's own ``stats``: ``p95`` and ``p99`` in seconds,
                      ``success_rate``. Leave out what the number of samples does not allow
    """

    name: str
    key: SeriesKey
    latencies_ns: Sequence[int]
    extra_info: Mapping[str, Any] = {}
    figures: Mapping[str, float] = {}


class Regression(NamedTuple):
    """A series that is worse than ``--benchmark-compare-fail`` allows. Times in seconds.

    ``allowed`` is a number of percent where ``relative``, of seconds otherwise; ``field`` is "" and ``text`` says
    all where the check is not one of pytest-benchmark's own.
    """

    key: str
    baseline: str
    field: str
    before: float
    now: float
    allowed: float
    relative: bool
    text: str


class BridgeState:
    """What the bridge knows in one run. ``compare`` is set aside until the session starts; ``compares``: one was."""

    def __init__(self) -> None:
        self.wishes = NO_WISHES
        self.compare: Any = []
        self.compares = False
        self.only = False
        self.keys: set[str] = set()
        self.regressions: list[Regression] = []
        self.other_regressions: list[tuple[str, str]] = []
        self.not_compared: list[str] = []
        self.mistake = ""


_STATE = pytest.StashKey[BridgeState]()


def take_over(config: pytest.Config) -> Wishes:
    """Read the wishes, and set pytest-benchmark up for our series. For ``pytest_configure(tryfirst=True)``.

    It must run before pytest-benchmark makes its session, which refuses ``--benchmark-only`` under xdist, and loads
    and prints baselines in every worker. In a run without items of ours nothing else changes.
    """
    from pytest_sandboxbench.baseline.hooks import BridgeHooks

    wishes = read_wishes(config)
    if not is_active(config):
        return wishes
    option, state = config.option, BridgeState()
    config.stash[_STATE] = state
    state.wishes = wishes
    state.compare, option.benchmark_compare = option.benchmark_compare, []
    state.compares = state.compare != []
    if is_worker(config):
        state.compare, option.benchmark_compare_fail = [], None
    if wishes.only and not wishes.disabled:  # disabled: pytest-benchmark's own refusal is right
        state.only, option.benchmark_only, option.benchmark_skip = True, False, False
    config.pluginmanager.register(BridgeHooks(config, state), "sandboxbench-bridge")
    return wishes


def mark_items(config: pytest.Config, items: Iterable[pytest.Item], ours: Callable[[pytest.Item], bool]) -> None:
    """``--benchmark-only`` and ``-skip``, in pytest-benchmark's words. For ``pytest_collection_modifyitems``.

    Under ``only``, items that are neither ours nor use the fixture ``benchmark`` are skipped; under ``skip``, ours.
    """
    state = config.stash.get(_STATE, None)
    if state is None:
        return
    skip = bool(config.option.benchmark_skip)
    for item in items:
        if skip and ours(item):
            item.add_marker(pytest.mark.skip(reason="Skipping benchmark (--benchmark-skip active)."))
        elif state.only and not ours(item) and "benchmark" not in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.skip(reason="Skipping non-benchmark (--benchmark-only active)."))


def check_collection(config: pytest.Config, *, ours: bool) -> None:
    """Refuse what cannot work, before anything is measured. Raises ``pytest.UsageError``.

    For the controller or the only process, once it knows whether the run has items of ours.
    """
    state, session = config.stash.get(_STATE, None), _session(config)
    if state is None or session is None:
        return
    if not ours:
        if state.only and xdist_is_on(config):
            raise pytest.UsageError(
                "Can't have both --benchmark-only and --benchmark-disable options. "
                "Note that --benchmark-disable is automatically activated if xdist is on."
            )
        return
    mistake = _comparison_mistake(session) or _grouping_mistake(config, session) or _output_mistake(session)
    if mistake:
        raise pytest.UsageError(mistake)


def publish(config: pytest.Config, series: PublishedSeries) -> None:
    """Make ``series`` a result of pytest-benchmark's session; in the controller or the only process.

    Without successful samples, with ``--benchmark-disable`` and without pytest-benchmark nothing happens.
    """
    state, session = config.stash.get(_STATE, None), _session(config)
    if state is None or session is None or not len(series.latencies_ns):
        return
    if is_worker(config) or state.wishes.disabled:
        return
    from pytest_sandboxbench.baseline.entry import RegressionWatch, SeriesMetadata

    if not state.keys and session.compare_fail:

        def found(current: Any, compared: Mapping[str, Any], check: Any, text: str) -> bool:
            return _note_regression(state, current, compared, check, text)

        session.compare_fail = [RegressionWatch(check, found) for check in session.compare_fail]
    key, bracket = series.key, series.name.find("[")
    session.benchmarks.append(
        SeriesMetadata(
            name=series.name,
            fullname=str(key),
            group=_group(key),
            param=series.name[bracket + 1 : -1] if bracket >= 0 else None,
            params=_params(key),
            extra_info={str(k): _plain(v) for k, v in series.extra_info.items()},
            figures=series.figures,
            latencies_ns=series.latencies_ns,
        )
    )
    state.keys.add(str(key))


def regressions(config: pytest.Config) -> list[Regression]:
    """Our series that broke ``--benchmark-compare-fail``. Complete once the session has finished."""
    state = config.stash.get(_STATE, None)
    return list(state.regressions) if state else []


def compares(config: pytest.Config) -> bool:
    """Whether a saved run was named to compare with, or the newest; not whether there is one. Never in a worker."""
    state = config.stash.get(_STATE, None)
    return state is not None and state.compares


def saves(config: pytest.Config) -> bool:
    """Whether this run is saved for later ones to compare with."""
    return bool(config.getoption("benchmark_save", None) or config.getoption("benchmark_autosave", False))


def baseline_samples(config: pytest.Config) -> dict[str, list[float]]:
    """Canonical key -> raw samples in ns, of the files of ``--benchmark-compare``; the newest file wins.

    Results that were saved without their samples are left out, and so are those of ordinary benchmarks.
    """
    session = _session(config)
    found: dict[str, list[float]] = {}
    # pytest-benchmark's files are numbered, and come in the order of their names.
    for results in ((session and session.compared_mapping) or {}).values():
        for fullname, result in results.items():
            data = result["stats"].get("data")
            if data and "concurrency" in (result.get("params") or {}):
                found[fullname] = [round(seconds * 1e9, 3) for seconds in data]
    return found


def _session(config: pytest.Config) -> Any:
    """pytest-benchmark's session, or None: it is absent, blocked, or another plugin took its place."""
    return getattr(config, "_benchmarksession", None)


def _group(key: SeriesKey) -> str:
    """What the providers of one block have in common, so that they stand beside each other."""
    return f"{key.label} @{key.level}" + ("" if key.shape == "burst" else f"/{key.shape}")


def _params(key: SeriesKey) -> dict[str, Any]:
    """Always the same names at least: ``pytest-benchmark compare --group-by=param:X`` dies where one lacks X."""
    return {
        **dict(key.variants),
        "provider": key.provider,
        "operation": key.operation,
        "phase": key.phase,
        "concurrency": key.level,
        "shape": key.shape,
    }


def _plain(value: Any) -> Any:
    """``value`` for JSON: mappings and sequences as dict and list; NaN and infinity, which JSON lacks, as null."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(v) for v in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def _note_regression(state: BridgeState, current: Any, compared: Mapping[str, Any], check: Any, text: str) -> bool:
    if current.fullname not in state.keys:
        return False
    field = str(getattr(check, "field", ""))
    known = field in compared and type(check).__name__ in ("PercentageRegressionCheck", "DifferenceRegressionCheck")
    state.regressions.append(
        Regression(
            key=current.fullname,
            baseline=str(compared.get("path", "")),
            field=field if known else "",
            before=float(compared[field]) if known else 0.0,
            now=float(current[field]) if known else 0.0,
            allowed=float(check.threshold) if known else 0.0,
            relative=type(check).__name__.startswith("Percentage"),
            text=text,
        )
    )
    return True


def _comparison_mistake(session: Any) -> str:
    if session.compared_mapping:
        return ""
    if not session.compare:
        return (
            "--benchmark-compare-fail has nothing to compare with: add --benchmark-compare (the newest saved run) "
            "or --benchmark-compare=NUMBER"
            if session.compare_fail
            else ""
        )
    if session.compare is True and not session.compare_fail:
        return ""  # the first run of all: pytest-benchmark has warned, and there is nothing to be wrong about
    from pytest_sandboxbench.records.untrusted import harmless

    saved = sorted(path.stem for path in session.storage.query()) if hasattr(session.storage, "query") else []
    number = "" if session.compare is True else f"={session.compare}"
    return f"--benchmark-compare{number}: no saved run matches in {session.storage}; " + (
        f"saved there: {harmless(', '.join(saved[-_SHOWN:]), 2000)}"
        if saved
        else "nothing is saved there yet: run with --benchmark-autosave"
    )


def _grouping_mistake(config: pytest.Config, session: Any) -> str:
    # pytest-benchmark's own grouping and our wrapper; a third one may know words of its own.
    if len(config.hook.pytest_benchmark_group_stats.get_hookimpls()) > 2:
        return ""
    bad = [word for word in session.group_by.split(",") if word not in _GROUPINGS and not word.startswith("param:")]
    return (
        f"--benchmark-group-by={session.group_by}: {', '.join(map(repr, bad))} is not one of "
        f"{', '.join(_GROUPINGS)} or param:NAME, for example param:concurrency"
        if bad
        else ""
    )


def _output_mistake(session: Any) -> str:
    """What would otherwise end in a traceback after everything was measured."""
    if isinstance(session.json, Path):
        folder = session.json.absolute().parent
        if session.json.is_dir() or not os.access(folder, os.W_OK):
            return f"--benchmark-json={session.json}: cannot be written; the folder {folder} must exist and be writable"
    store = getattr(session.storage, "path", None)  # Elasticsearch has none
    if isinstance(store, Path) and (session.save or session.autosave) and not os.access(store, os.W_OK):
        return f"--benchmark-storage: {store} cannot be written"
    if session.histogram and importlib.util.find_spec("pygal") is None:
        return '--benchmark-histogram needs pygal: pip install "pytest-benchmark[histogram]"'
    return ""
