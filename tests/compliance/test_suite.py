"""The suite in the tests of a third party: how it is collected, what it skips, what it says."""

from __future__ import annotations

import pytest

from pytest_sandboxbench.compliance.checks import CHECKS
from tests.plugin.conftest import Suite, clean, printed, suite

__all__ = ["suite"]

HEAD = "from pytest_sandboxbench.compliance.suite import ComplianceSuite\n\n"
FEW = ("-k", "destroy_is_idempotent or memory_is_kept", "-rs")


@pytest.fixture
def ours(suite: Suite) -> Suite:
    suite.write(test_ours=HEAD + "class TestOurs(ComplianceSuite):\n    provider = 'fake'\n")
    return suite


def written(suite: Suite, *lines: str, name: str = "TestOurs") -> None:
    body = "".join(f"    {line}\n" for line in lines)
    suite.write(test_ours=f"{HEAD}class {name}(ComplianceSuite):\n{body or '    pass'}")


def test_every_check_is_a_test(ours: Suite) -> None:
    result = ours.bare("--collect-only", "-q")
    ids = [line for line in result.outlines if line.startswith("test_ours.py::")]
    assert ids == [f"test_ours.py::TestOurs::test_compliance[{check}]" for check in CHECKS]


@pytest.mark.parametrize("mode", ["strict", "auto"])
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["plain", "xdist"])
def test_it_runs_beside_other_tests(ours: Suite, workers: tuple[str, ...], mode: str) -> None:
    ours.write(
        test_other="""
        import asyncio, pytest

        @pytest.mark.asyncio
        async def test_async(): await asyncio.sleep(0)
        """
    )
    options = ("-o", f"asyncio_mode={mode}", "-W", "error", "-k", "destroy or async")
    result = ours.bare(*options, *workers)
    clean(result, 0)
    assert result.parseoutcomes()["passed"] >= 1 + 3


def test_the_loop_of_the_test_run_stays_in_place(ours: Suite, pytester: pytest.Pytester) -> None:
    """With a policy's loop put in place by another plugin, it is there afterwards."""
    pytester.makeconftest(
        """
        import asyncio, pytest

        @pytest.fixture(autouse=True)
        def loop_of_another_plugin():
            loop = asyncio.new_event_loop()
            asyncio.set_event_loop(loop)
            yield
            assert asyncio.get_event_loop() is loop
            asyncio.set_event_loop(None)
            loop.close()
        """
    )
    clean(ours.bare("-k", "destroy_is_idempotent"), 0)


def test_what_is_not_declared_is_a_skip_that_says_so(suite: Suite) -> None:
    written(suite, "provider = 'fake'", "options = {'pause_kinds': 'none'}")
    result = suite.bare(*FEW)
    clean(result, 0)
    result.assert_outcomes(passed=1, skipped=1, deselected=len(CHECKS) - 2)
    assert any(line.endswith(": fake: cannot pause") for line in result.outlines)


def test_a_failure_is_the_promise_and_what_came(suite: Suite) -> None:
    written(suite, "provider = 'fake'", "options = {'write_file': 'error:no\\x1b[2J disk'}")
    result = suite.bare("-k", "writing_again")
    text = clean(result, 1)
    assert "A second `write_file` replaces the file: nothing stays of what was longer." in text
    assert "no\\x1b[2J disk" in text


