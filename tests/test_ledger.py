"""The ledger: what is on disk before something is created, and what can be read of it wherever the writer was ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_sandboxbench.ledger import Book, Ledger, books, folder_of_user, standing, taken, this_process
from pytest_sandboxbench.model import Capabilities, Owner, SandboxRef

LABELS = Capabilities("container", labels=True)
NO_LABELS = Capabilities("container", labels=False)
DEAD = 2**22 + 1
"""No pid: Linux has none above 2**22."""


def dead(run: str = "20260101-000000-aaaaaa") -> Owner:
    return Owner(run, this_process("").host, DEAD, "1")


def ref(id_: str, name: str = "p", **details: str) -> SandboxRef:
    return SandboxRef(name, id_, details)


def crash(ledger: Ledger) -> None:
    """What the kernel does when the process is ended: the lock goes, the file stays."""
    if ledger._descriptor is not None:
        os.close(ledger._descriptor)
        ledger._descriptor = None


def opened(folder: Path, capabilities: Capabilities = NO_LABELS, owner: Owner | None = None) -> Ledger:
    ledger = Ledger(folder, owner or dead())
    ledger.can("p", "fake", {"path": "pool"}, capabilities)
    return ledger


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state" / "ledger"


def only(folder: Path) -> Book:
    (book,) = books(folder)
    return book


def test_it_lies_in_the_users_state_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert folder_of_user() == tmp_path / "sandboxbench" / "ledger"


def test_nothing_is_on_disk_before_the_first_create_and_after_a_clean_end(folder: Path) -> None:
    ledger = opened(folder)
    assert not folder.exists()
    ledger.making("p")
    assert len(list(folder.iterdir())) == 1
    ledger.made(ref("a"))
    ledger.gone(ref("a"))
    ledger.settle()
    ledger.close()
    assert list(folder.iterdir()) == []


def test_the_folder_and_the_file_are_the_users_alone(folder: Path) -> None:
    opened(folder).making("p")
    (path,) = folder.iterdir()
    assert (folder.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o600)


@pytest.mark.parametrize("capabilities", [LABELS, NO_LABELS])
def test_an_intent_is_on_disk_when_making_returns(folder: Path, capabilities: Capabilities) -> None:
    ledger = opened(folder, capabilities)
    ledger.making("p", 3)
    crash(ledger)
    made = only(folder).made["p"]
    assert (made.kind, made.options, made.labels) == ("fake", {"path": "pool"}, capabilities.labels)
    assert (made.unknown, made.live) == (3, {})


def test_without_labels_an_id_is_on_disk_at_once_and_with_them_when_it_settles(folder: Path) -> None:
    for capabilities, at_once in ((NO_LABELS, {"a"}), (LABELS, set())):
        ledger = opened(folder, capabilities)
        ledger.making("p")
        ledger.made(ref("a", owner="x"))
        assert set(only(folder).made["p"].live) == at_once
        ledger.settle()
        assert only(folder).made["p"].live == {"a": ref("a", owner="x")}
        assert only(folder).made["p"].unknown == 0
        ledger.gone(ref("a"))
        ledger.close()


def test_what_is_left_keeps_the_file(folder: Path) -> None:
    ledger = opened(folder, LABELS)
    ledger.making("p", 2)
    ledger.made(ref("a"))
    ledger.close()
    made = only(folder).made["p"]
    assert (set(made.live), made.unknown) == ({"a"}, 1)


def test_a_script_without_a_state_is_not_booked(folder: Path) -> None:
    ledger = opened(folder, Capabilities("scripted"))
    ledger.making("p")
    ledger.made(ref("a"))
    ledger.gone(ref("b"))
    ledger.settle()
    ledger.close()
    assert not folder.exists()


def test_secrets_are_not_written(folder: Path) -> None:
    def hide(data: Any) -> Any:
        return json.loads(json.dumps(data).replace("s3cret", "<hidden>"))

    ledger = Ledger(folder, dead(), hide)
    ledger.can("p", "fake", {"api_key": "s3cret"}, LABELS)
    ledger.making("p")
    ledger.made(ref("a", token="s3cret"))
    ledger.settle()
    crash(ledger)
    (path,) = folder.iterdir()
    assert b"s3cret" not in path.read_bytes()
    assert b"<hidden>" in path.read_bytes()


# -- who lives


def test_the_writer_is_alive_and_another_start_or_host_is_not() -> None:
    me = this_process("r")
    assert standing(me) == "alive"
    assert standing(Owner("r", me.host, me.pid, "1")) == "dead", "the pid is used again"
    assert standing(dead()) == "dead"
    assert standing(Owner("r", "elsewhere", me.pid, me.started)) == "elsewhere"
    assert standing(Owner("r", me.host + "+1", me.pid, me.started)) == "elsewhere", "another pid namespace"


def test_a_lock_is_a_proof_of_life(folder: Path) -> None:
    """A process in another pid namespace of this host holds it, for instance."""
    code = (
        "import sys; from pathlib import Path; from tests.test_ledger import *\n"
        "ledger = opened(Path(sys.argv[1])); ledger.making('p'); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        assert only(folder).standing == "alive"
        with taken(only(folder).path) as free:
            assert not free
    assert only(folder).standing == "dead"
    with taken(only(folder).path) as free:
        assert free


# -- a folder that proves nothing, and files that are none


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_may_write_is_refused(folder: Path, mode: int) -> None:
    folder.mkdir(parents=True)
    folder.chmod(mode)
    with pytest.raises(OSError, match="only user"):
        books(folder)
    ledger = opened(folder, NO_LABELS)
    with pytest.raises(OSError, match="only user"):
        ledger.making("p")
    assert list(folder.iterdir()) == []


def test_a_link_to_a_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    folder.parent.mkdir()
    folder.symlink_to(tmp_path / "real")
    with pytest.raises(OSError, match="only user"):
        books(folder)


def test_where_nothing_can_be_written_only_a_provider_without_labels_refuses(folder: Path) -> None:
    folder.parent.mkdir()
    folder.write_text("a file is in its place")
    for capabilities in (LABELS, NO_LABELS):
        ledger = opened(folder, capabilities)
        if capabilities.labels:
            ledger.making("p")
        else:
            with pytest.raises(OSError, match="XDG_STATE_HOME"):
                ledger.making("p")
        assert "the ledger cannot be written" in ledger.problem
        ledger.made(ref("a"))
        ledger.settle()
        ledger.close()


def test_what_is_no_ledger_is_passed_over(folder: Path, tmp_path: Path) -> None:
    folder.mkdir(parents=True, mode=0o700)
    (folder / "notes.txt").write_text("x")
    (folder / "nonsense.jsonl").write_text("{}")
    (folder / "a%2Fb%2F3%2F1.jsonl").mkdir()
    (folder / "a%2Fb%2F4%2F1.jsonl").symlink_to(tmp_path / "nowhere")
    assert books(folder) == []


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"null",
        b"3",
        b'{"making": "other", "n": 1}',
        b'{"making": "p"}',
        b'{"making": "p", "n": "x"}',
        b'{"making": "p", "n": -5}',
        b'{"over": "p", "n": 99999999999999999999}',
        b'{"made": "p", "id": "x", "details": 3}',
        b'{"gone": ["p"], "id": "x"}',
        b'{"can": "q"}',
        b"[" * 100_000,
        b"\xff\xfe\x00",
    ],
)
def test_a_line_that_is_none_counts_for_nothing(folder: Path, line: bytes) -> None:
    ledger = opened(folder, LABELS)
    ledger.making("p", 2)
    ledger.made(ref("a"))
    ledger.settle()
    crash(ledger)
    (path,) = folder.iterdir()
    path.write_bytes(path.read_bytes() + line + b"\n" + b'{"made": "p", "id": "b", "details": {}}\n')
    made = only(folder).made["p"]
    assert set(made.live) == {"a", "b"}
    assert made.unknown == 0


# -- crashes at any byte

ACTS = st.lists(st.sampled_from(["making", "making 3", "made", "over", "gone", "settle"]), max_size=14)


def histories(folder: Path, acts: list[str], capabilities: Capabilities) -> Iterator[tuple[bytes, int, set[str]]]:
    """File after each act, its length before the act, and what existed while it was under way."""
    ledger = opened(folder, capabilities)
    asked, exists, number, before = 0, set[str](), 0, 0
    for act in acts:
        if act.startswith("making"):
            ledger.making("p", count := int(act[7:] or 1))
            asked += count
        elif act == "made" and asked:
            number, asked = number + 1, asked - 1
            exists = exists | {f"s{number}"}  # it exists before anybody can say so
            ledger.made(ref(f"s{number}"))
        elif act == "over" and asked:
            asked -= 1
            ledger.over("p")
        elif act == "gone" and exists:
            oldest = min(exists)
            exists = exists - {oldest}
            ledger.gone(ref(oldest))
        elif act == "settle":
            ledger.settle()
        text = b"".join(path.read_bytes() for path in folder.glob("*"))
        yield text, before, exists
        before = len(text)
    crash(ledger)


def parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


@pytest.mark.parametrize("capabilities", [LABELS, NO_LABELS], ids=["labels", "no labels"])
@given(acts=ACTS)
@settings(max_examples=50, deadline=None)
def test_wherever_the_writer_ends_what_exists_is_accounted_for(
    tmp_path_factory: pytest.TempPathFactory, capabilities: Capabilities, acts: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("ledger") / "l"
    cut = tmp_path_factory.mktemp("cut")
    cut.chmod(0o700)
    path = cut / "a%2Fb%2F3%2F1.jsonl"
    for text, before, exists in histories(folder, acts, capabilities):
        for end in sorted({*range(before, len(text) + 1, 5), len(text) - 1, len(text)}):
            path.write_bytes(text[:end])
            made = only(cut).made.get("p")
            live, unknown = (set(made.live), made.unknown) if made is not None else (set(), 0)
            assert unknown >= 0
            if capabilities.labels:  # then it is enough that somebody looks
                assert not exists or live or unknown
            else:
                assert len(exists - live) <= unknown
            written = set()
            for line in filter(None, map(parsed, text[:end].split(b"\n"))):
                written |= {line["id"]} if "made" in line else set()
                written -= {line["id"]} if "gone" in line else set()
            assert live >= written
