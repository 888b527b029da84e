"""``--sandbox-floor``: what runs on the bare host beside a sandbox, and what never does unasked."""

from __future__ import annotations

import pytest

from .conftest import Suite, clean

OWN = """
    import pytest

    async def test_mine(sandbox_bench):
        async def mine(sandbox):
            await sandbox.exec(["true"])

        await sandbox_bench.measure(mine)

    @pytest.mark.sandbox_bench("exec")
    async def test_exec(sandbox_bench):
        await sandbox_bench.measure()
"""
BOTH = {"bubblewrap:exec@1/burst", "bubblewrap:mine@1/burst"}


@pytest.mark.parametrize(
    ("option", "floors"),
    [
        ((), {"null:exec@1/burst"}),
        (("--sandbox-floor=all",), {"null:exec@1/burst", "null:mine@1/burst"}),
        (("--sandbox-floor=none",), set()),
    ],
)
def test_an_act_of_ones_own_runs_on_the_host_only_where_that_was_asked(
    suite: Suite, option: tuple[str, ...], floors: set[str]
) -> None:
    suite.write(test_own=OWN)
    clean(suite.bare("--sandbox-provider=bubblewrap", "--sandbox-samples=2", *option), 0)
    assert {row["series"] for row in suite.samples()} == BOTH | floors


def test_a_word_that_is_none_of_them(suite: Suite) -> None:
    suite.write(test_own=OWN)
    result = suite.run("--sandbox-floor=some")
    clean(result, 4)
    assert "'some' is none of auto, all, none; write for example all" in result.stderr.str()
