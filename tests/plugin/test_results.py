"""Where results go: pytest-benchmark's JSON, junit, the header of the records and its hook."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import pytest

from .conftest import Suite, clean


def test_the_json_holds_the_raw_samples_and_the_facts(suite: Suite, workers_always: tuple[str, ...]) -> None:
    suite.one_bench()
    result = suite.run("--benchmark-json=out.json", "--sandbox-samples=20", *workers_always)
    clean(result, 0)
    (benchmark,) = suite.json()
    spooled = [(s["ended_ns"] - s["scheduled_ns"]) / 1e9 for s in suite.samples() if not s.get("warmup")]
    assert benchmark["stats"]["data"] == spooled
    assert len(spooled) == 20
    assert benchmark["fullname"] == "fake:exec@1/burst"
    assert benchmark["name"] == "test_exec[fake-c1]"
    assert benchmark["group"] == "exec @1"
    stats = benchmark["stats"]
    assert stats["rounds"] == 20
    assert stats["success_rate"] == 1
    assert stats["min"] <= stats["median"] <= stats["p95"] <= stats["max"]
    assert "p99" not in stats, "100 samples are needed"
    facts = benchmark["extra_info"]["sandboxbench"]
    assert facts["series"] == "fake:exec@1/burst"
    assert facts["span"]["end"] == "`true` returned 0"
    assert facts["provider"]["isolation"] == "scripted"
    assert facts["host"]["cpus_usable"] >= 1
    assert facts["run_id"] == suite.folder.name
    assert facts["outcomes"] == {"ok": 20}
    low, high = facts["median_interval_ns"]
    assert low <= stats["median"] * 1e9 <= high


def test_a_failed_bench_has_its_good_samples_in_the_json(suite: Suite) -> None:
    suite.one_bench()
    clean(suite.run("--benchmark-json=out.json", "--sandbox-option=fake.exec=0,0,0,0,error:no,0"), 1)
    (benchmark,) = suite.json()
    assert benchmark["stats"]["rounds"] == 2
    assert benchmark["extra_info"]["sandboxbench"]["outcomes"] == {"ok": 2, "failed": 1}


def test_without_a_good_sample_there_is_none(suite: Suite) -> None:
    suite.one_bench()
    (suite.path / "out.json").touch()
    result = suite.run("--benchmark-json=out.json", "--sandbox-option=fake.create=error:no", "-W", "ignore")
    clean(result, 1)
    text = (suite.path / "out.json").read_text()
    assert not text or json.loads(text)["benchmarks"] == []


def test_junit_has_one_case_a_bench(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.init()
    arguments = ("benches", "-k", "startup or create or command", "--junitxml=junit.xml")
    clean(suite.run(*arguments, "--sandbox-option=fake.create=error:no <room> & \x1b[31mred", *workers), 1)
    cases = {case.get("name"): case for case in ElementTree.parse(suite.path / "junit.xml").iter("testcase")}
    assert set(cases) == {"test_startup[fake-c1]", "test_create[fake-c1]", "test_command[fake-c1]"}
    failure = cases["test_create[fake-c1]"].find("failure")
    assert failure is not None
    assert "no <room> & " in (failure.text or "")
    assert cases["test_command[fake-c1]"].find("skipped") is not None


HOOKS = """
def pytest_sandboxbench_update_header(config, header):
    assert header["host"]["cpus_usable"]
    header["mine"] = {"rack": 7, "team": "x", "api_key": "k-123456789"}
"""


def test_the_hook_adds_facts_to_the_header(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makeconftest(HOOKS)
    suite.one_bench()
    clean(suite.run(*workers), 0)
    assert suite.header()["mine"] == {"rack": 7, "team": "x", "api_key": "***"}


def test_the_hook_is_not_called_without_benches(suite: Suite) -> None:
    suite.pytester.makeconftest("def pytest_sandboxbench_update_header(config, header): assert 0")
    suite.write(test_plain="def test_plain(): pass")
    clean(suite.run(), 0)


def test_a_hook_that_fails_is_told_with_its_own_line(suite: Suite) -> None:
    suite.pytester.makeconftest("def pytest_sandboxbench_update_header(config, header): raise ValueError('mine')")
    suite.one_bench()
    result = suite.run()
    assert result.ret == 1
    assert "ValueError: mine" in result.stdout.str()


def test_facts_that_json_cannot_hold(suite: Suite) -> None:
    suite.pytester.makeconftest(
        "import pathlib\n"
        "def pytest_sandboxbench_update_header(config, header): header['mine'] = {1: pathlib.Path('x'), 'b': {2}}"
    )
    suite.one_bench()
    clean(suite.run("-W", "error"), 0)
    assert suite.header()["mine"]["1"] == "x"


def test_the_header_tells_how_the_run_was_made(suite: Suite) -> None:
    suite.one_bench()
    clean(suite.run("--sandbox-seed=7", "--sandbox-warmup=1"), 0)
    header = suite.header()
    assert header["complete"] is True
    assert header["seed"] == 7
    assert header["run_id"] == suite.folder.name
    (block,) = header["blocks"]
    assert (block["rounds"], block["warmup"], block["level"], block["shape"]) == (3, 1, 1, "burst")
    assert block["asked"] == {"fake": ["exec"]}


@pytest.mark.parametrize("verbosity", ["-q", "-qq", "-v", "-vv"])
def test_every_verbosity_shows_the_table(suite: Suite, verbosity: str) -> None:
    suite.one_bench()
    text = clean(suite.run(verbosity), 0)
    assert text.count("  fake     3 ") == 1
    lines = text.splitlines()
    table = next(i for i, line in enumerate(lines) if line.startswith("operation "))
    assert max(map(len, lines[table : table + 3])) <= 120


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_table_fits_the_terminal(suite: Suite, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    suite.one_bench()
    text = clean(suite.run("-p", "no:benchmark"), 0)
    table = text.partition("operation ")[2].partition("interval:")[0].splitlines()
    assert table
    assert all(len(line) <= max(60, width) for line in table)
