"""Statistics as pure functions of the values: no pytest, no numpy, nothing trimmed.

``percentiles``  the one percentile rule; from when on a percentile is shown, and judged
``intervals``    confidence intervals by independent unit: order statistics, bootstrap over rounds, success rates
``summary``      all numbers of a series
``scaling``      what becomes of one series as the level rises: flat, cpu bound, serialised
``digits``       how a number is written
"""

from pytest_sandboxbench.stats.intervals import (
    FEWEST_ROUNDS,
    Interval,
    Statistic,
    cluster_interval,
    median_interval,
    order_interval,
    percentile_interval,
    ratio_interval,
    ratio_of_intervals,
    success_interval,
)
from pytest_sandboxbench.stats.percentiles import Side, judged_side, median, needed, percentile, shown, shown_from
from pytest_sandboxbench.stats.summary import GENERATOR_BOUND, Summary, summarise

__all__ = [
    "FEWEST_ROUNDS",
    "GENERATOR_BOUND",
    "Interval",
    "Side",
    "Statistic",
    "Summary",
    "cluster_interval",
    "judged_side",
    "median",
    "median_interval",
    "needed",
    "order_interval",
    "percentile",
    "percentile_interval",
    "ratio_interval",
    "ratio_of_intervals",
    "shown",
    "shown_from",
    "success_interval",
    "summarise",
]
