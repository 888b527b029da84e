"""The grammar of the scripts: each form is read, and does what it says."""

from __future__ import annotations

import asyncio
import statistics
from typing import Any

import pytest

from pytest_sandboxbench.clock import now_ns
from pytest_sandboxbench.errors import (
    CreateFailed,
    DestroyFailed,
    ExecFailed,
    ExecTimeout,
    OperationTimeout,
    SandboxError,
    SandboxGone,
    TransportLost,
    UsageError,
)
from pytest_sandboxbench.providers import fake_script
from pytest_sandboxbench.providers.fake import factory
from pytest_sandboxbench.providers.fake_clock import run_virtual

from .scripted import call, create, failure, fake, on_virtual_clock, run, seconds

# The grammar of scripts


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("0.05", [(0.05, "", "")] * 3),
        ("1e-05", [(1e-05, "", "")] * 3),
        ("hang", [(0.0, "hang", "")] * 3),
        ("0.2+error:a:b+c", [(0.2, "error", "a:b+c")] * 3),
        ("0.1,error,0.2", [(0.1, "", ""), (0.0, "error", ""), (0.2, "", ""), (0.2, "", "")]),
        ("2x0.1,error", [(0.1, "", ""), (0.1, "", ""), (0.0, "error", ""), (0.0, "error", "")]),
        ("0.1,lost,...", [(0.1, "", ""), (0.0, "lost", ""), (0.1, "", ""), (0.0, "lost", "")]),
        ("2x0,1+timeout,...", [(0.0, "", ""), (0.0, "", ""), (1.0, "timeout", "")] * 2),
    ],
)
def test_a_script_is_read(text: str, steps: list[tuple[float, str, str]]) -> None:
    script = fake_script.parse_script("fake", "exec", text.split(","))

    assert [script.at(call) for call in range(len(steps))] == [fake_script.Step(*step) for step in steps]


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("create", "fast", "'fast' is not a step"),
        ("create", "50ms", "'50ms' is not a step"),
        ("create", "-1", "'-1' is not a step"),
        ("create", "nan", "'nan' is not a step"),
        ("create", "0x0.1", "the count in '0x0.1' is not at least 1"),
        ("create", "...", "there are none"),
        ("create", "error:no room, sorry", "'sorry' is not a step"),
        ("create", "hang:5", "'hang:5': takes no argument"),
        ("create", "reject", "'' is not one of quota, capacity, rate, queue"),
        ("create", "reject:money", "'money' is not one of"),
        ("create", "raise:SystemExit", "'SystemExit' is not a built-in exception"),
        ("create", "raise:UnicodeDecodeError", "not a built-in exception that takes a message"),
        ("create", "swallow:long", "'long' is not a number of seconds"),
        ("exec", "exit", "'' is not a whole number"),
        ("create", "exit:1", "'exit' is not for create"),
        ("exec", "stuck", "'stuck' is not for exec"),
        ("preflight", "error", "'error' is not for preflight"),
        ("resume", "leak", "'leak' is not for resume"),
    ],
)
def test_a_wrong_script_names_value_forms_and_example(key: str, value: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        factory("slow-fake", {key: value})

    message = str(caught.value)
    assert message.startswith(f"provider 'slow-fake': setting {key} = {','.join(value.split(', '))!r}: ")
    assert why in message
    assert ", ".join(fake_script.forms(key)) in message
    example = message.rpartition("--sandbox-option ")[2]
    assert example == f"slow-fake.{key}=2x0.05,1.5+hang"
    factory("slow-fake", {key: example.partition("=")[2]})  # the example is right


def test_toml_gives_numbers_lists_and_tables() -> None:
    provider = fake(
        create=0.5,
        exec=[0.1, "error:no room, sorry"],
        ready_after=1,
        create_phases={"boot": 0.2},
        facts={"kernel": "6.1"},
    )

    async def test() -> None:
        sandbox = await create(provider)
        assert list(sandbox.phases()) == ["boot"]
        await asyncio.sleep(1)
        await run(sandbox, "true")
        assert (await failure(run(sandbox, "true"))).said == "no room, sorry"

    run_virtual(test())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ready_after", "soon"),
        ("create_phases", "boot"),
        ("create_phases", "boot:x"),
        ("lock", "parallel"),
        ("lock_on", "create.boot"),
        ("lock_width", "0"),
        ("max_live", "-1"),
        ("max_queued", "2"),
        ("create_rate", "0"),
        ("create_rate", "inf"),
        ("reject_delay", "-1"),
        ("pause_kinds", "snapshot"),
        ("limits", "disk"),
        ("path", "warm"),
        ("facts", "kernel"),
        ("jitter", "nan"),
        ("speed", "1"),
    ],
)
def test_other_wrong_values_are_usage_errors(key: str, value: str) -> None:
    with pytest.raises(UsageError, match=key):
        factory("fake", {key: value})


