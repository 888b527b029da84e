"""A quick look at the error rates: no side errs more often than it may, and what is clear is decided."""

from __future__ import annotations

import pytest

from .rates import KINDS, Kind, rates, until_decided

RUNS = 400
ALLOWED = 0.025 + 3 * (0.025 * 0.975 / RUNS) ** 0.5


@pytest.mark.parametrize("kind", KINDS[:4], ids=lambda kind: kind.name)
@pytest.mark.parametrize("q", [0.5, 0.95])
def test_a_limit_at_the_truth(kind: Kind, q: float) -> None:
    found = rates(kind, q, 40, 1.0, RUNS)
    assert found.passed <= ALLOWED
    assert found.fail <= ALLOWED


def test_looking_again_is_paid_for() -> None:
    found = until_decided(KINDS[0], 0.5, 6, 48, 1.0, RUNS)
    assert found.passed <= ALLOWED
    assert found.fail <= ALLOWED


def test_what_is_clear_is_decided() -> None:
    assert rates(KINDS[0], 0.5, 40, 1.1, 100).passed > 0.9
    assert rates(KINDS[0], 0.5, 40, 0.9, 100).fail > 0.9


def test_rounds_that_share_their_fate_are_no_more_wrong() -> None:
    found = rates(KINDS[4], 0.95, 40, 1.0, 100)
    assert found.passed <= 0.08
    assert found.fail <= 0.08
