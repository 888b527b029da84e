"""What one lane goes through in a round: one life, or in a closed loop one after another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..model import Sample, SandboxRef
from .barrier import Aborted
from .gate import Gate
from .lanes import Lane
from .operations import Scenario
from .requests import Requests
from .watchdog import LoopBlocked

__all__ = ["Lives"]


class Lives:
    """The lives of one lane, in a task of their own; the first of them has begun.

    ``next_life`` gives another :class:`Lane` of the same index. What a life that is followed by another made is
    destroyed before that one begins, so that a lane never has more than one life's sandboxes.
    """

    def __init__(
        self, scenario: Scenario, gate: Gate, requests: Requests, index: int, next_life: Callable[[], Lane]
    ) -> None:
        self.index = index
        self.lane = next_life()
        self.left: list[tuple[SandboxRef, str]] = []
        """What could not be destroyed, and why."""
        self._scenario = scenario
        self._gate = gate
        self._requests = requests
        self._next_life = next_life
        self._past: list[Sample] = []
        self._ending = self._ended = self._stopped = False
        self.task = asyncio.create_task(self._run())

    @property
    def samples(self) -> list[Sample]:
        return [*self._past, *self.lane.samples]

    @property
    def expires(self) -> float | None:
        """When it must have shown a sign of life (``time.monotonic``). None while it waits, or destroys: that ends."""
        return None if self._ending else self.lane.pulse.expires

    def is_late(self, at: float) -> bool:
        return not self._ending and self.lane.pulse.is_late(at)

    def stop(self) -> None:
        """No life follows this one, whenever and however it ends."""
        self._stopped = True
        self.task.cancel()

    async def end(self) -> None:
        """Destroy what the last life made and left, once."""
        if self._ended:
            return
        self._ending = True
        provider = self.lane.provider
        self.left += await provider.destroy_all()
        provider.unbook()
        self._ended = True

    async def _run(self) -> None:
        try:
            await self._live()
            if self.lane.crowded:
                await self.end()
            while self._requests.again and not self._stopped:
                await self.end()
                if not await self._goes_on():
                    return
                self._past += self.lane.samples
                self.lane = self._next_life()
                self._ending = self._ended = False
                await self._live()
        except Aborted:
            self.lane.stop()
        finally:
            self._gate.leave(self.index)

    async def _goes_on(self) -> bool:
        """Whether another life begins. Not before the release: a life that failed on its way there waits for it now."""
        await asyncio.sleep(0)  # lives that fail at once must not keep the loop from everybody else
        if not self._requests.are_left(self._gate.released_ns):
            return False
        _due, released = await self._gate.arrive(self.index)
        return self._requests.are_left(self._gate.released_ns or released)

    async def _live(self) -> None:
        lane = self.lane
        try:
            await self._scenario.live(lane)
        except Aborted:
            raise
        except asyncio.CancelledError:
            if not self._requests.again:
                raise
            await asyncio.sleep(0)  # where it is an interruption, the lane is stopped now
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            lane.give_up(asyncio.CancelledError("the adapter cancelled the operation by itself"))
        except (Exception, LoopBlocked, SystemExit) as error:
            lane.give_up(error)
        else:
            lane.finish()
