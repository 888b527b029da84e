"""Who drives what, and all in step: the controller's half of the gangs, by what workers say and hear."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_sandboxbench.clock import now_ns
from pytest_sandboxbench.load.coordinator import Bench, Coordinator

PLAN = {"providers": ["fake"]}


class Gang:
    """A coordinator, what it sent to whom, and whom it killed."""

    def __init__(self, *levels: int, workers: int = 3, silence_s: float = 60.0, blocks: str = "") -> None:
        self.heard: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        self.killed: list[str] = []
        self.benches = [Bench(f"t{i}", level, blocks or f"b{i}") for i, level in enumerate(levels)]
        self.made = Coordinator(
            self.benches, silence_s, lambda name, answer: self.heard[name].append(answer), self.killed.append
        )
        self.names = [f"gw{i}" for i in range(workers)]
        for name in self.names:
            self.made.expect(name)
        for name in self.names:
            assert list(self.made.join(name)) == [bench.nodeid for bench in self.benches]

    def say(self, name: str, subject: str, what: Any = None) -> None:
        self.made.hear(name, subject, what)

    def all(self, subject: str, what: Any = None, *, but: str = "") -> None:
        for name in self.names:
            if name != but:
                self.say(name, subject, what)

    def last(self, name: str) -> tuple[Any, ...]:
        return self.heard[name][-1] if self.heard[name] else ()

    def begin(self) -> None:
        """All are in the first bench, and have begun."""
        self.all("at", self.benches[0].nodeid)
        self.all("begin", PLAN)
        assert all(self.last(name) == ("begun", PLAN) for name in self.names)


def test_a_bench_runs_on_as_many_as_it_has_lanes_and_the_others_skip_it() -> None:
    gang = Gang(2)
    gang.all("at", "t0")
    assert [gang.last(name) for name in gang.names] == [("go", 0, 2), ("go", 1, 2), ("skip",)]


def test_nothing_begins_before_all_have_come() -> None:
    gang = Gang(1)
    gang.say("gw0", "at", "t0")
    gang.say("gw1", "at", "t0")
    assert gang.heard["gw0"] == []
    gang.say("gw2", "at", "t0")
    assert gang.last("gw0") == ("go", 0, 1)


def test_the_next_bench_begins_when_all_who_drove_the_last_have_left() -> None:
    gang = Gang(2, 3)
    gang.all("at", "t0")
    gang.say("gw2", "at", "t1")
    gang.say("gw0", "left", ("", ""))
    gang.say("gw0", "at", "t1")
    assert gang.last("gw2") == ("skip",)
    gang.say("gw1", "left", ("", ""))
    assert gang.last("gw2") == ("skip",), "gw1 has not come to it"
    gang.say("gw1", "at", "t1")
    assert [gang.last(name)[0] for name in gang.names] == ["go"] * 3


def test_all_are_released_at_one_instant_that_lies_ahead() -> None:
    gang = Gang(3)
    gang.begin()
    gang.say("gw0", "ready")
    gang.say("gw1", "ready")
    assert gang.last("gw0")[0] == "begun"
    before = now_ns()
    gang.say("gw2", "ready")
    (instant,) = {gang.last(name)[1] for name in gang.names}
    assert {gang.last(name)[0] for name in gang.names} == {"release"}
    assert instant > before


def test_one_whose_lanes_are_all_over_is_not_waited_for_at_the_gate() -> None:
    gang = Gang(3)
    gang.begin()
    gang.say("gw0", "done", False)
    gang.say("gw1", "ready")
    gang.say("gw2", "ready")
    assert gang.last("gw0")[0] == "begun"
    assert gang.last("gw1") == gang.last("gw2")
    assert gang.last("gw1")[0] == "release"
    gang.say("gw1", "done", True)
    gang.say("gw2", "done", False)
    assert [gang.last(name) for name in gang.names] == [("on", True)] * 3
    gang.all("done", False)
    assert gang.last("gw0") == ("on", False), "what somebody said of one turn does not hold for the next"


def test_rank_0_gets_what_the_others_measured() -> None:
    gang = Gang(3)
    gang.begin()
    gang.all("rows", b"x\n")
    gang.say("gw1", "rows", b"y\n")
    gang.say("gw0", "end", "")
    gang.say("gw1", "end", "")
    assert gang.last("gw0")[0] == "begun"
    gang.say("gw2", "end", "")
    assert [gang.last(name) for name in gang.names] == [("ended", b"x\nx\ny\n"), ("ended", b""), ("ended", b"")]


def test_between_two_rounds_rank_0_gets_what_the_others_measured_and_says_whether_it_is_enough() -> None:
    gang = Gang(3)
    gang.begin()
    gang.all("rows", b"x\n")
    gang.say("gw1", "done", False)
    gang.say("gw0", "look")
    assert gang.last("gw0")[0] == "begun", "gw2 may have rows to send"
    gang.say("gw2", "done", False)
    assert gang.last("gw0") == ("rows", b"x\nx\n")
    assert gang.last("gw1")[0] == gang.last("gw2")[0] == "begun"
    gang.say("gw0", "done", True)
    assert [gang.last(name) for name in gang.names] == [("on", True)] * 3


def test_a_block_is_measured_once_whoever_shows_it_next() -> None:
    gang = Gang(1, 1, 1, workers=2, blocks="b")
    gang.all("at", "t0")
    gang.say("gw0", "begin", PLAN)
    gang.say("gw0", "rows", b"x\n")
    gang.say("gw0", "end", "")
    gang.say("gw0", "left", ("", ""))
    gang.all("at", "t1")
    assert gang.made.lost("gw0", "ended (exit 9)") == "t1"
    gang.say("gw1", "at", "t2")
    assert gang.last("gw1") == ("go", 0, 1)
    gang.say("gw1", "begin", PLAN)
    assert gang.last("gw1") == ("known", b"x\n", "")


# -- somebody is gone


@pytest.mark.parametrize("state", ["ready", "done", "begin"])
def test_one_that_dies_frees_those_who_wait_for_it(state: str) -> None:
    gang = Gang(3)
    gang.all("at", "t0")
    if state != "begin":
        gang.all("begin", PLAN)
    gang.all(state, PLAN if state == "begin" else False, but="gw1")
    assert gang.made.lost("gw1", "ended (exit 9)") == "", "rank 0 lives, and reports it"
    for name in ("gw0", "gw2"):
        assert gang.last(name)[0] == "abort"
        assert "gw1 ended (exit 9)" in gang.last(name)[1]


def test_one_that_comes_late_hears_of_the_abort() -> None:
    gang = Gang(3)
    gang.begin()
    gang.made.lost("gw1", "ended")
    gang.say("gw2", "ready")
    gang.say("gw0", "done", False)
    assert {gang.last("gw0")[0], gang.last("gw2")[0]} == {"abort"}


def test_one_that_died_while_it_led_has_its_bench_named_and_the_next_is_led_by_another() -> None:
    gang = Gang(3, 3)
    gang.begin()
    assert gang.made.lost("gw0", "ended (signal 9)") == "t0"
    for name in ("gw1", "gw2"):
        gang.say(name, "ready")
        assert gang.last(name)[0] == "abort"
        gang.say(name, "end", "")
        gang.say(name, "left", ("", ""))
        gang.say(name, "at", "t1")
    assert gang.last("gw1") == ("go", 0, 2)
    assert gang.last("gw2") == ("go", 1, 2)


def test_a_block_that_was_cut_stays_so_for_its_other_views() -> None:
    gang = Gang(2, 2, workers=2, blocks="b")
    gang.begin()
    gang.say("gw0", "rows", b"x\n")
    gang.made.lost("gw1", "ended (exit 9)")
    gang.say("gw0", "done", False)
    gang.say("gw0", "end", "")
    gang.say("gw0", "left", ("", ""))
    gang.say("gw0", "at", "t1")
    gang.say("gw0", "begin", PLAN)
    answer, rows, why = gang.last("gw0")
    assert (answer, rows) == ("known", b"x\n")
    assert "gw1 ended (exit 9)" in why


def test_one_that_leaves_early_tells_why() -> None:
    gang = Gang(3)
    gang.all("at", "t0")
    gang.say("gw0", "begin", PLAN)
    gang.say("gw1", "begin", PLAN)
    gang.say("gw2", "left", ("setup: no such image", ""))
    assert gang.last("gw0") == ("abort", "gw2 left before the end: setup: no such image")


def test_one_that_cannot_take_part_says_so_at_the_end() -> None:
    gang = Gang(2, workers=2)
    gang.begin()
    gang.say("gw0", "ready")
    gang.say("gw1", "end", "docker is not ready in every worker")
    assert gang.last("gw0") == ("abort", "docker is not ready in every worker")


def test_one_that_dies_before_the_bench_begins_is_replaced_by_who_is_there() -> None:
    gang = Gang(2)
    gang.say("gw1", "at", "t0")
    gang.say("gw2", "at", "t0")
    assert gang.made.lost("gw0", "ended") == ""
    assert gang.last("gw1") == ("go", 0, 2)


def test_a_newcomer_takes_part_from_the_next_bench_on() -> None:
    gang = Gang(2, 2, workers=1)
    gang.all("at", "t0")
    gang.made.expect("gw9")
    assert list(gang.made.join("gw9")) == ["t1"]
    gang.say("gw0", "left", ("", ""))
    gang.say("gw0", "at", "t1")
    assert gang.last("gw0") == ("go", 0, 1), "of t0"
    gang.say("gw9", "at", "t1")
    assert (gang.last("gw0"), gang.last("gw9")) == (("go", 0, 2), ("go", 1, 2))


def test_what_nobody_came_to_is_counted() -> None:
    gang = Gang(1, 1, 1, workers=1)
    gang.all("at", "t0")
    assert gang.made.lost("gw0", "ended") == "t0"
    assert gang.made.unrun == 2


def test_one_that_was_given_up_and_comes_back_is_sent_away() -> None:
    gang = Gang(2, workers=2)
    gang.begin()
    gang.made.lost("gw1", "ended")
    gang.say("gw1", "ready")
    assert gang.last("gw1")[0] == "abort"
    gang.say("gw1", "at", "t0")
    assert gang.last("gw1")[0] == "stop"


# -- the end before its time


def test_who_stops_stops_all() -> None:
    gang = Gang(2, 2)
    gang.all("at", "t0")
    gang.say("gw2", "at", "t1")
    gang.say("gw1", "left", ("", ""))
    gang.say("gw1", "at", "t1")
    gang.say("gw0", "left", ("", "stopping after 1 failures"))
    assert gang.last("gw1") == gang.last("gw2") == ("stop", "stopping after 1 failures")
    assert gang.made.stopped


def test_a_session_that_ends_in_the_middle_frees_the_others() -> None:
    gang = Gang(2, workers=2)
    gang.begin()
    gang.say("gw0", "ready")
    gang.say("gw1", "bye", "")
    assert gang.last("gw0")[0] == "abort"


# -- silence


def test_one_that_is_silent_while_others_wait_is_killed_and_named() -> None:
    gang = Gang(3, silence_s=0.0)
    gang.begin()
    gang.made.watch()
    assert gang.killed == [], "nobody waits"
    gang.say("gw0", "ready")
    gang.say("gw2", "ready")
    gang.made.watch()
    assert gang.killed == ["gw1"]
    gang.made.lost("gw1", "ended (signal 9)")
    assert "gw1 gave no sign of life" in gang.last("gw0")[1]


def test_one_that_shows_signs_of_life_is_waited_for() -> None:
    gang = Gang(2, workers=2, silence_s=0.05)
    gang.begin()
    gang.say("gw0", "ready")
    ends = now_ns() + 150_000_000
    while now_ns() < ends:
        gang.say("gw1", "alive")
        gang.made.watch()
    assert gang.killed == []


# -- in any order


@given(seed=st.integers(0, 10_000), workers=st.integers(1, 5), deaths=st.integers(0, 4))
@settings(max_examples=300)
def test_whatever_dies_whenever_every_bench_is_led_or_named_and_nobody_waits_for_ever(
    seed: int, workers: int, deaths: int
) -> None:
    """Workers that do as they are told, in any order, some of which die: in the end none has an answer to come."""
    draw = random.Random(seed)
    levels = [draw.choice((1, 2, 5)) for _ in range(4)]
    gang = Gang(*levels, workers=workers)
    came_to: dict[str, str] = {}
    alive = {name: _life(gang, name, came_to) for name in gang.names}
    for life in alive.values():
        next(life)
    led: list[str] = []
    steps = 0
    while alive:
        steps += 1
        assert steps < 10_000
        able = [name for name in alive if gang.heard[name] or deaths]
        assert able, f"{sorted(alive)} wait for ever"
        name = draw.choice(able)
        if deaths and (draw.random() < 0.05 or not gang.heard[name]):
            deaths -= 1
            del alive[name]
            if crashed := gang.made.lost(name, "ended"):
                led.append(crashed)
            continue
        if not gang.heard[name]:
            continue
        answer = gang.heard[name].pop(0)
        if answer[0] == "go" and answer[1] == 0:
            led.append(came_to[name])
        try:
            alive[name].send(answer)
        except StopIteration:
            del alive[name]
    reported = set(led)
    assert len(reported) + gang.made.unrun == len(levels)


def _life(gang: Gang, name: str, came_to: dict[str, str]) -> Any:
    for bench in gang.benches:
        came_to[name] = bench.nodeid
        gang.say(name, "at", bench.nodeid)
        answer = yield
        if answer[0] == "stop":
            return
        if answer[0] == "skip":
            continue
        rank = answer[1]
        gang.say(name, "begin", PLAN)
        answer = yield
        cut = answer[0] == "abort"
        for _ in range(3):
            for subject in ("ready", "done", "look", "done"):
                if not cut and (subject != "look" or rank == 0):
                    gang.say(name, subject, False)
                    answer = yield
                    cut = answer[0] == "abort"
        gang.say(name, "end", "cut" if cut else "")
        yield
        gang.say(name, "left", ("", ""))
    gang.say(name, "bye", "")
