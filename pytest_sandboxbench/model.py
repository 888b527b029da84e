"""The words of the project as frozen data: what is asked of a provider, what it can do, what was measured.

Times carry their unit in the name. Nothing here imports pytest, asyncio or an SDK.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

__all__ = [
    "Capabilities",
    "ExecResult",
    "Isolation",
    "Output",
    "Owner",
    "PauseKind",
    "Preflight",
    "Sample",
    "SandboxRef",
    "SandboxSpec",
    "SeriesKey",
    "SpanDeclaration",
]

PauseKind = Literal["frozen", "stopped", "memory", "filesystem"]
"""What a pause keeps, and how.

``frozen``      processes are frozen in place by the kernel or VMM; memory stays on the host
``stopped``     every process got SIGSTOP; memory stays on the host
``memory``      memory and disk went to a checkpoint; the host's memory is free again
``filesystem``  only the disk is kept: a resume is a new boot
"""

Isolation = Literal["none", "namespaces", "container", "gvisor", "microvm", "hosted", "scripted"]
"""What stands between a guest and the host; a word for the kind, not for how well it is done."""

_EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """What is asked of a provider. ``None`` means: the provider's own default, not "unlimited".

    A limit that is asked for and cannot be set is an error, unless ``allow_unenforced``; then the
    sandbox lists it in ``unenforced``.
    """

    image: str | None = None
    vcpus: float | None = None
    memory_mib: int | None = None
    pids: int | None = None
    network: bool = False
    env: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    lifetime_s: float | None = None
    allow_unenforced: bool = False


@dataclass(frozen=True, slots=True)
class Owner:
    """Who made a sandbox. ``started`` is the start time of process ``pid``, so that a reused pid does not count.

    ``host`` names the machine, and in a container also the pid namespace: a pid means nothing elsewhere.
    """

    run_id: str
    host: str
    pid: int
    started: str

    def label(self) -> str:
        return f"{self.run_id}/{self.host}/{self.pid}/{self.started}"

    @classmethod
    def parse(cls, label: str) -> Owner | None:
        """The owner that :meth:`label` wrote; ``None`` for any other text."""
        parts = label.split("/")
        if len(parts) != 4 or not parts[0] or not parts[2].isdecimal():
            return None
        return cls(parts[0], parts[1], int(parts[2]), parts[3])


@dataclass(frozen=True, slots=True)
class SandboxRef:
    """Enough to find and destroy a sandbox from another process. ``details`` holds strings only.

    ``details["owner"]`` is the label of the owner that was given to ``create``, in every ref that ``owned`` returns.
    """

    provider: str
    id: str
    details: Mapping[str, str] = field(default_factory=lambda: _EMPTY)


@dataclass(frozen=True, slots=True)
class ExecResult:
    """How a command ended. ``exit_code`` is negative for a signal: -9 is SIGKILL; 127 is "no such command".

    Where a provider sees no more than a shell does, 137 is SIGKILL.
    """

    exit_code: int
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True, slots=True)
class Output:
    """A piece of a running command's output; the last one has stream ``exit`` and ``exit_code``."""

    stream: Literal["stdout", "stderr", "exit"]
    data: bytes = b""
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class SpanDeclaration:
    """What an adapter times for an operation, in words, where it differs from the operation's definition.

    ``resolution_s`` is the step in which the end is seen (a poll interval, a 100 ms event grid), 0 for none.
    ``state`` is what the sandbox holds before: memory, data, idle time.
    """

    operation: str
    start: str = ""
    end: str = ""
    clock: str = "client, monotonic"
    resolution_s: float = 0.0
    polling: str = "none"
    state: str = ""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a provider can do here and now, as data. What is not declared is not promised.

    ``isolation``  what stands between the guest and the host
    ``pause``      the kinds it can do, the one it uses first; empty for none
    ``shell``      the guest has a POSIX shell and its usual commands (``sleep``, ``cat``, ``kill``, ``tr``, ...)
    ``limits``     of ``vcpus``, ``memory_mib``, ``pids``: those that it enforces
    ``labels``     what it makes carries its owner: ``owned`` finds it, whichever process asks
    ``hosted``     a network and a bill are involved: defaults for sample counts are smaller
    ``max_live``   how many sandboxes may exist at once, where the provider has such a limit
    """

    isolation: Isolation
    pause: tuple[PauseKind, ...] = ()
    exec: bool = True
    stream: bool = False
    files: bool = False
    one_shot: bool = False
    shell: bool = True
    limits: frozenset[str] = frozenset()
    network_off: bool = False
    labels: bool = False
    hosted: bool = False
    max_live: int | None = None
    spans: tuple[SpanDeclaration, ...] = ()

    def span(self, operation: str) -> SpanDeclaration | None:
        return next((s for s in self.spans if s.operation == operation), None)


@dataclass(frozen=True, slots=True)
class Preflight:
    """Ready, or missing with the reason and one line of cure. Took under a second and made nothing.

    ``facts`` are what the provider knows of itself: version, SDK version, paths, retry settings. No secrets.
    """

    ready: bool
    reason: str = ""
    cure: str = ""
    facts: Mapping[str, str] = field(default_factory=lambda: _EMPTY)


@dataclass(frozen=True, slots=True, order=True)
class SeriesKey:
    """The canonical name of a series: ``provider:operation{variants}[.phase]@level/shape``.

    >>> str(SeriesKey("docker", "environment_ready", (("cache", "miss"),), "install", 16))
    'docker:environment_ready{cache=miss}.install@16/burst'
    """

    provider: str
    operation: str
    variants: tuple[tuple[str, str], ...] = ()
    phase: str = ""
    level: int = 1
    shape: str = "burst"

    def __str__(self) -> str:
        variants = "{" + ",".join(f"{k}={v}" for k, v in self.variants) + "}" if self.variants else ""
        phase = f".{self.phase}" if self.phase else ""
        return f"{self.provider}:{self.operation}{variants}{phase}@{self.level}/{self.shape}"

    @property
    def label(self) -> str:
        """The part a table shows beside the provider: operation, variants and phase."""
        variants = "{" + ",".join(f"{k}={v}" for k, v in self.variants) + "}" if self.variants else ""
        return f"{self.operation}{variants}" + (f".{self.phase}" if self.phase else "")


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed act on one lane, in nanoseconds since the origin of the run (see the records' header).

    ``scheduled_ns``  when it was due; in a burst the instant of the common release
    ``released_ns``   when the lanes of its round were let go
    ``started_ns``    when this lane really began; the difference is our own queue
    ``ended_ns``      when the end of the span was seen
    ``outcome``       ``ok``, ``failed``, ``timeout`` or ``rejected(quota|capacity|rate|queue)``
    ``path``          how the provider served it: ``cold``, ``pool``, ``snapshot``, ``resume``
    ``phases``        name -> (start, end), in the same clock
    ``turn``          place in the interleaved order of the block; ``round`` counts per provider
    """

    key: SeriesKey
    round: int
    lane: int
    turn: int
    scheduled_ns: int
    released_ns: int
    started_ns: int
    ended_ns: int
    outcome: str = "ok"
    path: str = "cold"
    sandbox: str = ""
    warmup: bool = False
    phases: Mapping[str, tuple[int, int]] = field(default_factory=lambda: _EMPTY)
    error: str = ""

    @property
    def latency_ns(self) -> int:
        return self.ended_ns - self.scheduled_ns
