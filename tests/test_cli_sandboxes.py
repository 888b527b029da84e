"""``sandboxbench list`` and ``sandboxbench reap``, as a person uses them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_sandboxbench.cli import main
from pytest_sandboxbench.ledger import books
from pytest_sandboxbench.model import Owner, SandboxRef

from .test_ledger import dead
from .test_reaping import ELSEWHERE, ME, NO_LABELS, World

RUN = dead().run_id


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made.folder = tmp_path / "state" / "sandboxbench" / "ledger"
    return made


class Told:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str, status: int = 0) -> str:
        self._capsys.readouterr()
        try:
            found = main(list(arguments))
        except SystemExit as error:
            found = int(error.code or 0)
        out, err = self._capsys.readouterr()
        assert found == status, out + err
        assert "Traceback" not in out + err
        return out + err


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Told:
    return Told(capsys)


def test_nothing_there(world: World, told: Told) -> None:
    assert told("list", "p") == "no sandbox of this project exists\n"
    assert told("list", "p", "--run", "x") == "no sandbox of this project exists of run x\n"
    assert told("reap", "p") == "nothing is left of any run that is over\n"
    assert told("reap", "p", "--run", "x") == "nothing is left of that run\n"


def test_list_says_whose_each_one_is_and_what_to_do(world: World, told: Told) -> None:
    for owner in (ME, dead(), ELSEWHERE):
        world.make(owner)
    text = told("list", "p")
    header, *rows = text.splitlines()
    assert header.split() == ["PROVIDER", "SANDBOX", "RUN", "AGE", "ITS", "PROCESS"]
    assert len(rows) == 3
    by_run = {owner.run_id: row for owner in (ME, dead(), ELSEWHERE) for row in rows if owner.run_id in row}
    assert re.search(r" \d+ d  \d+, running$", by_run[ME.run_id])
    assert by_run[RUN].endswith("gone: `sandboxbench reap`")
    assert by_run[ELSEWHERE.run_id].endswith(
        f"5 on another: `sandboxbench reap --run {ELSEWHERE.run_id}` if it is over"
    )
    assert told("list", "p", "--run", RUN).count("\n") == 2


def test_list_destroys_nothing(world: World, told: Told) -> None:
    world.book(dead(), left := world.make(dead(), 2))
    told("list", "p")
    told("list", "p", "--run", RUN)
    assert world.live == {ref.id for ref in left}
    assert len(books(world.folder)) == 1


def test_reap_says_what_it_destroyed(world: World, told: Told) -> None:
    world.book(dead(), left := world.make(dead(), 2), unknown=1)
    mine = world.make(ME)
    text = told("reap", "p")
    assert text.startswith(f"destroyed 2 left by run {RUN}, whose process is gone: ")
    assert all(f"p {ref.id}" in text for ref in left)
    assert world.live == {ref.id for ref in mine}
    assert told("reap", "p") == "nothing is left of any run that is over\n"


def test_reap_of_many_names_some(world: World, told: Told) -> None:
    world.book(dead(), world.make(dead(), 30))
    text = told("reap", "p")
    assert text.startswith(f"destroyed 30 left by run {RUN}")
    assert text.endswith(" and 25 more\n")


def test_reap_of_a_living_run_is_refused(world: World, told: Told) -> None:
    world.book(ME, mine := world.make(ME))
    from pytest_sandboxbench.ledger import Ledger

    ledger = Ledger(world.folder, ME)
    ledger.can("p", "fake", {}, NO_LABELS)
    ledger.making("p")
    text = told("reap", "p", "--run", ME.run_id, status=4)
    assert f"run {ME.run_id} is not over: end process {ME.pid} first" in text
    assert "is not over" in told("reap", "--forget", ME.run_id, status=4)
    assert world.live == {ref.id for ref in mine}
    ledger.over("p")
    ledger.close()


def test_a_run_on_another_host_is_reaped_when_it_is_named(world: World, told: Told) -> None:
    world.make(ELSEWHERE)
    assert told("reap", "p") == "nothing is left of any run that is over\n"
    assert "destroyed 1 left by run" in told("reap", "p", "--run", ELSEWHERE.run_id)
    assert world.live == set()


def test_what_cannot_be_destroyed_is_exit_status_1(world: World, told: Told) -> None:
    world.configure("p", destroy="error:the daemon is busy")
    world.book(dead(), world.make(dead()), destroy="error:the daemon is busy")
    text = told("reap", "p", status=1)
    assert "not destroyed: p p-" in text
    assert "the daemon is busy" in text
    assert len(books(world.folder)) == 1


def test_a_provider_that_hangs_has_a_deadline(world: World, told: Told) -> None:
    world.book(dead(), world.make(dead()), destroy="hang")
    assert "passed its deadline" in told("reap", "--timeout", "0.3", "--run", RUN, "p", status=1)


def test_unknown_creates_are_told_until_they_are_forgotten(world: World, told: Told) -> None:
    world.book(dead(), [], unknown=2, can=NO_LABELS)
    # The instance says that it has labels; the ledger is of a time when it had none.
    text = told("reap", "p", status=1)
    assert f"run {RUN} was ended in the middle of 2 creates on p" in text
    assert f"`sandboxbench reap --forget {RUN}` ends this message" in text
    assert "in the middle of 2 creates" in told("list", "p")
    assert told("reap", "--forget", RUN) == f"forgot run {RUN}\n"
    assert told("reap", "p") == "nothing is left of any run that is over\n"
    assert "nothing is written down of a run" in told("reap", "--forget", RUN, status=4)


def test_a_kind_that_is_not_installed_is_told(world: World, told: Told) -> None:
    world.book(dead(), [SandboxRef("cloud", "box-1")], name="cloud", kind="gone-cloud")
    text = told("list")
    assert "box-1" in text
    assert "'gone-cloud' is not installed" in text
    assert "is not destroyed: " in told("reap", status=1)
    assert told("reap", "--forget", RUN) == f"forgot run {RUN}\n"


def test_an_unknown_name_is_told_with_those_there_are(world: World, told: Told) -> None:
    assert "unknown provider 'docker'" in told("list", "docker", status=4)
    assert "unknown provider 'docker'" in told("reap", "docker", status=4)


def test_a_deadline_is_a_number(world: World, told: Told) -> None:
    for value in ("0", "-1", "x", "nan", "inf"):
        assert "write for example 30" in told("reap", "--timeout", value, status=4)


@pytest.mark.parametrize("command", [("reap", "p"), ("reap", "--forget", "x"), ("list", "p")])
def test_a_folder_that_others_may_write_is_told(world: World, told: Told, command: tuple[str, ...]) -> None:
    world.book(dead(), left := world.make(ELSEWHERE))
    world.folder.chmod(0o777)
    assert "only user" in told(*command, status={"list": 0, "reap": 4 if "--forget" in command else 1}[command[0]])
    assert world.live == {ref.id for ref in left}


def test_what_a_provider_calls_its_sandboxes_cannot_move_the_cursor(world: World, told: Told) -> None:
    world.book(Owner(RUN, dead().host, dead().pid, "1"), [SandboxRef("cloud", "\x1b[2Jboo\nho")], name="c", kind="gone")
    text = told("list", "--run", RUN)
    assert "\x1b" not in text
    assert len(text.splitlines()) == 3
