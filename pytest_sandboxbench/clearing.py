"""Destroying all that an owner made, and looking until a provider lists nothing of it any more."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from .load.deadlines import describe
from .load.guard import GuardedProvider
from .model import Owner, SandboxRef

__all__ = ["Cleared", "clear"]

_LOOKS = 5
_BETWEEN_LOOKS_S = 0.4


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
) -> Cleared:
    """Destroy the ``known`` ones and all that the provider lists as this owner's, but for the ids in ``spare``.

    ``late`` is how many more may still appear: for some seconds it looks for them. No fault of a provider is raised.
    """
    clearing = _Clearing(provider, owner, frozenset(spare))
    known = list(known)
    found = await clearing.listed()
    await clearing.destroy([*known, *found])
    awaited = late - len({ref.id for ref in found} - {ref.id for ref in known})
    for look in range(_LOOKS):
        if not clearing.out.listed or (not clearing.tried and awaited <= 0):
            break
        await asyncio.sleep(_BETWEEN_LOOKS_S if look else 0)
        still = await clearing.listed()
        fresh = [ref for ref in still if ref.id not in clearing.tried]
        awaited -= len(fresh)
        await clearing.destroy(fresh)
        if not still and awaited <= 0:
            break
    else:
        clearing.still_there(await clearing.listed())
    return clearing.out


class _Clearing:
    def __init__(self, provider: GuardedProvider, owner: Owner, spare: frozenset[str]) -> None:
        self._provider = provider
        self._owner = owner
        self._spare = spare
        self.tried: set[str] = set()
        self.out = Cleared()

    async def listed(self) -> list[SandboxRef]:
        """What the provider lists as the owner's, without what is left already."""
        label = self._owner.label()
        given_up = {ref.id for ref, _reason in self.out.left} | self._spare
        try:
            refs = await self._provider.owned(self._owner.run_id)
        except Exception as error:
            self.out.listed = False
            reason = f"what is left could not be listed: {describe(error)}"
            self.out.left.append((SandboxRef(self._provider.name, "?"), reason))
            return []
        return [ref for ref in refs if ref.details.get("owner", label) == label and ref.id not in given_up]

    async def destroy(self, refs: Sequence[SandboxRef]) -> None:
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
