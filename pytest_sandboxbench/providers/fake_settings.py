"""The settings of the scripted provider, read and checked."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args

from ..errors import UsageError
from ..model import Capabilities, PauseKind, SpanDeclaration
from .fake_script import OPERATIONS, Script, Step, parse_items, parse_script, parse_seconds
from .settings import read_settings

__all__ = ["FakeSettings", "Plan", "read_plan"]

T = TypeVar("T")

_LIMITS = ("vcpus", "memory_mib", "pids")
_PATHS = ("cold", "pool", "snapshot")
_PHASED = ("create", "resume")


@dataclass(frozen=True, slots=True)
class FakeSettings:
    """Everything is optional: without settings all is instant, succeeds, and can pause.

    The first twelve are scripts, one an operation: see :mod:`.fake_script`.

    ``ready_after``    seconds from the end of create until commands are answered, or ``never``; ``NotReady`` before
    ``create_phases``  ``NAME:SECONDS``, reported as phases; they pass one after another, then comes the script
    ``lock``           ``serial``: what ``lock_on`` names goes through one gate, ``lock_width`` at once; it names
                       operations, or phases of them as ``create.boot``
    ``max_live``       further creates are rejected (quota), or wait while fewer than ``max_queued`` do (queue)
    ``create_rate``    creates a second; further ones are rejected (rate)
    ``reject_delay``   seconds until a rejection by one of these limits
    ``path``           how creates are said to be served, in turn: ``pool``, ``2xpool,cold``
    ``spans``          ``OPERATION:SECONDS`` (the step in which its end is seen) or ``OPERATION:TEXT`` (what its end is)
    ``commands``       ``NAME`` or ``NAME:OUTPUT``: more commands that return 0
    ``facts``          ``KEY:VALUE``: what the guest says of itself; ``vcpus`` and ``memory_mib`` default to the spec's
    ``stream_gap``     seconds between two lines of a stream
    ``jitter``         sigma of a lognormal factor of median 1 on all delays; ``seed`` makes it another
    ``state_dir``      a folder, fresh for each run, through which processes share sandboxes, limits, locks and scripts
    ``log``            a file that gets one JSON line a call
    ``missing``        the reason why the provider is not ready; ``cure`` is the advice that goes with it
    """

    create: tuple[str, ...] = ()
    exec: tuple[str, ...] = ()
    write_file: tuple[str, ...] = ()
    read_file: tuple[str, ...] = ()
    pause: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()
    destroy: tuple[str, ...] = ()
    round_trip: tuple[str, ...] = ()
    run_once: tuple[str, ...] = ()
    preflight: tuple[str, ...] = ()
    owned: tuple[str, ...] = ()
    aclose: tuple[str, ...] = ()
    ready_after: str = "0"
    create_phases: tuple[str, ...] = ()
    resume_phases: tuple[str, ...] = ()
    lock: Literal["none", "serial"] = "none"
    lock_on: tuple[str, ...] = ("create",)
    lock_width: int = 1
    max_live: int | None = None
    max_queued: int | None = None
    create_rate: float | None = None
    reject_delay: float = 0.0
    pause_kinds: tuple[str, ...] = ("memory",)
    limits: tuple[str, ...] = _LIMITS
    one_shot: bool = True
    hosted: bool = False
    path: tuple[str, ...] = ("cold",)
    spans: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    stream_gap: float = 0.0
    jitter: float = 0.0
    seed: int = 0
    state_dir: str | None = None
    log: str | None = None
    missing: str | None = None
    cure: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings as the provider uses them. ``said`` are those that were set, for the facts of the run."""

    settings: FakeSettings
    scripts: Mapping[str, Script[Step]]
    phases: Mapping[str, tuple[tuple[str, float], ...]]
    ready_after_s: float
    locked: frozenset[str]
    paths: Script[str]
    commands: Mapping[str, str]
    facts: Mapping[str, str]
    capabilities: Capabilities
    state_dir: Path | None
    log_file: Path | None
    said: Mapping[str, str]