# What a call can do


@pytest.mark.parametrize("operation", fake_script.OPERATIONS)
def test_each_operation_takes_its_seconds(operation: str) -> None:
    async def test() -> None:
        assert await seconds(call(fake(), operation)) == 0.0
        assert await seconds(call(factory("fake", {operation: "0.25"}), operation)) == pytest.approx(0.25, abs=1e-6)

    run_virtual(test())


@pytest.mark.parametrize("operation", fake_script.OPERATIONS)
def test_a_hang_lasts_until_it_is_cancelled(operation: str) -> None:
    async def test() -> None:
        provider = factory("fake", {operation: "hang"})
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(call(provider, operation), 600)
        name, _, start_ns, end_ns = provider.log[-1]
        assert name == operation
        assert end_ns - start_ns >= 600_000_000_000

    run_virtual(test())


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ("create", CreateFailed),
        ("run_once", CreateFailed),
        ("exec", ExecFailed),
        ("write_file", ExecFailed),
        ("read_file", ExecFailed),
        ("pause", SandboxError),
        ("resume", SandboxError),
        ("destroy", DestroyFailed),
        ("round_trip", TransportLost),
        ("owned", TransportLost),
    ],
)
def test_error_is_the_operations_own_with_the_providers_words(operation: str, kind: type[SandboxError]) -> None:
    async def test() -> None:
        error = await failure(call(factory("fake", {operation: "0.5+error:500 oh no"}), operation))
        assert type(error) is kind
        assert error.said == "500 oh no"
        assert error.after_s == pytest.approx(0.5)
        assert error.tried.startswith(operation)
        assert bool(error.sandbox) == (operation not in ("round_trip", "owned"))
        assert "--sandbox-option fake." in str(error)

        error = await failure(call(factory("fake", {operation: "lost"}), operation))
        assert type(error) is TransportLost

        error = await failure(call(factory("fake", {operation: "timeout"}), operation))
        assert type(error) is (ExecTimeout if operation == "exec" else OperationTimeout)
        assert error.outcome == "timeout"

        for limit in ("quota", "capacity", "rate", "queue"):
            error = await failure(call(factory("fake", {operation: f"reject:{limit}"}), operation))
            assert error.outcome == f"rejected({limit})"

    run_virtual(test())


@pytest.mark.parametrize("operation", fake_script.OPERATIONS)
def test_a_buggy_adapter_raises_what_it_likes(operation: str) -> None:
    async def test() -> None:
        with pytest.raises(RuntimeError, match="scripted bug"):
            await call(factory("fake", {operation: "raise"}), operation)
        with pytest.raises(KeyError, match="scripted bug"):
            await call(factory("fake", {operation: "raise:KeyError"}), operation)

    run_virtual(test())


@on_virtual_clock
async def test_swallow_does_not_end_by_cancellation() -> None:
    for text, lasts in (("swallow", 30), ("swallow:90", 90)):
        provider = fake(create=text)
        task = asyncio.ensure_future(create(provider))
        await asyncio.sleep(1)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(1)
        assert not task.done()
        assert await seconds(task) == pytest.approx(lasts - 4)
        assert len(provider.live) == 1, "the sandbox comes late, and somebody has to remove it"


