"""Counts frictions, adds a work item for the next proposal, and makes waiting items due."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from common.clock import Clock, parse_iso
from common.text.untrusted import one_line
from modules.runtime.scheduler.scheduler import Attention
from modules.services.craft.friction import Friction
from modules.services.craft.proposals import OPEN, Proposal, ProposalGates, Proposals, wish_key
from modules.services.craft.record import FrictionRecord
from modules.services.identity.identity import Identity
from modules.services.work.table import WorkTable, waiting
from modules.services.work.types import NewWork

KIND = "improvement"
"""The kind of the work items for proposals, and the loop of their turns."""
WISH_CHARS = 300
ONE_OPEN = "one-open"
"""The code of a work item that waits until the open proposal is over."""
_WAITS, _SEEN = OPEN | {ONE_OPEN}, "seen"
_LAST_RANK = 9
NOTHING = "nothing went wrong often enough, and no wish is open"


@dataclass(frozen=True, slots=True)
class CraftPerceiver:
    """Checks whether there is something to get better at, and whether the open proposal was decided.

    `began` returns when this life began, or None. `stands` returns what is known here about the state of an open
    proposal; the value changes once somebody decided.
    """

    friction: FrictionRecord
    proposals: Proposals
    table: WorkTable
    identity: Identity
    gates: ProposalGates
    stands: Callable[[Proposal], Awaitable[str]]
    began: Callable[[], Awaitable[datetime | None]]
    attention: Attention
    clock: Clock

    async def perceive(self) -> None:
        """Count frictions, and add a work item if something may be proposed now."""
        found, before = await self.friction.count(), await self.proposals.all()
        await self._look(before)
        began = await self.began()
        # NOTE(self): a wish that needs no proposal does not delay the next proposal.
        last = next((one for one in before if one.rung not in {"habit", "not_at_all"}), None)
        if not self.gates.closed(
            lived=self.clock.since(began) if began else None,
            since_last=self.clock.since(parse_iso(last.at)) if last else None,
            has_open=any(one.state in OPEN for one in before),
            is_idle=self.attention.free,
        ):
            await self._propose(found, before)

    async def _look(self, before: Sequence[Proposal]) -> None:
        """Make waiting items due if the open proposal was decided since the last look, even one of an earlier run."""
        is_open = next((one for one in before if one.state in OPEN), None)
        stands = await self.stands(is_open) if is_open else ""
        for row in await self.table.database.run(lambda connection: waiting(connection, KIND)):
            if row.outcome in _WAITS and row.payload.get(_SEEN) != stands:
                await self.table.retry(row, {**row.payload, _SEEN: stands})

    async def propose_now(self) -> str:
        """Propose something, however recent the last proposal was; return what it is about, or why there is none."""
        before = await self.proposals.all()
        if any(one.state in OPEN for one in before):
            return "another proposal is open"
        return await self._propose(await self.friction.count(), before)

    async def _propose(self, found: Sequence[Friction], before: Sequence[Proposal]) -> str:
        """Add an item for the oldest ready friction, else the first wish not judged yet; return what it is about."""
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
    return NewWork(KIND, wish_key(wish), {"wish": wish}, rank=_LAST_RANK)


async def improve(table: WorkTable, wish: str) -> bool:
    """Add a work item for a wish of the owner; return False if the same wish waits already."""
    return await table.offer(replace(_row(one_line(wish, WISH_CHARS)), importance="owner", rank=0))
