"""``--benchmark-histogram`` draws our series whether or not their table is shown."""

from __future__ import annotations

from .conftest import Bench, no_traceback, printed


def test_one_picture_for_each_group(bench: Bench, workers: tuple[str, ...]) -> None:
    bench.add_ordinary()
    bench.levels(1, 16)
    result = bench.run_apart("--benchmark-histogram=pictures/run", *workers)
    assert result.ret == 0
    names = {path.name for path in (bench.pytester.path / "pictures").iterdir()}
    assert names - {"run.svg"} == {"run-startup{cache=miss}_@1.svg", "run-startup{cache=miss}_@16.svg"}
    assert workers or "run.svg" in names  # the ordinary benchmark's; under xdist it is pytest-benchmark's matter
    picture = (bench.pytester.path / "pictures" / "run-startup{cache=miss}_@1.svg").read_text()
    assert "bubblewrap:startup{cache=miss}@1/burst - 5 rounds" in picture
    assert "startup{cache=miss} @1': 2 tests" not in printed(result)


def test_with_the_table_each_picture_is_drawn_once(bench: Bench) -> None:
    result = bench.run_apart("--benchmark-histogram=run", "--benchmark-columns=median")
    assert result.ret == 0
    assert printed(result).count("Generated histogram") == 1


def test_without_pygal_it_is_refused_before_anything_is_measured(bench: Bench, workers: tuple[str, ...]) -> None:
    bench.pytester.makepyfile(
        no_pygal="import importlib.util as u; old = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'pygal' else old(name, *a)"
    )
    bench.pytester.syspathinsert()
    result = bench.run_apart("-p", "no_pygal", "--benchmark-histogram=run", *workers)
    assert result.ret == 4
    no_traceback(result)
    assert 'pip install "pytest-benchmark[histogram]"' in printed(result)
    assert "passed" not in printed(result)
