"""From create to destroy."""

from __future__ import annotations

import asyncio
import os
import time
import uuid

from ..errors import (
    CreateFailed,
    ExecFailed,
    NotReady,
    OperationTimeout,
    SandboxbenchError,
    SandboxError,
    SandboxGone,
    Unsupported,
)
from ..load.deadlines import bounded, describe
from ..load.guard import GuardedSandbox
from ..model import Owner, SandboxRef
from .attributes import no_texts, wrong_in_preflight, wrong_in_provider, wrong_in_ref, wrong_in_result, wrong_in_sandbox
from .check import CheckFailed, NotInGuest, Trial, among, check, cut_short, expect, moments, raises, running, shown

__all__ = ["CHECKS"]

_PREFLIGHT_S = 1.0
_BETWEEN_TRIES_S = 0.02
_LATE_S = 10.0
"""How long a look for what comes late is put off at most: as long as a create takes."""

_UNREAL_IMAGE = "sandboxbench.invalid/no-such-image"  # a name that no registry can have: RFC 6761
_ASKED = {"vcpus": 1.0, "memory_mib": 512, "pids": 100}


@check()
async def preflight_answers_within_a_second(trial: Trial) -> None:
    """`preflight` says ready or why not within a second, each time it is asked."""
    provider, took = trial.provider.unguarded, []
    for turn in ("first", "second"):
        started = time.monotonic()
        answer = await bounded("preflight", provider.preflight(), 10 * _PREFLIGHT_S)
        took.append(time.monotonic() - started)
        expect(answer.ready, f"the {turn} preflight said it was not ready: {answer.reason}")
    # One of them may have met a busy moment of this machine.
    expect(min(took) <= _PREFLIGHT_S, f"preflight took {took[0]:.2f} s and {took[1]:.2f} s; it has {_PREFLIGHT_S:g} s")


@check()
async def preflight_makes_nothing(trial: Trial) -> None:
    """After `preflight` nothing exists that did not exist before."""
    before = {ref.id for ref in await trial.provider.owned()}
    await bounded("preflight", trial.provider.unguarded.preflight(), 10 * _PREFLIGHT_S)
    for ref in await trial.provider.owned():
        owner = Owner.parse(ref.details.get("owner", ""))
        # Others may be at work on the same host or account.
        expect(
            ref.id in before or (owner is not None and owner.pid != os.getpid()),
            f"preflight left sandbox {ref.id} of {ref.details.get('owner', 'no owner')!r}",
        )


@check()
async def all_say_what_they_are(trial: Trial) -> None:
    """A provider, its preflight, its sandboxes and results have all attributes, of the right types and words."""
    answer = await bounded("preflight", trial.provider.unguarded.preflight(), 10 * _PREFLIGHT_S)
    said = [*wrong_in_provider(trial.provider.unguarded, trial.name), *wrong_in_preflight(answer)]
    expect(not said, "; ".join(said))  # before a sandbox is made by what it says
    try:
        sandbox = await trial.provider.create()
    except SandboxbenchError:
        raise
    except Exception as error:
        raise CheckFailed(
            f"create gave what is no sandbox; it has `ref` (a SandboxRef), `unenforced`, `path`: {describe(error)}"
        ) from error
    said += wrong_in_sandbox(sandbox.unguarded, trial.name)
    if trial.can.exec:
        said += wrong_in_result(await _answer(trial, sandbox), "exec")
    await trial.provider.destroy(sandbox)
    if trial.can.one_shot:
        result, ref = await trial.provider.run_once(["echo", "types"])
        said += [*wrong_in_result(result, "run_once"), *wrong_in_ref(ref, trial.name, "run_once")]
    expect(not said, "; ".join(said))


async def _answer(trial: Trial, sandbox: GuardedSandbox) -> object:
    """What a command gives that is tried until it is answered; it may be of any type."""
    until = time.monotonic() + trial.timeout_s
    while True:
        try:
            return await sandbox.exec(["echo", "types"])
        except NotReady:
            if time.monotonic() > until:
                raise
        await asyncio.sleep(_BETWEEN_TRIES_S)


