"""Turns of the SOUL's own: nobody talks with it, and it may read, remember, plan and post."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from common.clock import Clock
from common.facts import OwnTimeFacts
from common.provenance import Provenance
from common.text.untrusted import one_line
from modules.lives.rhythm.types import OwnTimeTurn
from modules.runtime.llm.dialect import Message
from modules.services.agent.prompt.prompter import Prompter
from modules.services.agent.tools.executor import MORE_TOOLS
from modules.services.agent.tools.types import Tool, Turn
from modules.services.agent.turn.runner import TurnRunner
from modules.services.identity.owner import Me
from modules.services.owner.notices import TellOwner
from modules.services.skills.skills import Skills
from modules.services.work.types import Disposition, WorkItem

SKILL = "own-time"
_ACTS = frozenset({"bluesky_post", "schedule_add", "schedule_remove", "web_fetch"})
_ACTS_UNORDERED = frozenset({"memory_save", "self_update"})
"""Tools to store something, only in turns that the owner did not ask for: the owner's turns may read private text."""
_PICTURES = "pictures"
_WORDS_CHARS, _QUERY_CHARS = 2_000, 500


@dataclass(frozen=True, slots=True)
class OwnTurns:
    """Runs turns of the SOUL's own for rows of work, and tells the owner the results."""

    prompter: Prompter
    turn_runner: TurnRunner
    skills: Skills
    clock: Clock
    tell: TellOwner
    me: Me

    async def run(
        self, item: WorkItem, told: str, *, private: Sequence[str], task: str, asked_by: Provenance
    ) -> Disposition:
        """Run the turn of a row in which the model is `told` what to do; return its disposition.

        No post may repeat a line of the `private` texts, unless the same text gives that line to be posted. `task` is
        what to do, in the words of the SOUL or its owner; `asked_by` says whose. If the model called no tool, or only
        looked and says nothing, there was nothing to do. Raises what `TurnRunner.run_turn` raises.
        """
        subject, query = OwnTimeTurn(private), one_line(task, _QUERY_CHARS)
        accounts = await self.turn_runner.accounts_in(task)
        turn = Turn(item.kind, asked_by, item.cause_id, subject, importance=item.importance, accounts=accounts)
        tools = self.turn_runner.executor.registry.available(turn)
        result = await self.turn_runner.run_turn(
            turn=turn,
            system=await self.prompter.prompt(
                skill=SKILL,
                variables={"handle": self.me.bluesky_username},
                audience="bluesky",
                session_key=item.kind,
                query=query,
                now=self.clock.now(),
                least=Provenance.SELF,
            ),
            messages=(Message("user", told),),
            purpose=SKILL,
            only=[one.name for one in tools if is_own(one, turn)],
            about=OwnTimeFacts(query),
        )
        words = one_line(result.text, _WORDS_CHARS)
        if result.cut_off and not words:
            return Disposition("undecided", "unfinished", result.cut_off, provenance=result.provenance)
        looks = {one.name for one in tools if one.effect == "look"}
        did = any(not answer.is_error and (words or call.name not in looks) for call, answer in result.calls)
        held = any(answer.outcome.held for _, answer in result.calls)
        act, code = ("done", "done") if did else ("silent", "nothing-to-do")
        reason = words or ("" if did else "there was nothing to tell")
        return Disposition(act, code, reason, held=held, provenance=result.provenance)

    async def tell_end(self, item: WorkItem, disposition: Disposition, what: str, *, is_owners: bool) -> None:
        """Tell the owner how a row ended: always if they asked for it, else only if something was done or given up."""
        if is_owners or (disposition.act != "silent" and disposition.reason):
            did = {"dropped": "gave up", "silent": "did nothing for"}.get(disposition.act, "did")
            did = "left a draft for" if disposition.held else did
            headline = f"{self.me.agent_name} {did} {what}"
            words, provenance = disposition.reason, disposition.provenance
            await self.tell(item.cause_id, headline, words, provenance, at_once=False)


def is_own(tool: Tool, turn: Turn) -> bool:
    """Return whether a turn of the SOUL's own offers an available tool: it only looks, or is one of a few acts."""
    if tool.effect == "look":
        return tool.name != MORE_TOOLS and tool.family != _PICTURES
    return tool.name in _ACTS or (turn.asked_by is Provenance.SELF and tool.name in _ACTS_UNORDERED)
