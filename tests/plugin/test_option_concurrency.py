"""``--sandbox-concurrency``: levels are tests of their own, each measured once."""

from __future__ import annotations

from .conftest import Suite, clean


def test_levels_are_tests_and_series_of_their_own(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.one_bench()
    result = suite.run("--sandbox-concurrency=1,4", "--benchmark-json=out.json", "-v", *workers)
    text = clean(result, 0)
    result.assert_outcomes(passed=2)
    assert "test_exec[fake-c1]" in text
    assert "test_exec[fake-c4]" in text
    assert suite.series() == {"fake:exec@1/burst": 3, "fake:exec@4/burst": 12}
    assert [(b["fullname"], b["params"]["concurrency"], b["stats"]["rounds"]) for b in suite.json()] == [
        ("fake:exec@1/burst", 1, 3),
        ("fake:exec@4/burst", 4, 12),
    ]
    assert "exec @4/burst" in text


def test_lanes_of_a_round_are_released_together(suite: Suite) -> None:
    suite.one_bench()
    clean(suite.run("--sandbox-concurrency=4", "--sandbox-option=fake.create=0.01,0.03,0.05,0.02,..."), 0)
    for number in range(3):
        lanes = [sample for sample in suite.samples() if sample["round"] == number]
        assert sorted(sample["lane"] for sample in lanes) == [0, 1, 2, 3]
        assert len({sample["scheduled_ns"] for sample in lanes}) == 1


def test_a_test_that_only_uses_a_sandbox_has_no_levels(suite: Suite) -> None:
    suite.write(test_use="async def test_use(sandbox):\n    assert (await sandbox.exec(['true'])).exit_code == 0\n")
    result = suite.run("--sandbox-concurrency=1,4", "-v")
    result.assert_outcomes(passed=1)
    assert "test_use[fake]" in result.stdout.str()


def test_a_bench_may_choose_its_own_levels(suite: Suite) -> None:
    suite.write(
        test_own="""
        import pytest

        @pytest.mark.parametrize("concurrency", [2, 3])
        @pytest.mark.sandbox_bench("exec")
        async def test_exec(sandbox_bench):
            await sandbox_bench.measure()
        """
    )
    result = suite.run("--sandbox-concurrency=1")
    clean(result, 0)
    result.assert_outcomes(passed=2)
    assert suite.series() == {"fake:exec@2/burst": 6, "fake:exec@3/burst": 9}


def test_a_bench_that_parametrizes_a_whole_class(suite: Suite) -> None:
    suite.write(
        test_own="""
        import pytest

        @pytest.mark.parametrize("concurrency", [2])
        class TestOwn:
            @pytest.mark.sandbox_bench("exec")
            async def test_exec(self, sandbox_bench):
                await sandbox_bench.measure()
        """
    )
    clean(suite.run(), 0)
    assert suite.series() == {"fake:exec@2/burst": 6}
