"""What pytest-benchmark's options ask of us, and that a default asks nothing."""

from __future__ import annotations

import pytest

from pytest_sandboxbench.baseline.asked import NO_WISHES, Wishes

from .conftest import Bench


def wishes(bench: Bench, *arguments: str) -> Wishes:
    result = bench.run("-s", "--collect-only", *arguments)
    (line,) = [line for line in result.outlines if line.startswith("wishes: ")]
    found = eval(line.removeprefix("wishes: "), {"Wishes": Wishes})
    assert isinstance(found, Wishes)
    return found


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), NO_WISHES),
        (("--benchmark-min-rounds=7",), Wishes(min_rounds=7)),
        (("--benchmark-min-rounds", "5"), Wishes(min_rounds=5)),
        (("--benchmark-max-time=2.5",), Wishes(max_time_s=2.5)),
        (("--benchmark-max-time=1.0",), Wishes(max_time_s=1.0)),
        (("--benchmark-warmup=on",), Wishes(warmup_rounds=1)),
        (("--benchmark-warmup",), Wishes(warmup_rounds=1)),
        (("--benchmark-warmup", "off"), Wishes(warmup_rounds=0)),
        (("--benchmark-warmup=auto",), NO_WISHES),
        (("--benchmark-warmup=on", "--benchmark-warmup-iterations=3"), Wishes(warmup_rounds=3)),
        (("--benchmark-warmup=off", "--benchmark-warmup-iterations=3"), Wishes(warmup_rounds=0)),
        (("--benchmark-disable",), Wishes(disabled=True)),
        (("--benchmark-disable", "--benchmark-enable"), NO_WISHES),
        (("--benchmark-only",), Wishes(only=True)),
        (("--benchmark-skip",), Wishes(skip=True)),
        (("--benchmark-only", "--benchmark-skip"), Wishes(only=True)),
        (("-p", "no:benchmark"), NO_WISHES),
        (("-o", "addopts=--benchmark-min-rounds=5"), Wishes(min_rounds=5)),
    ],
)
def test_wishes(bench: Bench, arguments: tuple[str, ...], expected: Wishes) -> None:
    assert wishes(bench, *arguments) == expected


def test_wishes_of_the_configuration(bench: Bench) -> None:
    bench.pytester.makeini("[pytest]\naddopts = --benchmark-warmup=off")
    assert wishes(bench) == Wishes(warmup_rounds=0)


def test_later_words_win(bench: Bench) -> None:
    bench.pytester.makeini("[pytest]\naddopts = --benchmark-warmup=off")
    assert wishes(bench, "--benchmark-warmup=on") == Wishes(warmup_rounds=1)
