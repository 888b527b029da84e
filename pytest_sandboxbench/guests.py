"""Whether a guest has what was asked for: a number of another machine would be no number of this one."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .errors import CreateFailed
from .model import SandboxSpec

__all__ = ["Unlike"]

_LEAST, _MOST = 0.85, 1.05
"""Of the memory asked for: a guest's kernel keeps some for itself before it tells how much there is."""


class Unlike:
    """The providers whose guests have another machine than was asked for. Nothing of them is measured."""

    def __init__(self) -> None:
        self._why: dict[str, CreateFailed] = {}

    def compare(self, name: str, spec: SandboxSpec, facts: Mapping[str, str], known: Collection[str]) -> None:
        """``CreateFailed`` where the guest says otherwise. ``known`` are limits of which somebody else has told.

        ``facts`` are those that the guest told of itself; where it told nothing, nothing is known.
        """
        asked = {"vcpus": spec.vcpus, "memory_mib": spec.memory_mib}
        has = {key: int(facts[key]) for key in asked if facts.get(key, "").isdigit()}
        for key, value in asked.items():
            if value is None or key in known or key not in has:
                continue
            same = has[key] == value if key == "vcpus" else _LEAST * value <= has[key] <= _MOST * value
            if not same:
                self._why[name] = CreateFailed(
                    f"a sandbox of {name} with {key}={value:g}",
                    said=f"inside there is {key}={has[key]}",
                    cure="measure what there is, and leave the setting out, or name an image that has it",
                )
        self.check(name)

    def check(self, name: str) -> None:
        """``CreateFailed`` for one that was unlike."""
        if name in self._why:
            raise self._why[name]