@check()
async def capabilities_are_final(trial: Trial) -> None:
    """`capabilities` has the same value before and after use."""
    sandbox = await trial.sandbox()
    during = trial.provider.capabilities
    await trial.provider.destroy(sandbox)
    for when, now in (("while a sandbox existed", during), ("after a destroy", trial.provider.capabilities)):
        expect(now == trial.can, f"capabilities changed after preflight: at first {trial.can}, {when} {now}")


@check()
async def a_round_trip_works(trial: Trial) -> None:
    """`round_trip` returns where `preflight` said ready, before the first sandbox and after it."""
    await trial.provider.round_trip()
    await trial.sandbox()
    await trial.provider.round_trip()


@check()
async def a_sandbox_is_listed_until_it_is_destroyed(trial: Trial) -> None:
    """`owned` lists a sandbox from its create on, and no more once `destroy` has returned."""
    sandbox = await trial.sandbox()
    await trial.lists(f"after one create of {sandbox.id}", sandbox.id)
    await trial.provider.destroy(sandbox)
    await trial.lists(f"after destroy of {sandbox.id}")


@check()
async def a_reference_can_be_written_down(trial: Trial) -> None:
    """A reference names its provider, has a printable id, and details that are texts, in `create` as in `owned`."""
    sandbox = await trial.sandbox()
    await trial.lists(f"after one create of {sandbox.id}", sandbox.id)
    for whose, ref in (("create", sandbox.ref), *(("owned", ref) for ref in await trial.provider.owned(trial.run_id))):
        printable = not no_texts({ref.id: ""}) and ref.id.strip() and ref.id.isprintable()
        expect(bool(printable), f"{whose} gave the id {ref.id!r}; an id is a printable text that is not empty")
        named = ref.provider == trial.name
        expect(named, f"{whose} gave a reference of provider {ref.provider!r}; expected: {trial.name!r}")
        strange = no_texts(ref.details)
        expect(not strange, f"{whose} gave details that are no texts: {strange}")


@check()
async def no_id_is_given_twice(trial: Trial) -> None:
    """Each sandbox has an id of its own, also after another one was destroyed."""
    first = await trial.sandbox()
    ids = [first.id]
    await trial.provider.destroy(first)
    for _ in range(2):
        sandbox = await trial.sandbox()
        ids.append(sandbox.id)
        if trial.can.max_live == 1:
            await trial.provider.destroy(sandbox)
    expect(len(set(ids)) == len(ids), f"three sandboxes got the ids {', '.join(ids)}")


@check()
async def a_listed_sandbox_names_its_owner(trial: Trial) -> None:
    """Each reference that `owned` gives carries the label of the owner that was given to `create`."""
    sandbox = await trial.sandbox()
    await trial.lists(f"after one create of {sandbox.id}", sandbox.id)
    for ref in await trial.provider.owned(trial.run_id):
        label = ref.details.get("owner")
        expect(
            label == trial.owner.label(),
            f"owned(run) gave {ref.id} with details['owner'] = {label!r}; expected: {trial.owner.label()!r}",
        )


@check()
async def a_run_lists_its_own_only(trial: Trial) -> None:
    """`owned(run)` lists the sandboxes of that run only, `owned()` those of all runs."""
    trial.room(2)
    mine = await trial.sandbox()
    other_run = f"{trial.run_id}-other"
    other = await trial.other_run(other_run).create()
    await trial.lists("with a sandbox of this run and one of another", mine.id)
    theirs = sorted(ref.id for ref in await trial.provider.owned(other_run))
    expect(theirs == [other.id], f"owned of the other run gave {theirs}; expected: {[other.id]}")
    everybody = [ref.id for ref in await trial.provider.owned()]
    missing = {mine.id, other.id} - set(everybody)
    expect(not missing, f"owned() of all runs lacks {', '.join(sorted(missing))}; it gave {everybody}")
    nobody = [ref.id for ref in await trial.provider.owned(f"{trial.run_id}-nobody")]
    expect(not nobody, f"owned of a run that never made one gave {nobody}")


