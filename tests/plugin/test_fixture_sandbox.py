"""``sandbox``, ``sandbox_factory`` and ``sandbox_provider``: ready when the test starts, gone when it ends."""

from __future__ import annotations

import pytest

from .conftest import Suite, clean

USES = """
    import pytest

    async def test_sandbox(sandbox):
        assert (await sandbox.exec(["true"])).exit_code == 0
        await sandbox.write_file("f", b"data")
        assert await sandbox.read_file("f") == b"data"

    async def test_factory(sandbox_factory):
        first, second = await sandbox_factory(), await sandbox_factory()
        assert first.id != second.id

    async def test_provider(sandbox_provider):
        assert sandbox_provider.name == "fake"
        sandbox = await sandbox_provider.create()
        await sandbox_provider.destroy(sandbox)

    async def test_all(sandbox, sandbox_factory, sandbox_provider):
        await sandbox_factory()

    class TestClass:
        async def test_method(self, sandbox):
            assert sandbox.id
"""


def test_all_is_destroyed(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.write(test_uses=USES)
    result = suite.run(*workers)
    clean(result, 0)
    result.assert_outcomes(passed=5)
    assert len(suite.calls("create")) == len(suite.calls("destroy")) == 7
    suite.assert_nothing_left()


def test_nothing_measured_is_no_complaint_where_nothing_was_to_be_measured(suite: Suite) -> None:
    suite.write(test_uses="async def test_use(sandbox): pass")
    text = clean(suite.run(), 0)
    assert "sandbox benchmarks" not in text.partition("plugins:")[2]


@pytest.mark.parametrize(
    "body", ["assert 0", "raise KeyError('x')", "pytest.skip('enough')", "pytest.fail('no')", "pytest.xfail('known')"]
)
def test_also_when_the_test_ends_early(suite: Suite, body: str) -> None:
    suite.write(
        test_uses="import pytest\n"
        f"async def test_use(sandbox, sandbox_factory):\n    await sandbox_factory()\n    {body}"
    )
    suite.run()
    assert len(suite.calls("create")) == 2
    suite.assert_nothing_left()


def test_each_test_has_its_own(suite: Suite) -> None:
    suite.write(
        test_uses="""
        import pytest

        @pytest.mark.parametrize("i", range(3))
        async def test_use(sandbox, i):
            with pytest.raises(Exception):
                await sandbox.read_file("left")
            await sandbox.write_file("left", b"")
        """
    )
    result = suite.run()
    clean(result, 0)
    result.assert_outcomes(passed=3)
    assert [call["op"] for call in suite.calls("create") + suite.calls("destroy")] == ["create"] * 3 + ["destroy"] * 3


def test_a_create_that_fails_is_one_message(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.write(test_uses="async def test_use(sandbox): pass")
    result = suite.run("--sandbox-option=fake.create=error:no room", *workers)
    text = clean(result, 1)
    assert "create on fake-" in text
    assert "no room" in text


def test_a_sandbox_that_never_answers(suite: Suite) -> None:
    suite.write(test_uses="async def test_use(sandbox): pass")
    result = suite.run("--sandbox-option=fake.ready_after=never", "--sandbox-timeout=0.2")
    text = clean(result, 1)
    assert "found the sandbox not ready" in text
    suite.assert_nothing_left()


def test_a_sandbox_that_cannot_be_destroyed(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.write(test_uses="async def test_use(sandbox): pass")
    result = suite.run("--sandbox-option=fake.destroy=stuck", *workers)
    text = clean(result, 1)
    assert "sandbox leaks" in text
    assert text.partition("sandbox leaks")[2].count("still running") == 1


def test_a_missing_provider_is_a_skip(suite: Suite) -> None:
    suite.write(test_uses=USES)
    result = suite.run("--sandbox-option=fake.missing=gone", "-rs")
    text = clean(result, 5)
    result.assert_outcomes(skipped=5)
    assert "fake is not ready: gone. Remove the setting fake.missing." in text


def test_one_test_for_each_provider(suite: Suite) -> None:
    suite.pytester.makepyprojecttoml("[tool.sandboxbench.providers.other]\nkind = 'fake'\n")
    suite.write(
        test_uses="async def test_use(sandbox, sandbox_provider): assert sandbox.ref.provider == sandbox_provider.name"
    )
    result = suite.run("--sandbox-provider=fake,other", "-v")
    clean(result, 0)
    result.assert_outcomes(passed=2)
    assert "test_use[other]" in result.stdout.str()


def test_a_fixture_of_the_users_builds_on_ours(suite: Suite) -> None:
    suite.write(
        test_uses="""
        import pytest_asyncio

        @pytest_asyncio.fixture(loop_scope="session")
        async def prepared(sandbox):
            await sandbox.write_file("f", b"x")
            yield sandbox
            assert await sandbox.read_file("f") == b"x"

        async def test_use(prepared):
            assert await prepared.read_file("f") == b"x"
        """
    )
    clean(suite.run(), 0)
    suite.assert_nothing_left()


def test_a_hanging_command_ends_at_the_deadline_with_one_message(suite: Suite) -> None:
    suite.write(test_uses="async def test_use(sandbox): await sandbox.exec(['sleep', '60'])")
    result = suite.run("--sandbox-option=fake.exec=0,hang", "--sandbox-timeout=0.3")
    assert result.ret == 1
    assert "the deadline was 0.3 s" in result.stdout.str()
    suite.assert_nothing_left()


def test_help_lists_the_fixtures_with_a_line_each(suite: Suite) -> None:
    text = clean(suite.bare("--fixtures"), 0)
    for name in ("sandbox", "sandbox_factory", "sandbox_provider", "sandbox_bench", "concurrency"):
        assert f"\n{name} -- " in text


def test_a_call_that_blocks_the_event_loop_is_interrupted(suite: Suite) -> None:
    """Outside of a block as inside: the deadline holds, and what the test does between its calls is its own time."""
    suite.write(
        test_own="""
        import time
        import pytest
        from pytest_sandboxbench.errors import OperationTimeout

        async def test_blocked(sandbox_factory):
            sandbox = await sandbox_factory()
            time.sleep(1.5)
            began = time.monotonic()
            with pytest.raises(OperationTimeout, match="blocked the event loop"):
                await sandbox.exec(["true"])
            assert time.monotonic() - began < 5
        """
    )
    result = suite.run("--sandbox-timeout=0.3", "--sandbox-option=fake.exec=block:20")
    result.assert_outcomes(passed=1)
