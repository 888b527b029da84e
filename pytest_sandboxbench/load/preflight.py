"""Asking a provider whether it can run here: 5 s, whatever it does, and without its secrets in the answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from ..errors import OperationTimeout, UsageError
from ..model import Preflight
from ..providers.protocol import Provider
from ..providers.registry import Registry
from ..records.redaction import hide_values, redact, secrets_in
from .deadlines import bounded, describe, tamed
from .watchdog import LoopBlocked, Watchdog

__all__ = ["DECLARES", "SILENT", "ask", "ask_provider", "secrets_of"]

# A provider is to answer within a second: `sandboxbench check` says so. Where others make and end namespaces all
# the time, the trial of a good one took longer: that machine is busy, and its provider not missing.
PREFLIGHT_S = 5.0
_CLOSE_S = 1.0

SILENT = Preflight(
    False,
    f"it did not answer within {PREFLIGHT_S:g} s",
    "a preflight answers within a second; what takes longer belongs into create",
)
DECLARES = "a provider declares what it can do: docs/providers.md"


async def ask(registry: Registry, name: str, loaded: Callable[[], object] = lambda: None) -> Preflight:
    """Whether a provider can run here; it gets 5 s from ``loaded`` on, which is called then.

    ``UsageError`` for settings that it does not have.
    """
    answer, provider = await ask_provider(registry, name, loaded)
    if provider is not None:
        try:
            await bounded("aclose", provider.aclose(), _CLOSE_S)
        except Exception:
            pass  # it answered; what it does afterwards changes nothing
    return answer


def secrets_of(registry: Registry) -> tuple[str, ...]:
    """Secrets among the settings of all instances, and in the environment."""
    return secrets_in({name: dict(registry.options(name)) for name in registry.names})


async def ask_provider(
    registry: Registry, name: str, loaded: Callable[[], object] = lambda: None
) -> tuple[Preflight, Provider | None]:
    """What a provider says of itself is shown and recorded: without secrets; a cure may well be ``export KEY=...``."""
    answer, provider = await _ask_untold(registry, name, loaded)
    known = secrets_of(registry)
    told = replace(
        answer,
        reason=hide_values(answer.reason, known),
        cure=hide_values(answer.cure, known),
        facts=redact(answer.facts, known),
    )
    return told, provider


async def _ask_untold(registry: Registry, name: str, loaded: Callable[[], object]) -> tuple[Preflight, Provider | None]:
    try:
        with tamed("making it"):
            provider = registry.make(name)
    except UsageError:
        raise
    except Exception as error:
        cure = f"its entry point is {registry.kind(name)} = {registry.target(name)}: mend it, or install what it lacks"
        return Preflight(False, f"it cannot be loaded: {describe(error)}", cure), None
    loaded()
    watchdog = Watchdog()
    cure = "a preflight returns what is missing and raises nothing: report it to its author"
    try:
        with watchdog.watching():
            watchdog.expect(time.monotonic() + PREFLIGHT_S)
            answer = await bounded("preflight", provider.preflight(), PREFLIGHT_S)
            cure = DECLARES
            with tamed("capabilities"):
                provider.capabilities  # noqa: B018 -- an adapter's own code, and read again and again from here on
            return answer, provider
    except (OperationTimeout, LoopBlocked):
        return SILENT, provider
    except Exception as error:
        return Preflight(False, describe(error), cure), provider