@check("labels")
async def another_process_can_destroy_it(trial: Trial) -> None:
    """With labels, another instance lists a sandbox by the same id, and destroys it by the reference it listed."""
    sandbox = await trial.sandbox()
    another = await trial.another()
    await trial.lists("asked of another instance after a create", sandbox.id, provider=another)
    (ref,) = await another.owned(trial.run_id)
    await another.destroy(ref)
    await trial.lists("after another instance destroyed it", provider=another)
    await trial.lists("after another instance destroyed it, asked of the one that made it")
    if trial.can.exec:
        with raises("exec after another instance destroyed it", SandboxGone):
            await sandbox.exec(["true"])
    await trial.provider.destroy(sandbox)


@check("labels")
async def closing_destroys_nothing(trial: Trial) -> None:
    """`aclose` frees clients and threads; sandboxes live on, and another instance lists and destroys them."""
    maker = await trial.another()
    sandbox = await maker.create()
    await trial.close(maker)
    await trial.lists("after the instance that made it was closed", sandbox.id)
    (ref,) = await trial.provider.owned(trial.run_id)
    await trial.provider.destroy(ref)
    await trial.lists(f"after destroy of {ref.id}")


@check()
async def destroy_is_idempotent(trial: Trial) -> None:
    """Gone is done: destroying it again, or twice at once, is no error."""
    sandbox = await trial.sandbox()
    await trial.provider.destroy(sandbox)
    await trial.provider.destroy(sandbox)
    sandbox = await trial.sandbox()
    await asyncio.gather(*(trial.provider.destroy(sandbox) for _ in range(2)))
    await trial.lists("after two destroys at once")


@check()
async def destroying_what_never_was_is_done(trial: Trial) -> None:
    """Destroying an id that was never given is no error, and ends nothing else."""
    sandbox = await trial.sandbox()
    # None that looks like the id of the sandbox: with ids that are counted it might be somebody else's.
    for id_ in ("sandboxbench-never-was", uuid.uuid4().hex):
        await trial.provider.destroy(SandboxRef(trial.provider.name, id_, {}))
    await trial.lists("after destroying what never was", sandbox.id)


@check("exec")
async def a_destroyed_sandbox_is_gone(trial: Trial) -> None:
    """A command, and a file, of a destroyed sandbox raise SandboxGone."""
    sandbox = await trial.sandbox()
    await trial.provider.destroy(sandbox)
    with raises("exec after destroy", SandboxGone):
        await sandbox.exec(["true"])
    if trial.can.files:
        with raises("write_file after destroy", SandboxGone):
            await sandbox.write_file("late", b"x")
        with raises("read_file after destroy", SandboxGone):
            await sandbox.read_file("late")


@check("exec")
async def destroy_ends_what_runs(trial: Trial) -> None:
    """A command that is under way when its sandbox is destroyed does not succeed."""
    sandbox = await trial.sandbox()
    async with running(sandbox.exec(["sleep", "1"], deadline_s=5)) as command:
        await asyncio.sleep(0.3)
        await trial.provider.destroy(sandbox)
        try:
            result = await command
        except SandboxError:
            return
    expect(result.exit_code != 0, "`sleep 1` returned 0 though its sandbox was destroyed after 0.3 s")


@check("files")
async def two_sandboxes_are_apart(trial: Trial) -> None:
    """A file of one sandbox is not in another, and destroying one leaves the other alone."""
    trial.room(2)
    one, other = await trial.sandbox(), await trial.sandbox()
    await one.write_file("apart", b"one")
    with raises(f"read_file in {other.id} of a file that is in {one.id} only", ExecFailed):
        await other.read_file("apart")
    await other.write_file("apart", b"other")
    found = await one.read_file("apart")
    expect(
        found == b"one", f"{one.id} wrote b'one'; after {other.id} wrote b'other' to the same path it read {found!r}"
    )
    await trial.provider.destroy(one)
    found = await other.read_file("apart")
    expect(found == b"other", f"after another sandbox was destroyed, {other.id} read {shown(found)}, not b'other'")


