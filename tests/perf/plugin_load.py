"""What every pytest run in an environment pays for this plugin being installed there, without a bench in sight.

Not ``pytest --version``: that loads no plugin. Other plugins are off on both sides, byte code is compiled before.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pytest_sandboxbench.stats import median_interval

from .children import Used, environment, run
from .table import Row, show, shuffled

__all__ = ["measure"]

_PLUGIN = ("-p", "pytest_sandboxbench.plugin")


def measure(*, quick: bool = False) -> list[Row]:
    draw = random.Random()
    pairs: list[tuple[Used, Used]] = []
    with TemporaryDirectory(prefix="sandboxbench-perf-") as name:
        folder = Path(name)
        (folder / "test_one.py").write_text("def test_one():\n    pass\n", encoding="ascii")
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="ascii")
        for _ in range(2):
            _run(folder, "with"), _run(folder, "without")
        for _ in range(6 if quick else 60):
            found = {side: _run(folder, side) for side in shuffled(["with", "without"], draw)}
            pairs.append((found["with"], found["without"]))
    wall = median_interval([(a.wall_s - b.wall_s) * 1e3 for a, b in pairs])
    cpu = median_interval([(a.cpu_s - b.cpu_s) * 1e3 for a, b in pairs])
    without = median_interval([b.wall_s * 1e3 for _, b in pairs])
    return [
        Row("pytest -q test_one.py", show(without, 1, "ms", 1)),
        Row("the plugin adds", show(wall, 1, "ms", 1), "10 ms", "pair by pair"),
        Row("the plugin adds, CPU time", show(cpu, 1, "ms", 1), "", "user and system, pair by pair"),
    ]


def _run(folder: Path, side: str) -> Used:
    plugin = _PLUGIN if side == "with" else ()
    return run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, "test_one.py"],
        cwd=folder,
        env=environment(folder),
    )
