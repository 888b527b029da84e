"""From a test to the names of what it measures: its variants, and the block that it is a view on."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import iscoroutinefunction
from typing import Any

import pytest

from . import options
from .fixtures import used_by as is_ours
from .load.operations import Scenario, scenario_of, shown_operations
from .load.shapes import parse_shape
from .load.state import State
from .markers import read
from .records.schema import key_text

__all__ = [
    "block_id",
    "is_coroutine",
    "is_ours",
    "is_parametrized",
    "level",
    "measures",
    "own_name",
    "scenario",
    "shape",
    "variants",
]


def measures(item: pytest.Item) -> bool:
    return is_ours(item) and "sandbox_bench" in getattr(item, "fixturenames", ())


def is_coroutine(item: pytest.Item) -> bool:
    return iscoroutinefunction(getattr(item, "function", None))


def scenario(config: pytest.Config, operation: str) -> Scenario:
    """The built-in scenario as a run's options have it. ``UsageError`` names those there are."""
    state = State(options.get(config, "held"), options.get(config, "written"))
    return scenario_of(operation).holding(state)


def own_name(item: pytest.Item) -> str:
    """What a bench of somebody's own is called where its marker gives no name."""
    return str(getattr(item, "originalname", None) or item.name).removeprefix("test_")


def block_id(item: pytest.Item) -> str:
    """Tests of one scenario share a block, whatever their provider; a bench of somebody's own is one by itself.

    So do those of one level and shape: ``start@4``, ``start@4/closed-100``.
    """
    operation = read(item).operation
    if operation is not None and shown_operations(operation):
        name = scenario_of(operation).name
    else:
        # The function with its file and class, so that two of one name are not taken for one.
        name = item.nodeid.partition("[")[0].removesuffix(".py").replace(".py::", "::")
    inside = ",".join(f"{k}={v}" for k, v in variants(item))
    chosen = shape(item)
    let_go = "" if chosen == "burst" else f"/{chosen}"
    return f"{name}{'{' + inside + '}' if inside else ''}@{level(item)}{let_go}"


def shape(item: pytest.Item) -> str:
    """How the lanes of a test's block are let go: its marker's word, else the option's.

    ``UsageError`` names the test where its level is too high for that.
    """
    chosen: str = read(item).shape or options.get(item.config, "shape")
    if lacking := parse_shape(chosen).lacks(level(item)):
        raise pytest.UsageError(f"{item.nodeid}: {lacking}; write for example closed-{level(item) * 10}")
    return chosen


def variants(item: pytest.Item) -> tuple[tuple[str, str], ...]:
    """Parameters of a test beside provider and level: they become variants of its series."""
    indices: Mapping[str, int] = getattr(getattr(item, "callspec", None), "indices", {})
    others = {k: v for k, v in _params(item).items() if k not in ("sandbox_provider", "concurrency")}
    return tuple(sorted((key_text(name), _value(name, value, indices.get(name, 0))) for name, value in others.items()))


def is_parametrized(metafunc: pytest.Metafunc, name: str) -> bool:
    for marker in metafunc.definition.iter_markers("parametrize"):
        names = marker.args[0] if marker.args else marker.kwargs.get("argnames", "")
        if name in (names.replace(" ", "").split(",") if isinstance(names, str) else names):
            return True
    return False


def level(item: pytest.Item) -> int:
    return int(_params(item).get("concurrency", 1))


def _params(item: pytest.Item) -> Mapping[str, Any]:
    callspec = getattr(item, "callspec", None)
    return callspec.params if callspec is not None else {}


def _value(name: str, value: object, index: int) -> str:
    """As in pytest's own ids: an object that would print as another at each run is known by its place."""
    if value is None or isinstance(value, str | int | float | bool | complex):
        return key_text(str(value))
    named = getattr(value, "__name__", None) or getattr(value, "name", None)
    return key_text(named if isinstance(named, str) else f"{name}{index}")
