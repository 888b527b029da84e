"""Beside other plugins, without some, with other settings of asyncio, under ``-W error``."""

from __future__ import annotations

import pytest

from .conftest import Suite, clean, printed

OWN_ASYNC = """
    import asyncio
    import pytest
    import pytest_asyncio

    @pytest_asyncio.fixture
    async def theirs():
        await asyncio.sleep(0)
        yield asyncio.get_running_loop()

    @pytest.mark.asyncio
    async def test_theirs(theirs):
        assert theirs is asyncio.get_running_loop()

    @pytest.mark.sandbox_bench("exec")
    async def test_exec(sandbox_bench):
        await sandbox_bench.measure()

    async def test_beside(sandbox, theirs_too):
        assert (await sandbox.exec(["true"])).exit_code == theirs_too

    @pytest_asyncio.fixture(loop_scope="session")
    async def theirs_too(sandbox_factory):
        await sandbox_factory()
        yield 0

    def test_sync(sandbox):
        assert sandbox.id
"""

AUTO = """
    import asyncio
    import pytest

    @pytest.fixture
    async def theirs():
        yield asyncio.get_running_loop()

    async def test_theirs(theirs):
        assert theirs is asyncio.get_running_loop()

    @pytest.mark.sandbox_bench("exec")
    async def test_exec(sandbox_bench):
        await sandbox_bench.measure()

    async def test_use(sandbox):
        assert (await sandbox.exec(["true"])).exit_code == 0
"""


def test_strict_asyncio(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.write(test_mixed=OWN_ASYNC)
    result = suite.run("-W", "error", *workers)
    clean(result, 0)
    result.assert_outcomes(passed=4)
    suite.assert_nothing_left()


@pytest.mark.parametrize("scope", ["function", "session"])
def test_auto_asyncio(suite: Suite, scope: str) -> None:
    suite.write(test_mixed=AUTO)
    suite.pytester.makeini(
        f"[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = {scope}\n"
        f"asyncio_default_test_loop_scope = {scope}\n"
    )
    result = suite.run("-W", "error")
    clean(result, 0)
    result.assert_outcomes(passed=3)
    suite.assert_nothing_left()


def test_the_marker_of_a_test_is_respected(suite: Suite) -> None:
    suite.write(
        test_marked="""
        import pytest

        @pytest.mark.asyncio
        @pytest.mark.sandbox_bench("exec")
        async def test_exec(sandbox_bench):
            await sandbox_bench.measure()

        @pytest.mark.asyncio(loop_scope="session")
        async def test_use(sandbox):
            await sandbox.exec(["true"])
        """
    )
    result = suite.run("-W", "error")
    clean(result, 0)
    result.assert_outcomes(passed=2)


@pytest.mark.parametrize(
    "blocked",
    [
        ("xdist",),
        ("benchmark",),
        ("cacheprovider",),
        ("xdist", "benchmark", "cacheprovider"),
        ("terminal",),
        ("junitxml",),
    ],
)
def test_without_a_plugin(suite: Suite, blocked: tuple[str, ...]) -> None:
    suite.one_bench()
    without = [word for name in blocked for word in ("-p", f"no:{name}")]
    result = suite.run("-W", "error", *without)
    text = printed(result)
    assert "Traceback" not in text
    assert result.ret == 0
    assert suite.series() == {"fake:exec@1/burst": 3}
    if "terminal" not in blocked:
        assert "exec: before the command" in text


@pytest.mark.full
@pytest.mark.parametrize("blocked", ["benchmark", "cacheprovider"])
def test_workers_without_a_plugin(suite: Suite, blocked: str) -> None:
    suite.one_bench()
    clean(suite.run("-W", "error", "-p", f"no:{blocked}", "-n", "2"), 0)
    assert suite.series() == {"fake:exec@1/burst": 3}


def test_without_asyncio_the_message_says_what_is_missing(suite: Suite) -> None:
    suite.one_bench()
    result = suite.run("-p", "no:asyncio")
    text = clean(result, 4)
    assert text.count("pytest-asyncio") == 1


def test_loaded_by_hand(suite: Suite, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    suite.one_bench()
    names = ["pytest_sandboxbench.plugin", "pytest_asyncio.plugin", "pytest_benchmark.plugin", "xdist.plugin"]
    by_hand = [word for name in names for word in ("-p", name)]
    result = suite.run_apart(*by_hand, *workers, "-W", "error", "--benchmark-json=out.json")
    clean(result, 0)
    assert suite.series() == {"fake:exec@1/burst": 3}
    assert len(suite.json()) == 1


def test_loaded_by_hand_alone(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """It brings what it needs."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    suite.one_bench()
    result = suite.run_apart("-p", "pytest_sandboxbench.plugin", "-p", "pytest_asyncio.plugin")
    clean(result, 0)


def test_switched_off(suite: Suite) -> None:
    suite.write(test_plain="def test_plain(): pass")
    result = suite.bare("-p", "no:sandboxbench")
    clean(result, 0)


def test_ordinary_tests_of_the_same_run(suite: Suite, workers_always: tuple[str, ...]) -> None:
    suite.one_bench()
    suite.write(test_plain="import pytest\n@pytest.mark.parametrize('i', range(5))\ndef test_plain(i): pass")
    result = suite.run(*workers_always)
    clean(result, 0)
    result.assert_outcomes(passed=6)


def test_unittest_and_doctest_items_are_left_alone(suite: Suite) -> None:
    suite.one_bench()
    suite.write(
        test_old="'''\n>>> 1 + 1\n2\n'''\nimport unittest\n"
        "class TestOld(unittest.TestCase):\n    def test_old(self): pass"
    )
    result = suite.run("--doctest-modules")
    clean(result, 0)
    result.assert_outcomes(passed=3)


def test_nobody_is_told_of_a_loop_scope_that_we_brought_in(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    """Whoever installed this plugin did not choose pytest-asyncio: no ini file, nothing on stderr, also as an error."""
    pytester.makepyfile("def test_one(): pass")
    result = pytester.runpytest_subprocess("-W", "error", *workers)
    assert result.ret == 0
    assert result.stderr.lines == []


def test_fixtures_of_the_same_names_are_left_alone(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    """Somebody's own `sandbox`, or even `sandbox_provider`: their tests run as without this plugin."""
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture
        def sandbox():
            return "mine"

        @pytest.fixture
        def sandbox_provider():
            return "mine too"
        """
    )
    pytester.makepyfile(
        """
        def test_theirs(sandbox):
            assert sandbox == "mine"

        def test_theirs_too(sandbox_provider):
            assert sandbox_provider == "mine too"
        """
    )
    result = pytester.runpytest_subprocess(*workers)
    result.assert_outcomes(passed=2)
    assert "sandbox benchmarks" not in result.stdout.str()
