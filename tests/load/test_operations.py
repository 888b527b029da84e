"""What the built-in scenarios time, and that each of their proofs can fail."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from pytest_sandboxbench.clock import now_ns
from pytest_sandboxbench.errors import UsageError
from pytest_sandboxbench.load.operations import (
    OPERATIONS,
    SCENARIOS,
    command_scenario,
    scenario_of,
    shown_operations,
)
from pytest_sandboxbench.load.state import held
from pytest_sandboxbench.model import Capabilities, Sample
from pytest_sandboxbench.providers.fake import FakeProvider
from pytest_sandboxbench.providers.fake_guest import Guest
from pytest_sandboxbench.providers.fake_sandbox import FakeSandbox
from pytest_sandboxbench.providers.queued import was_queued
from pytest_sandboxbench.records.schema import encode
from pytest_sandboxbench.records.series import SeriesTable
from pytest_sandboxbench.report.table import summary_of

from .blocks import TIMEOUT_S, block, fake, measure, run, seconds


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_scenario_times_what_it_says(name: str) -> None:
    notes = measure(name, level=2)
    assert {s.key.operation for s in notes.samples} == set(SCENARIOS[name].operations) <= set(OPERATIONS)
    assert {s.outcome for s in notes.samples} == {"ok"}
    assert len(notes.samples) == 2 * len(SCENARIOS[name].operations)


def test_create_and_first_command_add_up_to_startup() -> None:
    notes = measure("start", create="0.1", exec="0.05")
    startup, create, first = (notes.of(op)[0] for op in ("startup", "create", "first_exec"))
    assert 0.1 <= seconds(create) < 0.2
    assert 0.05 <= seconds(first) < 0.15
    assert startup.scheduled_ns == create.scheduled_ns
    assert startup.phases["create"] == (create.scheduled_ns, create.ended_ns)
    assert startup.phases["first_exec"] == (first.scheduled_ns, first.ended_ns)
    assert startup.ended_ns >= first.ended_ns
    # Nothing but the reading of the clock lies between the phases.
    assert startup.latency_ns - create.latency_ns - first.latency_ns < 10_000_000


def _queueing(call: Any, ms: int) -> Any:
    """The same call behind a thread of the adapter's own, which comes to it so much later."""

    async def later(*arguments: Any, **more: Any) -> Any:
        asked = now_ns()
        await asyncio.sleep(ms / 1000)
        was_queued(asked, now_ns())
        return await call(*arguments, **more)

    return later


def _queued_ms(sample: Sample) -> int:
    start, end = sample.phases.get("spawn_queue", (0, 0))
    return (end - start) // 1_000_000


def test_a_wait_for_the_adapters_own_thread_is_in_the_row_of_its_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeProvider, "create", _queueing(FakeProvider.create, 40))
    monkeypatch.setattr(FakeSandbox, "exec", _queueing(FakeSandbox.exec, 80))
    notes = measure("start", level=2)
    for operation, ms in (("startup", 120), ("create", 40), ("first_exec", 80)):
        for one in notes.of(operation):
            assert ms <= _queued_ms(one) < ms + 40, operation
    rows = SeriesTable()
    for one in notes.samples:
        rows.add(encode(one, 0))
    assert all(summary_of(series).generator_bound for series in rows)
    alone = measure("start")
    assert {_queued_ms(one) for one in alone.samples} == {0}, "one lane waits for nobody"


def test_ready_some_time_after_create() -> None:
    notes = measure("start", create="0.03", ready_after="0.24")
    assert 0.03 <= seconds(notes.of("create")[0]) < 0.13
    assert 0.27 <= seconds(notes.of("startup")[0]) < 0.37
    assert notes.outcomes("startup") == ["ok"]


def test_never_ready_says_how_long_how_often_and_what_came() -> None:
    notes = measure("start", create="0.03", ready_after="never")
    assert notes.outcomes("create") == ["ok"]
    assert notes.outcomes("startup") == notes.outcomes("first_exec") == ["failed"]
    sample = notes.of("startup")[0]
    assert f"the deadline was {TIMEOUT_S:g} s" in sample.error
    assert "connection refused" in sample.error
    attempts = int(sample.error.partition("attempt ")[2].partition(")")[0])
    assert 5 < attempts <= TIMEOUT_S / 0.005
    assert TIMEOUT_S * 0.9 <= seconds(sample) < TIMEOUT_S * 2


def test_never_ready_leaves_no_sandbox() -> None:
    provider = fake(ready_after="never")
    notes = asyncio.run(run(block("start", level=3), provider))
    assert notes.outcomes("startup") == ["failed"] * 3
    assert provider.live == ()


def test_phases_of_the_provider_stand_beside_ours() -> None:
    notes = measure("start", create_phases="boot:0.03,agent:0.02")
    startup = notes.of("startup")[0]
    assert list(startup.phases) == ["create", "boot", "agent", "first_exec"]
    boot, agent, create = (startup.phases[name] for name in ("boot", "agent", "create"))
    assert create[0] <= boot[0] < boot[1] <= agent[0] < agent[1] <= create[1]
    assert notes.of("create")[0].phases == {}


def test_a_phase_of_the_provider_is_never_taken_for_a_span_of_ours() -> None:
    notes = measure("start", create="0.05", create_phases="create:0.01,destroy:0.01,first_exec:0.01")
    assert len(notes.samples) == 4
    assert seconds(notes.of("create")[0]) >= 0.06
    assert seconds(notes.of("first_exec")[0]) < 0.05
    startup = notes.of("startup")[0]
    assert startup.phases["create"][0] == startup.released_ns


