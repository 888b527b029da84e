"""The ledger: what is on disk before something is created, and what can be read of it wherever the writer was ended."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_sandboxbench.ledger import Book, Ledger, books, folder_of_user, taken, this_process
from pytest_sandboxbench.model import Capabilities, Owner, SandboxRef

LABELS = Capabilities("container", labels=True)
NO_LABELS = Capabilities("container", labels=False)
HOSTED = Capabilities("container", labels=True, hosted=True)
NOT_HERE = Owner("20260101-000000-dddddd", "another+1", 5, "1")
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


def left_by(folder: Path, owner: Owner) -> Path:
    ledger = opened(folder, LABELS, owner)
    ledger.making("p")
    crash(ledger)
    return only(folder).path


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


@pytest.mark.parametrize("isolation", ["scripted", "none"])
def test_what_ends_with_its_process_is_not_booked(folder: Path, isolation: Any) -> None:
    ledger = opened(folder, Capabilities(isolation))
    ledger.making("p")
    ledger.made(ref("a"))
    ledger.gone(ref("b"))
    ledger.settle()
    ledger.close()
    assert not folder.exists()
    for lasting in (Capabilities(isolation, labels=True), Capabilities(isolation, hosted=True)):
        ledger = opened(folder, lasting)
        ledger.making("p")
        assert only(folder).made["p"].unknown == 1
        ledger.close(all_gone=True)


def test_an_id_that_is_given_again_is_not_taken_for_the_one_that_is_gone(folder: Path) -> None:
    ledger = opened(folder, NO_LABELS)
    ledger.making("p", 2)
    ledger.made(ref("a"))
    ledger.gone(ref("a"))
    ledger.made(ref("a"))
    ledger.settle()
    assert (set(only(folder).made["p"].live), only(folder).made["p"].unknown) == ({"a"}, 0)


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


def test_an_id_that_holds_a_secret_is_not_written(folder: Path) -> None:
    """With a hole in it it would destroy nothing, or something else: the create stays one whose end nobody knows."""

    def hide(data: Any) -> Any:
        return json.loads(json.dumps(data).replace("s3cret", "***"))

    ledger = Ledger(folder, dead(), hide)
    ledger.can("p", "fake", {}, NO_LABELS)
    ledger.making("p", 3)
    for id_ in ("box-s3cret-1", "box-2"):
        ledger.made(ref(id_, key="s3cret"))
    ledger.settle()
    made = only(folder).made["p"]
    assert {id_: found.details for id_, found in made.live.items()} == {"box-2": {"key": "***"}}
    assert made.unknown == 2
    ledger.gone(ref("box-s3cret-1"))
    ledger.settle()
    assert only(folder).made["p"].unknown == 1
    assert all("s3cret" not in path.read_text() for path in folder.iterdir())


def test_what_json_has_no_word_for_is_written_as_text(folder: Path) -> None:
    """An adapter's mistake in its details must not lose the sandbox."""
    ledger = opened(folder)
    ledger.making("p")
    ledger.made(SandboxRef("p", "a", {"path": Path("/x")}))  # type: ignore[dict-item]
    assert only(folder).made["p"].live["a"].details == {"path": "/x"}


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


@pytest.mark.parametrize("text", [b"\0" * 500, b"\0\n", b'{"can": "p"', b"{}", b"\n"])
def test_a_text_of_which_nothing_is_understood_is_spoilt(folder: Path, text: bytes) -> None:
    left_by(folder, dead()).write_bytes(text)
    assert (only(folder).spoilt, only(folder).standing, only(folder).made) == (True, "dead", {})


def test_without_a_text_nothing_was_made(folder: Path) -> None:
    left_by(folder, dead()).write_bytes(b"")
    assert not only(folder).spoilt


def test_a_file_that_is_too_long_is_spoilt(folder: Path) -> None:
    os.truncate(left_by(folder, dead()), 2**26 + 1)
    assert (only(folder).spoilt, only(folder).standing) == (True, "dead")


def test_a_file_that_cannot_be_opened_is_spoilt_and_stops_no_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = left_by(folder, dead())
    good = opened(folder, owner=dead("20260101-000000-bbbbbb"))
    good.making("p")
    crash(good)
    really = os.open

    def open_(path: Any, *rest: Any, **more: Any) -> int:
        if Path(path) == bad:
            raise PermissionError(errno.EACCES, "no")
        return really(path, *rest, **more)

    monkeypatch.setattr(os, "open", open_)
    first, second = books(folder)
    assert (first.path, first.spoilt, first.standing) == (bad, True, "dead")
    assert (second.spoilt, second.made["p"].unknown) == (False, 1)
    with taken(bad) as free:
        assert free, "as where there are no locks"


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
        b'{"making": "p", "n": 1e400}',
        b'{"over": "p", "n": -1e400}',
        b'{"making": "p", "n": NaN}',
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

ACTS = st.lists(st.sampled_from(["making", "making 3", "made", "made again", "over", "gone", "settle"]), max_size=14)


def histories(folder: Path, acts: list[str], capabilities: Capabilities) -> Iterator[tuple[bytes, int, set[str]]]:
    """File after each act, its length before the act, and what existed while it was under way."""
    ledger = opened(folder, capabilities)
    asked, exists, number, before, given = 0, set[str](), 0, 0, "s0"
    for act in acts:
        if act.startswith("making"):
            ledger.making("p", count := int(act[7:] or 1))
            asked += count
        elif act == "made" and asked:
            number, asked = number + 1, asked - 1
            exists = exists | {f"s{number}"}  # it exists before anybody can say so
            ledger.made(ref(f"s{number}"))
        elif act == "made again" and asked and given not in exists:  # an id that is free
            asked -= 1
            exists = exists | {given}
            ledger.made(ref(given))
        elif act == "over" and asked:
            asked -= 1
            ledger.over("p")
        elif act == "gone" and exists:
            given = min(exists)
            exists = exists - {given}
            ledger.gone(ref(given))
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
@example(acts=["making", "making", "made", "gone", "made again", "settle"])
@settings(max_examples=50)
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
