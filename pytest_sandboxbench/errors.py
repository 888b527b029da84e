"""Errors, typed by what they mean to somebody who measures; never by which SDK raised them.

A provider raises these and nothing else. Each message says what was tried, on which sandbox, after how
long, what the provider said word for word, and what to do about it.
"""

from __future__ import annotations

from typing import Literal

__all__ = [
    "CreateFailed",
    "DestroyFailed",
    "ExecFailed",
    "ExecTimeout",
    "NotReady",
    "OperationTimeout",
    "ProviderMissing",
    "Rejected",
    "SandboxError",
    "SandboxGone",
    "SandboxbenchError",
    "StateLost",
    "TransportLost",
    "Unsupported",
    "UsageError",
]


class SandboxbenchError(Exception):
    """Base of everything this package raises on purpose."""


class UsageError(SandboxbenchError):
    """Wrong input: an unknown provider, a bad option, a missing records folder. Says what is allowed."""


class ProviderMissing(SandboxbenchError):
    """A provider cannot run here. ``reason`` says why, ``cure`` what to do, one line each."""

    def __init__(self, provider: str, reason: str, cure: str) -> None:
        self.provider = provider
        self.reason = reason
        self.cure = cure
        super().__init__(f"{provider} is not ready: {reason}. {cure}")


class SandboxError(SandboxbenchError):
    """An operation on a sandbox failed.

    ``tried``    the operation, as a verb with its object: ``"create"``, ``"exec ['true']"``
    ``sandbox``  id of the sandbox, where one exists
    ``after_s``  seconds from the start of the operation
    ``said``     the provider's own words, untouched
    ``cure``     what to do, one line
    """

    outcome = "failed"

    def __init__(
        self,
        tried: str,
        *,
        sandbox: str = "",
        after_s: float | None = None,
        said: str = "",
        cure: str = "",
    ) -> None:
        self.tried = tried
        self.sandbox = sandbox
        self.after_s = after_s
        self.said = said
        self.cure = cure
        super().__init__(tried, sandbox, after_s, said, cure)

    def _what(self) -> str:
        return "failed"

    def __str__(self) -> str:
        text = self.tried
        if self.sandbox:
            text += f" on {self.sandbox}"
        text += f" {self._what()}"
        if self.after_s is not None:
            text += f" after {self.after_s:.3g} s" if self.after_s >= 0.01 else f" after {self.after_s * 1e3:.2g} ms"
        if self.said:
            text += f": {self.said.strip()}"
        if self.cure:
            text += f" -> {self.cure}"
        return text


class CreateFailed(SandboxError):
    """No sandbox came of a create, for a reason other than a limit."""


class NotReady(SandboxError):
    """A sandbox was created but did not answer within the deadline."""

    def _what(self) -> str:
        return "found the sandbox not ready"


class ExecFailed(SandboxError):
    """A command that had to return 0 did not, or could not be started by the provider."""


class OperationTimeout(SandboxError):
    """A deadline that this project enforces passed."""

    outcome = "timeout"

    def _what(self) -> str:
        return "passed its deadline"


class ExecTimeout(OperationTimeout):
    """A command ran into its deadline; everything that it started in the sandbox was killed."""


class TransportLost(SandboxError):
    """The connection to the provider broke during an operation; its outcome is unknown."""

    def _what(self) -> str:
        return "lost its connection"


class SandboxGone(SandboxError):
    """The sandbox does not exist any more, or its processes are dead."""

    def _what(self) -> str:
        return "found the sandbox gone"


class StateLost(SandboxError):
    """What the sandbox held before a pause is not there after the resume."""

    def _what(self) -> str:
        return "lost state"


class DestroyFailed(SandboxError):
    """A sandbox could not be destroyed: it may still be running, and cost money."""


class Unsupported(SandboxError):
    """The provider cannot do this; its capabilities say so."""

    def _what(self) -> str:
        return "is not supported"


class Rejected(SandboxError):
    """The provider said no because of a limit.

    ``limit`` is ``quota`` (how many may exist), ``capacity`` (no room on the provider's side), ``rate`` (how
    many a second) or ``queue`` (its waiting line is full).
    """

    def __init__(
        self,
        tried: str,
        limit: Literal["quota", "capacity", "rate", "queue"],
        *,
        sandbox: str = "",
        after_s: float | None = None,
        said: str = "",
        cure: str = "",
    ) -> None:
        super().__init__(tried, sandbox=sandbox, after_s=after_s, said=said, cure=cure)
        self.limit = limit
        self.outcome = f"rejected({limit})"

    def _what(self) -> str:
        return f"was rejected ({self.limit})"
