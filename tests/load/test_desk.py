"""Who is let in, who waits and who is turned away: in one process, and in several at one desk."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_sandboxbench.clock import NS_PER_S
from pytest_sandboxbench.load.desk import LocalDesk, RemoteDesk, SharedDesk, Slots, Verdict
from pytest_sandboxbench.providers.limits import Limits

PATIENCE_NS = 60 * NS_PER_S
YES = Verdict("", 0)


def slots(patience_ns: int = PATIENCE_NS, **limits: Any) -> Slots:
    return Slots({"p": Limits(**limits)}, patience_ns)


def ask(what: Slots, id: int, now: int = 0, worker: str = "") -> Verdict | None:
    return what.ask((worker, id), "p", now)


# -- the decisions


def test_so_many_are_in_so_many_wait_and_one_more_is_turned_away() -> None:
    these = slots(max_live=2, max_queued=3)
    answers = [ask(these, id) for id in range(7)]
    assert answers == [YES, YES, None, None, None, Verdict("queue"), Verdict("queue")]


def test_first_come_first_served() -> None:
    these = slots(max_live=1)
    for id in range(4):
        ask(these, id)
    assert [these.leave("p", 0) for _ in range(4)] == [[(("", id), YES)] for id in (1, 2, 3)] + [[]]
    assert ask(these, 9) == YES


def test_without_room_for_waiting_all_others_are_turned_away() -> None:
    these = slots(max_live=1, max_queued=0)
    assert [ask(these, 1), ask(these, 2)] == [YES, Verdict("queue")]


def test_who_is_forgotten_keeps_no_place_in_the_line() -> None:
    these = slots(max_live=1, max_queued=2)
    for id in range(3):
        ask(these, id)
    these.forget(("", 1))
    assert ask(these, 3) is None, "there is room in the line again"
    these.forget(("", 7))
    assert [these.leave("p", 0) for _ in range(2)] == [[(("", 2), YES)], [(("", 3), YES)]]


def test_what_a_dead_process_has_counts_and_what_it_waits_for_does_not() -> None:
    these = slots(max_live=2)
    assert ask(these, 0, worker="gw0") == ask(these, 0, worker="gw1") == YES
    assert ask(these, 1, worker="gw0") is ask(these, 1, worker="gw1") is None
    these.lost("gw0")
    assert these.leave("p", 0) == [(("gw1", 1), YES)]
    assert ask(these, 2, worker="gw1") is None, "one place is the dead one's"


def test_nobody_can_leave_who_is_not_in() -> None:
    these = slots(max_live=1)
    assert these.leave("p", 0) == []
    assert [ask(these, 1), ask(these, 2)] == [YES, None]


def test_without_limits_everybody_is_let_in() -> None:
    these = slots()
    assert {ask(these, id) for id in range(100)} == {YES}
    assert these.ask(("", 1), "unknown", 5) == Verdict("", 5)


@pytest.mark.parametrize(
    ("rate", "begins_s"),
    [(2, [0, 0, 1, 1, 2]), (0.5, [0, 2, 4, 6, 8]), (2.5, [0, 0, 0.8, 0.8, 1.6]), (1, [0, 1, 2, 3, 4])],
)
def test_so_many_begin_in_a_second(rate: float, begins_s: list[float]) -> None:
    these = slots(create_rate=rate)
    answers = [ask(these, id) for id in range(5)]
    assert [answer.begin_ns / NS_PER_S for answer in answers if answer] == begins_s


def test_a_turn_that_is_too_far_away_is_refused_and_takes_nothing_from_the_others() -> None:
    these = slots(2 * NS_PER_S, create_rate=1)
    answers = [ask(these, id) for id in range(50)]
    assert [answer.reason for answer in answers if answer] == [""] * 3 + ["rate"] * 47
    assert ask(these, 50, now=NS_PER_S) == Verdict("", 3 * NS_PER_S)


def test_the_rate_counts_for_those_who_waited_for_room_and_their_patience_from_their_question() -> None:
    these = slots(5 * NS_PER_S, max_live=1, create_rate=0.25)
    assert [ask(these, id) for id in range(3)] == [YES, None, None]
    assert these.leave("p", NS_PER_S) == [(("", 1), Verdict("", 4 * NS_PER_S))]
    assert these.leave("p", 6 * NS_PER_S) == [(("", 2), Verdict("rate", 6 * NS_PER_S))]


Step = st.tuples(st.sampled_from(["ask", "leave", "forget", "lost"]), st.integers(0, 2), st.integers(0, NS_PER_S))


@given(
    st.integers(1, 3),
    st.none() | st.integers(0, 3),
    st.none() | st.sampled_from([0.5, 1, 3, 10]),
    st.lists(Step, max_size=60),
)
def test_whatever_happens_the_limits_hold(
    max_live: int, max_queued: int | None, rate: float | None, steps: list[tuple[str, int, int]]
) -> None:
    """Held against a model of its own: how many are in, who waits in which order, when each began."""
    these = slots(max_live=max_live, max_queued=max_queued, create_rate=rate)
    inside, now = 0, 0
    begun: list[int] = []
    line: deque[tuple[str, int]] = deque()
    for number, (what, worker, later) in enumerate(steps):
        now += later
        who, told = (f"gw{worker}", number), list[tuple[tuple[str, int], Verdict]]()
        if what == "ask":
            verdict = these.ask(who, "p", now)
            if verdict is None:
                assert inside == max_live
                line.append(who)
            elif verdict.reason == "queue":
                assert inside == max_live
                assert len(line) == max_queued
            else:
                told = [(who, verdict)]
                assert not line, "nobody overtakes"
        elif what == "leave":
            told = these.leave("p", now)
            inside = max(0, inside - 1)
            assert [asker for asker, _ in told] == [line.popleft() for _ in told]
        elif what == "forget" and line:
            these.forget(line[0])
            line.popleft()
        elif what == "lost":
            these.lost(who[0])
            line = deque(asker for asker in line if asker[0] != who[0])
        inside += sum(not verdict.reason for _, verdict in told)
        begun += [verdict.begin_ns for _, verdict in told if not verdict.reason]
        assert inside <= max_live
        assert max_queued is None or len(line) <= max_queued
    assert begun == sorted(begun)
    if rate is not None:
        burst = max(1, int(rate))
        for first, last in zip(begun, begun[burst:], strict=False):
            assert last - first >= int(burst / rate * NS_PER_S)


# -- the desks


class Office:
    """Several processes in one: their messages wait until the test lets them through, in the order they were sent."""

    def __init__(self, **limits: Any) -> None:
        self.there: deque[tuple[str, tuple[Any, ...]]] = deque()
        self.back: deque[tuple[str, tuple[Any, ...]]] = deque()
        self.shared = SharedDesk(slots(**limits), lambda worker, message: self.back.append((worker, message)))
        self.desks = {name: self.desk(name) for name in ("gw0", "gw1")}

    def desk(self, name: str) -> RemoteDesk:
        return RemoteDesk(lambda message: self.there.append((name, message)))

    async def deliver(self) -> None:
        """All that was sent, until nobody says anything any more."""
        await asyncio.sleep(0)
        while self.there or self.back:
            while self.there:
                self.shared.hear(*self.there.popleft())
            while self.back:
                worker, message = self.back.popleft()
                for part in message:
                    assert part is None or type(part) in (bool, str, int, float)
                self.desks[worker].hear(message)
            await asyncio.sleep(0)
            await asyncio.sleep(0)


def test_processes_share_the_places() -> None:
    async def main() -> None:
        office = Office(max_live=2, max_queued=1)
        asked = [asyncio.create_task(office.desks[f"gw{id % 2}"].ask("p", id)) for id in range(4)]
        await office.deliver()
        assert [task.done() and task.result().reason for task in asked] == ["", "", False, "queue"]
        assert all(task.result().at_once for task in asked if task.done())
        office.desks["gw1"].leave("p")
        await office.deliver()
        assert asked[2].result().reason == ""

    asyncio.run(main())


@pytest.mark.parametrize("crossing", [False, True])
def test_who_was_cancelled_while_it_waited_gives_its_place_back(crossing: bool) -> None:
    """Also where the yes is on its way when it is forgotten."""

    async def main() -> None:
        office = Office(max_live=1)
        desk = office.desks["gw0"]
        first, second, third = (asyncio.create_task(desk.ask("p", id)) for id in range(3))
        await office.deliver()
        if crossing:
            desk.leave("p")
            office.shared.hear(*office.there.popleft())
            assert len(office.back) == 1
        second.cancel()
        await asyncio.sleep(0)
        desk.forget(1)
        await office.deliver()
        if not crossing:
            desk.leave("p")
            await office.deliver()
        assert first.result().reason == third.result().reason == ""
        assert second.cancelled()

    asyncio.run(main())


def test_a_yes_that_came_in_the_moment_of_the_cancellation_is_given_back() -> None:
    async def main() -> None:
        for make in (lambda: LocalDesk(slots(max_live=1)), None):
            office = Office(max_live=1)
            desk = office.desks["gw0"] if make is None else make()
            tasks = [asyncio.create_task(desk.ask("p", id)) for id in range(3)]
            await office.deliver()
            desk.leave("p")
            if make is None:
                office.shared.hear(*office.there.popleft())
                _, message = office.back.popleft()
                office.desks["gw0"]._take(*message[1:])
            tasks[1].cancel()
            with pytest.raises(asyncio.CancelledError):
                await tasks[1]
            desk.forget(1)
            await office.deliver()
            assert (await tasks[2]).reason == ""

    asyncio.run(main())


def test_many_that_were_cancelled_and_not_yet_forgotten_are_passed_over() -> None:
    async def main() -> None:
        desk = LocalDesk(slots(max_live=1))
        tasks = [asyncio.create_task(desk.ask("p", id)) for id in range(2002)]
        await asyncio.sleep(0)
        for task in tasks[1:-1]:
            task.cancel()
        desk.leave("p")
        assert (await tasks[-1]).reason == ""
        await asyncio.gather(*tasks[1:-1], return_exceptions=True)
        for id in range(1, 2001):
            desk.forget(id)

    asyncio.run(main())


def test_a_dead_process_is_told_nothing_more() -> None:
    async def main() -> None:
        office = Office(max_live=1)
        first = asyncio.create_task(office.desks["gw0"].ask("p", 0))
        waits = asyncio.create_task(office.desks["gw1"].ask("p", 0))
        await office.deliver()
        office.shared.lost("gw1")
        office.desks["gw0"].leave("p")
        office.shared.hear(*office.there.popleft())
        assert not office.back
        assert first.done()
        waits.cancel()

    asyncio.run(main())


def test_an_answer_after_the_end_of_the_loop_reaches_nobody() -> None:
    sent: list[tuple[Any, ...]] = []
    desk = RemoteDesk(sent.append)
    desk.hear(("verdict", "p", 0, "", 0))

    async def main() -> None:
        task = asyncio.create_task(desk.ask("p", 0))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(main())
    desk.hear(("verdict", "p", 0, "", 0))
    assert sent == [("ask", "p", 0)]


# -- how many in all


def test_so_many_in_all_and_no_more() -> None:
    these = Slots({"p": Limits(max_live=2)}, PATIENCE_NS, most=3)
    assert [ask(these, id) for id in range(4)] == [YES, YES, None, None]
    assert these.leave("p", 0) == [(("", 2), YES)]
    assert these.leave("p", 0) == [(("", 3), Verdict("total"))], "who waits is told as well"
    assert ask(these, 5) == Verdict("total")
    assert these.ask(("", 6), "another", 0) == Verdict("total"), "of all providers together"


def test_one_that_its_rate_turned_away_counts_for_nothing() -> None:
    these = Slots({"p": Limits(create_rate=1)}, 0, most=2)
    assert ask(these, 1) == YES
    assert ask(these, 2) == Verdict("rate")
    assert ask(these, 3, NS_PER_S) == Verdict("", NS_PER_S)
    assert ask(these, 4, 2 * NS_PER_S) == Verdict("total", 2 * NS_PER_S)
