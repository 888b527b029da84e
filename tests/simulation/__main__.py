"""``python -m tests.simulation [--quick]``: the tables of ``docs/error-rates.md``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from .rates import KINDS, LIMITS, Kind, Rates, rates, until_decided

UNITS = (6, 20, 40, 100)
STATISTICS = {"median": 0.5, "p95": 0.95}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few runs of each: does it work at all?")
    quick = parser.parse_args().quick
    for line in tables(20 if quick else 2000, 10 if quick else 400):
        print(line, flush=True)
    return 0


def tables(runs: int, runs_of_lanes: int) -> Iterator[str]:
    """``runs`` of each case; fewer where every interval is a bootstrap."""
    decided = "10 % above: pass, fail | 10 % below: fail, pass"
    yield f"| series | statistic | n | wrongly passed | wrongly failed | {decided} |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for kind in KINDS:
        for name, q in STATISTICS.items():
            for n in UNITS:
                many = _runs(kind, runs, runs_of_lanes)
                found = {at: rates(kind, q, n, limit, many) for at, limit in LIMITS.items()}
                yield _row([kind.name, name, str(n)], found)
    yield ""
    yield "| until decided | statistic | n, most | wrongly passed | wrongly failed | undecided |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for kind in KINDS:
        for n, most in ((6, 24), (20, 80)):
            one = until_decided(kind, 0.5, n, most, 1.0, _runs(kind, runs, runs_of_lanes))
            cells = [kind.name, "median", f"{n}, {most}", _wrong(one.passed, one), _wrong(one.fail, one)]
            yield f"| {' | '.join([*cells, _percent(one.inconclusive)])} |"


def _runs(kind: Kind, runs: int, runs_of_lanes: int) -> int:
    return runs_of_lanes if "lanes" in kind.name else runs


def _row(cells: list[str], found: dict[str, Rates]) -> str:
    at, above, below = found.values()
    cells += [_wrong(at.passed, at), _wrong(at.fail, at)]
    cells += [f"{_percent(above.passed)}, {_percent(above.fail)}", f"{_percent(below.fail)}, {_percent(below.passed)}"]
    return f"| {' | '.join(cells)} |"


def _wrong(share: float, of: Rates) -> str:
    error = 1.96 * (share * (1 - share) / of.runs) ** 0.5
    return f"{_percent(share)} ± {100 * error:.1f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


if __name__ == "__main__":
    sys.exit(main())
