"""Our series in the shape that pytest-benchmark keeps results in.

The only file that imports pytest_benchmark, so it is itself imported late.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pytest_benchmark.logger import PytestBenchmarkWarning
from pytest_benchmark.stats import Metadata, Stats, normalize_stats

__all__ = ["PytestBenchmarkWarning", "RegressionWatch", "SeriesMetadata", "SeriesStats", "hand_over"]


def hand_over(storage: Any, path: Path, document: dict[str, Any]) -> None:
    """A saved run that was read and checked goes to pytest-benchmark's storage, which would read the file again."""
    for result in document["benchmarks"]:
        normalize_stats(result["stats"])  # type: ignore[no-untyped-call]
    cache = getattr(storage, "_cache", None)
    if isinstance(cache, dict):
        cache[path] = document


class SeriesStats(Stats):
    """pytest-benchmark's statistics and ours behind them, over the latencies in seconds.

    A figure named like one of pytest-benchmark's own is refused: two meanings under one name.
    """

    def __init__(self, figures: Mapping[str, float]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        taken = sorted({*figures} & {*Stats.fields, "data", "iterations"})
        if taken:
            raise ValueError(f"pytest-benchmark has statistics named {', '.join(taken)} already: choose other names")
        self.figures = dict(figures)

    def as_dict(self) -> dict[str, Any]:
        return {**super().as_dict(), **self.figures}  # type: ignore[no-untyped-call]

    def __getattr__(self, name: str) -> Any:
        # So that a check on "p95" finds it. Only called for names that the class does not have.
        figures: dict[str, float] = self.__dict__.get("figures", {})
        if name in figures:
            return figures[name]
        raise AttributeError(name)


class SeriesMetadata(Metadata):
    """One result. Its raw samples are always saved: a comparison of medians with an interval needs them."""

    def __init__(
        self,
        *,
        name: str,
        fullname: str,
        group: str,
        param: str | None,
        params: Mapping[str, Any],
        extra_info: Mapping[str, Any],
        figures: Mapping[str, float],
        latencies_ns: Iterable[int],
    ) -> None:
        fixture = SimpleNamespace(
            name=name,
            fullname=fullname,
            group=group,
            param=param,
            params=dict(params),
            extra_info=dict(extra_info),
            cprofile_stats=None,
            has_error=False,
        )
        options = {"timer": "time.monotonic_ns", "disable_gc": False}
        super().__init__(fixture, iterations=1, options=options)  # type: ignore[no-untyped-call]
        self.stats = SeriesStats(figures)
        # The nearest double of ns / 1e9 prints as the decimal number of nanoseconds: nothing is lost in the JSON.
        self.stats.data.extend(ns / 1e9 for ns in latencies_ns)

    def as_dict(
        self, include_data: bool = True, flat: bool = False, stats: bool = True, cprofile: Any = None
    ) -> dict[str, Any]:
        # The flat form goes to the table, which has no use for the samples.
        with_data = include_data or not flat
        whole: dict[str, Any] = super().as_dict(with_data, flat, stats, cprofile)  # type: ignore[no-untyped-call]
        return whole


class RegressionWatch:
    """A check of ``--benchmark-compare-fail`` that hands what fails on our series to ``found``.

    ``found(current, compared, check, text)`` says whether it took the failure; otherwise pytest-benchmark gets it.
    """

    def __init__(self, check: Any, found: Any) -> None:
        self.check = check
        self.found = found

    def __getattr__(self, name: str) -> Any:
        return getattr(self.check, name)

    def fails(self, current: Any, compared: Mapping[str, Any]) -> str | None:
        text: str | None = self.check.fails(current, compared)
        return None if text and self.found(current, compared, self.check, text) else text
