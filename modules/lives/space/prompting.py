"""Describes a moment in the room to the model (notes, context, conversation), asks what to do, reads its decision.

All of our own words come from the skill. What others wrote is cleaned and cut line by line, and framed.
"""

import asyncio
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cachetools import LRUCache

from common.clock import Clock
from common.facts import RoomFacts, SaidLine
from common.json_lines import json_object
from common.provenance import Importance, Provenance
from common.schemas import (
    SPACE_DECISION_TOOL,
    Commitment,
    Dropped,
    SpaceDecision,
    parse_space_decision,
    validate_commitments,
)
from common.text.untrusted import one_line
from modules.lives.space.classifiers import is_idle_talk
from modules.lives.space.config import SpaceConfig, format_space_config_for_prompt
from modules.lives.space.request_parser import Transcript, is_word, shown, told, transcript
from modules.lives.space.request_parser import listed as listed_names
from modules.lives.space.snapshot import RoomSnapshot
from modules.runtime.llm.dialect import Message
from modules.services.agent.prompt.prompter import Prompter, TurnPrompt
from modules.services.agent.tools.policy import lower_provenance
from modules.services.agent.tools.types import Turn
from modules.services.agent.turn.runner import TurnResult, TurnRunner
from modules.services.commitments.naming import QueuedCommitment, extract_fulfillment_url, title_of
from modules.services.day.gathering import DayReader
from modules.services.day.rendering import public_text
from modules.services.peers.room_identity import PeerRelationships, sanitized
from modules.services.skills.skills import Framer, Skills, interpolate

SPACE_DIGEST_ABOVE_TOKENS, SPACE_IDLE_TALK_TOKENS = 60_000, 800
"""Above so many tokens the oldest messages become a line each; the second number is for talk only among peers."""

SKILL = "space-participation"

_REQUEST_CHARS, _LINK_CHARS = 200, 200
_CUT_BEFORE_CLEANING = 8
_ROLES = {"reviewer": "Reviewer", "observer": "Observer"}
_SIGNALS = {"saturated": "Saturated", "spoken": "Own", "only_new": "Warning"}


def notes(snapshot: RoomSnapshot, skills: Skills) -> Iterator[str]:
    """Yield the facts of the moment, then the one instruction that follows from them."""
    if snapshot.repo:
        yield note(skills, "Facts", "Repository", repo=one_line(snapshot.repo))
    if snapshot.social_only:
        yield note(skills, "Facts", "Limited")
    if snapshot.is_open:
        yield note(skills, "Facts", "Request", request=_quotable(snapshot.request.content), seconds=_waited_s(snapshot))
    yield note(
        skills,
        "Verdict",
        verdict(snapshot),
        assignee=shown(snapshot.owner or ""),
        names=listed_names(snapshot.addressed),
        links=", ".join(one_line(link, _LINK_CHARS) for link in snapshot.own_commitments.work.links) or "-",
        repos=", ".join(map(one_line, snapshot.workspaces)),
        agents=snapshot.counts.agents,
        own=snapshot.counts.own,
    )


def verdict(snapshot: RoomSnapshot) -> str:
    """Return the instruction for the model, by its name in the skill. A prompt has exactly one such instruction."""
    if snapshot.opens:
        return "Opener"
    if snapshot.is_settled:
        return "Follow Up Done" if snapshot.follow_up == "link" else "Follow Up Queued"
    if alone_without_github(snapshot):
        return "Alone Without GitHub"
    if snapshot.needs_repo and not snapshot.repo:
        return "Ask Repository" if snapshot.workspaces else "Ask Link"
    if snapshot.is_open:
        return _verdict_on_request(snapshot)
    return "Settled" if snapshot.is_met else _verdict_on_talk(snapshot)


def _verdict_on_request(snapshot: RoomSnapshot) -> str:
    """Return the name of the instruction about the host's open request."""
    if snapshot.is_claimed:
        return "Claimed"
    if snapshot.is_owner:
        return "Owner"
    if not snapshot.owner:
        return "Nobody"
    if snapshot.me in snapshot.addressed:
        return "Asked Beside"
    return _ROLES.get(snapshot.role, "Other")