def test_pause_is_labelled_with_what_it_keeps() -> None:
    for kind in ("memory", "frozen", "stopped", "filesystem"):
        notes = measure("pause", pause_kinds=kind)
        assert {s.key.variants for s in notes.samples} == {(("kind", kind),)}
        assert {s.outcome for s in notes.samples} == {"ok"}, kind


def test_a_resume_that_is_a_new_boot_fails() -> None:
    notes = measure("pause", pause="0.02", resume="0.05+fresh-boot")
    assert notes.outcomes("pause") == ["ok"]
    for operation in ("resume", "resume_to_first_exec"):
        sample = notes.of(operation)[0]
        assert sample.outcome == "failed"
        assert "resume made a new boot" in sample.error
        assert seconds(sample) >= 0.05, "the times stay as they were measured"


def test_a_resume_that_lost_the_disk_fails_where_only_the_disk_is_kept() -> None:
    assert set(measure("pause", pause_kinds="filesystem", resume="fresh-boot").outcomes("resume")) == {"ok"}
    notes = measure("pause", pause_kinds="filesystem", resume="wiped")
    assert notes.outcomes("resume") == notes.outcomes("resume_to_first_exec") == ["failed"]
    assert "the file written before the pause" in notes.error("resume")


def test_a_resume_without_its_proof_fails() -> None:
    """The command that asks for the nonce gets no answer: nothing says that the memory came back."""
    calls = _commands()
    notes = measure("pause", exec=f"{calls - 1}x0,lost:no answer")
    assert notes.outcomes("pause") == ["ok"]
    assert notes.outcomes("resume") == notes.outcomes("resume_to_first_exec") == ["failed"]
    assert "no answer" in notes.error("resume")


def _commands() -> int:
    """How many commands one life of the pause scenario runs."""
    provider = fake()
    asyncio.run(run(block("pause"), provider))
    return provider.calls["exec"]


def test_resume_to_the_first_command_holds_the_resume() -> None:
    notes = measure("pause", resume="0.05")
    whole, resume = notes.of("resume_to_first_exec")[0], notes.of("resume")[0]
    assert whole.phases["resume"] == (resume.scheduled_ns, resume.ended_ns)
    assert whole.latency_ns >= resume.latency_ns >= 50_000_000


def test_files_that_come_back_changed_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Guest, "read", lambda self, path: b"other")
    notes = measure("files")
    assert notes.outcomes("write_file") == ["ok"]
    assert notes.outcomes("read_file") == ["failed"]
    assert "5 bytes came back" in notes.error("read_file")


@pytest.mark.parametrize("one_shot", ["true", "false"])
def test_a_cold_run_is_one_sandbox_with_and_without_its_removal(one_shot: str) -> None:
    notes = measure("cold_run", one_shot=one_shot, create="0.02", exec="0.02", destroy="0.05")
    run, total = notes.of("cold_run")[0], notes.of("cold_run_total")[0]
    assert run.sandbox == total.sandbox != ""
    assert run.scheduled_ns == total.scheduled_ns
    assert 0.04 <= seconds(run) < seconds(total) - 0.045


@pytest.mark.parametrize("scenario", ["cold_run", "cold_run_unseen"])
def test_a_cold_run_that_does_not_return_0_fails(scenario: str) -> None:
    for notes in (measure(scenario, exec="exit:3"), measure(scenario, run_once="exit:3")):
        assert notes.outcomes("cold_run") == notes.outcomes("cold_run_total") == ["failed"]
        assert "exit code 3" in notes.error("cold_run")


def test_a_cold_run_with_another_answer_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_sandboxbench.load.operations.secrets.randbits", lambda bits: 2.5)
    notes = measure("cold_run_unseen")
    assert notes.outcomes("cold_run") == ["failed"], "2.5*2.5 was answered as an integer"


def test_a_command_of_the_users_own_has_its_name_in_the_key() -> None:
    notes = measure(command_scenario(["my tool,x"]), commands=("my tool,x",))
    keys = sorted(str(s.key) for s in notes.samples)
    assert re.fullmatch(r"fake:cold_run\{command=_my_tool_x_-[0-9a-f]{8}\}@1/burst", keys[1])
    assert keys[0] == keys[1].replace("cold_run", "cold_run_total")
    assert {s.outcome for s in notes.samples} == {"ok"}


def test_two_commands_of_one_program_are_two_series() -> None:
    variants = {command_scenario(["python3", name]).variants for name in ("a.py", "b.py")}
    assert len(variants) == 2


def test_operations_and_scenarios_by_name() -> None:
    assert scenario_of("create") is scenario_of("start") is SCENARIOS["start"]
    assert shown_operations("create") == ("create",)
    assert shown_operations("cold_run_unseen") == ("cold_run",)
    assert shown_operations("mine") == ()
    with pytest.raises(UsageError, match=r"no operation 'strat'; there are: startup, create"):
        scenario_of("strat")


def test_what_a_provider_lacks_is_said() -> None:
    bare = Capabilities("none", exec=False)
    assert SCENARIOS["pause"].lacks(bare) == "cannot pause"
    assert SCENARIOS["files"].lacks(bare) == "has no files API"
    assert SCENARIOS["exec"].lacks(bare) == "runs one command per sandbox only"
    assert SCENARIOS["cold_run"].lacks(bare) == ""
    able = Capabilities("none", pause=("memory",), files=True)
    assert not any(scenario.lacks(able) for scenario in SCENARIOS.values())


def test_a_nonce_counts_only_as_a_whole() -> None:
    assert held(b"A=1\nSANDBOXBENCH_NONCE=abc\n", "abc")
    assert not held(b"SANDBOXBENCH_NONCE=abcd\n", "abc")
    assert not held(b"XSANDBOXBENCH_NONCE=abc\n", "abc")
    assert not held(b"", "abc")
