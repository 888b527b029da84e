"""The marker ``sandbox_bench``."""

from __future__ import annotations

import pytest

from .conftest import Suite, clean, errors


def bench(mark: str) -> str:
    return f"""
    import pytest

    @pytest.mark.sandbox_bench({mark})
    async def test_it(sandbox_bench):
        await sandbox_bench.measure()
    """


@pytest.mark.parametrize(
    ("mark", "told"),
    [
        ("7", "operation=7 is not a name"),
        ('"exec", samples=0', "samples=0 is not a whole number from 1 on"),
        ('"exec", samples="3"', "samples='3' is not a whole number from 1 on"),
        ('"exec", samples=True', "samples=True is not a whole number from 1 on"),
        ('"exec", warmup=-1', "warmup=-1 is not a whole number from 0 on"),
        (
            '"exec", rounds=3',
            "unexpected keyword argument 'rounds'; it is sandbox_bench(operation=None, *, samples=None",
        ),
        ('"exec", 3', "it is sandbox_bench(operation=None, *, samples=None"),
    ],
)
def test_mistakes_name_the_test_and_what_is_allowed(suite: Suite, mark: str, told: str) -> None:
    suite.write(test_own=bench(mark))
    result = suite.run()
    clean(result, 4)
    (error,) = errors(result)
    assert "test_own.py::test_it[fake-c1]" in error
    assert told in error
    assert suite.calls("create") == []


def test_an_operation_that_is_not_built_in_needs_a_function(suite: Suite) -> None:
    suite.write(test_own=bench('"startupp"'))
    text = clean(suite.run(), 1)
    assert "no operation 'startupp'; there are: startup, create, " in text
    assert "or give measure() a function of yours" in text


def test_a_mistake_under_xdist(suite: Suite) -> None:
    suite.write(test_own=bench('"exec", samples=0'), test_more="def test_more(): pass")
    result = suite.run("-n", "2")
    clean(result, 4)
    (error,) = errors(result)
    assert "test_own.py::test_it[fake-c1]: marker sandbox_bench: samples=0 is not a whole number from 1 on" in error


def test_samples_and_warmup_hold_where_no_option_says_otherwise(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.write(test_own=bench('"exec", samples=5, warmup=2'))
    log = f"--sandbox-option=fake.log={suite.log}"
    clean(suite.bare("--sandbox-provider=fake", log, *workers), 0)
    assert suite.series() == {"fake:exec@1/burst": 5}
    assert len(suite.calls("create")) == 7


def test_options_are_stronger(suite: Suite) -> None:
    suite.write(test_own=bench('"exec", samples=5, warmup=2'))
    clean(suite.run("--sandbox-samples=2", "--sandbox-warmup=1"), 0)
    assert suite.series() == {"fake:exec@1/burst": 2}
    assert len(suite.calls("create")) == 3


def test_on_a_class_and_on_a_module(suite: Suite) -> None:
    suite.write(
        test_own="""
        import pytest

        pytestmark = pytest.mark.sandbox_bench("round_trip")

        async def test_module(sandbox_bench):
            await sandbox_bench.measure()

        @pytest.mark.sandbox_bench("exec")
        class TestClass:
            async def test_class(self, sandbox_bench):
                await sandbox_bench.measure()
        """
    )
    clean(suite.run(), 0)
    assert suite.series() == {"fake:round_trip@1/burst": 3, "fake:exec@1/burst": 3}


def test_without_an_operation_it_only_counts(suite: Suite) -> None:
    suite.write(
        test_own="""
        import pytest

        @pytest.mark.sandbox_bench(samples=2)
        async def test_own(sandbox_bench):
            await sandbox_bench.measure(lambda sandbox: sandbox.exec(["true"]))
        """
    )
    clean(suite.bare("--sandbox-provider=fake", "--sandbox-warmup=0"), 0)
    assert suite.series() == {"fake:own@1/burst": 2}


def test_with_a_name_of_ones_own_it_names_the_series(suite: Suite) -> None:
    suite.write(
        test_own="""
        import pytest

        @pytest.mark.sandbox_bench("compile")
        async def test_own(sandbox_bench):
            await sandbox_bench.measure(lambda sandbox: sandbox.exec(["true"]))
        """
    )
    clean(suite.run(), 0)
    assert suite.series() == {"fake:compile@1/burst": 3}


@pytest.mark.parametrize("name", ["a b", "a@b", "a/b", "", "a:b", "a{b}"])
def test_a_name_that_no_key_could_hold(suite: Suite, name: str) -> None:
    suite.write(
        test_own=f"""
        import pytest

        @pytest.mark.sandbox_bench({name!r})
        async def test_own(sandbox_bench):
            await sandbox_bench.measure(lambda sandbox: sandbox.exec(["true"]))
        """
    )
    result = suite.run()
    clean(result, 4)
    assert f"operation={name!r}" in errors(result)[0]


def test_it_is_registered(suite: Suite) -> None:
    suite.one_bench()
    clean(suite.run("--strict-markers"), 0)
    assert "@pytest.mark.sandbox_bench(operation=None" in clean(suite.bare("--markers"), 0)


def test_an_operation_of_ones_own_is_named_by_the_marker_and_shown(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.write(
        test_own="""
        import pytest

        @pytest.mark.sandbox_bench("two_commands")
        async def test_it(sandbox_bench):
            async def act(sandbox):
                await sandbox.exec(["true"])
                await sandbox.exec(["true"])

            await sandbox_bench.measure(act)
        """
    )
    result = suite.run(*workers)
    clean(result, 0)
    result.stdout.fnmatch_lines(["two_commands", "  fake * 3 *"])