def _verdict_on_talk(snapshot: RoomSnapshot) -> str:
    """Return the name of the instruction if nothing is asked for."""
    if snapshot.withdrawal and snapshot.from_host:
        if snapshot.request.too_late:
            return "Withdrawn Too Late"
        return "Withdrawn" if snapshot.is_withdrawn else "Withdrawn Earlier"
    if snapshot.signal in _SIGNALS:
        return _SIGNALS[snapshot.signal]
    if snapshot.me in snapshot.addressed:
        return "Addressed To You"
    if snapshot.addressed:
        return "Addressed To Others"
    return "Host Waits" if snapshot.from_host else "Talk"


def note(skills: Skills, section: str, name: str, **values: object) -> str:
    """Return one note of the skill, with its variables filled in."""
    return interpolate(skills.subsection(SKILL, section, name), values)


def alone_without_github(snapshot: RoomSnapshot) -> bool:
    """Return whether nobody can meet an open request, because we are alone and have no GitHub."""
    return snapshot.is_open and snapshot.social_only and not snapshot.room.peers and not snapshot.is_owner


def _waited_s(snapshot: RoomSnapshot) -> int:
    asked_at = snapshot.request.requested_at
    return max(0, int((snapshot.now - asked_at).total_seconds())) if asked_at else 0


def _quotable(text: str) -> str:
    """Return words of the host in a form that fits between our quotation marks."""
    return one_line(text[: _REQUEST_CHARS * _CUT_BEFORE_CLEANING], _REQUEST_CHARS).replace('"', "'")


_OTHERS_SHOWN = 10
_LONG, _LINE = 300, 120


def own_context(snapshot: RoomSnapshot, skills: Skills, today: str = "") -> str:
    """Return what we did `today` and committed to, what was refused, and what is pinned; "" if there is nothing."""
    parts = [
        note(skills, "Context", "Today", items=today) if today else "",
        listed(skills, "Pending", map(_commitment_line, snapshot.own_commitments.pending)),
        listed(skills, "Fulfilled", map(_commitment_line, snapshot.own_commitments.fulfilled)),
        listed(skills, "Refused", (f"{one_line(one.what, _LONG)}: {one.reason}" for one in snapshot.refusals)),
    ]
    if snapshot.pinned:
        parts.append(note(skills, "Context", "Pinned", items=one_line("; ".join(snapshot.pinned), _LINE)))
    return "\n\n".join(filter(None, parts))


def foreign_context(snapshot: RoomSnapshot, skills: Skills, known: Iterable[str]) -> str:
    """Return what the others did with us (`known`) and what they work on, not yet framed; "" if there is nothing."""
    parts = (
        listed(skills, "Known", known),
        listed(skills, "Workspaces", _workspaces(snapshot, skills)),
        listed(skills, "Peer Results", _results(snapshot)),
        listed(skills, "Peer Claims", _claims(snapshot)),
    )
    return "\n\n".join(filter(None, parts))


def listed(skills: Skills, name: str, items: Iterable[str]) -> str:
    """Return the list of that name in the skill; "" if it is empty."""
    lines = [f"- {item}" for item in items if item]
    return note(skills, "Context", name, items="\n".join(lines)) if lines else ""


def _commitment_line(commitment: QueuedCommitment) -> str:
    state = "; ".join(filter(None, (commitment.status, one_line(commitment.waits_for or "", _LINE))))
    link = one_line(extract_fulfillment_url(commitment.type, commitment.result), _LINK_CHARS)
    return f"[{commitment.type}] {one_line(commitment.description, _LINE)} ({state}) {link}".rstrip()


def _in_talk(snapshot: RoomSnapshot, said: str) -> list[str]:
    """Return the peers who speak or are named in the lines `said`; all of them if we open a conversation."""
    return [name for name in snapshot.room.peers if snapshot.opens or is_word(shown(name), said)]


