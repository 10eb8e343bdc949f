"""Counts what went wrong since the last look, and adds a row of work for what is to be proposed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256

from common.clock import Clock, parse_iso
from common.text.untrusted import one_line
from modules.runtime.scheduler.scheduler import Attention
from modules.services.craft.friction import Friction
from modules.services.craft.proposals import OPEN, Proposal, ProposalGates, Proposals
from modules.services.craft.record import FrictionRecord
from modules.services.identity.identity import Identity
from modules.services.work.table import WorkTable
from modules.services.work.types import NewWork

KIND = "improvement"
"""The kind of the rows that hold what to propose, and the loop of their turns."""
WISH_CHARS = 300
_LAST_RANK = 9
NOTHING = "nothing went wrong often enough, and no wish is open"


@dataclass(frozen=True, slots=True)
class CraftPerceiver:
    """Looks whether there is something to get better at. `began` returns when this life began, or None."""

    friction: FrictionRecord
    proposals: Proposals
    table: WorkTable
    identity: Identity
    gates: ProposalGates
    began: Callable[[], Awaitable[datetime | None]]
    attention: Attention
    clock: Clock

    async def perceive(self) -> None:
        """Count, and add a row where something may be proposed now."""
        found, before = await self.friction.count(), await self.proposals.all()
        began = await self.began()
        # NOTE(self): a wish that was found to need no proposal keeps no other waiting.
        last = next((one for one in before if one.rung not in {"habit", "not_at_all"}), None)
        if not self.gates.closed(
            lived=self.clock.since(began) if began else None,
            since_last=self.clock.since(parse_iso(last.at)) if last else None,
            has_open=any(one.state in OPEN for one in before),
            is_idle=self.attention.free,
        ):
            await self._propose(found, before)

    async def propose_now(self) -> str:
        """Propose what is worth it, however long ago the last proposal was; return what that is, or why nothing is."""
        before = await self.proposals.all()
        if any(one.state in OPEN for one in before):
            return "another proposal is open"
        return await self._propose(await self.friction.count(), before)

    async def _propose(self, found: Sequence[Friction], before: Sequence[Proposal]) -> str:
        """Add the row of the friction that is ready longest, else of the first wish that was not judged."""
        ready = min((one for one in found if one.state == "ready"), key=lambda one: one.id, default=None)
        known = {one.wish for one in before}
        wishes = (one_line(wish, WISH_CHARS) for wish in self.identity.extract().wishes)
        wish = next((one for one in wishes if one not in known), "")
        if ready:
            await self.table.offer(NewWork(KIND, f"friction:{ready.id}", {"friction": ready.id}, rank=_LAST_RANK))
        elif wish:
            await self.table.offer(_row(wish))
        return ready.description if ready else wish or NOTHING


def _row(wish: str) -> NewWork:
    # NOTE(self): a wish may name somebody, and a key is never redacted.
    return NewWork(KIND, f"wish:{sha256(wish.casefold().encode()).hexdigest()}", {"wish": wish}, rank=_LAST_RANK)


async def improve(table: WorkTable, wish: str) -> bool:
    """Let the SOUL propose what its owner wants of it; return False where that waits already."""
    return await table.offer(replace(_row(one_line(wish, WISH_CHARS)), importance="owner", rank=0))
