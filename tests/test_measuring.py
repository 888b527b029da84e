"""A run in one process: plans, records, what is found out about hosts and guests, and the end."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_sandboxbench.load.block import Block
from pytest_sandboxbench.load.operations import SCENARIOS
from pytest_sandboxbench.load.preflight import PREFLIGHT_S
from pytest_sandboxbench.measuring import Measuring, Settings, ask
from pytest_sandboxbench.providers.fake import FakeProvider
from pytest_sandboxbench.providers.registry import Registry, parse_option
from pytest_sandboxbench.records.read import Run, read_run
from pytest_sandboxbench.report.notes import notes
from pytest_sandboxbench.report.table import build, render

QUICK: dict[str, Any] = {"rounds": 3, "warmup": 1, "seed": 7, "timeout_s": 0.3}


def measuring(path: Path, *options: str, **settings: Any) -> Measuring:
    registry = Registry(None, map(parse_option, options))
    return Measuring(registry, Settings(**{**QUICK, **settings}), run_id="run-1", folder=path)


def drive(made: Measuring, act: Callable[[Measuring], Awaitable[object]]) -> Measuring:
    async def main() -> None:
        try:
            await act(made)
        finally:
            await made.aclose()

    asyncio.run(main())
    return made


def fake_of(made: Measuring, name: str = "fake") -> FakeProvider:
    provider = made.provider(name)
    assert isinstance(provider, FakeProvider)
    return provider


def measure(
    path: Path, *options: str, scenario: str = "exec", names: Sequence[str] = ("fake",), **settings: Any
) -> Measuring:
    async def act(made: Measuring) -> None:
        await made.run(await made.plan(f"{scenario}@1", SCENARIOS[scenario], 1, names))

    return drive(measuring(path, *options, **settings), act)


def planned(made: Measuring, scenario: str = "exec", names: Sequence[str] = ("fake",), **more: Any) -> Block:
    out: list[Block] = []

    async def act(made: Measuring) -> None:
        out.append(await made.plan("a block", SCENARIOS[scenario], 1, names, **more))

    drive(made, act)
    return out[0]


# -- plans


@pytest.mark.parametrize(
    ("settings", "more", "rounds", "warmup"),
    [
        ({"rounds": None, "warmup": None}, {}, 60, 1),
        ({"rounds": None, "warmup": None}, {"samples": 5, "warmup": 0}, 5, 0),
        ({"rounds": 7, "warmup": 0}, {"samples": 5, "warmup": 3}, 7, 0),
        ({"rounds": 2, "min_rounds": 9}, {}, 9, 1),
        ({"rounds": 7, "warmup": 2, "quick": True}, {"samples": 5}, 1, 0),
    ],
)
def test_how_much_is_measured(
    tmp_path: Path, settings: dict[str, Any], more: dict[str, Any], rounds: int, warmup: int
) -> None:
    block = planned(measuring(tmp_path, **settings), **more)
    assert (block.plan.rounds, block.plan.warmup, block.plan.seed) == (rounds, warmup, 7)


def test_a_hosted_provider_is_asked_less_often(tmp_path: Path) -> None:
    made = measuring(tmp_path, "fake.hosted=true", rounds=None)
    assert planned(made).plan.rounds == 10


def test_who_is_missing_or_cannot_takes_no_part(tmp_path: Path) -> None:
    assert planned(measuring(tmp_path, "fake.missing=no daemon")).providers == ()
    assert planned(measuring(tmp_path, "fake.pause_kinds=none"), "pause").providers == ()
    assert planned(measuring(tmp_path), "pause").providers == ("fake",)


def test_a_scripted_or_hosted_system_needs_no_bare_process_beside_it(tmp_path: Path) -> None:
    assert planned(measuring(tmp_path)).floor is None
    assert planned(measuring(tmp_path), names=["null", "fake"]).providers == ("null", "fake")


# -- preflight


def test_each_provider_is_asked_once(tmp_path: Path) -> None:
    async def act(made: Measuring) -> None:
        assert (await made.preflight("fake")).ready
        assert (await made.preflight("fake")).ready
        assert fake_of(made).calls["preflight"] == 1

    drive(measuring(tmp_path), act)


@pytest.mark.parametrize("word", ["hang", "swallow:1e6", "block:30", "raise:ValueError", "raise:TimeoutError"])
def test_a_preflight_that_goes_wrong_is_a_missing_provider(tmp_path: Path, word: str) -> None:
    started = time.monotonic()
    answer = asyncio.run(ask(Registry(None, [("fake", "preflight", word)]), "fake"))
    assert not answer.ready
    assert answer.reason
    assert answer.cure
    assert time.monotonic() - started < PREFLIGHT_S + 3


def test_a_provider_that_cannot_be_loaded_is_a_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry(None)
    monkeypatch.setitem(registry._targets, "broken", "no_such_module:factory")
    answer = asyncio.run(ask(registry, "broken"))
    assert not answer.ready
    assert "it cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'" in answer.reason


# -- a run and its records


def test_the_records_hold_what_was_measured(tmp_path: Path) -> None:
    made = measure(tmp_path / "run", scenario="start", names=["fake", "null"])
    run = read_run(tmp_path / "run")
    assert run.header == json.loads(json.dumps(made.header.values))
    assert {str(series.key): (series.ok, series.warmups) for series in run.series} == {
        f"{name}:{operation}@1/burst": (3, 1)
        for name in ("fake", "null")
        for operation in ("startup", "create", "first_exec", "destroy")
    }
    assert run.missing() == []
    assert (run.header["complete"], run.header["seed"], run.header["run_id"]) == (True, 7, "run-1")
    assert run.header["providers"]["fake"]["isolation"] == "scripted"
    assert run.header["guests"]["fake"]["kernel"] == "fake"
    assert list(run.header["operations"]) == ["startup", "create", "first_exec", "destroy"]
    assert run.header["blocks"][0]["rounds"] == 3
    assert made.problem == ""
    assert made.left == []


def test_the_table_from_disk_is_that_of_the_run(tmp_path: Path) -> None:
    """Digit for digit: the samples that a run hands to its report are those on the disk."""
    from msgspec.json import Decoder

    from pytest_sandboxbench.records.schema import Row
    from pytest_sandboxbench.records.series import SeriesTable

    live = SeriesTable()

    async def act(made: Measuring) -> None:
        for scenario in ("start", "pause"):
            for level in (1, 4):
                await made.run(await made.plan(f"{scenario}@{level}", SCENARIOS[scenario], level, ["fake", "null"]))
                for row in Decoder(Row).decode_lines(made.last_block):
                    live.add(row)

    made = drive(measuring(tmp_path / "run", "fake.exec=5x0.001,error:no room,...", "fake.jitter=0.3"), act)
    run = read_run(tmp_path / "run")
    for width in (80, 200):
        tables = [
            [*render(build(series, header), header, width), *notes(build(series, header), header, width)]
            for series, header in ((live, made.header.values), (run.series, run.header))
        ]
        assert tables[0] == tables[1]
        assert any(line.kind == "bad" for line in tables[0])


def test_samples_are_on_disk_after_each_turn(tmp_path: Path) -> None:
    """What was measured before a kill is there, and says that the run is not complete."""
    seen: list[Run] = []

    def progress(block: str, provider: str, done: int, planned: int) -> None:
        if done == 3:
            seen.append(read_run(tmp_path / "run"))

    made = Measuring(Registry(None), Settings(**QUICK), run_id="run-1", folder=tmp_path / "run", progress=progress)

    async def act(made: Measuring) -> None:
        await made.run(await made.plan("exec@1", SCENARIOS["exec"], 1, ["fake"]))

    drive(made, act)
    (series,) = seen[0].series
    assert (series.ok, series.warmups) == (2, 1)
    assert seen[0].header["complete"] is False


def test_an_interrupted_block_keeps_its_samples_and_the_run_its_records(tmp_path: Path) -> None:
    async def act(made: Measuring) -> None:
        block = await made.plan("exec@1", SCENARIOS["exec"], 1, ["fake"])
        task = asyncio.create_task(made.run(block))
        await asyncio.sleep(0.25)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert made.last_block.count(b"\n") >= 2

    made = drive(measuring(tmp_path / "run", "fake.exec=8x0,0.2", rounds=50, timeout_s=5), act)
    assert fake_of(made).live == ()
    run = read_run(tmp_path / "run")
    (series,) = run.series
    assert series.ok >= 1
    assert series.failed == 0
    assert run.header["blocks"][0]["wall_s"] > 0


def test_facts_of_the_guest_fail_nothing(tmp_path: Path) -> None:
    """The command that asks for them hangs, or its adapter has a bug: facts are missing, samples are not."""
    for word in ("hang", "raise", "exit:1", "lost"):
        made = measure(tmp_path / word, f"fake.exec=0,{word},0", warmup=0)
        (series,) = read_run(tmp_path / word).series
        assert (series.ok, series.failed) == (3, 0), word
        assert made.header.values["guests"] == {}


def test_no_secret_is_in_the_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "sk-0123456789abcdef"
    monkeypatch.setenv("E2B_API_KEY", secret)
    monkeypatch.setattr("sys.argv", ["pytest", "--sandbox-option", f"e2b.api_key={secret}"])
    measure(tmp_path / "run", f"fake.exec=0,0,error:key {secret}", f"fake.facts=url:x{secret}")
    texts = [path.read_text() for path in (tmp_path / "run").iterdir()]
    assert len(texts) == 2
    assert all(secret not in text for text in texts)
    assert any("error" in text for text in texts)


def test_a_disk_that_takes_nothing_is_a_problem_and_no_stop(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    made = measure(tmp_path / "file" / "run")
    assert "records are incomplete" in made.problem
    assert made.last_block.count(b"\n") == 4


# -- the end


def test_what_a_block_left_is_tried_again_and_only_then_a_leak(tmp_path: Path) -> None:
    made = measure(tmp_path, "fake.destroy=error:busy,0", rounds=1, warmup=0)
    assert made.left == []
    assert fake_of(made).live == ()
    made = measure(tmp_path / "2", "fake.destroy=stuck", rounds=1, warmup=0)
    assert [left.ref.id for left in made.left] == list(fake_of(made).live)


def test_a_sandbox_that_only_the_provider_knows_of_is_destroyed(tmp_path: Path) -> None:
    made = measure(tmp_path, "fake.create=leak,0", rounds=2, warmup=0)
    assert fake_of(made).live == ()
    assert made.left == []


@pytest.mark.parametrize("word", ["hang", "swallow:1e6", "block:30", "raise"])
@pytest.mark.parametrize("operation", ["owned", "destroy", "aclose"])
def test_the_end_comes_whatever_an_adapter_does(tmp_path: Path, operation: str, word: str) -> None:
    started = time.monotonic()
    made = measure(tmp_path, f"fake.{operation}={word}", rounds=1, warmup=0)
    assert time.monotonic() - started < 6
    assert bool(made.left) == (operation != "aclose")
    assert bool(made.problem) == (operation == "aclose")
    assert read_run(tmp_path).header["complete"] is True


def test_a_run_without_a_block_writes_nothing(tmp_path: Path) -> None:
    async def act(made: Measuring) -> None:
        await made.preflight("fake")

    drive(measuring(tmp_path / "run"), act)
    assert not (tmp_path / "run").exists()


# -- what a create leaves that did not come back


def ledgers() -> list[Path]:
    return list((Path(os.environ["XDG_STATE_HOME"]) / "sandboxbench" / "ledger").glob("run-1*"))


@pytest.mark.parametrize("word", ["leak", "late:0.5"])
def test_a_create_that_timed_out_is_found_later_and_destroyed(tmp_path: Path, word: str) -> None:
    made = measure(tmp_path, f"fake.state_dir={tmp_path}/state", f"fake.create={word}", rounds=1, warmup=0)
    assert fake_of(made).calls["create"] == 1
    assert fake_of(made).calls["destroy"] == 1
    assert (tmp_path / "state" / "fake.json").read_text().startswith("[{},")
    assert made.left == []
    assert ledgers() == []


def test_what_is_found_late_does_not_count_against_a_quota_for_ever(tmp_path: Path) -> None:
    """Twice as many as may live: only because the first block's are gone, the second one's can be."""

    async def act(made: Measuring) -> None:
        for number in (1, 2):
            await made.run(await made.plan(f"block {number}", SCENARIOS["exec"], 1, ["fake"]))

    options = [f"fake.state_dir={tmp_path}/state", "fake.create=2xleak,0", "fake.max_live=2"]
    made = drive(measuring(tmp_path, *options, rounds=2, warmup=0), act)
    outcomes = [json.loads(line)["outcome"] for line in (tmp_path / "samples.jsonl").read_text().splitlines()]
    assert outcomes == ["timeout", "timeout", "ok", "ok"]
    assert made.left == []


def test_a_hosted_one_may_come_later_still_so_it_stays_written_down(tmp_path: Path) -> None:
    options = [f"fake.state_dir={tmp_path}/state", "fake.create=late:3600", "fake.hosted=true"]
    measure(tmp_path, *options, rounds=1, warmup=0)
    (ledger,) = ledgers()
    ledger.unlink()


def test_a_search_for_latecomers_spares_what_another_instance_of_the_kind_has_made(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.sandboxbench.providers.other]\nkind = "null"\n')
    made = Measuring(Registry(tmp_path), Settings(**QUICK), run_id="run-1", folder=tmp_path / "records")

    async def act(made: Measuring) -> None:
        assert (await made.preflight("null")).ready
        assert (await made.preflight("other")).ready
        sandbox = await made.guarded("other").create()
        made.ledger.making("null")
        await made._clear("null")
        assert (await sandbox.exec(["true"])).exit_code == 0
        assert made.ledger.unknown["null"] == 1, "it is not the one that was looked for"

    drive(made, act)
    assert made.left == []


def test_what_lives_on_although_it_was_destroyed_stays_written_down(tmp_path: Path) -> None:
    made = measure(tmp_path, f"fake.state_dir={tmp_path}/state", "fake.destroy=lie", rounds=1, warmup=0)
    (left,) = made.left
    (ledger,) = ledgers()
    assert f'"id": "{left.ref.id}"' in ledger.read_text()
    ledger.unlink()


def test_a_create_that_is_not_supported_has_surely_made_nothing(tmp_path: Path) -> None:
    """Else a hosted provider's ledger would stay, for a sandbox that never was."""
    options = [f"fake.state_dir={tmp_path}/state", "fake.limits=none", "fake.pids=5", "fake.hosted=true"]
    made = measure(tmp_path, *options, rounds=1, warmup=0)
    assert "cannot enforce pids" in (tmp_path / "samples.jsonl").read_text()
    assert made.ledger.unknown["fake"] == 0
    assert ledgers() == []
