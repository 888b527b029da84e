"""Which providers there are, and how an instance of one is made from its settings.

Kinds come from the entry point group ``sandboxbench.providers``; instances from their own kind's name, or from a table
``[tool.sandboxbench.providers.NAME]`` in ``pyproject.toml`` with ``kind`` and settings.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import UsageError
from ..model import SandboxSpec
from .limits import Limits, Plan, is_limit, read_limits
from .protocol import Provider, ProviderFactory
from .settings import read_settings

__all__ = ["GROUP", "PLANS", "Registry", "parse_option"]

GROUP = "sandboxbench.providers"
PLANS = "sandboxbench.plans"
"""Kind -> ``module:function`` that takes an instance's options and returns what its account may do, or None."""

# For a checkout that is on the path but not installed: an installation's entry points say the same.
_OWN = {
    "bubblewrap": "pytest_sandboxbench.providers.bubblewrap:factory",
    "e2b": "pytest_sandboxbench.providers.e2b:factory",
    "fake": "pytest_sandboxbench.providers.fake:factory",
    "null": "pytest_sandboxbench.providers.null:factory",
}

_OWN_PLANS = {"e2b": "pytest_sandboxbench.providers.e2b:plan"}

# Settings that every kind has: they say what sandbox is asked for, and go to the provider with each create.
_SPEC = ("image", "vcpus", "memory_mib", "pids", "network", "lifetime_s", "allow_unenforced")

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


def parse_option(text: str) -> tuple[str, str, str]:
    """``NAME.KEY=VALUE`` as its parts; the name may hold dots, the key does not. ``ValueError`` with an example."""
    left, equals, value = text.partition("=")
    name, dot, key = left.rpartition(".")
    if not (equals and dot and name and key):
        raise ValueError(f"{text!r} is not NAME.KEY=VALUE; write for example bubblewrap.memory_mib=512")
    return name, key, value


