"""Destroying all that an owner made, and looking until a provider lists nothing of it any more."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count

from .load.deadlines import describe
from .load.guard import GuardedProvider
from .model import Owner, SandboxRef

__all__ = ["Cleared", "clear"]

_BETWEEN_LOOKS_S = 0.4
_PATIENCE_S = 2.0
"""How long a provider may go on listing what it has destroyed, and how long latecomers are waited for."""
_PATIENCE_HOSTED_S = 30.0
_LATE_HOSTED_S = 10.0


@dataclass(slots=True)
class Cleared:
    """What came of it. ``left`` is what could not be destroyed, with the reason.

    ``listed`` is false where the provider would not say what there is: then nothing is sure.
    """

    destroyed: list[SandboxRef] = field(default_factory=list)
    left: list[tuple[SandboxRef, str]] = field(default_factory=list)
    listed: bool = True

    @property
    def is_clean(self) -> bool:
        return self.listed and not self.left


async def clear(
    provider: GuardedProvider,
    owner: Owner,
    known: Iterable[SandboxRef] = (),
    *,
    spare: Collection[str] = (),
    late: int = 0,
    patient: bool = True,
) -> Cleared:
    """Destroy the ``known`` ones and all that the provider lists as this owner's, but for the ids in ``spare``.

    A list may lag: it gets some time, unless ``patient`` is false. ``late`` is how many more may still appear: for some
    seconds it looks for them. No fault of a provider is raised.
    """
    clearing = _Clearing(provider, owner, frozenset(spare))
    await clearing.destroy(list(known))
    clock = asyncio.get_running_loop().time
    began = clock()
    patience_s, late_s = (_PATIENCE_HOSTED_S, _LATE_HOSTED_S) if _is_hosted(provider) else (_PATIENCE_S, _PATIENCE_S)
    still: list[SandboxRef] = []
    for look in count():
        # What was just destroyed should be gone at once; later looks are for lists that lag, and for latecomers.
        await asyncio.sleep(_BETWEEN_LOOKS_S if look > 1 else 0)
        still = await clearing.listed()
        fresh = [ref for ref in still if ref.id not in clearing.tried]
        late -= len(fresh)
        await clearing.destroy(fresh)
        over_s = clock() - began
        if not clearing.out.listed or (not still and (late <= 0 or over_s > late_s)):
            return clearing.out
        if (over_s > patience_s or (look and not patient)) and not fresh:
            break
    clearing.still_there(still)
    return clearing.out


def _is_hosted(provider: GuardedProvider) -> bool:
    try:
        return provider.capabilities.hosted
    except Exception:
        return False  # an adapter that cannot say even this


class _Clearing:
    def __init__(self, provider: GuardedProvider, owner: Owner, spare: frozenset[str]) -> None:
        self._provider = provider
        self._owner = owner
        self._spare = spare
        self.tried: set[str] = set()
        self.out = Cleared()

    async def listed(self) -> list[SandboxRef]:
        """What the provider lists as the owner's, without what is left already.

        One that says of no owner may be anybody's: it is destroyed only by somebody who knows its id.
        """
        label = self._owner.label()
        given_up = {ref.id for ref, _reason in self.out.left} | self._spare
        try:
            refs = await self._provider.owned(self._owner.run_id)
        except Exception as error:
            self.out.listed = False
            reason = f"what is left could not be listed: {describe(error)}"
            self.out.left.append((SandboxRef(self._provider.name, "?"), reason))
            return []
        return [
            ref
            for ref in refs
            if (ref.details.get("owner") == label or ref.id in self.tried) and ref.id not in given_up
        ]

    async def destroy(self, refs: Sequence[SandboxRef]) -> None:
        if not refs:
            return
        asked = {ref.id: ref for ref in refs}
        self.tried.update(asked)
        self._provider.live = dict(asked)
        left = await self._provider.destroy_all()
        self.out.left += left
        self.out.destroyed += [ref for ref in asked.values() if ref.id not in {kept.id for kept, _reason in left}]

    def still_there(self, refs: Sequence[SandboxRef]) -> None:
        """A provider may call gone what lives on."""
        ids = {ref.id for ref in refs}
        self.out.destroyed = [ref for ref in self.out.destroyed if ref.id not in ids]
        self.out.left += [(ref, "it was destroyed, says the provider, and still lists it") for ref in refs]
