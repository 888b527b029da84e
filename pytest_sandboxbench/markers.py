"""The markers: which operation a test shows, how often it is measured, and which budgets it has."""

from __future__ import annotations

import re

import pytest

__all__ = ["BUDGET", "MARKERS", "NAME", "BenchMark", "read"]

BUDGET = "sandbox_budget"

NAME = re.compile(r"[\w+-]+")
"""What an operation may be called; the other characters part the words of a series key."""

MARKERS = (
    "sandbox_bench(operation=None, *, samples=None, warmup=None, shape=None): which built-in operation this bench "
    "shows (startup, exec, ...), how many rounds and warm-up rounds are measured where no option says otherwise, and "
    "in which load shape (burst, closed-100, ...), whatever the option says",
    f"{BUDGET}(*budgets): limits that the series of this bench must keep, for example 'median 44ms..52ms @1,16'",
)


class BenchMark:
    """The arguments of the marker, checked."""

    __slots__ = ("operation", "samples", "shape", "warmup")

    def __init__(
        self,
        operation: str | None = None,
        *,
        samples: int | None = None,
        warmup: int | None = None,
        shape: str | None = None,
    ) -> None:
        self.operation = operation
        self.samples = samples
        self.warmup = warmup
        self.shape = shape


def read(node: pytest.Item) -> BenchMark:
    """The nearest marker's arguments. ``UsageError`` names the test, the argument and what is allowed."""
    marker = node.get_closest_marker("sandbox_bench")
    if marker is None:
        return BenchMark()
    try:
        mark = BenchMark(*marker.args, **marker.kwargs)
    except TypeError as error:
        text = str(error).replace("BenchMark.__init__()", "it")
        raise pytest.UsageError(
            f"{node.nodeid}: marker sandbox_bench: {text}; it is {MARKERS[0].split(':')[0]}"
        ) from None
    operation: object = mark.operation
    if not (operation is None or (isinstance(operation, str) and NAME.fullmatch(operation))):
        raise pytest.UsageError(
            f"{node.nodeid}: marker sandbox_bench: operation={operation!r} is not a name: letters, digits, "
            "'_', '+' and '-', for example startup"
        )
    for name, lowest in (("samples", 1), ("warmup", 0)):
        value = getattr(mark, name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < lowest):
            raise pytest.UsageError(
                f"{node.nodeid}: marker sandbox_bench: {name}={value!r} is not a whole number from {lowest} on"
            )
    if mark.shape is not None:
        mark.shape = _shape(node, mark.shape)
    return mark


def _shape(node: pytest.Item, given: object) -> str:
    from .load.shapes import EXAMPLES, parse_shape

    try:
        if not isinstance(given, str):
            raise ValueError(f"it is a text: {EXAMPLES}")
        return str(parse_shape(given))
    except ValueError as error:
        raise pytest.UsageError(f"{node.nodeid}: marker sandbox_bench: shape={given!r}: {error}") from None