def read_plan(name: str, options: Mapping[str, Any]) -> Plan:
    """Read and check all settings; ``UsageError`` for the first one that is wrong."""
    s = read_settings(FakeSettings, name, {key: _plain(value) for key, value in options.items()})
    reader = _Reader(name)
    for key, least in (("lock_width", 1), ("max_live", 0), ("max_queued", 0)):
        reader.at_least(key, getattr(s, key), least)
    for key in ("reject_delay", "stream_gap", "jitter"):
        reader.at_least(key, getattr(s, key), 0)
    if s.create_rate is not None and not (s.create_rate > 0 and math.isfinite(s.create_rate)):
        raise reader.wrong("create_rate", s.create_rate, "is not a number above 0", "10")
    if s.max_queued is not None and s.max_live is None:
        raise reader.wrong("max_queued", s.max_queued, "needs max_live: creates wait for room under it", "5")
    phases = {op: reader.phases(f"{op}_phases", getattr(s, f"{op}_phases")) for op in _PHASED}
    pauses = reader.words("pause_kinds", s.pause_kinds, get_args(PauseKind))
    limits = reader.words("limits", s.limits, _LIMITS)
    lockable = (*OPERATIONS, *(f"{op}.{phase}" for op in _PHASED for phase, _ in phases[op]))
    locked = reader.words("lock_on", s.lock_on, lockable)
    capabilities = Capabilities(
        isolation="scripted",
        pause=cast("tuple[PauseKind, ...]", pauses),
        stream=True,
        files=True,
        network_off=True,
        one_shot=s.one_shot,
        shell=False,
        limits=frozenset(limits),
        labels=s.state_dir is not None,
        hosted=s.hosted,
        max_live=s.max_live,
        spans=tuple(_span(op, what) for op, what in reader.pairs("spans", s.spans, "destroy:0.1").items()),
    )
    return Plan(
        settings=s,
        scripts={op: parse_script(name, op, getattr(s, op)) for op in OPERATIONS},
        phases=phases,
        ready_after_s=math.inf
        if s.ready_after == "never"
        else reader.read("ready_after", s.ready_after, parse_seconds, "is not a number of seconds or never", "0.8"),
        locked=frozenset(locked) if s.lock == "serial" else frozenset(),
        paths=reader.read("path", s.path, _paths, f"is not a list of {', '.join(_PATHS)}", "2xpool,cold"),
        commands={name: text + "\n" if text else "" for name, _, text in (c.partition(":") for c in s.commands)},
        facts=reader.pairs("facts", s.facts, "kernel:6.1"),
        capabilities=capabilities,
        state_dir=Path(s.state_dir) if s.state_dir else None,
        log_file=Path(s.log) if s.log else None,
        said={f.name: _text(getattr(s, f.name)) for f in dataclasses.fields(s) if getattr(s, f.name) != f.default},
    )


def _plain(value: Any) -> Any:
    """TOML's single numbers and tables, as the lists of texts that they stand for."""
    if isinstance(value, Mapping):
        return [f"{k}:{v}" for k, v in value.items()]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value


def _text(value: Any) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _span(operation: str, what: str) -> SpanDeclaration:
    try:
        resolution_s = parse_seconds(what)
    except ValueError:
        return SpanDeclaration(operation, end=what)
    return SpanDeclaration(operation, resolution_s=resolution_s, polling=f"every {what} s")


def _paths(items: tuple[str, ...]) -> Script[str]:
    def read(item: str) -> str:
        if item not in _PATHS:
            raise ValueError(item)
        return item

    return parse_items(items or ("cold",), read)


class _Reader:
    """Reads values; its errors name the instance, the setting, the value, what is allowed and an example."""

    def __init__(self, instance: str) -> None:
        self._instance = instance

    def wrong(self, key: str, value: object, why: str, example: str) -> UsageError:
        return UsageError(
            f"provider {self._instance!r}: setting {key} = {value!r} {why}; "
            f"write for example --sandbox-option {self._instance}.{key}={example}"
        )

    def read(self, key: str, value: Any, parse: Callable[[Any], T], why: str, example: str) -> T:
        try:
            return parse(value)
        except ValueError:
            raise self.wrong(key, _text(value), why, example) from None

    def at_least(self, key: str, value: float | None, least: int) -> None:
        if value is not None and not (value >= least and math.isfinite(value)):
            raise self.wrong(key, value, f"is not a number from {least} on", str(max(1, least)))

    def words(self, key: str, items: tuple[str, ...], allowed: tuple[str, ...]) -> tuple[str, ...]:
        if items == ("none",):
            return ()
        for item in items:
            if item not in allowed:
                raise self.wrong(key, item, f"is not one of {', '.join(allowed)}, or none", allowed[0])
        return items

    def pairs(self, key: str, items: tuple[str, ...], example: str) -> dict[str, str]:
        pairs = {}
        for item in items:
            name, colon, value = item.partition(":")
            if not (name and colon and value):
                raise self.wrong(key, item, "is not NAME:VALUE", example)
            pairs[name] = value
        return pairs

    def phases(self, key: str, items: tuple[str, ...]) -> tuple[tuple[str, float], ...]:
        why, example = "is not NAME:SECONDS", "boot:0.03,agent:0.02"
        pairs = self.pairs(key, items, example)
        return tuple((name, self.read(key, text, parse_seconds, why, example)) for name, text in pairs.items())
