"""``python -m tests.faults [-k TEXT]``: every fault on every provider, as a table."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor

from .fault import KINDS, Result, run
from .matrix import FAULTS, table

ALONE = 6
"""So many that are wrong in company are tried once more without."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("-k", metavar="TEXT", default="", help="only faults with this in their name")
    parser.add_argument("--provider", choices=KINDS, action="append", help="only this one (default: all)")
    parser.add_argument("-j", metavar="N", type=int, default=1, help="so many at once (default: 1)")
    parser.add_argument("-v", action="store_true", help="everything about what is wrong")
    arguments = parser.parse_args()
    cells = [
        (fault, kind)
        for fault in FAULTS
        if arguments.k.lower() in fault.name.lower() and not fault.lacks()
        for kind in fault.providers
        if kind in (arguments.provider or KINDS)
    ]

    def tell(result: Result, where: str = "") -> None:
        print(f"{result.kind}, {result.fault}{where}: {'WRONG' if result.wrong else 'ok'}", file=sys.stderr)
        if result.wrong and arguments.v:
            print(result.wrong, file=sys.stderr)

    results = []
    with ThreadPoolExecutor(arguments.j) as pool:
        for result in pool.map(lambda cell: run(*cell), cells):
            results.append(result)
            tell(result)
    wrong = [at for at, result in enumerate(results) if result.wrong]
    if arguments.j > 1 and len(wrong) <= ALONE:
        # A case looks at the whole host: one that leaves something behind is seen by those beside it too.
        for at in wrong:
            results[at] = run(*cells[at])
            tell(results[at], ", alone")
    print(*table(results), sep="\n")
    return int(any(result.wrong for result in results))


if __name__ == "__main__":
    sys.exit(main())
