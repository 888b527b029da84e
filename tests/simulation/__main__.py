"""``python -m tests.simulation [--quick]``: the error rates of verdicts as a Markdown table, for docs/error-rates.md.

Exit status 1 where a budget's verdicts are wrong more often than promised, beyond the simulation's own error.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable

from .cases import all_cases
from .rates import Rates, allowed, simulate, table

_FULL = (2000, 600)
_QUICK = (100, 20)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description="Error rates of budget verdicts.")
    parser.add_argument("--quick", action="store_true", help="a few runs of each case, which show little")
    arguments = parser.parse_args()
    began = time.monotonic()
    known: list[Rates] = []

    def watched() -> Iterable[Rates]:
        for case in all_cases(*(_QUICK if arguments.quick else _FULL)):
            known.append(simulate(case))
            yield known[-1]

    for line in table(watched()):
        print(line, flush=True)
    wrong = [one for one in known if one.case.promised and one.wrong > allowed(one.case.runs)]
    print(f"\n{len(known)} cases in {time.monotonic() - began:.0f} s; more often wrong than promised: {len(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
