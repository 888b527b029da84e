"""Limits hold, seen from inside."""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from ..errors import CreateFailed, ExecTimeout, SandboxError, SandboxGone, Unsupported
from ..load.guard import GuardedSandbox
from ..providers.protocol import Limited
from .check import NotInGuest, Trial, among, check, expect, shown

__all__ = ["CHECKS"]

_MIB = 2**20
_MEMORY_MIB, _TAKEN_MIB, _FITS_MIB = 256, 600, 16
_PIDS, _STARTED = 32, 64
_MORE = 1.3
"""How much more CPU time than its share a guest may get: quotas are given in slices."""
_TRIES = 3
"""How often the loops run with the limit and without it, until those without show that there was more to be had."""

_TAKE = 'dd if=/dev/zero of=/dev/null bs="$1" count=1'
_START_MANY = 'i=0; while [ "$i" -lt "$1" ]; do sleep 60 </dev/null >/dev/null 2>&1 & i=$((i+1)); echo "$i"; done'
_BURN = """
read -r begin rest </proc/uptime
for each in 1 2 3 4; do (while :; do :; done) & pids="$pids $!"; done
sleep 1
kill $pids; wait $pids 2>/dev/null
read -r end rest </proc/uptime
echo "$begin $end"; times
"""
_MINUTES = re.compile(rb"(\d+)m([\d.]+)s")

_PROBES = (
    ("python3", "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 2)"),
    ("nc", 'nc -w 2 "$1" "$2" </dev/null'),
    ("wget", 'wget -q -T 2 -O - "http://$1:$2/"'),
)


@check()
async def what_is_not_asked_is_not_limited(trial: Trial) -> None:
    """Without limits in the spec a sandbox has none in `unenforced`, and none that can be read back."""
    sandbox = await trial.sandbox(trial.asking(vcpus=None, memory_mib=None, pids=None, lifetime_s=None))
    expect(not sandbox.unenforced, f"no limit was asked for, and `unenforced` is {sorted(sandbox.unenforced)}")
    if isinstance(sandbox.unguarded, Limited):
        said = dict(sandbox.unguarded.enforced)
        expect(not said, f"no limit was asked for, and `enforced` is {said}")


@check()
async def what_is_asked_is_set_or_said(trial: Trial) -> None:
    """A limit that it declares is not in `unenforced`, and is in `enforced` where limits can be read back."""
    asked = {"vcpus": 1.0, "memory_mib": 512, "pids": 100}
    declared = {name: amount for name, amount in asked.items() if name in trial.can.limits}
    if not declared:
        raise NotInGuest("enforces no limit")
    for allowed in (False, True):
        sandbox = await trial.sandbox(trial.asking(**declared, allow_unenforced=allowed))
        lacking = sandbox.unenforced & set(declared)
        expect(not lacking, f"capabilities.limits names {sorted(lacking)}, and asked for they are in `unenforced`")
        if isinstance(sandbox.unguarded, Limited):
            unsaid = set(declared) - set(sandbox.unguarded.enforced)
            expect(not unsaid, f"{sorted(unsaid)} were asked for, and are missing from `enforced`")
        await trial.provider.destroy(sandbox)


@check("memory_mib", "exec", "shell")
async def memory_is_limited(trial: Trial) -> None:
    """With `memory_mib=256` a command that takes 600 MiB fails, one that takes 16 MiB does not."""
    sandbox = await trial.sandbox(trial.asking(memory_mib=_MEMORY_MIB))
    await trial.sh(sandbox, _TAKE, str(_FITS_MIB * _MIB))
    try:
        result = await sandbox.exec(["sh", "-c", _TAKE, "sh", str(_TAKEN_MIB * _MIB)])
    except SandboxError:
        pass
    else:
        said = f"with memory_mib={_MEMORY_MIB} `dd` took {_TAKEN_MIB} MiB and returned 0: the limit is not enforced"
        expect(result.exit_code != 0, said)
    try:
        await trial.sh(sandbox, _TAKE, str(_FITS_MIB * _MIB))
    except SandboxGone:
        pass  # the guest itself was ended, and it is said


@check("pids", "exec", "shell")
async def processes_are_limited(trial: Trial) -> None:
    """With `pids=32` a shell that starts 64 processes at once gets no further than 32, and its own guest says so."""
    sandbox = await trial.sandbox(trial.asking(pids=_PIDS))
    result = await sandbox.exec(["sh", "-c", _START_MANY, "sh", str(_STARTED)])
    started = len(result.stdout.split())
    said = f"with pids={_PIDS} a shell started {started} processes at once: the limit is not enforced"
    expect(started <= _PIDS, said)
    expect(started > 0, f"with pids={_PIDS} a shell could start no process at all: {shown(result.stderr)}")


@check("vcpus", "exec", "shell")
async def processors_are_limited(trial: Trial) -> None:
    """Four busy loops get no more CPU time than `vcpus` allows, where without the limit they get more."""
    for _ in range(_TRIES):
        vcpus, sandbox = await _few_vcpus(trial)
        used, most, lasted = await _burn(trial, sandbox, vcpus)
        expect(
            used <= most,
            f"with vcpus={vcpus:g} four busy loops used {used:.2f} s of CPU time in {lasted:.2f} s; at most "
            f"{most:.2f} s were expected: the limit is not enforced",
        )
        try:
            free = await trial.sandbox(trial.asking(vcpus=None if vcpus < 1 else vcpus + 1))
        except (CreateFailed, Unsupported):
            raise NotInGuest(f"gives no more than vcpus={vcpus:g}: what the limit takes cannot be told") from None
        used, most, _ = await _burn(trial, free, vcpus)
        if used > most:
            return
    raise NotInGuest("four busy loops get no more without the limit: too few processors, or too busy ones, to tell")