def test_a_secret_is_not_printed(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUD_API_KEY", "s3cr3t-0123456789")
    written(suite, "provider = 'fake'", "options = {'write_file': 'error:key s3cr3t-0123456789'}")
    assert "s3cr3t" not in printed(suite.bare("-k", "writing_again", "--tb=short"))


def test_a_missing_provider_is_one_skip_that_says_why(suite: Suite) -> None:
    written(suite, "provider = 'fake'", "options = {'missing': 'no daemon', 'cure': 'start it'}")
    result = suite.bare("-rs")
    clean(result, 0)
    result.assert_outcomes(skipped=len(CHECKS))
    (told,) = (line for line in result.outlines if line.startswith("SKIPPED"))
    assert told.endswith(": fake is not ready: no daemon. start it")
    assert told.startswith(f"SKIPPED [{len(CHECKS)}]")


@pytest.mark.parametrize("how", [("--sandbox-strict",), ("-o", "sandbox_strict=true")], ids=["option", "ini"])
def test_a_missing_provider_fails_where_all_must_run(suite: Suite, how: tuple[str, ...]) -> None:
    written(suite, "provider = 'fake'", "options = {'missing': 'no daemon', 'cure': 'start it'}")
    result = suite.bare("-k", "idempotent", *how)
    assert "fake is not ready: no daemon. start it" in clean(result, 1)


def test_without_the_plugin(ours: Suite) -> None:
    result = ours.pytester.runpytest_subprocess("-p", "no:sandboxbench", "-k", "destroy_is_idempotent")
    clean(result, 0)


# -- mistakes


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ((), 'TestOurs: it names no provider; write for example provider = "bubblewrap" in the class'),
        (("provider = 'dokcer'",), "TestOurs: unknown provider 'dokcer'; there are: bubblewrap, "),
        (("provider = 'fake'", "options = {'vcpus': -1}"), "setting vcpus = -1"),
        (
            ("provider = 'fake'", "known_failures = {'lifecycle-destroy_is_idempoten': 'x'}"),
            "no check 'lifecycle-destroy_is_idempoten'; did you mean 'lifecycle-destroy_is_idempotent'?",
        ),
        (
            ("provider = 'fake'", "known_failures = {'qqq': 'x'}"),
            "no check 'qqq'; `sandboxbench check --list` prints all",
        ),
        (
            ("provider = 'fake'", "known_failures = {'lifecycle-destroy_is_idempotent': ' '}"),
            "'lifecycle-destroy_is_idempotent' has no reason",
        ),
    ],
)
def test_a_mistake_is_said_once(suite: Suite, lines: tuple[str, ...], said: str) -> None:
    written(suite, *lines)
    result = suite.bare()
    text = clean(result, 2)
    assert said in text
    assert text.count("ERROR collecting") == 1


def test_a_setting_that_it_does_not_have(suite: Suite) -> None:
    written(suite, "provider = 'fake'", "options = {'creat': 1}")
    assert "provider 'fake' has no setting 'creat'" in clean(suite.bare("-k", "idempotent"), 1)


# -- which classes are tests


@pytest.mark.parametrize("pattern", ["*", "*Suite Test*", "Compliance* Test*"])
def test_the_suite_itself_is_no_test(ours: Suite, pattern: str) -> None:
    """Its name is in the module that imports it, and in whatever exports it again."""
    ours.write(helpers=HEAD + "__all__ = ['ComplianceSuite']", test_again="from helpers import *\n")
    result = ours.bare("--collect-only", "-q", "-o", f"python_classes={pattern}", "-k", "idempotent")
    assert [line for line in result.outlines if "::" in line] == [
        "test_ours.py::TestOurs::test_compliance[lifecycle-destroy_is_idempotent]"
    ]


def test_a_base_of_ones_own_is_no_test(suite: Suite) -> None:
    suite.write(
        test_ours=HEAD
        + """
class CloudSuite(ComplianceSuite):
    timeout_s = 5.0

class TestSmall(CloudSuite):
    provider = "fake"

class TestBig(CloudSuite):
    provider = "fake"
    options = {"max_live": 20}
"""
    )
    result = suite.bare("-k", "destroy_is_idempotent")
    clean(result, 0)
    assert result.parseoutcomes()["passed"] == 2


def test_it_is_switched_off_like_any_class(suite: Suite) -> None:
    written(suite, "provider = 'fake'", "__test__ = False")
    clean(suite.bare(), 5)


# -- known failures


def test_a_known_failure_is_expected(suite: Suite) -> None:
    known = "known_failures = {'files-writing_again_replaces': 'its disk is full'}"
    written(suite, "provider = 'fake'", "options = {'write_file': 'error:no disk'}", known)
    result = suite.bare("-k", "writing_again", "-rx")
    assert "its disk is full" in clean(result, 0)
    assert result.parseoutcomes()["xfailed"] == 1


def test_a_known_failure_that_passes_fails(suite: Suite) -> None:
    written(suite, "provider = 'fake'", "known_failures = {'files-writing_again_replaces': 'its disk is full'}")
    assert "[XPASS(strict)] its disk is full" in clean(suite.bare("-k", "writing_again"), 1)


def test_a_known_failure_that_does_not_apply_is_left_out(suite: Suite) -> None:
    known = "known_failures = {'pause-memory_is_kept': 'it boots again'}"
    written(suite, "provider = 'fake'", "options = {'pause_kinds': 'none'}", known)
    result = suite.bare("-k", "memory_is_kept")
    clean(result, 0)
    assert result.parseoutcomes()["skipped"] == 1