def _cards(snapshot: RoomSnapshot, skills: Skills, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        identity = snapshot.room.identities.get(name) or snapshot.room.peers[name].identity
        reflected = snapshot.room.reflections.get(name)
        if identity is None and reflected is None:
            continue
        card = sanitized(identity) if identity else None
        yield skills.render(
            SKILL,
            "Peer",
            name=shown(name),
            voice=card.voice if card else "",
            interests=", ".join(card.current_interests) if card else "",
            learning=", ".join(card.expertise) if card else "",
            essence=card.soul_essence if card else "",
            reflection=one_line(reflected.summary[: 4 * _LONG], _LONG) if reflected else "",
        )


def _workspaces(snapshot: RoomSnapshot, skills: Skills) -> Iterator[str]:
    for one in snapshot.room.workspaces.values():
        yield skills.render(
            SKILL,
            "Progress",
            workspace=one_line(one.workspace),
            plan=f"{one.plan_number:g}",
            done=f"{one.completed:g}",
            total=f"{one.total:g}",
            active=f"{one.in_progress:g}",
            blocked=f"{one.blocked:g}",
        )


def _results(snapshot: RoomSnapshot) -> Iterator[str]:
    others = (event for event in snapshot.peer_events if event.name != snapshot.me)
    ended = [event for event in others if event.kind in {"success", "failure"}]
    for event in ended[-_OTHERS_SHOWN:]:
        yield f"{shown(event.name)}: {one_line(event.action)} {one_line(event.target, _LINE)} ({event.kind})"


def _claims(snapshot: RoomSnapshot) -> Iterator[str]:
    for claim in snapshot.room.claims[-_OTHERS_SHOWN:]:
        yield f"{shown(claim.name)}: {one_line(claim.action)} {one_line(claim.target, _LINE)}"


_LEAST_TOKENS = 200
_CARDS_KEPT = 16
_HOST = "host"


@dataclass(frozen=True, slots=True)
class PromptWriter:
    """Writes the prompt for a snapshot.

    Attributes:
        skills: provide the words.
        relationships: our relationships to peers.
        rng: draws the boundary around untrusted text.
        estimate: returns the estimated tokens of a text.
        timezone: of the SOUL's day; "" for the machine's own.

    """

    skills: Skills
    relationships: PeerRelationships
    rng: random.Random
    estimate: Callable[[str], int]
    timezone: str = ""
    _last_framed: LRUCache[str, str] = field(default_factory=lambda: LRUCache(_CARDS_KEPT), init=False)

    def user_message(self, snapshot: RoomSnapshot, config: SpaceConfig, *, room_tokens: int, today: str = "") -> str:
        """Return the message that the turn answers.

        It begins with the cards of those who speak or are named in the talk that it shows; the others stand there by
        name. `room_tokens` is how many tokens it may have, `today` what the room may know of our day.
        """
        framer = Framer(self.skills, self.rng)
        pace = "" if config == SpaceConfig() else format_space_config_for_prompt(config, self.skills)
        told = "\n".join(filter(None, (pace, *notes(snapshot, self.skills))))
        names = _in_talk(snapshot, "\n".join(self._talk(snapshot, room_tokens).lines))
        cards = self._framed_cards(listed(self.skills, "Peers", _cards(snapshot, self.skills, names)))
        theirs = foreign_context(snapshot, self.skills, self._known(names))
        context = [own_context(snapshot, self.skills, today), self._framed(framer, snapshot, theirs)]
        beside = self.estimate(self._rendered(snapshot, cards, context, "", told))
        talk = self._talk(snapshot, room_tokens - beside)
        context.append(self._framed(framer, snapshot, listed(self.skills, "Digest", talk.digest)))
        said = "\n".join(talk.lines)
        conversation = (
            framer.frame("conversation", author="several", uri=snapshot.thread_uri, text=said) if said else "-"
        )
        return self._rendered(snapshot, cards, context, conversation, told)

    def framed_post(self, snapshot: RoomSnapshot, text: str) -> str:
        """Return one message of the host, framed."""
        return Framer(self.skills, self.rng).frame("post", author=_HOST, uri=snapshot.thread_uri, text=text)

    def _talk(self, snapshot: RoomSnapshot, tokens: int) -> Transcript:
        """Return what of the talk is shown if `tokens` are left for it."""
        most = SPACE_IDLE_TALK_TOKENS if is_idle_talk(snapshot) else SPACE_DIGEST_ABOVE_TOKENS
        left = max(_LEAST_TOKENS, min(most, tokens))
        return transcript(snapshot.history, estimate=self.estimate, tokens=left, timezone=self.timezone)

    def _known(self, names: Iterable[str]) -> Iterator[str]:
        for name in names:
            if context := self.relationships.get_peer_relationship_context(name, self.skills):
                yield f"{shown(name)}: {context}"

    def _framed_cards(self, text: str) -> str:
        """Return the cards in a frame; the same cards give the same bytes, so that a service may cache them.

        Their boundary was drawn after they had been written, and is drawn again as soon as one of them differs.
        """
        if text and text not in self._last_framed:
            framer = Framer(self.skills, self.rng)
            self._last_framed[text] = framer.frame("reading", author="several", uri="", text=text)
        return self._last_framed.get(text, "")

    def _rendered(self, snapshot: RoomSnapshot, cards: str, context: list[str], conversation: str, told: str) -> str:
        return self.skills.render(
            SKILL,
            "User Message Template",
            cards=cards,
            present=", ".join(filter(None, (listed_names(snapshot.room.peers), _HOST))),
            typing=listed_names(snapshot.room.typing) or "-",
            context="\n\n".join(filter(None, context)),
            conversation=conversation,
            notes=told,
        )

    @staticmethod
    def _framed(framer: Framer, snapshot: RoomSnapshot, text: str) -> str:
        return framer.frame("reading", author="several", uri=snapshot.thread_uri, text=text) if text else ""


ACTION_SKILL = "space-action"
LOOP = "space"

_ROUNDS = 2
_QUERY_CHARS = 500
_FRAMED_REQUEST_CHARS = 4000
_KEPT_CHARS = 4000


@dataclass(frozen=True, slots=True)
class SpaceTurn:
    """The moment that a turn is about; the tool for a decision exists only in such a turn."""

    snapshot: RoomSnapshot


@dataclass(frozen=True, slots=True)
class ModelDecision:
    """What the model decided, or in `error` why there is no decision.

    Attributes:
        decision: as the model made it.
        commitments: those of its commitments that are complete and of a kind that this SOUL may make.
        dropped: the others, with the reason.
        error: "" if there is a decision.

    """

    decision: SpaceDecision | None = None
    commitments: tuple[Commitment, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    error: str = ""

    @property
    def message(self) -> str:
        """What the model wants to say; "" if it does not want to speak."""
        decision = self.decision
        return decision.message.strip() if decision and decision.should_speak else ""


@dataclass(frozen=True, slots=True)
class Decider:
    """Asks the model what to do in the room.

    Attributes:
        social_only: whether this SOUL has no GitHub.
        session_key: of the session that keeps the talk of the room.
        days: reads what the room may know of our day, for a turn in which the host has just spoken.
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
        """Return what to do now; with `problem`, retry for an open request that is ours: a commitment, nothing else.

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
        """Store what was said for memory, without a decision about it."""
        await self._kept(snapshot, self._turn(snapshot, _importance(snapshot)))

    async def _insist(self, snapshot: RoomSnapshot, problem: str) -> ModelDecision:
        turn = self._turn(snapshot, "commitment")
        system = await self._system(ACTION_SKILL, snapshot, turn, bare=True)
        text = self.skills.render(
            ACTION_SKILL,
            "User Message Template",
            request=self.prompting.framed_post(snapshot, snapshot.request.content[:_FRAMED_REQUEST_CHARS]),
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
        """Store what was said, so that the SOUL can remember the talk later; return the id of the session or ""."""
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
        checked = validate_commitments(parsed.data.commitments, social_only=self.social_only)
        return ModelDecision(parsed.data, checked.valid, checked.dropped)


def _importance(snapshot: RoomSnapshot) -> Importance:
    """Return the importance of a turn: a request that is ours before all talk, the host's words before peers'."""
    if (snapshot.is_open and snapshot.is_owner) or snapshot.is_settled:
        return "commitment"
    return "mention" if snapshot.from_host or snapshot.is_open else "own"


def _raw(turn_result: TurnResult) -> tuple[Any, str]:
    """Return the raw decision, or why there is none; a refused call explains more than the text around it."""
    for call, result in reversed(turn_result.calls):
        if result.ends_turn:
            return result.decision, ""
        if not call.malformed and result.content.startswith("BLOCKED"):
            return None, result.content
    found = read_json(turn_result.text)
    if found is not None:
        return found, ""
    refused = next((result.content for _, result in reversed(turn_result.calls)), "")
    return None, refused or f"the model decided nothing that can be read ({turn_result.stopped})"


def read_json(text: str) -> Mapping[str, Any] | None:
    """Return the object from the first brace of `text` to its last; None if that is no JSON object."""
    start, end = text.find("{"), text.rfind("}")
    return json_object(text[start : end + 1]) if 0 <= start < end else None


def room_facts(snapshot: RoomSnapshot, today: str = "") -> RoomFacts:
    """Return the facts of `snapshot` for a turn that decides whether to speak; `today` is what was done in public."""
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
    """Return the facts of `snapshot` for a turn that makes the commitment that the host asked for, nothing else."""
    asked = RoomFacts(me=snapshot.me, repo=snapshot.repo or "", request=snapshot.request.content)
    return replace(asked, mode="action", owner=snapshot.me, is_owner=True)
