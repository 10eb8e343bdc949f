"""Asks the model what to do at a moment in the room, and reads what it said.

The decision is a call of one tool that leaves nothing behind; everything that follows from it is the life's own doing.
A model that writes its decision as text is understood as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from common.clock import Clock
from common.facts import RoomFacts, SaidLine
from common.importance import Importance
from common.json_lines import json_object
from common.provenance import Provenance
from common.schemas import (
    SPACE_DECISION_TOOL,
    Commitment,
    Dropped,
    SpaceDecision,
    parse_space_decision,
    validate_commitments,
)
from common.text.untrusted import one_line
from modules.lives.space.config import SpaceConfig
from modules.lives.space.prompting import SKILL, PromptWriter, alone_without_github
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.transcript import shown, told
from modules.runtime.llm.types import Message
from modules.services.agent.prompt.prompter import Prompter, TurnPrompt
from modules.services.agent.tools.policy import lower_provenance
from modules.services.agent.tools.types import Turn
from modules.services.agent.turn.loop import TurnResult
from modules.services.agent.turn.runner import TurnRunner
from modules.services.commitments.naming import title_of
from modules.services.day.gathering import DayReader
from modules.services.day.rendering import public_text
from modules.services.skills.skills import Skills

ACTION_SKILL = "space-action"
LOOP = "space"

_ROUNDS = 2
_QUERY_CHARS = 500
_REQUEST_CHARS = 4000
_KEPT_CHARS = 4000


@dataclass(frozen=True, slots=True)
class SpaceTurn:
    """The moment that a turn is about; its tool exists only there."""

    snapshot: RoomSnapshot


@dataclass(frozen=True, slots=True)
class ModelDecision:
    """What the model decided; with `error`, why there is no decision.

    Attributes:
        decision: as it was made.
        commitments: those of its commitments that are whole and of a kind that this life may keep.
        dropped: the others, with the reason.
        error: "" if there is a decision.

    """

    decision: SpaceDecision | None = None
    commitments: tuple[Commitment, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    error: str = ""

    @property
    def message(self) -> str:
        """What it wants to say; "" if it does not want to speak."""
        decision = self.decision
        return (decision.message or "").strip() if decision and decision.should_speak else ""


@dataclass(frozen=True, slots=True)
class Decider:
    """Asks the model what to do in the room.

    Attributes:
        social_only: whether this life has no GitHub.
        session_key: of the session that keeps the talk of the room.
        days: tells what the room may know of our day, for a turn in which the host has just spoken.
        is_trusted_room: returns whether the owner named the room; if not, all members count as strangers.

    """

    prompter: Prompter
    prompting: PromptWriter
    skills: Skills
    turn_runner: TurnRunner
    clock: Clock
    social_only: bool
    session_key: str
    days: DayReader
    is_trusted_room: Callable[[], bool]

    async def decide(self, snapshot: RoomSnapshot, config: SpaceConfig, *, problem: str | None = None) -> ModelDecision:
        """What to do now; with `problem`, a second try for an open request that is ours: a commitment, nothing else.

        Raises what `TurnRunner.run_turn` raises.
        """
        if problem is not None:
            return await self._insist(snapshot, problem)
        turn = self._turn(snapshot, _importance(snapshot))
        system = await self._system(SKILL, snapshot, turn)
        room = self.turn_runner.room(system, lower_provenance(turn, system.provenance), (SPACE_DECISION_TOOL,))
        today = public_text(await asyncio.to_thread(self.days.read_public)) if snapshot.from_host else ""
        text = self.prompting.user_message(snapshot, config, room_tokens=room, today=today)
        session_id = await self._kept(snapshot, turn)
        facts = room_facts(snapshot, today)
        return self._read(await self._run_turn(turn, system, text, SKILL, facts, session_id=session_id))

    async def keep(self, snapshot: RoomSnapshot) -> None:
        """Keep what was said for memory, where nothing is decided about it."""
        await self._kept(snapshot, self._turn(snapshot, _importance(snapshot)))

    async def _insist(self, snapshot: RoomSnapshot, problem: str) -> ModelDecision:
        turn = self._turn(snapshot, "commitment")
        system = await self._system(ACTION_SKILL, snapshot, turn, bare=True)
        text = self.skills.render(
            ACTION_SKILL,
            "User Message Template",
            request=self.prompting.framed_post(snapshot, snapshot.request.content[:_REQUEST_CHARS]),
            repo=snapshot.repo or "-",
            problem=one_line(problem, _QUERY_CHARS),
        )
        return self._read(await self._run_turn(turn, system, text, ACTION_SKILL, action_facts(snapshot)))

    def _turn(self, snapshot: RoomSnapshot, importance: Importance) -> Turn:
        is_trusted_room = self.is_trusted_room()
        return Turn(
            loop=LOOP,
            provenance=Provenance.PEER if is_trusted_room else Provenance.STRANGER,
            cause_id=snapshot.thread_uri,
            subject=SpaceTurn(snapshot),
            importance=importance if is_trusted_room else "own",
        )

    async def _system(self, skill: str, snapshot: RoomSnapshot, turn: Turn, *, bare: bool = False) -> TurnPrompt:
        about = snapshot.batch[-1].content if snapshot.batch else snapshot.request.content
        return await self.prompter.prompt(
            skill=skill,
            variables={"agent_name": snapshot.me},
            audience="space",
            session_key=self.session_key,
            query=about[:_QUERY_CHARS],
            now=self.clock.now(),
            least=turn.provenance,
            bare=bare,
        )

    async def _kept(self, snapshot: RoomSnapshot, turn: Turn) -> str:
        """Keep what was said, so that the SOUL can remember the talk when it is over; the id of its session."""
        said = "\n".join(told(replace(entry, content=entry.content[:_KEPT_CHARS])) for entry in snapshot.batch)
        if not said:
            return ""
        return await self.turn_runner.sessions.add_once(self.session_key, Message("user", said), turn.provenance)

    async def _run_turn(
        self, turn: Turn, system: TurnPrompt, text: str, purpose: str, about: RoomFacts, *, session_id: str = ""
    ) -> TurnResult:
        return await self.turn_runner.run_turn(
            turn=turn,
            system=system,
            messages=(Message("user", text),),
            purpose=purpose,
            tool_choice="required",
            only=(SPACE_DECISION_TOOL,),
            max_rounds=_ROUNDS,
            session_id=session_id,
            about=about,
        )

    def _read(self, turn_result: TurnResult) -> ModelDecision:
        raw, error = _raw(turn_result)
        if error:
            return ModelDecision(error=error)
        parsed = parse_space_decision(raw)
        if parsed.data is None:
            return ModelDecision(error=parsed.error)
        checked = validate_commitments(parsed.data.commitments or [], social_only=self.social_only)
        return ModelDecision(parsed.data, checked.valid, checked.dropped)


def _importance(snapshot: RoomSnapshot) -> Importance:
    """A request that is ours to meet comes before all talk, and words of the host before those of peers."""
    if (snapshot.is_open and snapshot.is_owner) or snapshot.is_settled:
        return "commitment"
    return "mention" if snapshot.from_host or snapshot.is_open else "own"


def _raw(turn_result: TurnResult) -> tuple[Any, str]:
    """The decision as it came, or why there is none; a call that was refused says more than the words around it."""
    for call, result in reversed(turn_result.calls):
        if result.ends_turn:
            return result.data["decision"], ""
        if not call.malformed and result.content.startswith("BLOCKED"):
            return None, result.content
    found = read_json(turn_result.text)
    if found is not None:
        return found, ""
    refused = next((result.content for _, result in reversed(turn_result.calls)), "")
    return None, refused or f"the model decided nothing that can be read ({turn_result.stopped})"


def read_json(text: str) -> Mapping[str, Any] | None:
    """The object from the first brace of `text` to its last; None if that is none."""
    start, end = text.find("{"), text.rfind("}")
    return json_object(text[start : end + 1]) if 0 <= start < end else None


def room_facts(snapshot: RoomSnapshot, today: str = "") -> RoomFacts:
    """What `snapshot` tells, for a turn that decides whether to speak; `today` is what was done in public."""
    waits = snapshot.is_open and not alone_without_github(snapshot) and not snapshot.is_claimed
    said = (
        SaidLine("" if one.is_me else shown(one.name, is_host=one.is_host), one.content) for one in snapshot.history
    )
    return RoomFacts(
        me=snapshot.me,
        present=tuple(map(shown, snapshot.room.peers)),
        said=tuple(said),
        new=len(snapshot.batch),
        mode=snapshot.mode,
        addressed=snapshot.addressed,
        request=snapshot.request.content if waits else "",
        critical=waits and snapshot.escalation == "critical",
        owner=snapshot.owner or "",
        is_owner=snapshot.is_owner,
        role=snapshot.role,
        signal=snapshot.signal,
        follow_up=snapshot.follow_up,
        links=tuple(snapshot.own_commitments.work.links),
        repo=snapshot.repo or "",
        needs_repo=snapshot.needs_repo,
        without_github=alone_without_github(snapshot),
        opens=snapshot.opens,
        doing=tuple(_doing(snapshot)),
        done=tuple(map(title_of, snapshot.own_commitments.fulfilled)),
        today=today,
    )


def _doing(snapshot: RoomSnapshot) -> Iterator[str]:
    yield from map(title_of, snapshot.own_commitments.pending)
    for one in snapshot.room.workspaces.values():
        if one.completed < one.total:
            yield f"plan #{one.plan_number:g} in {one.workspace}, {one.completed:g} of {one.total:g} tasks done"


def action_facts(snapshot: RoomSnapshot) -> RoomFacts:
    """What `snapshot` tells, for a turn that makes the commitment which the host asked for, and nothing else."""
    asked = RoomFacts(me=snapshot.me, repo=snapshot.repo or "", request=snapshot.request.content)
    return replace(asked, mode="action", owner=snapshot.me, is_owner=True)
