"""Handles one reflection: gathers its material, runs one turn of the model, and stores the result.

A crash before SELF.md changed leaves everything as it was. After a later crash, the history shows by the row's cause
that SELF.md changed, and the experiences that existed when the row was added are marked as integrated.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from common.clock import Clock, iso, local, parse_iso, spoken
from common.errors import Transient
from common.facts import ExperienceFact, ReflectionFacts
from common.provenance import Provenance
from common.text.untrusted import one_line
from modules.lives.growth.policy import (
    KIND,
    MOST_TRIES,
    OTHERS,
    RETRY_S,
    ReflectionDone,
    ReflectionTurn,
    is_private,
    shown,
)
from modules.runtime.database.database import Database
from modules.runtime.events import Publish
from modules.runtime.home import Home
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry, StoredEntry
from modules.runtime.llm.dialect import Message
from modules.runtime.scheduler.policy import is_quiet
from modules.services.agent.prompt.prompter import Prompter
from modules.services.agent.tools.types import Turn
from modules.services.agent.turn.runner import TurnResult, TurnRunner
from modules.services.craft.proposals import (
    OPEN,
    Proposals,
    counted_at,
    friction_stands,
    in_words,
    proposal_stands,
    proposals,
)
from modules.services.craft.record import FrictionRecord
from modules.services.day.gathering import readings_between
from modules.services.experiences import Experience, ExperienceLog
from modules.services.identity.entries import HeldEdit, Version
from modules.services.identity.history import SelfHistory, held_documents, held_skills, rejected_edits, skill_citing
from modules.services.identity.identity import Identity
from modules.services.identity.policy import diff_lines
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.outbox import Outbox
from modules.services.own_feed.expressions import Expressions
from modules.services.relationships import Relationships
from modules.services.skills.own import MOST_PAGE_CHARS
from modules.services.skills.skills import Framer, LocalPage, LocalSkills, Skills, page_in
from modules.services.work.types import Disposition, Handler, WorkItem

SKILL = "reflection"

_POSTS_SINCE, _MOST_POSTS = timedelta(days=2), 6
_POST: tuple[IntentKind, ...] = ("post",)
_TOLD_ELSEWHERE = frozenset({"New Person", "Shared", "Answered", "Liked"})
"""Insights about new people and about our own posts; other parts of the message cover them."""
_INSIGHT_CHARS, _LINE_CHARS = 300, 500
_UNSEEN = {"replies": "", "likes": ""}
_MOST_FRICTION, _OFTEN, _MOST_REJECTED = 12, 2, 5


@dataclass(frozen=True, slots=True)
class Materials:
    """Gathers what a reflection is shown, and renders it in the words of its skill."""

    home: Home
    skills: Skills
    experiences: ExperienceLog
    relationships: Relationships
    expressions: Expressions
    outbox: Outbox
    journal: Journal
    friction: FrictionRecord
    proposals: Proposals
    local_skills: LocalSkills
    clock: Clock
    rng: random.Random
    timezone: str = ""

    async def message(self, experiences: Sequence[Experience], *, is_ordered: bool) -> str:
        """Return the user message of a reflection; `is_ordered`: the owner asked for it."""
        now = self.clock.now()
        changes, taken_back = await asyncio.to_thread(self._history)
        readers = (*(["Ordered"] if is_ordered else ()), "Owner" if is_private(experiences) else "Room")
        return self.skills.render(
            SKILL,
            "User Message Template",
            today=spoken(local(now, self.timezone)),
            since=await self._since(now),
            experiences=self._experiences([one for one in experiences if one.trust not in OTHERS]),
            with_others=self._framed(self._experiences([one for one in experiences if one.trust in OTHERS])),
            insights="\n".join(self._insights()),
            relationships=await self._people(),
            posts=await self._posts(now),
            friction=await self._friction(now),
            skills=await self._own_skills(),
            waiting=", ".join(await asyncio.to_thread(held_documents, self.home)),
            rejected=self._lines("Rejected", (await asyncio.to_thread(rejected_edits, self.home))[-_MOST_REJECTED:]),
            proposal=await self._proposal(),
            changes="\n".join(changes),
            taken_back=taken_back,
            reader=" ".join(self.skills.render(SKILL, "Reader", one).strip() for one in readers),
        )

    async def _own_skills(self) -> str:
        """Return each of the SOUL's own skills with its page, so that it can change one, then those that wait.

        A page that waits is framed if words of others are behind it.
        """
        held = await asyncio.to_thread(held_skills, self.home)
        pages: list[tuple[LocalPage, HeldEdit | None]] = [(page, None) for page in await self.local_skills.own()]
        pages += [(page, one) for name, one in held.items() if (page := page_in(name, one.content))]
        told = (
            {
                **asdict(page.entry),
                "is_held": one is not None,
                "is_seen": one is not None and one.is_seen,
                "is_own": one is None or one.is_own,
                "page": (text if one is None or one.is_own else self._framed(text)).splitlines(),
            }
            for page, one in pages
            for text in (page.text[:MOST_PAGE_CHARS],)
        )
        return self._lines("Own Skill", told)

    async def has_others(self) -> bool:
        """Return whether it tells people's handles, or pages with words of others behind them."""
        held = await asyncio.to_thread(held_skills, self.home)
        return bool(await self.relationships.closest()) or not all(one.is_own for one in held.values())

    async def _since(self, now: datetime) -> str:
        began = await self.journal.began()
        days, kept = (now - began).days if began else 0, await self.experiences.count()
        return self.skills.render(SKILL, "Since", days=days, kept=kept).strip() if days >= 1 else ""

    def _experiences(self, experiences: Sequence[Experience]) -> str:
        """Return a heading for each kind and below it a line for each experience; strangers appear as numbers."""
        kinds = self.skills.subsections(SKILL, "Kinds")
        strangers: dict[str, int] = {}
        lines: defaultdict[str, list[str]] = defaultdict(list)
        for one in experiences:
            is_stranger = one.trust == "stranger"
            told = {
                "name": one.name,
                "where": one.source,
                "about": one_line(one.about, _LINE_CHARS) or "-",
                "who": f", {one_line(one.person)}" if one.person else "",
                "number": strangers.setdefault(one.did or one.name, len(strangers) + 1) if is_stranger else 0,
            }
            lines[one.type].append(self._lines("Experience Of Stranger" if is_stranger else "Experience", [told]))
        return "\n\n".join("\n".join([kinds[kind].strip(), *lines[kind]]) for kind in kinds if kind in lines)

    async def _people(self) -> str:
        """Return the people it talks with most, framed because people choose their own handles."""
        return self._framed("\n".join(f"- {line}" for line in await self.relationships.closest()))

    def _framed(self, text: str) -> str:
        """Return text that may contain what others chose or wrote, in a frame; "" for empty text."""
        return Framer(self.skills, self.rng).frame("conversation", author="", uri="", text=text) if text else ""

    def _insights(self) -> list[str]:
        known = self.skills.subsections("prosoche", "Insights")
        return [
            self.skills.render("prosoche", "Insights", one.code, about=one_line(one.about, _INSIGHT_CHARS)).strip()
            for one in self.relationships.reflection.insights
            if one.code in known and one.code not in _TOLD_ELSEWHERE
        ]

    def _lines(self, part: str, told: Iterable[Mapping[str, Any]]) -> str:
        """Render a part of the skill for each of `told`; return the results, one per line."""
        return "\n".join(self.skills.render(SKILL, part, **one).strip() for one in told)

    async def _posts(self, now: datetime) -> str:
        """Return a line for each of our newest published posts, with its replies and likes if these are known."""
        posts = [
            one
            for one in await self.outbox.since(_POST, now - _POSTS_SINCE)
            if one.state == "done" and (await self.outbox.standing("delete", one.result_uri or "")).code != "done"
        ]
        looked_at = {one.post_uri: one.engagement.model_dump() for one in self.expressions.all() if one.engagement}
        told = [
            {"text": one_line(one.body.public_text, _INSIGHT_CHARS), **looked_at.get(one.result_uri or "", _UNSEEN)}
            for one in posts[:_MOST_POSTS][::-1]
        ]
        return self._lines("Post", told)

    async def _friction(self, now: datetime) -> str:
        """Return a line for each friction that occurred at least twice within a week, or within the last day.

        The friction that is to be mended now is left out.
        """
        await self.friction.count()
        mended = proposal.friction if (proposal := await self.proposals.to_write()) else None
        told = [
            {
                "what": one.description,
                "count": count,
                "outcome": friction_stands(one) if one.reason else "",
                "last": (await self.friction.evidence(one, one.own_entries[-1:])).rpartition("\n")[2][2:],
            }
            for one, count in (await self.friction.of_the_week())[:_MOST_FRICTION]
            if one.id != mended and (count >= _OFTEN or now - parse_iso(one.last_at) < self.friction.day)
        ]
        return self._lines("Friction", told)

    async def to_mend(self) -> str:
        """Return what the SOUL decided to write a skill about: a friction in codes, or a wish; "" if nothing."""
        proposal = await self.proposals.to_write()
        about = await self.friction.get(proposal.friction) if proposal else None
        return about.description if about else proposal.wish if proposal else ""

    async def _proposal(self) -> str:
        """Return the part of the message about the skill to write in this reflection; "" if there is none."""
        if (proposal := await self.proposals.to_write()) is None:
            return ""
        about = await self.friction.get(proposal.friction)
        what, evidence = await self.to_mend(), await self.friction.evidence(about, proposal.entries)
        return self.skills.render(SKILL, "Proposal", what=what, evidence=evidence, reason=proposal.why).strip()

    def _history(self) -> tuple[list[str], list[str]]:
        """Return the last change of SELF.md as a diff, and the lines that the owner removed."""
        with SelfHistory(self.home).alone() as history:
            texts = [history.read(one).decode(errors="replace") for one in history.versions()[:2]]
            undone = sorted(history.taken_back())
        return diff_lines(texts[1], texts[0]) if len(texts) > 1 else [], undone


