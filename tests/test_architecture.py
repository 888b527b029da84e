"""Who may import whom: dependencies point one way, and what computes knows no test runner.

Read from the source, so that an import inside a function or under ``TYPE_CHECKING`` counts like any other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

NAME = "pytest_sandboxbench"
ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / NAME

CORE = frozenset({"clock", "errors", "model"})

# room: the rooms it may import besides itself. A room is a folder or a module of the package.
MAY_IMPORT: dict[str, frozenset[str]] = {
    "clock": frozenset(),
    "errors": frozenset(),
    "model": frozenset({"errors"}),
    "facts": CORE,
    "termination": frozenset(),
    "threads": frozenset(),
    "owners": CORE | {"facts"},
    "ledger": CORE | {"owners"},
    "providers": CORE | {"owners"},
    "records": CORE,
    "stats": CORE,
    "workloads": CORE | {"providers"},
    "load": CORE | {"facts", "ledger", "providers", "records", "stats", "termination", "workloads"},
    "ending": frozenset({"load"}),
    "budgets": CORE | {"records", "stats"},
    "baseline": CORE | {"facts", "records", "stats"},
    "measuring": CORE
    | {"clearing", "ending", "facts", "guests", "ledger", "load", "providers", "reaping", "records", "run_header"}
    | {"run_settings"}
    | {"stats", "workloads"},
    "run_settings": frozenset({"load"}),
    "guests": CORE,
    "serve": CORE | {"ledger", "owners", "providers"},
    "run_header": CORE | {"facts", "load", "records"},
    "clearing": CORE | {"load"},
    "reaping": CORE | {"clearing", "ledger", "load", "providers", "records"},
    "compliance": CORE | {"ledger", "load", "providers", "records", "threads", "workloads"},
    "report": CORE | {"baseline", "budgets", "facts", "load", "records", "stats"},
}

# These sit on top: they may import everything, and nothing below may import them.
ON_TOP = frozenset(
    {
        "__init__",
        "__main__",
        "bench",
        "benches",
        "blocks",
        "budgeting",
        "cli",
        "doctor",
        "fixtures",
        "fixtures_async",
        "hookspecs",
        "identity",
    }
    | {
        "listing",
        "markers",
        "naming",
        "news",
        "options",
        "planning",
        "plugin",
        "results",
        "session",
        "several",
        "stash",
        "workers",
    }
)

# A module that knows one room more, and why.
EXCEPTIONS = {
    "budgets/grammar.py": {"load"},  # how a shape is spelt, which that room alone knows
    "report/terminal.py": {"session", "several"},  # prints what they hold; the imports are for the type checker only
}

RUNNERS = frozenset({"_pytest", "execnet", "pluggy", "pytest", "pytest_asyncio", "pytest_benchmark", "xdist"})
KNOW_NO_RUNNER = CORE | {"budgets", "measuring", "providers", "records", "stats", "workloads"}

# Each of these packages has internals that change; one file follows them.
ONLY_IN = {"pytest_benchmark": "baseline/entry.py", "xdist": "load/gang.py"}

MOST_LINES = 400


def imports(source: str, module: str) -> Iterator[str]:
    """The dotted names that ``source`` imports, absolute. ``module`` is its own name (``a.b.__init__`` for a package).

    ``from a import b`` gives ``a.b``: whether ``b`` is a module does not matter to a rule about ``a``.
    """
    package = module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            prefix = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{prefix}.{alias.name}" for alias in node.names)
        elif (
            isinstance(node, ast.Call)
            and getattr(node.func, "attr", getattr(node.func, "id", None))
            in {"__import__", "import_module", "importorskip"}
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.args[0].value, str)
        ):
            yield node.args[0].value


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import os.path, xdist", ["os.path", "xdist"]),
        ("from ..model import Sample", ["pkg.model.Sample"]),
        ("from .. import model, clock", ["pkg.model", "pkg.clock"]),
        ("from . import guard", ["pkg.load.guard"]),
        ("from .guard import Pulse", ["pkg.load.guard.Pulse"]),
        ("def f():\n    import pytest as p", ["pytest"]),
        (
            "if TYPE_CHECKING:\n    from xdist.workermanage import WorkerController",
            ["xdist.workermanage.WorkerController"],
        ),
        ("importlib.import_module('pytest_benchmark.stats')", ["pytest_benchmark.stats"]),
        ("'import pytest'  # import xdist", []),
    ],
)
def test_imports_are_found(source: str, expected: list[str]) -> None:
    assert list(imports(source, "pkg.load.lanes")) == expected


def test_a_relative_import_in_a_package_counts_from_the_package() -> None:
    assert list(imports("from .lanes import Lane", "pkg.load.__init__")) == ["pkg.load.lanes.Lane"]


def modules() -> list[Path]:
    suites = PACKAGE / "benches"
    return [path for path in sorted(PACKAGE.rglob("*.py")) if suites not in path.parents]


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_by(path: Path) -> set[str]:
    dotted = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return set(imports(path.read_text(encoding="utf-8"), dotted))


def top(name: str) -> str:
    return name.partition(".")[0]


every_module = pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.relative_to(PACKAGE).as_posix()) for p in modules()]
)


@every_module
def test_dependencies_point_one_way(path: Path) -> None:
    room = room_of(path)
    if room in ON_TOP:
        return
    assert room in MAY_IMPORT, f"{room} is new: say in MAY_IMPORT what it may know"
    known = MAY_IMPORT[room] | {room, "__version__"}
    beyond = {top(name.removeprefix(f"{NAME}.")) for name in imported_by(path) if top(name) == NAME} - known
    excepted = EXCEPTIONS.get(path.relative_to(PACKAGE).as_posix(), set())
    assert beyond == excepted, f"{room} may import only {sorted(known)}; an exception that is not needed goes, too"


@every_module
def test_what_computes_knows_no_test_runner(path: Path) -> None:
    if room_of(path) in KNOW_NO_RUNNER:
        assert not {name for name in imported_by(path) if top(name) in RUNNERS}


@every_module
def test_one_file_knows_a_plugin_with_internals(path: Path) -> None:
    here = path.relative_to(PACKAGE).as_posix()
    foreign = {top(name) for name in imported_by(path)} & ONLY_IN.keys()
    assert {name for name in foreign if ONLY_IN[name] != here} == set()


def test_the_rules_have_no_circle() -> None:
    """Each room can be put above all that it may import."""
    order = tuple(TopologicalSorter(MAY_IMPORT).static_order())
    assert order.index("model") < order.index("load") < order.index("report")


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, id=p.relative_to(ROOT).as_posix()) for p in [*modules(), *sorted((ROOT / "tests").rglob("*.py"))]],
)
def test_a_module_has_one_subject(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MOST_LINES, f"{lines} lines: find the second subject and give it a file"
