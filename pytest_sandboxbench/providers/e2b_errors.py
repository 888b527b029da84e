"""E2B's errors as this project's: by class and status, with the service's own words kept."""

from __future__ import annotations

from typing import Any

from ..errors import (
    ExecFailed,
    NotReady,
    OperationTimeout,
    Rejected,
    SandboxError,
    SandboxGone,
    TransportLost,
)

__all__ = ["translated"]

KEY = "see whether E2B_API_KEY is a key of this service: https://e2b.dev/dashboard?tab=keys"


def translated(
    error: Exception, tried: str, kind: type[SandboxError], *, sandbox: str = "", after_s: float | None = None
) -> SandboxError:
    """``kind`` is what an error is that means nothing more special; ours are passed on as they are."""
    if isinstance(error, SandboxError):
        return error
    import e2b.exceptions as of
    import httpx

    said = str(error).strip() or type(error).__name__
    low = said.lower()
    about: dict[str, Any] = {"sandbox": sandbox, "after_s": after_s, "said": said}
    status = _status(error)
    if isinstance(error, of.RateLimitException) or status == 429:
        if "concurrent" in low or "maximum number" in low:
            return Rejected(tried, "quota", **about, cure="end other sandboxes, lower the level, or a larger plan")
        return Rejected(tried, "rate", **about, cure="a lower create_rate, or a larger plan")
    if status == 503:
        return Rejected(tried, "capacity", **about, cure="the service has no room now: try later")
    if isinstance(error, of.AuthenticationException) or status in (401, 403):
        return kind(tried, **about, cure=KEY)
    if isinstance(error, of.TimeoutException):
        return _of_timeout(tried, low, about)
    if isinstance(error, of.NotFoundException) and not isinstance(error, of.FileNotFoundException) and sandbox:
        return SandboxGone(tried, **about, cure="create a new one")
    if isinstance(error, httpx.TimeoutException):
        return OperationTimeout(tried, **about)
    if isinstance(error, httpx.TransportError | OSError) or _is_of_transport(error):
        return TransportLost(tried, **about, cure="see whether the service can be reached from here")
    if isinstance(error, of.FileNotFoundException | of.InvalidArgumentException) and kind is SandboxError:
        return ExecFailed(tried, **about)
    return kind(tried, **about)


def _of_timeout(tried: str, low: str, about: dict[str, Any]) -> SandboxError:
    """The SDK has one class, and since 2.63 two below it, for what is gone, what is not up yet, and what is late."""
    if "was not found" in low or "was killed" in low:
        return SandboxGone(tried, **about, cure="create a new one")
    if "port is not open" in low:
        return NotReady(tried, **about)
    if "timed out" in low or "deadline" in low or "exceeding" in low:
        return OperationTimeout(tried, **about)
    return TransportLost(tried, **about)


def _status(error: Exception) -> int | None:
    found = getattr(error, "status_code", None)
    if found is None:  # 2.51 says it in words only
        text = str(error).partition(":")[0]
        found = int(text) if text.isdigit() else None
    return found


def _is_of_transport(error: Exception) -> bool:
    """An error of the connection that came through the RPC layer as one of that."""
    return type(error).__module__.partition(".")[0] in ("connectrpc", "pyqwest", "httpcore", "h2")
