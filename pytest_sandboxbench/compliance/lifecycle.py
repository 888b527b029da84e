"""From create to destroy."""

from __future__ import annotations

from ..errors import SandboxGone
from ..model import SandboxRef
from .check import Trial, among, check, expect, raises

__all__ = ["CHECKS"]


@check()
async def a_sandbox_is_listed_until_it_is_destroyed(trial: Trial) -> None:
    """`owned` lists a sandbox from its create on, and no more once `destroy` has returned."""
    sandbox = await trial.sandbox()
    listed = await trial.owned()
    expect(listed == [sandbox.id], f"after one create of {sandbox.id}, owned(run) gave {listed}")
    await trial.provider.destroy(sandbox)
    listed = await trial.owned()
    expect(listed == [], f"after destroy of {sandbox.id}, owned(run) still gave {listed}")


@check()
async def destroy_is_idempotent(trial: Trial) -> None:
    """Gone is done: destroying twice, or what never was, is no error."""
    sandbox = await trial.sandbox()
    await trial.provider.destroy(sandbox)
    await trial.provider.destroy(sandbox)
    await trial.provider.destroy(SandboxRef(trial.provider.name, "sandboxbench-never-was", {}))


@check("exec")
async def a_destroyed_sandbox_is_gone(trial: Trial) -> None:
    """A command for a destroyed sandbox raises SandboxGone."""
    sandbox = await trial.sandbox()
    await trial.provider.destroy(sandbox)
    with raises("exec after destroy", SandboxGone):
        await sandbox.exec(["true"])


CHECKS = among(tuple(globals().values()))