REFLECTED = "reflected"
"""The `act` of the journal entry of a reflection that changed SELF.md."""

_LOOKED_BACK = timedelta(days=7)
_CHANGES_SHOWN, _BECAUSE_SHOWN = 5, 5


@dataclass(frozen=True, slots=True)
class GrowthReport:
    """Gathers the state of growth, as fields of the status file."""

    home: Home
    journal: Journal
    database: Database
    experiences: ExperienceLog
    friction: FrictionRecord
    clock: Clock

    async def gather(self) -> dict[str, Any]:
        """Return `changes` and `readings`, newest first, `friction`, most frequent first, and what waits.

        `open` is the number of experiences that wait for a reflection, `waiting` the changes that wait for the owner's
        approval. Readings for the owner are left out, because others may see the page. `proposal` describes the open
        proposal. `countedAt` is when the days after a proposal that was taken are over.
        """
        now = self.clock.now()
        entries = await self.journal.with_act(KIND, REFLECTED, now - _LOOKED_BACK, now)
        read = await self.database.run(partial(readings_between, start=iso(now - _LOOKED_BACK), end="~"))
        told = [one for one in read if one.finding and not one.owners]
        proposed, met = await self.database.run(proposals), await self.friction.of_the_week()
        known = {one.id for one, _ in met}
        others = [one for one in await self.friction.all() if one.id not in known]
        met += [(one, 0) for one in others if one.state in {"proposed", "mended"}]
        counted = {one.friction: iso(counted_at(one, self.friction.day)) for one in proposed if one.state == "taken"}
        return {
            "open": len(await self.experiences.open()),
            "changes": [await self._change(one) for one in reversed(entries[-_CHANGES_SHOWN:])],
            "readings": [asdict(one) for one in reversed(told[-_CHANGES_SHOWN:])],
            "friction": [
                {
                    "category": one.category,
                    "description": in_words(one),
                    "stands": friction_stands(one),
                    "count": count,
                    "state": one.state,
                    "proposal": dict(zip(("state", "about"), one.came_of_it, strict=True)),
                    "countedAt": counted.get(one.id, ""),
                }
                for one, count in met
            ],
            "proposal": next((proposal_stands(one) for one in proposed if one.state in OPEN), ""),
            "waiting": await asyncio.to_thread(self._waiting),
        }

    def _waiting(self) -> list[dict[str, Any]]:
        """Return the changes of its files that wait for the owner, without marking them as seen."""
        told: list[dict[str, Any]] = []
        for file in held_documents(self.home):
            with SelfHistory(self.home, file).alone() as history:
                held = history.told_held()
                before = history.replaced_by(held).decode(errors="replace") if held else ""
            if held:
                diff = diff_lines(before, held.content)
                told.append({"file": file, "at": held.at, "reason": held.reason, "why": held.why, "diff": diff})
        return told

    async def _change(self, stored: StoredEntry) -> dict[str, Any]:
        data = stored.entry.data
        found = await self.experiences.named([str(name) for name in data["experiences"]])
        return {
            "at": stored.at,
            "version": data["version"],
            "reason": stored.entry.reason,
            "learned": data["learned"],
            "diff": data["diff"],
            "because": [because(one) for one in found[:_BECAUSE_SHOWN]],
        }


