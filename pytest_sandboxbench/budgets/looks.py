"""Sampling until a budget is decided, with the peeking paid for.

Who looks at an interval again and again, and stops when it says something, is wrong more often than the interval
promises: each look is a chance of its own to err. So the number of looks is bounded and known before the first one, and
the error that the verdict may have is dealt out among them. Whatever the looks have to do with each other, and they
share most of their samples, the chance that any of them errs is at most the sum of theirs (Boole's inequality).

An error of 5 %, 2.5 % a side, is dealt out like this: all of it to the only look where there is one; otherwise two
thirds to the first and the rest in equal parts to the later ones. The first one has most because it is the one that
nearly every budget is decided at; with 3.3 % left of it, the 6 units that bound a median at 95 % still bound it
(2 * 0.5 ** 6 = 3.1 %). Group sequential plans that know the distribution (Pocock 1977, O'Brien & Fleming 1979; the
idea of an error that is spent: Lan & DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 70
(1983)) need less, but nothing is known of a distribution here.

A budget is decided at the first look that does not find it inconclusive. That verdict stands, also where the block goes
on for the sake of another budget: a later look has less error left to spend, and is not for those decided.

``docs/error-rates.md`` has the rates that a simulation came to, with the payment and without.
"""

from __future__ import annotations

__all__ = ["ERROR", "confidence", "schedule"]

ERROR = 0.05
"""What a verdict may err with in all, both sides together."""

_FIRST = 2 / 3


def schedule(planned: int, most: int) -> tuple[int, ...]:
    """The numbers of rounds at which one looks: those planned, twice, four times as many, ..., and ``most``.

    Doubling keeps the looks few, and one that comes soon after another tells nothing new. Where ``most`` is not above
    ``planned``, one look. ``ValueError`` where no round is planned.

    >>> schedule(20, 100), schedule(20, 20)
    ((20, 40, 80, 100), (20,))
    """
    if planned < 1:
        raise ValueError(f"a block has at least one round, not {planned!r}")
    found = [planned]
    while found[-1] < most:
        found.append(min(2 * found[-1], most))
    return tuple(found)


def confidence(look: int, of: int) -> float:
    """With what confidence, a share, the ``look``-th of ``of`` looks is made; counted from 1.

    ``ValueError`` unless ``1 <= look <= of``.

    >>> confidence(1, 1), round(confidence(1, 4), 4), round(confidence(4, 4), 4)
    (0.95, 0.9667, 0.9944)
    """
    if not 1 <= look <= of:
        raise ValueError(f"look {look!r} is not one of 1 to {of!r}")
    if of == 1:
        return 1 - ERROR
    return 1 - ERROR * (_FIRST if look == 1 else (1 - _FIRST) / (of - 1))
