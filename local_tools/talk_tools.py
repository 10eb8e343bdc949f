"""Looks up, for the owner, what people and the SOUL said to each other in public and in rooms."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pydantic import BaseModel, Field

from common.clock import Clock, age, parse_iso
from common.provenance import Provenance
from common.text.untrusted import one_line
from local_tools.self_tools import is_owners_own
from local_tools.words import OWN_TOOLS, ToolWords
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.exchanges.talk_search import MOST_FOUND, Spoken, TalkSearch
from modules.services.skills.skills import Framer, Skills

_LOOKED_BACK = timedelta(days=90)


class TalkSearchInput(BaseModel):
    """A search in conversations."""

    words: str = ""
    person: str = ""
    since: str = ""
    limit: int = Field(default=8, ge=1, le=MOST_FOUND)


@dataclass(slots=True)
class TalkTools:
    """The handler, with its services; `rng` draws the boundary of frames."""

    talk: TalkSearch
    skills: Skills
    clock: Clock
    rng: random.Random
    words: ToolWords = field(init=False)

    def __post_init__(self) -> None:
        self.words = ToolWords(self.skills, OWN_TOOLS)

    async def search(self, args: TalkSearchInput, turn: Turn) -> ToolResult:
        now = self.clock.now()
        try:
            since = parse_iso(args.since) if args.since.strip() else now - _LOOKED_BACK
        except ValueError:
            return self.words.error("Day Form", given=repr(one_line(args.since)))
        found = await self.talk.find(args.words, args.person, since, args.limit)
        if not found.shown:
            return self.words.done("Nothing Found")
        framer = Framer(self.skills, self.rng)
        text = framer.frame("conversation", author="several", uri="", text="\n".join(self._lines(found.shown, now)))
        if found.more:
            text = f"{text}\n{self.words.answer('More Found', count=found.more)}"
        is_others = any(one.is_others for one in found.shown)
        return ToolResult(text, provenance=Provenance.STRANGER if is_others else None)

    def _lines(self, found: Sequence[Spoken], now: datetime) -> Iterator[str]:
        """Yield a line for each: its age, its author, the text, and where it was said."""
        for one in found:
            author = f"{'' if one.in_room else '@'}{one.who}" if one.who else "YOU"
            place = self.words.answer("In The Room") if one.in_room else one.uri
            where = self.skills.section("memory", "Not Sent") if one.is_waiting else place
            told = f"[{age(one.at, now)}] {author}: {' '.join(one.text.split())}"
            yield f"{told} ({where})" if where else told


def talk_tools(tools: TalkTools) -> Sequence[Tool]:
    """Return the tools of the family."""
    needs, fits = Provenance.OWNER, is_owners_own
    return (tools.words.tool("talk_search", TalkSearchInput, "self", needs, tools.search, effect="look", fits=fits),)
