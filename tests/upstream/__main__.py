"""``python -m tests.upstream [SUITE...]``: the suites whole, with the plugin and without; fails where they differ."""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.packaging.conftest import build

from .comparison import compare
from .sides import prepare
from .suites import SUITES


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.upstream", description=__doc__)
    known = [suite.name for suite in SUITES]
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"only these: {', '.join(known)}")
    parser.add_argument("--short", action="store_true", help="leave out what CI leaves out")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.suites if name not in known]
    if unknown:
        parser.error(f"no suite {unknown[0]!r}; there are: {', '.join(known)}")
    wrong = False
    for suite in SUITES:
        if arguments.suites and suite.name not in arguments.suites:
            continue
        with TemporaryDirectory(prefix="sandboxbench-upstream-") as name:
            folder = Path(name)
            started, cpu = time.monotonic(), _cpu_s()
            build(folder / "wheel", "--wheel")
            (wheel,) = (folder / "wheel").glob("*.whl")
            sides = prepare(suite, wheel, folder)
            prepared = time.monotonic()
            found = compare(sides, [suite.tests, *(suite.slow if arguments.short else ())])
            ended, cpu = time.monotonic(), _cpu_s() - cpu
        times = f"{prepared - started:.0f} s to prepare, {ended - prepared:.0f} s to run, {cpu:.0f} s of CPU time"
        print(f"{suite.name}: {found} ({times})", flush=True)
        for test in found.failed_on_both:
            print(f"  fails on both sides: {test}")
        if sides[0].left_out:
            print(f"  could not be installed, on neither side: {', '.join(sides[0].left_out)}")
        for test in found.flaky:
            print(f"  flaky: {test}")
        if found.problem:
            print(f"  {found.problem.replace(chr(10), chr(10) + '  ')}")
            wrong = True
    return int(wrong)


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    sys.exit(main())
