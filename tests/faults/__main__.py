"""``python -m tests.faults [-k TEXT]``: every fault on every provider, as a table."""

from __future__ import annotations

import argparse
import os
import sys

from .fault import KINDS, run
from .matrix import FAULTS, table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("-k", metavar="TEXT", default="", help="only faults with this in their name")
    parser.add_argument("--provider", choices=KINDS, action="append", help="only this one (default: all)")
    parser.add_argument("-v", action="store_true", help="everything about what is wrong")
    arguments = parser.parse_args()
    results = []
    for fault in FAULTS:
        if arguments.k.lower() not in fault.name.lower() or (fault.root_only and os.geteuid() != 0):
            continue
        for kind in fault.providers:
            if kind not in (arguments.provider or KINDS):
                continue
            result = run(fault, kind)
            results.append(result)
            print(f"{kind}, {fault.name}: {'ok' if not result.wrong else 'WRONG'}", file=sys.stderr)
            if result.wrong and arguments.v:
                print(result.wrong, file=sys.stderr)
    print(*table(results), sep="\n")
    return int(any(result.wrong for result in results))


if __name__ == "__main__":
    sys.exit(main())
