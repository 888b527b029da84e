"""Looking from inside for what a command started, by a mark that it and all below it have in their environment."""

from __future__ import annotations

import asyncio
import secrets
import time

from ..load.guard import GuardedSandbox
from .check import CheckFailed, NotInGuest, Trial

__all__ = ["Mark"]

_NAME = "SANDBOXBENCH_MARK"
_BETWEEN_LOOKS_S = 0.02

# In a POSIX guest with /proc one grep is enough. Of what is ending it finds nothing: no environment is left then.
_LOOK = 'grep -ls -e "$1" /proc/[0-9]*/environ; true'


class Mark:
    """A mark of one command: run ``mark.argv(script)`` with ``env=mark.env``."""

    def __init__(self, trial: Trial, sandbox: GuardedSandbox) -> None:
        self._trial = trial
        self._sandbox = sandbox
        self._token = secrets.token_hex(8)
        self.env = {_NAME: self._token}

    @classmethod
    async def of(cls, trial: Trial, sandbox: GuardedSandbox) -> Mark:
        """``NotInGuest`` where a look would find nothing whatever is there: each one must find at least itself."""
        mark = cls(trial, sandbox)
        await trial.has(sandbox, "grep")
        found = await sandbox.exec(["sh", "-c", _LOOK, "sh", mark._token], env=mark.env)
        if not found.stdout.strip():
            raise NotInGuest("the guest shows no environments of processes in /proc")
        return mark

    def argv(self, script: str) -> list[str]:
        """A shell that runs the script, but for one without the mark: nothing of it would be found."""
        unmarked = 'echo "the variables given with the command did not reach it" >&2; exit 98'
        return ["sh", "-c", f'[ "${_NAME}" = {self._token} ] || {{ {unmarked}; }}; {script}']

    async def living(self) -> list[str]:
        """Pids, inside, of what lives of the command."""
        found = await self._trial.sh(self._sandbox, _LOOK, f"{_NAME}={self._token}")
        return [path.split("/")[2] for path in found.decode(errors="replace").split()]

    async def wait_for(self, count: int) -> None:
        """Until so many processes of the command live."""
        ends = time.monotonic() + self._trial.timeout_s
        while len(found := await self.living()) < count:
            if time.monotonic() > ends:
                raise CheckFailed(f"the command was to start {count} processes; after a while there were {len(found)}")
            await asyncio.sleep(_BETWEEN_LOOKS_S)

    async def expect_none(self, after: str) -> None:
        """``CheckFailed`` when something of the command lives on; what is dying has a moment to do so."""
        ends = time.monotonic() + self._trial.slack_s
        while found := await self.living():
            if time.monotonic() > ends:
                what = await self._trial.sh(self._sandbox, _NAMES, *found)
                lines = ", ".join(what.decode(errors="replace").splitlines())
                raise CheckFailed(
                    f"{after}, {len(found)} of its processes live on in the sandbox: {lines or ' '.join(found)}; "
                    "kill everything that a command started, also what left its process group or its parent"
                )
            await asyncio.sleep(_BETWEEN_LOOKS_S)


_NAMES = 'for pid do printf "%s: " "$pid"; tr "\\000" " " <"/proc/$pid/cmdline"; echo; done 2>/dev/null; true'
