"""The table: what is shown, in how many columns, and what bad samples look like in it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pytest_sandboxbench.model import Sample, SeriesKey
from pytest_sandboxbench.records.read import read_run
from pytest_sandboxbench.records.schema import encode
from pytest_sandboxbench.records.series import SeriesTable
from pytest_sandboxbench.report.notes import notes
from pytest_sandboxbench.report.published import extra_info, figures
from pytest_sandboxbench.report.table import Line, build, describe_row, render, row_of
from pytest_sandboxbench.report.text import columns
from tests.records.written import HEADER, folder, sample

WIDTHS = (60, 80, 100, 200)


def table(samples: Sequence[Sample], width: int = 200, header: dict[str, Any] | None = None) -> list[Line]:
    header = HEADER if header is None else header
    series = SeriesTable()
    for one in samples:
        series.add(encode(one, 0))
    groups = build(series, header)
    return [*render(groups, header, width), *notes(groups, header, width)]


def texts(lines: Sequence[Line]) -> list[str]:
    return [line.text for line in lines]


def cells(lines: Sequence[Line], provider: str = "fake") -> dict[str, str]:
    """The row of a provider, by the titles of its columns; cells end where their titles end."""
    head = lines[0].text
    row = next(line.text for line in lines if line.text.startswith(f"  {provider} ") and line.kind != "note")
    out, start = {}, 2 + len(provider)
    for title in head.split("  ")[1:]:
        if title := title.strip():
            end = head.index(f" {title}", start) + 1 + len(title)
            out[title], start = row[start:end].strip(), end
    return out


def many(n: int, provider: str = "fake", ms: float = 10, **more: Any) -> list[Sample]:
    return [sample(provider, round=i, ms=ms * (1 + i / 100), **more) for i in range(n)]


FULL = [*many(120), *many(120, "null", ms=2)]


def test_all_columns_where_there_is_room() -> None:
    row = cells(table(FULL))
    assert ", ".join(row) == "n, median, 95 % interval, range, p95, p99, mean, sd, ok, × floor, × interval"
    assert row["n"] == "120"
    assert row["median"] == "15.9 ms"
    assert row["range"] == "10.0-21.9"
    assert row["mean"] == "15.9"
    assert row["ok"] == "100 %"
    assert row["× floor"] == "5.00×"
    assert cells(table(FULL), "null")["× floor"] == "floor"
    assert cells(table(FULL), "null")["× interval"] == ""


def test_the_least_important_columns_go_first() -> None:
    titles: list[list[str]] = []
    for width in range(200, 59, -1):
        shown = list(cells(table(FULL, width)))
        if not titles or titles[-1] != shown:
            titles.append(shown)
    gone = [(set(before) - set(after)) for before, after in pairwise(titles)]
    assert gone[:5] == [{"× interval"}, {"sd"}, {"mean"}, {"p99"}, {"p95"}]
    assert {"n", "median", "ok"} <= set(titles[-1]), "failures are told at any width"
    assert "× floor" in list(cells(table(FULL, 80)))
    assert "ok" in list(cells(table(FULL, 80)))


LONG = "a-very-long-name-of-an-instance-that-somebody-chose-for-a-provider-in-their-pyproject.toml"


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_longer_than_the_width(width: int) -> None:
    error = "word " * 100 + "x" * 500 + " 沙箱" * 200
    samples = [
        *FULL,
        *many(3, LONG),
        sample(LONG, outcome="failed", error=error),
        sample("沙箱" * 20, outcome="failed", error="\x1b[2J" * 50),
        *many(2, operation="exec", level=1000, ms=1e7),
        *many(2, operation="x" * 300),
        *many(2, operation="exec", variants=(("a", "b" * 300),)),
    ]
    names = {s.key.provider for s in samples}
    operations = sorted({s.key.operation for s in samples})
    blocks = [
        {**HEADER["blocks"][0], "level": level, "asked": dict.fromkeys(names, operations), "providers": sorted(names)}
        for level in (1, 1000)
    ]
    header = {
        **HEADER,
        "blocks": blocks,
        "providers": {name: {"isolation": "y" * 300, "facts": {"version": "z" * 300}} for name in names},
        "host": {"cpu": "\x1b[31m" * 100, "cpus_usable": "w" * 300, "kernel": "k\n" * 300},
    }
    lines = table(samples, width, header)
    assert [line for line in texts(lines) if columns(line) > width] == []
    assert all(line.text.isprintable() for line in lines)
    assert any(line.kind == "bad" and "…" in line.text for line in lines)


def test_rows_line_up_below_the_head() -> None:
    lines = table([*FULL, *many(3, "沙箱")], 80, _asking("沙箱"))
    ends = {columns(line.text.rstrip()) for line in lines if line.kind in ("head", "row", "floor")}
    assert len(ends) == 1


def _asking(*names: str, operations: Sequence[str] = ("startup",), level: int = 1) -> dict[str, Any]:
    asked = {name: list(operations) for name in ("fake", "null", *names)}
    block = {**HEADER["blocks"][0], "providers": list(asked), "asked": asked, "level": level}
    return {**HEADER, "blocks": [block], "providers": {**HEADER["providers"], **{name: {} for name in names}}}


def test_a_series_that_failed_altogether_has_a_row() -> None:
    lines = table([*(sample(round=n, outcome="failed", error="no room") for n in range(4)), *many(4, "null")])
    row = cells(lines)
    assert (row["n"], row["median"], row["range"], row["ok"]) == ("0", "n/a", "n/a", "0.0 %")
    assert "    4 failed of 4: no room" in texts(lines)
    assert {line.kind for line in lines if "fake " in line.text and line.kind != "note"} == {"bad"}


def test_failures_and_rejections_are_counted_apart() -> None:
    samples = [
        *many(5),
        sample(round=5, outcome="failed", error="broken"),
        sample(round=6, outcome="timeout", error="late"),
        sample(round=7, outcome="rejected(quota)", error="full"),
        sample(round=8, outcome="rejected(quota)", error="full"),
        sample(round=9, outcome="rejected(rate)", error="slow down"),
    ]
    lines = table(samples)
    assert "    1 failed, 2 rejected(quota), 1 rejected(rate), 1 timeout of 10: broken" in texts(lines)
    assert cells(lines)["n"] == "5"
    assert cells(lines)["ok"] == "50.0 %"


def test_rejections_alone_are_shown_and_are_no_failure() -> None:
    lines = table([*many(3), sample(round=3, outcome="rejected(capacity)", error="no host")])
    assert "    1 rejected(capacity) of 4: no host" in texts(lines)
    assert next(line for line in lines if line.text.startswith("  fake ")).kind == "row"


def test_success_is_never_rounded_up_to_all() -> None:
    samples = [*many(3000, ms=1), sample(round=3000, outcome="failed", error="once")]
    assert cells(table(samples))["ok"] == "99.9 %"


@pytest.mark.parametrize(("n", "p95"), [(19, None), (20, "11.8")])
def test_p95_from_20_on(n: int, p95: str | None) -> None:
    row = cells(table([*many(n), *many(100, "null")]))
    assert row["p95"] == (p95 or "n/a")
    assert row["p99"] == "n/a"
    assert ("p95" in figures(row_of(_series(many(n))).series)) == bool(p95)


def _series(samples: Sequence[Sample]) -> Any:
    series = SeriesTable()
    for one in samples:
        series.add(encode(one, 0))
    return next(iter(series))


def test_too_few_for_an_interval() -> None:
    assert cells(table(many(5)))["95 % interval"] == "n/a"
    assert cells(table(many(6)))["95 % interval"] == "10.0-10.5"


def test_a_floor_of_no_time_makes_no_ratio() -> None:
    row = cells(
        table([*many(3), *(sample("null", round=n, ms=0, started_ns=1_000_000_000 * (n + 1)) for n in range(3))])
    )
    assert row.get("× floor", "") == ""


def test_ratios_are_paired_round_by_round() -> None:
    """Every round is 3 times its floor, though the rounds differ by a factor of 8."""
    ms = [1, 2, 4, 8, 4, 2, 1]
    samples = [
        s for n, value in enumerate(ms) for s in (sample(round=n, ms=3 * value), sample("null", round=n, ms=value))
    ]
    assert cells(table(samples))["× interval"] == "3.00-3.00"


def test_rate_only_under_load() -> None:
    assert "rate" not in cells(table(FULL))
    samples = [sample(round=n, lane=lane, level=4, ms=100) for n in range(3) for lane in range(4)]
    assert cells(table(samples, header=_asking(level=4)))["rate"] == "40.0/s"


@pytest.mark.parametrize(("shape", "rate"), [("burst", None), ("closed-4", 10.0), ("closed-1s", 10.0)])
def test_one_lane_that_begins_again_and_again_has_a_rate(shape: str, rate: float | None) -> None:
    key = SeriesKey("fake", "startup", (), "", 1, shape)
    samples = [sample(key=key, ms=100, at=10**9 + n * 10**8) for n in range(4)]
    header = {**HEADER, "blocks": [{**HEADER["blocks"][0], "shape": shape}]}
    lines = table(samples, header=header)
    assert cells(lines).get("rate") == (rate and "10.0/s")
    assert any(text.startswith("rate: ") for text in texts(lines)) == bool(rate)
    assert extra_info(_series(samples), header)["sandboxbench"]["throughput_per_s"] == rate


def test_shown_is_what_was_asked_for() -> None:
    samples = [*many(3), *many(3, operation="exec"), *many(3, "null"), *many(3, "other")]
    series = SeriesTable()
    for one in samples:
        series.add(encode(one, 0))
    shown = [[str(row.key) for row in group] for group in build(series, HEADER)]
    assert shown == [["fake:startup@1/burst", "null:startup@1/burst"]]
    everything = [[str(row.key) for row in group] for group in build(series, HEADER, everything=True)]
    assert everything == [
        ["fake:startup@1/burst", "other:startup@1/burst", "null:startup@1/burst"],
        ["fake:exec@1/burst"],
    ]


def test_a_definition_stands_once_for_all_levels() -> None:
    header = _asking()
    header["blocks"] = [{**header["blocks"][0], "level": level} for level in (1, 4)]
    titles = [line.text for line in table([*many(3), *many(3, level=4)], 80, header) if line.kind == "title"]
    assert titles == ["startup: before create → the first command returned 0", "startup @4/burst"]


def test_pauses_of_different_kinds_stand_beside_each_other() -> None:
    memory, frozen = (("kind", "memory"),), (("kind", "frozen"),)
    samples = [*many(3, operation="pause", variants=memory), *many(3, "null", operation="pause", variants=frozen)]
    lines = table(samples, header=_asking(operations=["pause"]))
    assert [line.text for line in lines if line.kind == "title"] == ["pause"]
    assert cells(lines, "fake (memory)")["n"] == cells(lines, "null (frozen)")["n"] == "3"
    assert cells(lines, "fake (memory)")["× floor"] == "(1.00×)"
    assert any(line.text.startswith("(×): the floor pauses in another way") for line in lines)
    alone = table(samples[:3], header=_asking(operations=["pause"]))
    assert [line.text for line in alone if line.kind == "title"] == ["pause{kind=memory}"]


def test_nothing_measured_nothing_shown() -> None:
    assert table([]) == []
    assert table([sample(warmup=True)]) == []


def test_notes_say_how_the_interval_is_made() -> None:
    one = " ".join(texts(table(many(3))))
    assert "one sandbox is one unit" in one
    assert "bootstrap" not in one
    several = " ".join(texts(table([sample(level=4, lane=n) for n in range(4)], header=_asking(level=4))))
    assert "a bootstrap over rounds, one round of all lanes is one unit" in several
    assert "order statistics" not in several


def test_a_series_in_one_line() -> None:
    assert describe_row(row_of(_series(many(20)))) == "startup 10.9 ms (10.5-11.4), n 20"
    assert describe_row(row_of(_series([sample(outcome="failed")]))) == "startup: no successful sample of 1"


def test_the_same_digits_live_and_from_disk(tmp_path: Path) -> None:
    """The live table is made of the samples as they are spooled; a report reads the same from the disk."""
    samples = [*FULL, *many(30, "null", ms=1.23456), sample(round=200, outcome="failed", error="x")]
    run = read_run(folder(tmp_path, *samples))
    for width in WIDTHS:
        groups = build(run.series, run.header)
        assert [*render(groups, run.header, width), *notes(groups, run.header, width)] == table(samples, width)


def test_what_goes_into_a_saved_baseline(tmp_path: Path) -> None:
    run = read_run(folder(tmp_path, *FULL, sample(round=200, outcome="failed", error="x")))
    series = run.series.get("fake:startup@1/burst")
    assert series is not None
    info = extra_info(series, run.header)["sandboxbench"]
    assert info["series"] == "fake:startup@1/burst"
    assert info["span"] == HEADER["operations"]["startup"]
    assert info["outcomes"] == {"ok": 120, "failed": 1}
    assert info["units"] == 120
    low, high = info["median_interval_ns"]
    assert low < 15_950_000 < high
    assert info["generator"] is None, "one lane waits for nobody"
    assert figures(series)["success_rate"] == 120 / 121
    assert 0.02 < figures(series)["p95"] < figures(series)["p99"] < 0.022


def test_a_saved_baseline_has_the_warmups_of_its_own_shape() -> None:
    shapes = {"burst": 1, "rate-20": 3, "closed-8": 2}
    block = _asking(level=4)["blocks"][0]
    header = {**HEADER, "blocks": [{**block, "shape": shape, "warmup": n} for shape, n in shapes.items()]}
    for shape, warmups in shapes.items():
        series = _series([sample(key=SeriesKey("fake", "startup", (), "", 4, shape))])
        assert extra_info(series, header)["sandboxbench"]["warmup_rounds"] == warmups


def test_what_the_generator_did_goes_into_a_saved_baseline() -> None:
    """Two rounds of four lanes, one round with a lane 1 ms late."""
    samples = [
        sample(level=4, round=n, lane=lane, started_ns=10**9 * (n + 1) + 1000 + (1_000_000 if n == lane == 1 else 0))
        for n in range(2)
        for lane in range(4)
    ]
    info = extra_info(_series(samples), _asking(level=4))["sandboxbench"]["generator"]
    assert info == {
        "spread_median_ns": 500_000,
        "spread_worst_ns": 1_000_000,
        "queue_median_ns": 1000,
        "lag_median_ns": 1000,
        "lag_share": 0.0001,
        "bound": False,
        "achieved": [4, 4],
        "lanes": 4,
    }


def test_what_a_reader_must_not_overlook_is_said() -> None:
    """An interrupted block, a busy host, settings, limits, and lanes that began late."""
    header = _asking(level=4)
    header["blocks"][0].update(complete=False, id="start@4")
    header["host"] = {**HEADER["host"], "load_average": [3.0, 2.0, 1.0]}
    header["providers"] = {"fake": {**HEADER["providers"]["fake"], "options": {"memory_mib": 64}}}
    header["limits"] = {"fake": {"enforced": {"memory_mib": "64"}, "unenforced": ["vcpus"]}}
    late = [sample(level=4, lane=n, ms=10, started_ns=1_000_000_000 + 3_000_000) for n in range(4)]
    text = " ".join(texts(table(late, header=header)))
    assert "INTERRUPTED: start@4 did not run to the end" in text
    assert "load 3.00: BUSY" in text
    assert "memory_mib=64; limits: memory_mib 64; NOT enforced: vcpus" in text
    assert "GENERATOR BOUND: 30% of the median, 3.00 ms, is waiting for the load generator itself" in text
    assert "GENERATOR BOUND: more than 10% of the median is waiting for this program" in text
    quiet = " ".join(texts(table([sample(level=4, lane=n) for n in range(4)], header=_asking(level=4))))
    assert not any(word in quiet for word in ("INTERRUPTED", "BUSY", "limits", "GENERATOR"))


def test_what_the_generator_did_is_shown_under_load_only() -> None:
    alone = table(FULL)
    assert {"at once", "spread"} & set(cells(alone)) == set()
    late = [
        sample(level=4, round=n, lane=lane, started_ns=1_000_000_000 * (n + 1) + 1000 + 100_000 * lane)
        for n in range(3)
        for lane in range(4)
    ]
    lines = table(late, header=_asking(level=4))
    assert cells(lines)["at once"] == "4/4"
    assert cells(lines)["spread"] == "300 µs"
    one_after_another = [sample(level=4, round=0, lane=lane, at=10**9 + 20_000_000 * lane) for lane in range(4)]
    assert cells(table([*late[4:], *one_after_another], header=_asking(level=4)))["at once"] == "1-4/4"


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_only_columns_that_are_shown_are_explained(width: int) -> None:
    together = [*many(20, level=4), *many(20, "null", ms=2, level=4)]
    lines = table(together, width, header=_asking("fake", "null", level=4))
    explained = {text.partition(":")[0] for text in texts(lines) if text.startswith(("rate:", "at once:", "spread:"))}
    assert explained == {"rate", "at once", "spread"} & set(cells(lines))


@pytest.mark.parametrize("width", WIDTHS)
def test_a_row_that_the_generator_bounds_is_marked_at_any_width(width: int) -> None:
    late = [sample(level=4, lane=n, ms=10, started_ns=1_000_000_000 + 1_500_000) for n in range(4)]
    lines = table(late, width, _asking(level=4))
    assert next(line.kind for line in lines if line.text.startswith("  fake ")) == "bad"
    assert [line.text[:27] for line in lines if line.kind == "bad"][1] == "    GENERATOR BOUND: 15% of"


def test_a_queue_before_the_spawn_is_the_generators_too() -> None:
    """Half of the threshold is waited for the release, half in the adapter's own queue; together they are over it."""
    waits: dict[str, Any] = {"started_ns": 1_000_600_000, "phases": {"spawn_queue": (1_001_000_000, 1_001_600_000)}}
    lines = table([sample(level=4, lane=n, ms=10, **waits) for n in range(4)], header=_asking(level=4))
    assert any("GENERATOR BOUND: 12% of the median, 1.20 ms" in line.text for line in lines)
    below: dict[str, Any] = {"started_ns": 1_000_600_000, "phases": {"boot": (1_001_000_000, 1_001_600_000)}}
    lines = table([sample(level=4, lane=n, ms=10, **below) for n in range(4)], header=_asking(level=4))
    assert not any("GENERATOR BOUND" in line.text for line in lines)
