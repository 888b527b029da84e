"""What is inside the operations of bubblewrap, in words: the list of how two systems differ is made from this."""

from __future__ import annotations

from ..model import SpanDeclaration

__all__ = ["SPANS"]

SPANS = (
    SpanDeclaration("create", end="all mounts are in place: a process inside echoed a byte"),
    SpanDeclaration(
        "exec",
        end="nsenter exited; inside are its start, its fork and the start of the command; with a cwd also a shell, "
        "with limits also a shell that joins the cgroups",
    ),
    SpanDeclaration(
        "cold_run",
        end="bwrap exited, and with it all inside; a shell in between starts the command, no nsenter is involved",
    ),
    SpanDeclaration("write_file", end="an exec of a shell and `cat` that writes its input, not synced, is over"),
    SpanDeclaration("read_file", end="an exec of `cat` is over"),
    SpanDeclaration(
        "pause",
        end="frozen: the cgroup reports frozen; with cgroup v2 the processes join it first (phase join), which waits "
        "for a grace period of the kernel; stopped: each process was sent SIGSTOP and seen stopped",
        resolution_s=0.001,
        polling="the cgroup's state after 50 us, then in doubling steps up to 1 ms; /proc every 0.1 ms",
    ),
    SpanDeclaration("resume", end="the thaw was written, or SIGCONT sent"),
    SpanDeclaration(
        "destroy",
        end="the first process was killed, bwrap reaped, cgroups and folder removed",
        resolution_s=0.005,
        polling="a cgroup that is still busy is removed again after 0.1 ms, then in doubling steps up to 5 ms; none "
        "without a freezer of cgroup v1, a limit or a pause; a folder that a process still fills, every 5 ms",
    ),
    SpanDeclaration("round_trip", end="a process of `bwrap --version` was started and reaped"),
)
