"""The worker's half of a gang: it asks, is answered on another thread, and starts at the instant that it is told."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from pytest_sandboxbench.clock import clock_name, now_ns
from pytest_sandboxbench.load.barrier import Aborted
from pytest_sandboxbench.load.member import GONE, Link, Member

MS = 1_000_000
AHEAD_NS = 5_000_000_000


class Channel:
    """What execnet gives: ``answers`` are sent back from a thread of its own, each after a millisecond."""

    def __init__(self, answers: Callable[[str, Any], tuple[Any, ...] | None]) -> None:
        self.said: list[tuple[str, Any]] = []
        self._answers = answers
        self._hear: Callable[[tuple[Any, ...]], None] = lambda answer: None

    def setcallback(self, hear: Callable[[tuple[Any, ...]], None], endmarker: object) -> None:
        assert endmarker == GONE
        self._hear = hear

    def send(self, message: tuple[str, str, Any]) -> None:
        worker, subject, what = message
        assert worker == "gw7"
        self.said.append((subject, what))
        answer = self._answers(subject, what)
        if answer is not None:
            threading.Timer(0.001, self._hear, (answer,)).start()


def member(answers: Callable[[str, Any], tuple[Any, ...] | None], size: int = 2) -> tuple[Member, Link, Channel]:
    channel = Channel(answers)
    link = Link(channel, "gw7")
    return Member(link, 1, size), link, channel


@pytest.mark.parametrize("ahead_ms", [0, 0.5, 20])
def test_it_starts_at_the_instant_and_not_before(ahead_ms: float) -> None:
    told = []

    def answers(subject: str, what: Any) -> tuple[Any, ...]:
        told.append(now_ns() + int((1 + ahead_ms) * MS))
        return ("release", told[-1])

    one, _, _ = member(answers)

    async def main() -> tuple[int, int]:
        return await one.released(), now_ns()

    instant, started = asyncio.run(main())
    assert instant == told[0] <= started


def test_an_abort_is_told_and_stays() -> None:
    one, _, channel = member(lambda subject, what: ("abort", "gw3 ended (exit 9)"))

    async def main() -> None:
        with pytest.raises(Aborted, match="gw3 ended"):
            await one.begin({})
        with pytest.raises(Aborted, match="gw3 ended"):
            await one.done(False)

    asyncio.run(main())
    assert channel.said == [("begin", {})], "it does not ask once more"


def test_a_controller_that_is_gone_aborts() -> None:
    one, _, _ = member(lambda subject, what: GONE)
    with pytest.raises(Aborted, match="the controller is gone"):
        asyncio.run(one.released())


def test_what_was_measured_before_is_known() -> None:
    one, _, _ = member(lambda subject, what: ("known", b"rows", "cut"))
    assert asyncio.run(one.begin({"providers": []})) == {"providers": []}
    assert one.known == (b"rows", "cut")


def test_it_beats_while_it_measures_and_not_after() -> None:
    one, _, channel = member(lambda subject, what: {"begin": ("begun", what), "end": ("ended", b"x")}.get(subject))

    async def main() -> bytes:
        await one.begin({})
        await asyncio.sleep(1.2)
        rows = await one.end()
        await asyncio.sleep(1.2)
        return rows

    assert asyncio.run(main()) == b"x"
    assert [subject for subject, _ in channel.said] == ["begin", "alive", "end"]


def test_one_clock_is_not_compared() -> None:
    _, link, channel = member(lambda subject, what: None)
    link.compare_clocks(clock_name())
    assert (link.ahead_ns, link.clock_error_ns, channel.said) == (0, 0, [])


def test_another_hosts_clock_is_compared_and_starts_are_given_in_ours() -> None:
    def answers(subject: str, what: Any) -> tuple[Any, ...]:
        if subject == "clock":
            return ("clock", now_ns() + AHEAD_NS)
        return ("release", now_ns() + AHEAD_NS + 10 * MS)

    one, link, _ = member(answers)
    link.compare_clocks("another boot")
    assert link.clock_error_ns > 0
    assert abs(link.ahead_ns - AHEAD_NS) <= link.clock_error_ns
    before = time.monotonic_ns()
    instant = asyncio.run(one.released())
    assert before < instant <= now_ns()


def test_an_answer_that_nobody_waits_for_any_more_is_taken_for_no_other() -> None:
    """The lanes at the gate were given up: what the gate asked is answered later, and is no answer to the next."""
    late: list[threading.Timer] = []

    def answers(subject: str, what: Any) -> tuple[Any, ...] | None:
        if subject == "ready":
            late.append(threading.Timer(0.05, channel._hear, (("release", now_ns()),)))
            late[0].start()
            return None
        if subject == "end":
            late[0].join()
        return ("ended", b"x") if subject == "end" else ("go", 0, 1)

    one, link, channel = member(answers)

    async def main() -> bytes:
        waiting = asyncio.create_task(one.released())
        await asyncio.sleep(0.01)
        waiting.cancel()
        return await one.end()

    assert asyncio.run(main()) == b"x"
    assert link.ask("at", "t1") == ("go", 0, 1)


def test_a_question_that_was_left_behind_does_not_take_the_next_answer() -> None:
    one, link, _ = member(lambda subject, what: ("go", 0, 1) if subject == "at" else None)

    async def main() -> None:
        waiting = asyncio.create_task(one.released())
        await asyncio.sleep(0.01)
        # On purpose: whoever asked is not heard of again.
        assert await asyncio.to_thread(link.ask, "at", "t1") == ("go", 0, 1)
        waiting.cancel()

    asyncio.run(asyncio.wait_for(main(), 5))
