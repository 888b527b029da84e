"""``--provider`` and ``--concurrency``: from the suites' conftest, with ``--pyargs``, and where the words are taken."""

from __future__ import annotations

import pytest

from .conftest import Suite, clean, printed

WORDS = ("--provider=fake", "--concurrency=1,2")


def test_the_copied_suites_have_them(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.init()
    result = suite.bare("benches", *WORDS, "--sandbox-samples=1", "-k", "test_exec", *workers)
    clean(result, 0)
    assert suite.series() == {"fake:exec@1/burst": 1, "fake:exec@2/burst": 2}


def test_from_inside_the_folder(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.init()
    monkeypatch.chdir(suite.path / "benches")
    clean(suite.bare(*WORDS, "--sandbox-samples=1", "-k", "test_exec"), 0)
    assert suite.series() == {"fake:exec@1/burst": 1, "fake:exec@2/burst": 2}


def test_one_file_of_the_suites(suite: Suite) -> None:
    suite.init()
    clean(suite.bare("benches/test_lifecycle.py::test_exec", *WORDS, "--sandbox-samples=1"), 0)
    assert suite.series() == {"fake:exec@1/burst": 1, "fake:exec@2/burst": 2}


def test_with_pyargs(suite: Suite, workers: tuple[str, ...]) -> None:
    arguments = ("--pyargs", "pytest_sandboxbench.benches", *WORDS, "--sandbox-samples=1", "-k", "test_exec")
    clean(suite.run_apart(*arguments, *workers), 0)
    assert suite.series() == {"fake:exec@1/burst": 1, "fake:exec@2/burst": 2}


def test_one_module_with_pyargs(suite: Suite) -> None:
    arguments = ("--pyargs", "pytest_sandboxbench.benches.test_lifecycle", *WORDS, "--sandbox-samples=1", "-k", "exec")
    assert "fake:exec@2/burst" in (clean(suite.run_apart(*arguments), 0) and suite.series())


def test_a_series_has_the_same_name_from_a_copy_and_with_pyargs(suite: Suite) -> None:
    suite.init()
    arguments = ("-k", "round_trip", "--benchmark-json=out.json")
    clean(suite.run("benches", *arguments), 0)
    (copied,) = suite.json()
    clean(suite.run_apart("--pyargs", "pytest_sandboxbench.benches", *arguments), 0)
    (installed,) = suite.json()
    assert copied["fullname"] == installed["fullname"] == "fake:round_trip@1/burst"
    assert copied["name"] == installed["name"]


def test_a_run_of_other_tests_does_not_know_them(suite: Suite) -> None:
    suite.write(test_plain="def test_plain(): pass")
    result = suite.bare("--provider=fake")
    assert "unrecognized arguments: --provider=fake" in clean(result, 4)


OWNER = """
def pytest_addoption(parser):
    parser.addoption("--provider", choices=["aws", "gcp"], help="cloud to test against")
"""
THEIRS = "def test_theirs(request): assert request.config.getoption('--provider') == 'aws'"


def test_a_word_that_is_taken_stays_with_its_owner(suite: Suite) -> None:
    """The long form works all the same."""
    suite.init()
    suite.write(owner=OWNER, test_theirs=THEIRS)
    suite.pytester.syspathinsert()
    result = suite.run("-p", "owner", "--provider=aws", "benches", "test_theirs.py", "-k", "theirs or round_trip")
    clean(result, 0)
    result.assert_outcomes(passed=2, deselected=16)
    assert suite.series() == {"fake:round_trip@1/burst": 3}


def test_the_same_with_the_owner_in_the_top_conftest(suite: Suite) -> None:
    suite.init()
    suite.pytester.makeconftest(OWNER)
    suite.write(test_theirs=THEIRS)
    result = suite.run("--provider=aws", ".", "-k", "theirs or round_trip")
    clean(result, 0)
    result.assert_outcomes(passed=2, deselected=16)


def test_the_help_shows_both_forms(suite: Suite) -> None:
    suite.init()
    text = printed(suite.bare("benches", "--help"))
    assert "--sandbox-provider" in text
    assert "The same as --sandbox-provider." in text
    for name in ("samples", "warmup", "max-seconds", "seed", "timeout", "records", "option", "command", "strict"):
        assert f"--sandbox-{name}" in text
        assert name == "option" or f"sandbox_{name.replace('-', '_')} (" in text, "its ini key"
