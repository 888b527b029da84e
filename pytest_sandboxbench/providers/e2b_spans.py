"""What the E2B adapter times, where that differs from the definition of an operation."""

from __future__ import annotations

from ..model import SpanDeclaration

__all__ = ["SPANS"]

_SHELL = "run by the service's agent as `/bin/bash -l -c`, which is inside the span"

SPANS = (
    SpanDeclaration(
        "create",
        start="Sandbox.create of the SDK",
        end="the API answered 201; the agent in the guest has not been asked",
        state="started from the template's snapshot; whether from a pool, the service does not say",
    ),
    SpanDeclaration("first_exec", end=f"`true` returned 0, {_SHELL}"),
    SpanDeclaration("exec", end=f"`true` returned 0, {_SHELL}"),
    SpanDeclaration("write_file", end="POST /files was answered: one multipart request"),
    SpanDeclaration("read_file", end="GET /files was read, on a connection of HTTP/1.1 of its own"),
    SpanDeclaration("pause", end="the API answered 204: memory and disk are a snapshot"),
    SpanDeclaration("resume", start="Sandbox.connect of the SDK", end="the API answered 201"),
    SpanDeclaration("destroy", end="the API answered 204 or 404"),
    SpanDeclaration("round_trip", end="GET /v2/sandboxes?limit=1 was answered, on a connection kept alive"),
    SpanDeclaration("cold_run", start="Sandbox.create of the SDK", end=f"two calls, create and command, {_SHELL}"),
)
