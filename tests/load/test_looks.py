"""Rounds until what was measured is enough: looks between the rounds, and never more than were allowed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from .blocks import Notes, block, fake, run


def looked(answers: list[bool], *, notes: Notes | None = None, **plan: Any) -> tuple[Notes, int]:
    """Measure with these answers of whoever judges; returns what was measured, and how often somebody looked."""
    asked = 0

    def enough(others: bytes) -> bool:
        nonlocal asked
        assert others == b""
        asked += 1
        return answers[asked - 1]

    judge: Callable[[bytes], bool] = enough
    return asyncio.run(run(block("start", "fake", "other", **plan), fake(), fake("other"), enough=judge)), asked


@pytest.mark.parametrize(
    ("answers", "rounds"), [([True], 2), ([False, True], 4), ([False, False], 7), ([False, False, True], 7)]
)
def test_it_ends_at_the_look_that_says_enough(answers: list[bool], rounds: int) -> None:
    notes, asked = looked(answers, rounds=2, warmup=1, more=(4, 7))
    assert len(notes.of("startup", "fake")) == len(notes.of("startup", "other")) == rounds
    assert asked == min(len(answers), 2), "there is nothing to decide after the last round"


def test_without_more_rounds_nobody_looks() -> None:
    notes, asked = looked([], rounds=2)
    assert len(notes.of("startup", "fake")) == 2
    assert asked == 0


def test_time_ends_it_before_somebody_looks() -> None:
    notes, asked = looked([], rounds=2, more=(4,), max_time_s=1e-9)
    assert len(notes.of("startup", "fake")) == 1
    assert asked == 0


def test_progress_counts_to_the_next_look() -> None:
    notes, _ = looked([False, True], rounds=2, more=(3, 9))
    assert [(done, planned) for _, done, planned in notes.told] == [
        *((done, 4) for done in range(4)),
        (4, 6),
        (5, 6),
        (6, 6),
    ]
