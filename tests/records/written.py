"""Records as the tests write them: samples, headers, folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pytest_sandboxbench.model import Sample, SeriesKey
from pytest_sandboxbench.records.schema import SCHEMA, encode, lines
from pytest_sandboxbench.records.spool import Spool

HEADER: dict[str, Any] = {
    "schema": SCHEMA,
    "run_id": "20260101-000000-abcdef",
    "host": {"cpu": "a CPU", "cpus_usable": 2, "system": "Linux", "kernel": "6.1", "python": "3.11"},
    "operations": {
        "startup": {"start": "before create", "end": "the first command returned 0"},
        "exec": {"start": "before the command", "end": "it returned 0"},
    },
    "providers": {
        "fake": {"isolation": "scripted", "facts": {"version": "1"}},
        "null": {"isolation": "none", "facts": {}},
    },
    "guests": {},
    "blocks": [
        {
            "providers": ["fake", "null"],
            "operations": ["startup"],
            "asked": {"fake": ["startup"], "null": ["startup"]},
            "id": "start@1",
            "variants": {},
            "level": 1,
            "shape": "burst",
            "floor": "null",
            "complete": True,
            "warmup": 0,
        }
    ],
}


def sample(provider: str = "fake", operation: str = "startup", level: int = 1, **more: Any) -> Sample:
    """One sample; ``ms`` is its latency."""
    latency_ns = int(more.pop("ms", 10) * 1_000_000)
    number, lane = more.pop("round", 0), more.pop("lane", 0)
    variants = more.pop("variants", ())
    at = more.pop("at", 1_000_000_000 * (number + 1))
    chosen: dict[str, Any] = {
        "key": SeriesKey(provider, operation, variants, "", level),
        "round": number,
        "lane": lane,
        "turn": number,
        "scheduled_ns": at,
        "released_ns": at,
        "started_ns": at + min(1000, latency_ns),
        "ended_ns": at + latency_ns,
        **more,
    }
    return Sample(**chosen)


def folder(path: Path, *samples: Sample, header: dict[str, Any] | None = None) -> Path:
    """A folder of records with these samples."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "run.json").write_text(json.dumps(HEADER if header is None else header))
    spool = Spool(path)
    spool.append(lines(encode(one, 0) for one in samples))
    spool.close()
    assert spool.problem == ""
    return path
