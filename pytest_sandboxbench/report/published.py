"""What goes beside a series into pytest-benchmark's JSON, so that a saved baseline explains itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..records.series import Series, block_of
from ..stats import Summary
from .limiter import limiter, rejections
from .table import row_of, summary_of

__all__ = ["extra_info", "figures"]


def extra_info(series: Series, header: Mapping[str, Any]) -> dict[str, Any]:
    """Facts and results under one name: span, provider, host, interval, outcomes."""
    row = row_of(series)
    summary = row.summary
    provider = header.get("providers", {}).get(series.key.provider, {})
    block = block_of(header, series.key)
    return {
        "sandboxbench": {
            "series": str(series.key),
            "span": header.get("operations", {}).get(series.key.operation, {}),
            "adapter_span": provider.get("spans", {}).get(series.key.operation, {}),
            "provider": {k: v for k, v in provider.items() if k != "spans"},
            "guest": header.get("guests", {}).get(series.key.provider, {}),
            "host": header.get("host", {}),
            "run_id": header.get("run_id"),
            "warmup_rounds": block.get("warmup"),
            "workers": block.get("workers"),
            "complete": block.get("complete"),
            "median_interval_ns": [summary.low, summary.high],
            "units": summary.units,
            "outcomes": dict(series.outcomes),
            "throughput_per_s": row.throughput,
            "generator": _generator(series, summary),
            "limiter": limiter(series, header),
            "rejections_median_ns": {outcome: found.median for outcome, found in rejections(series).items()},
            "phases_median_ns": {name: sorted(values)[len(values) // 2] for name, values in series.phases.items()},
        }
    }


def _generator(series: Series, summary: Summary) -> dict[str, Any] | None:
    """What the load generator did, where there were several lanes."""
    found = series.generator()
    if found is None:
        return None
    return {
        "spread_median_ns": found.spread_ns,
        "spread_worst_ns": found.worst_spread_ns,
        "queue_median_ns": found.queue_ns,
        "lag_median_ns": summary.lag,
        "lag_share": summary.lag_share,
        "bound": summary.generator_bound,
        "achieved": list(found.achieved_range),
        "lanes": series.key.level,
    }


def figures(series: Series) -> dict[str, float]:
    """Numbers that join pytest-benchmark's own: percentiles in seconds where the samples allow them, success rate."""
    summary = summary_of(series)
    found = {"p95": summary.p95, "p99": summary.p99}
    out = {name: value / 1e9 for name, value in found.items() if value is not None}
    if summary.success_rate is not None:
        out["success_rate"] = summary.success_rate
    return out