async def _few_vcpus(trial: Trial) -> tuple[float, GuardedSandbox]:
    """A part of a processor, or one where there are whole ones only."""
    for vcpus in (0.25, 0.5):
        with suppress(CreateFailed, Unsupported):
            return vcpus, await trial.sandbox(trial.asking(vcpus=vcpus))
    return 1.0, await trial.sandbox(trial.asking(vcpus=1.0))


async def _burn(trial: Trial, sandbox: GuardedSandbox, vcpus: float) -> tuple[float, float, float]:
    """What the loops used, the most that ``vcpus`` allows, and how long it lasted, in seconds; ends the sandbox."""
    out = await trial.sh(sandbox, _BURN)
    await trial.provider.destroy(sandbox)
    begin, end = map(float, out.split()[:2])
    used = sum(60 * int(minutes) + float(seconds) for minutes, seconds in _MINUTES.findall(out))
    return used, vcpus * (end - begin) * _MORE + 0.1, end - begin


@check("network_off", "exec", "shell")
async def without_network_the_host_is_not_reached(trial: Trial) -> None:
    """With `network=False` a guest cannot connect to the host's loopback nor to its other addresses."""
    sandbox = await trial.sandbox(trial.asking(network=False))
    program, probe = await _probe(trial, sandbox)
    connects = [program, "-c", probe] + ([] if program == "python3" else ["sh"])
    for address in _addresses():
        async with _listening(address) as (port, came):
            with suppress(ExecTimeout):
                await sandbox.exec([*connects, address, str(port)], deadline_s=10)
            await asyncio.sleep(0.05)
            expect(not came, f"with network=False the guest connected to {address}:{port} on the host")


@check("network_off", "exec", "shell")
async def without_network_no_route_leads_out(trial: Trial) -> None:
    """With `network=False` a local sandbox has no route but over its own loopback."""
    if trial.can.hosted:
        raise NotInGuest("may close the network outside of the guest")
    sandbox = await trial.sandbox(trial.asking(network=False))
    routes = await sandbox.exec(["cat", "/proc/net/route"])
    if routes.exit_code != 0:
        raise NotInGuest("the guest has no /proc/net/route")
    leads = {line.split()[0] for line in routes.stdout.splitlines()[1:] if line.split()} - {b"lo"}
    expect(
        not leads, f"with network=False the guest has routes over {', '.join(shown(name) for name in sorted(leads))}"
    )


async def _probe(trial: Trial, sandbox: GuardedSandbox) -> tuple[str, str]:
    for program, probe in _PROBES:
        try:
            await trial.has(sandbox, program)
        except NotInGuest:
            continue
        return ("python3" if program == "python3" else "sh"), probe
    raise NotInGuest(f"the guest has none of {', '.join(program for program, _ in _PROBES)}")


def _addresses() -> list[str]:
    """Of this host: its loopback, and the one from which it would reach others."""
    found = ["127.0.0.1"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; an address of nobody: RFC 5737
        except OSError:
            return found
        found.append(probe.getsockname()[0])
    return found


@asynccontextmanager
async def _listening(address: str) -> AsyncIterator[tuple[int, list[object]]]:
    """A TCP listener of ours: its port, and a list that grows with each connection."""
    came: list[object] = []

    def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(writer.get_extra_info("peername"))
        writer.close()

    server = await asyncio.start_server(accept, address, 0)
    async with server:
        yield server.sockets[0].getsockname()[1], came


@check("exec")
async def a_lifetime_ends_it_or_is_refused(trial: Trial) -> None:
    """At the end of `lifetime_s` commands raise SandboxGone, and `destroy` removes what is left; or it is refused."""
    lifetime_s = 5.0 if trial.can.hosted else 1.0
    try:
        sandbox = await trial.provider.create(trial.asking(lifetime_s=lifetime_s, allow_unenforced=False))
    except (CreateFailed, Unsupported) as error:
        expect("lifetime" in str(error), f"create with lifetime_s raised an error that does not name it: {error}")
        try:
            sandbox = await trial.sandbox(trial.asking(lifetime_s=lifetime_s, allow_unenforced=True))
        except (CreateFailed, Unsupported):
            return  # it may be too short a life for it
        said = f"lifetime_s is refused ({error}), and where that is allowed `unenforced` does not list it"
        expect("lifetime_s" in sandbox.unenforced, said)
        return
    born = time.monotonic()
    expect("lifetime_s" not in sandbox.unenforced, "lifetime_s is in `unenforced` without allow_unenforced")
    late_s = lifetime_s + 4 * trial.slack_s
    while (came := await _of_a_command(sandbox)) != "SandboxGone":
        lived_s = time.monotonic() - born
        said = (
            f"with lifetime_s={lifetime_s:g} a command after {lived_s:.1f} s was to raise SandboxGone; it gave {came}"
        )
        expect(lived_s < late_s, said)
        await asyncio.sleep(0.1)
    lived_s = time.monotonic() - born
    said = f"with lifetime_s={lifetime_s:g} a command raised SandboxGone after {lived_s:.1f} s already"
    expect(lived_s > lifetime_s / 2, said)
    # It may be listed until then: what ended by itself has left something, perhaps.
    await trial.provider.destroy(sandbox)
    await trial.lists(f"after the lifetime of {sandbox.id} was over and it was destroyed")


async def _of_a_command(sandbox: GuardedSandbox) -> str:
    """What `true` came to: its exit code, or the name of an error with what it said."""
    try:
        result = await sandbox.exec(["true"])
    except SandboxGone:
        return "SandboxGone"
    except SandboxError as error:
        return f"{type(error).__name__}: {error}"
    return f"exit code {result.exit_code}"


CHECKS = among(tuple(globals().values()))
