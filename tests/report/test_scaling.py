"""The section after the table: bars by level, the finding in a sentence, and the ramp of a stagger."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pytest_sandboxbench.cli import main
from pytest_sandboxbench.model import Sample, SeriesKey
from pytest_sandboxbench.records.busy import busy_shares, cpus_usable
from pytest_sandboxbench.records.schema import encode
from pytest_sandboxbench.records.series import SeriesTable
from pytest_sandboxbench.report.levels import Ladder, ladders
from pytest_sandboxbench.report.scaling import scaling
from pytest_sandboxbench.report.table import Line, Row, build
from pytest_sandboxbench.report.text import columns
from tests.records.written import HEADER, folder, sample

LEVELS = (1, 4, 16)


def header(*names: str, levels: Sequence[int] = LEVELS, shape: str = "burst", **more: Any) -> dict[str, Any]:
    made = copy.deepcopy(HEADER)
    asked = {name: ["startup"] for name in ("fake", "null", *names)}
    made["blocks"] = [
        {**HEADER["blocks"][0], "level": level, "shape": shape, "providers": [*asked], "asked": asked, **more}
        for level in levels
    ]
    made["providers"] |= {name: {} for name in names}
    return made


def bursts(
    provider: str, ms: float, *, lock: bool = False, levels: Sequence[int] = LEVELS, **more: Any
) -> list[Sample]:
    return [
        sample(provider, level=level, round=n, lane=lane, ms=ms * (lane + 1 if lock else 1) * (1 + n / 1000), **more)
        for level in levels
        for n in range(8)
        for lane in range(level)
    ]


RUN = [*bursts("fake", 20, lock=True), *bursts("even", 20), *bursts("null", 1)]


def groups(samples: Sequence[Sample], made: dict[str, Any]) -> list[list[Row]]:
    series = SeriesTable()
    for one in samples:
        series.add(encode(one, 0))
    return build(series, made)


def section(samples: Sequence[Sample], made: dict[str, Any], width: int = 100, encoding: str = "utf-8") -> list[Line]:
    return scaling(groups(samples, made), made, width, encoding)


def found(samples: Sequence[Sample], made: dict[str, Any]) -> dict[str, Ladder]:
    (only,) = ladders(groups(samples, made), made)
    return {ladder.key.provider: ladder for ladder in only}


def test_bars_and_sentences() -> None:
    made = header("even", busy={"fake": 0.06, "even": 0.1, "null": 0.2})
    lines = section(RUN, made)
    assert lines[0].text == "startup @1,4,16/burst: the median, a full bar is 181 ms; │ ends its 95 % interval"
    bars = [line for line in lines if line.text.endswith("/s")]
    assert [line.text.split()[0] for line in bars] == ["fake", "4", "16", "even", "4", "16", "null", "4", "16"]
    assert [line.kind for line in bars] == ["row"] * 6 + ["floor"] * 3
    lengths = [line.text.count("█") + line.text.count("░") + line.text.count("│") for line in bars]
    assert lengths[0] == lengths[3] == lengths[4] == lengths[5] < lengths[1] < lengths[2]
    assert bars[2].text.endswith("  171 ms   49.8/s")
    sentences = "\n".join(line.text for line in lines)
    assert "  fake: serialised: 16 lanes take 8.50× (" in sentences
    assert "while 2 CPUs are 6 % busy" in sentences
    assert "  even: flat: 16 lanes take 1.00× (" in sentences
    assert "null:" not in sentences, "the floor is there to be compared with"


def test_the_floor_alone_has_its_sentence() -> None:
    lines = section(bursts("null", 1), header())
    assert any(line.text.startswith("  null: flat: ") for line in lines)


def test_one_level_is_no_scaling() -> None:
    assert section(bursts("fake", 20, levels=[4]), header(levels=[4])) == []
    assert section([], header()) == []


def test_only_what_was_asked_for() -> None:
    samples = [*bursts("fake", 20), *bursts("fake", 20, operation="exec")]
    made = header()
    series = SeriesTable()
    for one in samples:
        series.add(encode(one, 0))
    shown = ladders(build(series, made, everything=True), made)
    assert [[ladder.key.operation for ladder in one] for one in shown] == [["startup"]]


def test_a_level_where_nothing_succeeded() -> None:
    samples = [s for s in bursts("fake", 20) if s.key.level < 16]
    failed = [sample(level=16, round=n, outcome="failed", error="full") for n in range(8)]
    lines = section([*samples, *failed], header())
    assert [line.kind for line in lines if " n/a" in line.text] == ["bad"]
    assert any("4 lanes take 1.00×" in line.text for line in lines)
    nothing = [sample(level=level, outcome="failed") for level in (1, 4)]
    assert found(nothing, header())["fake"].finding is None
    assert len(section(nothing, header())) == 3


def test_what_a_floor_says_is_beside_its_provider() -> None:
    """Without a measured share of the CPU, what grows as the floor does is bound by the CPU."""
    grown = found([*bursts("fake", 20, lock=True), *bursts("null", 1, lock=True)], header())
    finding = grown["fake"].finding
    assert finding is not None
    assert finding.verdict == "cpu bound"
    assert "the floor takes 8.50×" in finding.text


def _queued(samples: Sequence[Sample], limiter: dict[str, Any]) -> tuple[str, str]:
    """What is said where each lane but the first waits in a phase ``queue`` until it is let in."""
    waiting = [
        replace(one, phases={"queue": (one.scheduled_ns, one.ended_ns - 20_000_000)}) if one.lane else one
        for one in samples
    ]
    made = header(busy={"fake": 0.06})
    made["providers"]["fake"] = {**made["providers"]["fake"], "limiter": limiter}
    finding = found(waiting, made)["fake"].finding
    assert finding is not None
    return finding.verdict, finding.text


@pytest.mark.parametrize("limiter", [{"max_live": 1}, {"create_rate": 50}])
def test_our_own_limit_is_no_lock_of_the_provider(limiter: dict[str, Any]) -> None:
    verdict, text = _queued(bursts("fake", 20, lock=True), limiter)
    assert verdict == "grows"
    assert "what serialises is our own limit (limiter=ours), not the sandbox" in text


def test_a_queue_without_our_limits_is_the_providers() -> None:
    verdict, text = _queued(bursts("fake", 20, lock=True), {})
    assert verdict == "serialised"
    assert text.endswith("phase queue grows")


@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp437", "no-such-encoding"])
def test_it_fits(width: int, encoding: str) -> None:
    names = ("even", "x" * 80, "沙箱" * 20)
    samples = [*RUN, *bursts(names[1], 1e6, lock=True), *bursts(names[2], 1e-5)]
    for shape in ("burst", "stagger-20ms"):
        made = header(*names, shape=shape)
        keyed = [_shaped(one, shape) for one in samples]
        lines = section(keyed, made, width, encoding)
        assert len(lines) > 20
        assert [line.text for line in lines if columns(line.text) > width] == []
        assert all(line.text.isprintable() for line in lines)
        if encoding != "utf-8":
            assert all(line.text.isascii() for line in lines)


def _shaped(one: Sample, shape: str, apart_ns: int = 20_000_000) -> Sample:
    """The lanes of a burst, let go one after another."""
    later = one.lane * apart_ns if shape != "burst" else 0
    key = SeriesKey(one.key.provider, one.key.operation, (), "", one.key.level, shape)
    times = {name: getattr(one, name) + later for name in ("scheduled_ns", "started_ns", "ended_ns")}
    return Sample(key, one.round, one.lane, one.turn, released_ns=one.released_ns, outcome=one.outcome, **times)


def test_a_ramp() -> None:
    """Each lane takes 20 ms longer than the one before it, whatever the level."""
    samples = [
        _shaped(one, "stagger-20ms")
        for one in [*bursts("fake", 20, lock=True, levels=[10]), *bursts("null", 1, levels=[10])]
    ]
    lines = section(samples, header(levels=[10], shape="stagger-20ms"), 60)
    assert [line.text for line in lines] == [
        "startup @10/stagger-20ms: the median by when a lane was due,",
        "    from so many ms after the release on",
        "  due         0     36.0     72.0      108      144",
        "  fake  30.1 ms  70.2 ms   110 ms   150 ms   191 ms",
        "  null  1.00 ms  1.00 ms  1.00 ms  1.00 ms  1.00 ms",
    ]
    assert [line.kind for line in lines] == ["title", "title", "head", "row", "floor"]
    assert section(samples, header(levels=[10], shape="burst"), 60) == [], "it was not asked for"


HOSTILE: list[Any] = [
    None,
    True,
    -0.1,
    1.1,
    "0.5",
    10**400,
    float("inf"),
    float("nan"),
    [0.5],
    {"fake": 0.5},
    "\x1b[2J",
]


@pytest.mark.parametrize("share", HOSTILE)
def test_a_share_that_is_none_is_unknown(share: Any) -> None:
    assert busy_shares(header(busy={"fake": share})) == {}
    assert section(RUN, header("even", busy={"fake": share}))


@pytest.mark.parametrize("shares", [None, 0.5, [], ["fake"], "fake", {"other": 0.5}, {}])
def test_shares_of_nobody_are_none(shares: Any) -> None:
    assert busy_shares(header(busy=shares)) == {}


@pytest.mark.parametrize(
    ("quota", "verdict"),
    [
        ("100000 100000", "grows"),  # one of the two CPUs
        ("199999 100000", "grows"),
        ("200000 100000", "serialised"),  # no limit
        ("150000", "grows"),
        ("", "grows"),
        ("a b", "grows"),
        ([1], "grows"),
    ],
)
def test_under_a_quota_an_idle_host_proves_no_lock(quota: Any, verdict: str) -> None:
    made = header("even", busy={"fake": 0.06})
    made["host"]["cpu_quota"] = quota
    finding = found(RUN, made)["fake"].finding
    assert finding is not None
    assert finding.verdict == verdict
    assert ("CPU use unknown" in finding.text) == (verdict == "grows")


@pytest.mark.parametrize("cpus", [None, True, 0, -1, "2", 1 << 30, 2.5])
def test_a_number_of_cpus_that_is_none_is_unknown(cpus: Any) -> None:
    made = header(busy={"fake": 0.5})
    made["host"]["cpus_usable"] = cpus
    assert cpus_usable(made) is None
    assert busy_shares(made)[SeriesKey("fake", "startup", (), "", 4)] == 0.5


def test_the_report_has_it(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    folder(tmp_path / "records", *RUN, header=header("even", busy={"fake": 0.0}))
    assert main(["report", str(tmp_path / "records")]) == 0
    out = capsys.readouterr().out
    assert "fake: serialised: 16 lanes" in out
    assert out.index("host: a CPU") < out.index("startup @1,4,16/burst: the median")