@check("exec")
async def the_environment_of_the_spec_is_there(trial: Trial) -> None:
    """Commands see the variables of `spec.env`."""
    value = "one = two; 'three' $four é"
    sandbox = await trial.sandbox(trial.asking(env={"SANDBOXBENCH_GIVEN": value, "SANDBOXBENCH_EMPTY": ""}))
    for name, expected in (("SANDBOXBENCH_GIVEN", value), ("SANDBOXBENCH_EMPTY", "")):
        found = await sandbox.exec(["printenv", name])
        said = f"spec.env has {name}={expected!r}; `printenv {name}` returned {found.exit_code}: {shown(found.stdout)}"
        expect(found.exit_code == 0 and found.stdout == expected.encode() + b"\n", said)


@check()
async def a_missing_image_is_said(trial: Trial) -> None:
    """An image that does not exist, or images at all where there are none, raise CreateFailed that names it."""
    with raises(f"create with image {_UNREAL_IMAGE}", CreateFailed, Unsupported) as raised:
        await trial.provider.create(trial.asking(image=_UNREAL_IMAGE))
    named = _UNREAL_IMAGE.rpartition("/")[2] in str(raised.error)
    expect(named, f"create with image {_UNREAL_IMAGE} raised an error that does not name it: {raised.error}")
    await trial.lists("after a create that failed")
    await trial.sandbox()


@check()
async def a_limit_it_cannot_set_is_refused(trial: Trial) -> None:
    """A limit that it does not enforce raises an error that names it, or is in `unenforced` where that is allowed."""
    lacking = [name for name in _ASKED if name not in trial.can.limits]
    if not lacking:
        raise NotInGuest("enforces every limit")
    for name in lacking:
        with raises(f"create with {name}, which is not in capabilities.limits,", CreateFailed, Unsupported) as raised:
            await trial.provider.create(trial.asking(**{name: _ASKED[name], "allow_unenforced": False}))
        expect(name in str(raised.error), f"create with {name} raised an error that does not name it: {raised.error}")
        await trial.lists(f"after the create with {name} failed")
        sandbox = await trial.sandbox(trial.asking(**{name: _ASKED[name], "allow_unenforced": True}))
        expect(
            name in sandbox.unenforced,
            f"{name} is not in capabilities.limits, and with allow_unenforced `unenforced` is "
            f"{sorted(sandbox.unenforced)}: it says nothing of it",
        )
        await trial.provider.destroy(sandbox)


@check()
async def a_cancelled_create_leaves_nothing(trial: Trial) -> None:
    """A create that is cancelled, at whatever moment, leaves no sandbox."""
    started = time.monotonic()
    sandbox = await trial.provider.create()
    lasts_s = time.monotonic() - started
    await trial.provider.destroy(sandbox)
    for moment in moments(lasts_s):
        how = await cut_short("create", trial.provider.create(), moment, trial.timeout_s)
        await trial.destroy_made()
        await trial.lists(f"after a create (of about {lasts_s:.3f} s) that was cancelled after {moment:.3f} s ({how})")
    await asyncio.sleep(min(lasts_s, _LATE_S))
    await trial.lists("some time after creates were cancelled")


@check()
async def a_create_out_of_time_leaves_nothing(trial: Trial) -> None:
    """A create that runs into its deadline raises OperationTimeout, and leaves no sandbox."""
    try:
        sandbox = await trial.provider.create(deadline_s=0.001)
    except OperationTimeout:
        pass
    except SandboxError as error:
        expect(False, f"create with a deadline of 1 ms raised {type(error).__name__}, not OperationTimeout: {error}")
    else:
        await trial.provider.destroy(sandbox)
    if trial.can.hosted:
        await asyncio.sleep(trial.slack_s)  # what was asked for may be made all the same
    await trial.lists("after a create with a deadline of 1 ms")


CHECKS = among(tuple(globals().values()))
