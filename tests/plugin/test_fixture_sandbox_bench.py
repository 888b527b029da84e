"""``sandbox_bench``: benches of somebody's own."""

from __future__ import annotations

import pytest

from .conftest import Suite, clean, printed

OWN = """
import pytest

async def test_two_commands(sandbox_bench):
    async def act(sandbox):
        for _ in range(2):
            result = await sandbox.exec(["true"])
            assert result.exit_code == 0, "the second one fails"

    measured = await sandbox_bench.measure(act)
    assert measured.median_s < 10
    assert len(measured.latencies_s) == 3
    assert measured.success_rate == 1
"""


def test_ten_lines_are_a_bench(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.write(test_own=OWN)
    result = suite.run("--sandbox-warmup=1", "--benchmark-json=out.json", *workers)
    text = clean(result, 0)
    result.assert_outcomes(passed=1)
    assert "  fake     3 " in text
    assert suite.series() == {"fake:two_commands@1/burst": 3}
    assert len(suite.calls("create")) == len(suite.calls("destroy")) == 4, "a sandbox a sample"
    (benchmark,) = suite.json()
    assert (benchmark["name"], benchmark["fullname"]) == ("test_two_commands[fake-c1]", "fake:two_commands@1/burst")


def test_a_failed_assert_is_a_failed_test_with_its_message(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.write(test_own=OWN)
    result = suite.run("--sandbox-option=fake.exec=0,0,0,exit:7,0", "--sandbox-option=fake.facts=a:b", *workers)
    text = clean(result, 1)
    result.assert_outcomes(failed=1)
    assert "fake:two_commands@1/burst: 1 failed of 3" in text
    assert "the second one fails" in text
    assert "the others: two_commands " in text
    assert ", n 2" in text
    suite.assert_nothing_left()
    assert [sample["outcome"] for sample in suite.samples()].count("failed") == 1


@pytest.mark.parametrize("error", ["KeyError('x')", "TypeError('x')", "SystemError('x')", "RecursionError('x')"])
def test_any_exception_in_the_act_is_a_failed_sample(suite: Suite, error: str) -> None:
    suite.write(
        test_own=f"""
        async def test_own(sandbox_bench):
            async def act(sandbox):
                raise {error}
            await sandbox_bench.measure(act)
        """
    )
    text = clean(suite.run(), 1)
    assert "3 failed of 3" in text
    assert error.partition("(")[0] in text
    suite.assert_nothing_left()


def test_a_skip_in_the_act_is_a_skip(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.write(
        test_own="""
        import pytest

        async def test_own(sandbox_bench):
            async def act(sandbox):
                pytest.skip("not on this sandbox")
            await sandbox_bench.measure(act)
        """
    )
    result = suite.run("-rs", *workers)
    text = clean(result, 5)
    result.assert_outcomes(skipped=1)
    assert "not on this sandbox" in text
    suite.assert_nothing_left()


def test_a_fail_in_the_act_is_a_failed_sample(suite: Suite) -> None:
    suite.write(
        test_own="""
        import pytest

        async def test_own(sandbox_bench):
            async def act(sandbox):
                pytest.fail("wrong answer")
            await sandbox_bench.measure(act)
        """
    )
    text = clean(suite.run(), 1)
    assert "wrong answer" in text
    suite.assert_nothing_left()


PARAMETERS = """
import pytest

@pytest.mark.parametrize(("size", "mode"), [(1, "fast"), (2, "x-1.5_y")])
async def test_sized(sandbox_bench, size, mode):
    async def act(sandbox):
        await sandbox.write_file("f", b"x" * size)
    await sandbox_bench.measure(act)
"""


def test_parameters_become_variants(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.write(test_own=PARAMETERS)
    result = suite.run("--benchmark-json=out.json", *workers)
    clean(result, 0)
    result.assert_outcomes(passed=2)
    assert suite.series() == {
        "fake:sized{mode=fast,size=1}@1/burst": 3,
        "fake:sized{mode=x-1.5_y,size=2}@1/burst": 3,
    }
    assert [(b["params"]["size"], b["params"]["mode"]) for b in suite.json()] == [("1", "fast"), ("2", "x-1.5_y")]


def test_parameters_that_look_alike_are_not_one_series(suite: Suite) -> None:
    suite.write(test_own=PARAMETERS.replace('(1, "fast"), (2, "x-1.5_y")', '(1, "a/b"), (1, "a@b")'))
    result = suite.run("--benchmark-json=out.json")
    clean(result, 0)
    assert len({b["fullname"] for b in suite.json()}) == 2
    assert set(suite.series().values()) == {3}


def test_parameters_that_are_objects(suite: Suite) -> None:
    """Their ids, not what they print as, which is another at each run."""
    suite.write(test_own=PARAMETERS.replace('(1, "fast"), (2, "x-1.5_y")', "(1, object()), (2, len)"))
    clean(suite.run(), 0)
    assert set(suite.series()) == {"fake:sized{mode=mode0,size=1}@1/burst", "fake:sized{mode=len,size=2}@1/burst"}


X = "async def test_x({self}sandbox_bench): await sandbox_bench.measure(lambda sandbox: sandbox.exec(['true']))\n"
IN_TWO_FILES = {"test_a": X.format(self=""), "test_b": X.format(self="")}
IN_TWO_CLASSES = {"test_a": "".join(f"class Test{c}:\n    {X.format(self='self, ')}" for c in "AB")}


@pytest.mark.parametrize("files", [IN_TWO_FILES, IN_TWO_CLASSES], ids=["files", "classes"])
def test_two_benches_of_one_name_are_not_mixed(suite: Suite, files: dict[str, str]) -> None:
    suite.write(**files)
    result = suite.run("--benchmark-json=out.json")
    text = clean(result, 1)
    result.assert_outcomes(passed=1, failed=1)
    assert "'x' is measured by test_a" in text
    assert '@pytest.mark.sandbox_bench("another_x")' in text
    assert suite.series() == {"fake:x@1/burst": 3}
    assert len(suite.json()) == 1


@pytest.mark.parametrize("name", ["exec", "startup", "pause"])
def test_a_name_that_is_built_in(suite: Suite, name: str) -> None:
    """Its row would stand under a definition that is not its own."""
    suite.write(**{f"test_{name}": X.replace("test_x", f"test_{name}").format(self="")})
    text = clean(suite.run(), 1)
    assert f'@pytest.mark.sandbox_bench("my_{name}")' in text
    assert suite.calls("create") == []


def test_a_class(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.write(
        test_own="""
        import pytest

        class TestLife:
            @pytest.mark.sandbox_bench("startup")
            async def test_startup(self, sandbox_bench):
                await sandbox_bench.measure()

            async def test_own(self, sandbox_bench):
                await sandbox_bench.measure(self.act)

            async def act(self, sandbox):
                await sandbox.exec(["true"])
        """
    )
    result = suite.run(*workers)
    clean(result, 0)
    result.assert_outcomes(passed=2)
    assert suite.series()["fake:own@1/burst"] == 3


def test_a_life_of_ones_own(suite: Suite) -> None:
    suite.write(
        test_own="""
        async def test_reuse(sandbox_bench):
            async def live(lane):
                async with lane.timed("warm_up"):
                    sandbox = await lane.create()
                    await lane.ready(sandbox)
                async with lane.timed("again"):
                    await lane.true(sandbox)
            measured = await sandbox_bench.run(live, "warm_up", "again")
            assert len(measured.series) == 2
        """
    )
    text = clean(suite.run(), 0)
    assert suite.series() == {"fake:warm_up@1/burst": 3, "fake:again@1/burst": 3}
    assert "again" in text
    suite.assert_nothing_left()


def test_a_test_that_is_no_coroutine(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.write(test_own="def test_own(sandbox_bench):\n    sandbox_bench.measure()\n")
    result = suite.run(*workers)
    text = clean(result, 4)
    told = "sandbox_bench is awaited, so the test is a coroutine: write `async def test_own`"
    assert text.count(told) == 1
    assert suite.calls("create") == []


def test_measure_without_anything_to_measure(suite: Suite) -> None:
    suite.write(test_own="async def test_own(sandbox_bench):\n    await sandbox_bench.measure()\n")
    text = clean(suite.run(), 1)
    assert 'measure() needs a function, or the marker: @pytest.mark.sandbox_bench("startup")' in text


def test_measure_that_is_not_awaited(suite: Suite) -> None:
    suite.write(
        test_own="""
        async def test_own(sandbox_bench):
            sandbox_bench.measure(lambda sandbox: sandbox.exec(["true"]))
        """
    )
    result = suite.run("-W", "ignore")
    assert result.ret == 1
    assert "test_own" in printed(result)
    assert "nothing was measured: `await sandbox_bench.measure(...)`" in printed(result)


def test_an_act_that_is_no_coroutine_function(suite: Suite) -> None:
    suite.write(
        test_own="""
        async def test_own(sandbox_bench):
            def act(sandbox):
                return 1
            await sandbox_bench.measure(act)
        """
    )
    text = clean(suite.run(), 1)
    assert "TypeError" in text
    assert "int" in text
    suite.assert_nothing_left()


def test_measuring_twice(suite: Suite) -> None:
    """A second act under the same name would be the first one's numbers."""
    suite.write(
        test_own="""
        async def test_own(sandbox_bench):
            await sandbox_bench.measure(lambda sandbox: sandbox.exec(["true"]))
            await sandbox_bench.measure(lambda sandbox: sandbox.write_file("f", b""))
        """
    )
    text = clean(suite.run(), 1)
    assert "measures once" in text