class Registry:
    """Kinds and configured instances, read once. ``overrides`` are the parsed ``--sandbox-option`` values.

    ``more`` are kinds of a test run's own: name -> ``module:attribute``.
    """

    def __init__(
        self,
        root: Path | None,
        overrides: Iterable[tuple[str, str, str]] = (),
        more: Iterable[Mapping[str, str]] = (),
    ) -> None:
        self._targets = dict(_OWN)
        self._plans = {**_OWN_PLANS, **{point.name: point.value for point in entry_points(group=PLANS)}}
        for point in entry_points(group=GROUP):
            if _NAME.fullmatch(point.name):  # another would be no part of a series' name, nor of a test's
                self._targets[point.name] = point.value
        for kinds in more:
            self._add(kinds)
        self._tables = _read_tables(root)
        self._overrides: dict[str, dict[str, str]] = {}
        for name, key, value in overrides:
            self._overrides.setdefault(name, {})[key] = value
        for name in self._overrides:
            self.kind(name)

    def _add(self, kinds: Mapping[str, str]) -> None:
        """``UsageError`` for a name that is none or taken."""
        for name, target in kinds.items():
            if not _NAME.fullmatch(name) or ":" not in target:
                raise UsageError(f"provider {name!r} = {target!r}: write a name and 'package.module:factory'")
            if self._targets.setdefault(name, target) != target:
                raise UsageError(f"provider {name!r} is there already: {self._targets[name]}")

    @property
    def kinds(self) -> list[str]:
        return sorted(self._targets)

    @property
    def names(self) -> list[str]:
        """Every name that ``--provider`` takes."""
        return sorted({*self._targets, *self._tables})

    def kind(self, name: str) -> str:
        """The kind of an instance. ``UsageError`` names the instances there are."""
        if name not in self._targets and name not in self._tables:
            raise UsageError(
                f"unknown provider {name!r}; there are: {', '.join(self.names)}. "
                "`sandboxbench providers` says which of them can run here"
            )
        kind = str(self._tables.get(name, {}).get("kind", name))
        if kind not in self._targets:
            raise UsageError(
                f"[tool.sandboxbench.providers.{name}]: unknown kind {kind!r}; there are: {', '.join(self.kinds)}"
            )
        return kind

    def target(self, name: str) -> str:
        """What makes an instance, as its entry point names it: ``module:attribute``."""
        return self._targets[self.kind(name)]

    def check(self, names: Sequence[str]) -> None:
        """``UsageError`` for a name that is not there or given twice."""
        for name in names:
            self.kind(name)
            if list(names).count(name) > 1:
                raise UsageError(
                    f"provider {name!r} is given twice; two settings of one system get two names in pyproject.toml"
                )

    def options(self, name: str) -> Mapping[str, Any]:
        """Settings from pyproject.toml and over them those from the command line; a dash in a key is an underscore."""
        given = {**_underscored(self._tables.get(name, {})), **_underscored(self._overrides.get(name, {}))}
        return {key: value for key, value in given.items() if key != "kind"}

    def spec(self, name: str) -> SandboxSpec:
        """What is asked of this instance for every sandbox: image, limits, network. ``UsageError`` for a bad value."""
        spec = read_settings(SandboxSpec, name, {k: v for k, v in self.options(name).items() if k in _SPEC})
        for key, example in (("vcpus", "0.5"), ("memory_mib", "512"), ("pids", "64"), ("lifetime_s", "300")):
            value = getattr(spec, key)
            if value is not None and value <= 0:
                raise UsageError(
                    f"provider {name!r}: setting {key} = {value!r} is not above 0; "
                    f"write for example --sandbox-option {name}.{key}={example}"
                )
        return spec

    def remembering(self, name: str, kind: str, options: Mapping[str, Any]) -> Registry:
        """A registry in which ``name`` is of this kind and has these settings; what they leave out is as it is here.

        For an instance that an earlier run had, under another ``pyproject.toml`` perhaps. ``UsageError`` for a kind
        that is not installed.
        """
        if kind not in self._targets:
            raise UsageError(
                f"kind {kind!r} is not installed here: install the package that brings it, or look there by hand and "
                "forget the run: `sandboxbench reap --forget ID`"
            )
        here = self.options(name) if name in self.names and self.kind(name) == kind else {}
        other = Registry(None)
        other._tables[name] = {**here, **options, "kind": kind}
        other.kind(name)
        return other

    def limits(self, name: str) -> Limits:
        """What this project sees to itself for an instance. ``UsageError`` for a bad value."""
        options = self.options(name)
        found = Limits()
        if any(map(is_limit, options)):  # else its module need not be loaded
            found = read_limits(name, options, _own_limits(self._module(name)))
        if found.create_rate is None and (plan := self.plan(name)) is not None:
            return replace(found, create_rate=plan.create_rate)
        return found

    def plan(self, name: str) -> Plan | None:
        """What the account of an instance may do; None where nothing is known of it, or it has no account."""
        target = self._plans.get(self.kind(name))
        if target is None:
            return None
        module, _, attribute = target.partition(":")
        found: Plan | None = getattr(import_module(module), attribute)(self.options(name))
        return found

    def make(self, name: str) -> Provider:
        """Build an instance. ``UsageError`` for settings that its kind does not have."""
        module = self._module(name)
        factory: ProviderFactory = getattr(module, self.target(name).partition(":")[2])
        own, options = _own_limits(module), self.options(name)
        read_limits(name, options, own)
        return factory(name, {k: v for k, v in options.items() if k not in _SPEC and not is_limit(k, own)})

    def _module(self, name: str) -> ModuleType:
        return import_module(self.target(name).partition(":")[0])


def _own_limits(module: ModuleType) -> frozenset[str]:
    """Names of our limits that are settings of the kind's own: the module of its factory says so."""
    return frozenset(getattr(module, "OWN_LIMITS", ()))


def _underscored(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key.replace("-", "_"): value for key, value in table.items()}


def _read_tables(root: Path | None) -> dict[str, dict[str, Any]]:
    if root is None:
        return {}
    path = root / "pyproject.toml"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: {error}") from None
    tables: Any = document
    for name in ("tool", "sandboxbench", "providers"):
        tables = tables.get(name, {})
        if not isinstance(tables, dict):
            raise UsageError(f"{path}: tool.sandboxbench.providers must be tables, one a provider instance")
    found: dict[str, Any] = tables
    for name, table in found.items():
        if not isinstance(table, dict) or not _NAME.fullmatch(name):
            raise UsageError(
                f"{path}: [tool.sandboxbench.providers.{name}] must be a table, "
                "its name made of letters, digits, '.', '_' and '-'"
            )
    return found
