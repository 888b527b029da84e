"""A ledger that was cut or spoilt, at any byte, leads to all that it says and to nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_sandboxbench.ledger import books
from pytest_sandboxbench.model import Owner
from pytest_sandboxbench.reaping import Reaped

from .test_ledger import DEAD, dead
from .test_reaping import ELSEWHERE, ME, World, ids, world

__all__ = ["world"]


@given(
    number=st.integers(1, 4),
    unknown=st.integers(0, 2),
    where=st.floats(0, 1),
    after=st.sampled_from([b"", b"\0" * 50, b"{}\n"]),
)
@settings(max_examples=40)
def test_a_ledger_cut_anywhere_leads_to_all_that_exists_and_to_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, number: int, unknown: int, where: float, after: bytes
) -> None:
    world = World(tmp_path_factory.mktemp("world"))
    left = world.make(dead(), number)
    others = [*world.make(ME), *world.make(ELSEWHERE), *world.make(Owner("other", ME.host, DEAD, "2"))]
    path = world.book(dead(), left, unknown=unknown)
    text = path.read_bytes()
    intent = text.index(b"\n", text.index(b"making")) + 1  # on disk before anything is created
    path.write_bytes(text[: intent + int(where * (len(text) - intent))] + after)
    reaped = world.reap_ledgers()
    assert {found.ref.id for found in reaped.destroyed} == ids(left)
    assert world.live == ids(others)
    assert reaped.left == []
    assert books(world.folder) == []


NONSENSE: Sequence[Callable[[bytes], bytes]] = (
    lambda text: b"",
    lambda text: text.replace(b'"fake"', b'"nonsense"'),
    lambda text: text.replace(b"state_dir", b"no_such_setting"),
    lambda text: text[::-1],
    lambda text: text.replace(b'"labels": true', b'"labels": []'),
    lambda text: b"\xff" * 1000,
)


@pytest.mark.parametrize("spoil", NONSENSE)
def test_a_spoilt_ledger_stops_nothing(world: World, spoil: Callable[[bytes], bytes]) -> None:
    path = world.book(dead(), world.make(dead()))
    path.write_bytes(spoil(path.read_bytes()))
    other = dead("20260101-000000-ffffff")
    world.book(other, second := world.make(other))
    reaped = world.reap_ledgers()
    assert ids(second) <= {found.ref.id for found in reaped.destroyed}


def test_a_ledger_in_which_nothing_can_be_read_is_told_and_kept(world: World) -> None:
    path = world.book(dead(), world.make(dead()))
    path.write_bytes(b"\0" * 100 + b"\n")
    ((_run, problem),) = world.reap_ledgers().problems
    assert "cannot be read" in problem
    assert f"--forget {dead().run_id}" in problem
    assert path.exists()


def test_a_ledger_that_was_cut_in_its_first_line_leads_to_nothing_and_goes(world: World) -> None:
    """Nothing is created before its intent is written."""
    path = world.book(dead(), [])
    path.write_bytes(b"")
    assert world.reap_ledgers() == Reaped()
    assert not path.exists()
