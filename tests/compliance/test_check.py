"""What the checks are made of."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from pytest_sandboxbench.compliance.check import running


@pytest.mark.parametrize("swallows", [False, True])
def test_a_call_beside_a_check_that_fails_is_told_by_nobody(
    swallows: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pytest_sandboxbench.compliance.check._STOPS_S", 0.05)
    told: list[dict[str, Any]] = []

    async def call() -> None:
        try:
            await asyncio.sleep(0 if not swallows else 60)
        except asyncio.CancelledError:
            await asyncio.sleep(0.2)
        raise ValueError("str has no exit_code")

    async def failing() -> None:
        async with running(call()):
            await asyncio.sleep(0.02)
            raise KeyError("the check")

    async def check() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context))
        with pytest.raises(KeyError):
            await failing()
        await asyncio.sleep(0.3)

    asyncio.run(check())
    gc.collect()
    assert told == []
    assert capsys.readouterr() == ("", "")
