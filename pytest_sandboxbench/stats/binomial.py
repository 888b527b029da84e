"""Tails of the binomial distribution, exact to about eight digits for a million trials, with ``math`` alone.

The terms of a tail fall off at least geometrically away from the mode, so that a tail is its first term, from
log-gamma, times a short sum: some thousand terms for a million trials.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from pytest_sandboxbench.stats.percentiles import TIE

__all__ = ["lower_rank", "lower_tail", "proportion_above", "term"]

_STOP = 1e-17
_HALVINGS = 60


def term(k: int, n: int, p: float) -> float:
    """``P(B = k)`` for ``B ~ Binomial(n, p)`` with ``0 < p < 1``; 0 for a ``k`` outside ``0..n``."""
    if not 0 <= k <= n:
        return 0.0
    choices = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(choices + k * math.log(p) + (n - k) * math.log1p(-p))


def lower_tail(k: int, n: int, p: float) -> float:
    """``P(B <= k)`` for ``B ~ Binomial(n, p)``, ``0 < p < 1`` and a ``k`` not above the mode ``(n + 1) * p``."""
    if k < 0:
        return 0.0
    factor, total = 1.0, 1.0
    odds = (1.0 - p) / p
    for i in range(k, 0, -1):
        factor *= i / (n - i + 1) * odds
        total += factor
        if factor < _STOP * total:
            break
    return term(k, n, p) * total


def lower_rank(n: int, q: float, error: float) -> int:
    """The largest rank ``l`` with ``P(B <= l - 1) <= error`` for ``B ~ Binomial(n, q)``; 0 when there is none.

    ``error`` is at most 0.5. Counted from 1, the ``l``-th smallest of ``n`` values exceeds the ``q`` quantile
    of their distribution with probability at most ``error``. Found from the normal approximation, then
    corrected one exact term at a time.
    """
    z = NormalDist().inv_cdf(1.0 - error)
    k = max(-1, min(n - 1, math.floor(n * q - z * math.sqrt(n * q * (1.0 - q)))))
    limit = error * (1.0 + TIE)
    tail = lower_tail(k, n, q)
    while k >= 0 and tail > limit:
        tail -= term(k, n, q)
        k -= 1
    while k < n - 1 and (more := tail + term(k + 1, n, q)) <= limit:
        tail = more
        k += 1
    return k + 1


def proportion_above(successes: int, n: int, error: float) -> float:
    """The upper Clopper-Pearson limit: the ``p`` with ``P(B <= successes) = error``; 1 when all succeeded."""
    if successes >= n:
        return 1.0
    low, high = successes / n, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        if lower_tail(successes, n, middle) > error:
            low = middle
        else:
            high = middle
    return high