def because(one: Experience) -> dict[str, str]:
    """Return an experience as the reason for a change; one with a stranger without the person and the text."""
    is_stranger = one.trust == "stranger"
    who = "" if is_stranger else one.person
    about = "" if is_stranger else one.about
    return {"name": one.name, "type": one.type, "source": one.source, "trust": one.trust, "who": who, "about": about}


MOST_ROUNDS = 6

_LAST_WORDS_CHARS = 2_000
"""How many characters of the model's last text the owner is shown."""

REFLECTION_TOOLS = ("memory_search", "memory_history", "self_read", "self_update", "skill_propose", "want_to_know")
_UPDATE = "self_update"
_NOTHING = "nothing lasts"
"""Stands for the version of SELF.md in experiences that the SOUL saw without changing anything."""
_UNTIL_MORNING_S = timedelta(hours=1).total_seconds()


@dataclass(frozen=True, slots=True)
class _Thought:
    """The result of a reflection: the model's last text, and the status of each change (`changed`, `held`, …)."""

    text: str
    statuses: tuple[str, ...]
    reason: str = ""


@dataclass(kw_only=True)
class ReflectionHandler(Handler):
    """Handles reflections; at night, if the clock keeps hours, only those that the owner ordered."""

    kind = KIND
    most_tries = MOST_TRIES
    is_public = False
    line = "refl"

    home: Home
    materials: Materials
    experiences: ExperienceLog
    prompter: Prompter
    turn_runner: TurnRunner
    identity: Identity
    journal: Journal
    publish: Publish
    clock: Clock
    timezone: str = ""

    async def handle(self, item: WorkItem) -> Disposition:
        """Reflect once. At night or if nothing is new, do so only if the owner ordered it."""
        await self._proposed()
        if (done := await self._version_of(item.cause_id)) is not None:
            seen = shown([one for one in await self.experiences.open() if one.id <= int(item.payload.get("seen", 0))])
            await self.experiences.integrate([one.id for one in seen], done.name)
            return Disposition("done", "changed", "done on an earlier try")
        is_forced = bool(item.payload.get("forced"))
        if not is_forced and is_quiet(self.clock.now(), self.timezone, keeps_hours=self.clock.keeps_hours):
            return Disposition("later", "night", "it is night", _UNTIL_MORNING_S)
        has_proposal = await self.materials.proposals.to_write() is not None
        gathered = shown(await self.experiences.open())
        # NOTE(self): a skill is written only in a turn that shows nobody else's words.
        gathered = [one for one in gathered if not (has_proposal and one.trust in OTHERS)]
        if not gathered and not (is_forced or has_proposal):
            return Disposition("silent", "nothing-new", "nothing happened that is worth a thought")
        try:
            thought = await self._think(item, gathered)
        except Transient as error:
            retry_in_s = max(RETRY_S, self.clock.lived(error.retry_after or 0.0))
            return Disposition("undecided", "unanswered", str(error), retry_in_s)
        return await self._conclude(item, gathered, thought)

    def summary(self, item: WorkItem, disposition: Disposition) -> str:
        """Return the journal line about a disposition, without its reason."""
        if disposition.act == "later":
            return super().summary(item, disposition)
        return "Looked back on what it lived through"

    async def _think(self, item: WorkItem, gathered: Sequence[Experience]) -> _Thought:
        told = await self.materials.message(gathered, is_ordered=bool(item.payload.get("forced")))
        result = await self._run(item, gathered, (Message("user", told),))
        outcomes = [answer for call, answer in result.calls if call.name == _UPDATE]
        await self._proposed(result)
        statuses = tuple((one.outcome.act or "self refused").removeprefix("self ") for one in outcomes)
        reason = next((one.outcome.reason or one.content for one in reversed(outcomes)), result.text)
        return _Thought(result.text, statuses, reason)

    async def _proposed(self, result: TurnResult | None = None) -> None:
        """Store which skill it proposed, now or before a crash, or that it proposed none although it had decided to."""
        if (proposal := await self.materials.proposals.to_write()) is None:
            return
        if made := await asyncio.to_thread(skill_citing, self.home, proposal.cause):
            await self.materials.proposals.put(proposal, state="waiting", made=made)
        elif result and not result.cut_off:
            reason = f"it wrote no skill: {one_line(result.text, _INSIGHT_CHARS)}"
            await self.materials.proposals.put(proposal, state="left", reason=reason)

    async def _run(self, item: WorkItem, gathered: Sequence[Experience], messages: Sequence[Message]) -> TurnResult:
        system = await self.prompter.prompt(
            skill=SKILL,
            audience="bluesky",
            session_key=KIND,
            now=self.clock.now(),
            least=Provenance.SELF,
        )
        proposal = await self.materials.proposals.to_write()
        subject = ReflectionTurn({one.name: one for one in gathered}, proposal.cause if proposal else "")
        has_others = subject.has_others or await self.materials.has_others()
        told_of = Provenance.STRANGER if has_others else Provenance.SELF
        turn = Turn(KIND, Provenance.SELF, item.cause_id, subject, item.importance, told_of=told_of)
        return await self.turn_runner.run_turn(
            turn=turn,
            system=system,
            messages=messages,
            purpose=SKILL,
            max_rounds=MOST_ROUNDS,
            only=REFLECTION_TOOLS,
            about=_facts(gathered, self.identity.extract().raw_sections, await self.materials.to_mend()),
        )

    async def _conclude(self, item: WorkItem, gathered: Sequence[Experience], thought: _Thought) -> Disposition:
        said = one_line(thought.text, _LAST_WORDS_CHARS)
        if "changed" in thought.statuses:
            return await self._taken_up(item, gathered, thought)
        if "held" in thought.statuses:
            reason = " ".join(filter(None, ("the change of SELF.md waits for your approval.", said)))
            return Disposition("done", "held", reason, held=True)
        if "refused" in thought.statuses:
            act = "silent" if thought.text.strip() else "undecided"
            reason = " ".join(filter(None, (f"A change of SELF.md was refused: {thought.reason}", said)))
            return Disposition(act, "refused", reason, RETRY_S)
        if thought.text.strip():
            await self.experiences.integrate([one.id for one in gathered], _NOTHING)
            self.materials.relationships.integrate_insights()
        return Disposition("silent", "unchanged", said or "nothing in it lasts")

    async def _taken_up(self, item: WorkItem, gathered: Sequence[Experience], thought: _Thought) -> Disposition:
        """Mark the experiences as integrated, record the change of SELF.md, and publish it if nothing is private."""
        versions = await asyncio.to_thread(self._versions, item.cause_id)
        newest, before = versions[0], versions[-1]
        await self.experiences.integrate([one.id for one in gathered], newest[0].name)
        cites = {name for version, _ in versions[:-1] for name in version.cites}
        cited = [one for one in gathered if one.name in cites]
        data = {
            "act": REFLECTED,
            "version": newest[0].name,
            "experiences": [one.name for one in cited],
            "diff": diff_lines(before[1], newest[1]),
            "learned": thought.text,
        }
        dids = tuple({one.did for one in cited if one.did})
        entry = Entry("decision", KIND, "SELF.md grew", "refl", newest[0].reason, item.cause_id, data=data, dids=dids)
        await self.journal.record(entry)
        if thought.text and not is_private(gathered):
            self.publish(ReflectionDone(thought.text))
        return Disposition("done", "changed", one_line(thought.text, _LAST_WORDS_CHARS) or newest[0].reason)

    async def _version_of(self, cause_id: str) -> Version | None:
        """Return the newest version of SELF.md that a reflection made, or None."""
        found = await asyncio.to_thread(self._versions, cause_id)
        return found[0][0] if found else None

    def _versions(self, cause_id: str) -> list[tuple[Version, str]]:
        """Return the versions that a reflection made, newest first, then the one before them; each with its text."""
        history = SelfHistory(self.home)
        with history.alone():
            versions = history.versions()
            made = [place for place, one in enumerate(versions) if cause_id in one.cites]
            last = made[-1] + 1 if made else 0
            chosen = versions[made[0] : last + 1] if made else []
            return [(one, history.read(one).decode(errors="replace")) for one in chosen]


def _facts(gathered: Sequence[Experience], sections: Mapping[str, str], proposal: str) -> ReflectionFacts:
    """Return the facts of a reflection turn."""
    facts = tuple(ExperienceFact(one.name, one.type, one.did, one.trust, one.about) for one in gathered)
    return ReflectionFacts(facts, sections, proposal)
