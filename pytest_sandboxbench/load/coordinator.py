"""The controller's half of the gangs: which bench is next, who drives its lanes, and all of them in step.

A state machine without threads or test runner: it is told what workers say, and answers them. Every worker holds every
bench, in one order, and comes to each: who has no part in it is told to skip it. So whoever is left can lead the next.

What a worker says (``hear``)         what it hears
``at`` NODEID                         ``go`` RANK SIZE, ``skip``, or ``stop`` WHY
``begin`` PLAN                        ``begun`` PLAN of rank 0, ``known`` ROWS WHY, or ``abort`` WHY
``ready``                             ``release`` INSTANT, or ``abort``
``done`` OVER                         ``on`` OVER, or ``abort``
``look``                              ``rows`` those of the others, for rank 0 once they are done; or ``abort``
``rows`` TEXT
``end`` WHY                           ``ended`` ROWS: those of the others, for rank 0
``left`` FAILURE, STOP
``alive``, ``bye`` STOP

An abort is sticky until the bench is over: whoever comes late hears of it too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..clock import NS_PER_S, now_ns

__all__ = ["Bench", "Coordinator"]

_LEAD_NS = 3_000_000
_LEAD_OF_EACH_NS = 250_000
"""The start lies ahead by the time that the answers take to arrive: 14 ms were seen with 100 workers on 2 CPUs."""


@dataclass(frozen=True, slots=True)
class Bench:
    """A test that measures: its level, and the block that it is a view on."""

    nodeid: str
    level: int
    block: str


@dataclass(slots=True)
class _Worker:
    at: str = ""
    state: str = ""
    heard_ns: int = field(default_factory=now_ns)


@dataclass(slots=True)
class _Running:
    """The bench that is under way. ``members`` in the order of their ranks; those that left stay until it is over."""

    bench: Bench
    members: list[str]
    left: set[str] = field(default_factory=set)
    plans: dict[str, Any] = field(default_factory=dict)
    over: bool = False
    why: str = ""
    waiting_since_ns: int | None = None


@dataclass(slots=True)
class _Measured:
    """A block: the rows that each worker sent, and why it was cut short, if it was."""

    rows: list[tuple[str, bytes]] = field(default_factory=list)
    why: str = ""
    complete: bool = False


class Coordinator:
    """``benches`` in the order in which all workers come to them. Thread-safe.

    ``silence_s`` is how long one who takes part may be silent while another waits for it. ``send`` answers a worker,
    ``kill`` ends one that shows no sign of life; both must not raise.
    """

    def __init__(
        self,
        benches: Sequence[Bench],
        silence_s: float,
        send: Callable[[str, tuple[Any, ...]], None],
        kill: Callable[[str], None],
    ) -> None:
        self.benches = benches
        self._silence_s = silence_s
        self._send = send
        self._kill = kill
        self._lock = threading.RLock()
        self._next = 0
        self._workers: dict[str, _Worker] = {}
        self._running: _Running | None = None
        self._over_ns = 0
        self._blocks: dict[str, _Measured] = {}
        self._stop = ""
        self._silent: dict[str, str] = {}

    # -- from the scheduler

    def expect(self, worker: str) -> None:
        """From now on nothing begins without this worker."""
        with self._lock:
            self._workers[worker] = _Worker()

    def join(self, worker: str) -> Sequence[str]:
        """The benches that this worker must run through: it has done whatever else it was to do."""
        with self._lock:
            return [bench.nodeid for bench in self.benches[self._next :]]

    def lost(self, worker: str, why: str) -> str:
        """A worker is gone: it is waited for no more. Returns the bench that it led, which nobody will report."""
        with self._lock:
            if self._workers.pop(worker, None) is None:
                return ""
            why = self._silent.pop(worker, why)
            running, crashed = self._running, ""
            if running is not None and worker in running.members and worker not in running.left:
                if worker == running.members[0]:
                    crashed = running.bench.nodeid
                running.left.add(worker)
                self._abort(running, f"{worker} {why} while it drove lanes")
                self._step()
            self._grant()
            return crashed

    def silent(self, worker: str) -> str:
        """Why it was killed, if it was."""
        return self._silent.get(worker, "")

    @property
    def unrun(self) -> int:
        """How many benches nobody came to."""
        with self._lock:
            return len(self.benches) - self._next

    @property
    def stopped(self) -> bool:
        """A worker ended the session on purpose, for a failure with ``-x`` for instance."""
        return bool(self._stop)

    def watch(self) -> None:
        """Kill those that have been silent for too long while others wait; to be called every now and then."""
        with self._lock:
            running, latest = self._running, now_ns() - int(self._silence_s * NS_PER_S)
            if running is None:
                # Whoever has come to a bench has nothing to do but to come to the next.
                since: int | None = self._over_ns
                waits = [name for name, worker in self._workers.items() if worker.state == "at"]
                awaited = [name for name, worker in self._workers.items() if worker.at and worker.state != "at"]
            else:
                since = running.waiting_since_ns
                waits = [name for name in running.members if self._waits(name)]
                awaited = [name for name in running.members if name not in running.left and name not in waits]
            if since is None or since > latest or (running is None and not waits):
                return
            for name in awaited:
                worker = self._workers.get(name)
                if worker is None or worker.heard_ns > latest:
                    continue
                self._silent[name] = (
                    f"gave no sign of life for {self._silence_s:g} s while {', '.join(waits[:3]) or 'others'} waited, "
                    "and was killed,"
                )
                self._kill(name)

    # -- from the workers

    def hear(self, name: str, subject: str, what: Any) -> None:
        with self._lock:
            worker = self._workers.get(name)
            if worker is None:
                if subject in ("at", "begin", "ready", "done", "look", "end"):
                    self._send(name, ("stop" if subject == "at" else "abort", "it was given up"))
                return
            worker.heard_ns = now_ns()
            getattr(self, f"_{subject}")(name, worker, what)

    def _alive(self, name: str, worker: _Worker, what: Any) -> None:
        pass

    def _at(self, name: str, worker: _Worker, nodeid: str) -> None:
        worker.at, worker.state = nodeid, "at"
        self._grant()

    def _grant(self) -> None:
        """Begin the next bench once everybody has come to it and the one before is over."""
        if self._running is not None:
            return
        if self._stop:
            for name, worker in self._workers.items():
                if worker.state == "at":
                    worker.state = ""
                    self._send(name, ("stop", self._stop))
            return
        bench = self.benches[self._next] if self._next < len(self.benches) else None
        if bench is None or not self._workers or any(worker.at != bench.nodeid for worker in self._workers.values()):
            return
        self._next += 1
        members = sorted(self._workers, key=lambda name: (len(name), name))[: bench.level]
        self._running = _Running(bench, members)
        for name, worker in self._workers.items():
            worker.state = ""
            rank = members.index(name) if name in members else None
            self._send(name, ("skip",) if rank is None else ("go", rank, len(members)))

    def _begin(self, name: str, worker: _Worker, plan: Any) -> None:
        running = self._running
        if running is None or name not in running.members:
            return
        known = self._blocks.get(running.bench.block)
        if known is not None and not running.plans:
            rows = b"".join(text for _name, text in known.rows)
            self._send(name, ("known", rows if name == running.members[0] else b"", known.why))
        elif running.why:
            self._send(name, ("abort", running.why))
        else:
            self._wait(running, worker, "begin")
            running.plans[name] = plan
            self._step()

    def _ready(self, name: str, worker: _Worker, what: Any) -> None:
        self._arrive(name, worker, "ready")

    def _done(self, name: str, worker: _Worker, over: bool) -> None:
        if self._running is not None:
            self._running.over = self._running.over or over
        self._arrive(name, worker, "done")

    def _look(self, name: str, worker: _Worker, what: Any) -> None:
        self._arrive(name, worker, "look")

    def _end(self, name: str, worker: _Worker, why: str) -> None:
        if self._running is not None:
            if why:
                self._abort(self._running, why)
            self._wait(self._running, worker, "end")
            self._step()

    def _arrive(self, name: str, worker: _Worker, state: str) -> None:
        running = self._running
        if running is None or running.why:
            self._send(name, ("abort", running.why if running is not None else "the bench is over"))
        else:
            self._wait(running, worker, state)
            self._step()

    def _rows(self, name: str, worker: _Worker, text: bytes) -> None:
        running = self._running
        if running is not None and (block := self._blocks.get(running.bench.block)) is not None:
            block.rows.append((name, text))

    def _left(self, name: str, worker: _Worker, what: tuple[str, str]) -> None:
        running = self._running
        failure, stop = what
        self._stop = self._stop or stop
        if running is None or name not in running.members:
            return
        running.left.add(name)
        block = self._blocks.get(running.bench.block)
        if block is None or not block.complete:
            self._abort(running, f"{name} left before the end" + (f": {failure}" if failure else ""))
        if running.waiting_since_ns is None:
            running.waiting_since_ns = now_ns()
        self._step()

    def _bye(self, name: str, worker: _Worker, stop: str) -> None:
        self._stop = self._stop or stop
        self.lost(name, "ended its session")

    # -- steps

    def _state(self, name: str) -> str:
        running, worker = self._running, self._workers.get(name)
        return "" if worker is None or running is None or name in running.left else worker.state

    def _waits(self, name: str) -> bool:
        return self._state(name) in ("begin", "ready", "done", "look", "end")

    def _wait(self, running: _Running, worker: _Worker, state: str) -> None:
        worker.state = state
        if running.waiting_since_ns is None:
            running.waiting_since_ns = now_ns()

    def _step(self) -> None:
        """Answer those who wait, once nobody is under way whom they wait for."""
        running = self._running
        if running is None:
            return
        present = [name for name in running.members if name not in running.left]
        if not present:
            self._running, self._over_ns = None, now_ns()
            self._forget(running.bench.block)
            self._grant()
            return
        states = {self._state(name) for name in present}
        if states == {"begin"}:
            self._blocks[running.bench.block] = _Measured()
            self._answer(running, present, ("begun", running.plans[present[0]]))
        elif states <= {"ready", "done"} and "ready" in states:
            instant = now_ns() + _LEAD_NS + _LEAD_OF_EACH_NS * len(present)
            self._answer(running, [n for n in present if self._state(n) == "ready"], ("release", instant))
        elif states == {"done"}:
            over, running.over = running.over, False
            self._answer(running, present, ("on", over))
        elif "look" in states and states <= {"look", "done"}:
            self._answer(running, [present[0]], ("rows", self._rows_of_others(running, present[0])))
        elif "end" in states and states & {"ready", "done", "look"}:
            ended = next(name for name in present if self._state(name) == "end")
            self._abort(running, f"{ended} ended its part before the others")
        elif states == {"end"}:
            lead, block = present[0], self._blocks.get(running.bench.block, _Measured())
            block.complete = True
            others = self._rows_of_others(running, lead)
            for name in present:
                self._answer(running, [name], ("ended", others if name == lead else b""))

    def _rows_of_others(self, running: _Running, lead: str) -> bytes:
        block = self._blocks.get(running.bench.block, _Measured())
        return b"".join(text for name, text in block.rows if name != lead)

    def _answer(self, running: _Running, names: Sequence[str], answer: tuple[Any, ...]) -> None:
        running.waiting_since_ns = None
        now = now_ns()
        for name in names:
            worker = self._workers[name]
            worker.state, worker.heard_ns = "run", now
            self._send(name, answer)

    def _abort(self, running: _Running, why: str) -> None:
        running.why = running.why or why
        block = self._blocks.get(running.bench.block)
        if block is not None and not block.complete:
            block.why = block.why or running.why
        waiting = [n for n in running.members if self._state(n) in ("begin", "ready", "done", "look")]
        self._answer(running, waiting, ("abort", running.why))

    def _forget(self, block: str) -> None:
        """The rows of a block that has no view left."""
        if all(bench.block != block for bench in self.benches[self._next :]) and block in self._blocks:
            self._blocks[block].rows.clear()