def test_block_stops_the_loop() -> None:
    async def test() -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.001)
                ticks += 1

        ticking = asyncio.ensure_future(tick())
        start_ns = now_ns()
        await create(fake(create="block:0.1"))
        assert 0.1 <= (now_ns() - start_ns) / 1e9 < 1
        assert ticks <= 2
        ticking.cancel()

    asyncio.run(test())


@on_virtual_clock
async def test_a_script_can_make_exactly_the_third_create_fail() -> None:
    provider = fake(create="2x0.05,error,0.05")

    for nth in range(1, 7):
        if nth == 3:
            assert isinstance(await failure(create(provider)), CreateFailed)
        else:
            assert await seconds(create(provider)) == pytest.approx(0.05)
    assert len(provider.live) == 5
    assert provider.calls == {"create": 6}


@on_virtual_clock
async def test_exec_returns_the_scripted_exit_code() -> None:
    sandbox = await create(fake(exec="exit:3,exit:-9,0"))

    assert [(await run(sandbox, "true")).exit_code for _ in range(3)] == [3, -9, 0]


@on_virtual_clock
async def test_a_sandbox_that_is_found_gone_is_gone() -> None:
    for operation in ("exec", "write_file", "read_file", "pause", "resume"):
        provider = factory("fake", {operation: "gone"})
        assert isinstance(await failure(call(provider, operation)), SandboxGone)
        assert provider.live == ()


@on_virtual_clock
async def test_destroy_gone_is_done() -> None:
    provider = fake(destroy="gone")
    await call(provider, "destroy")

    assert provider.live == ()


@on_virtual_clock
async def test_a_stuck_sandbox_stays_so_and_others_do_not() -> None:
    provider = fake(destroy="stuck,0")
    first, second = await create(provider), await create(provider)

    for _ in range(3):
        error = await failure(provider.destroy(first.ref, deadline_s=1))
        assert isinstance(error, DestroyFailed)
        assert first.ref.id in str(error)
    await provider.destroy(second.ref, deadline_s=1)
    assert provider.live == (first.ref.id,)


@on_virtual_clock
async def test_a_failed_destroy_can_be_tried_again() -> None:
    provider = fake(destroy="error,0")
    sandbox = await create(provider)

    assert isinstance(await failure(provider.destroy(sandbox.ref, deadline_s=1)), DestroyFailed)
    await provider.destroy(sandbox.ref, deadline_s=1)
    assert provider.live == ()


@on_virtual_clock
async def test_destroy_can_lie() -> None:
    provider = fake(destroy="lie")
    await call(provider, "destroy")

    assert len(await provider.owned()) == 1


@on_virtual_clock
async def test_a_late_sandbox_comes_to_life_after_its_caller_has_gone() -> None:
    provider = fake(create="late:2")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await create(provider)
    assert await provider.owned() == []
    await asyncio.sleep(1.1)
    (ref,) = await provider.owned()
    await provider.destroy(ref, deadline_s=1)
    assert await provider.owned() == []


@on_virtual_clock
async def test_a_leaking_create_leaves_a_sandbox_and_a_hanging_one_does_not() -> None:
    for operation in ("create", "run_once"):
        for word, left in (("leak", 1), ("hang", 0)):
            provider = factory("fake", {operation: word})
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(call(provider, operation), 5)
            assert len(await provider.owned("run-1")) == left


# Jitter


def delays(**options: Any) -> list[float]:
    async def test() -> list[float]:
        provider = fake(create=0.1, **options)
        return [await seconds(create(provider)) for _ in range(200)]

    return run_virtual(test())


def test_jitter_spreads_around_the_set_median_and_is_seeded() -> None:
    some = delays(jitter=0.2)

    assert delays(jitter=0.2) == pytest.approx(some, abs=1e-6)
    assert delays(jitter=0.2, seed=1) != pytest.approx(some, abs=1e-6)
    assert statistics.median(some) == pytest.approx(0.1, rel=0.1)
    assert 0.01 < statistics.stdev(some) < 0.03
    assert min(some) > 0
    assert statistics.stdev(delays()) < 1e-6
