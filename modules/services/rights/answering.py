"""Carries out what people ask about their own data, in their own words, and finds the answer to be given.

The model that answers a post finds the request; words that plainly ask, or that may where no model is to answer, draw
attention to it. Then a model that is shown nothing but the post says which kind of request it is. Everything is done
by code, and only for the account that wrote the post. What is done comes before the answer, and can be done again: a
crash in between repeats both, and the life that sends the answer sends it once.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from operator import itemgetter
from typing import Literal, get_args

from cachetools import LRUCache

from adapters.atproto.richtext import detect_mentions, detect_urls
from common.clock import Clock
from common.constants import HOUR_MS, PORTABLE_MAX_GRAPHEMES
from common.errors import BudgetExceeded, Fatal, SoulError
from common.facts import QuestionFacts
from common.importance import Importance
from common.text.graphemes import fit_post_text, grapheme_len
from common.text.rights_requests import (
    RequestKind,
    also_asks_for_no_reply,
    kind_by_words,
    may_be_rights_request,
)
from common.text.untrusted import one_line
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.agent.one_sentence import SentenceAsker, SentenceQuestion
from modules.services.explanation.story import Story
from modules.services.explanation.why import story_of
from modules.services.inbox.messages import MESSAGES
from modules.services.outbox.people import ActEnd, counts_by_end, messages_to, replies_to
from modules.services.outbox.rules import counts
from modules.services.outbox.rules.rules import REQUESTS
from modules.services.outbox.rules.types import EtiquetteRule
from modules.services.rights import store, tombstones
from modules.services.rights.forgetting import Forgetting
from modules.services.rights.left import REQUEST
from modules.services.rights.policy import may_stand_in_prompt
from modules.services.rights.preferences import Preferences
from modules.services.rights.request_reader import Reading, RequestReader
from modules.services.rights.requests import ForgetRequest, ForgetRequests, forget_at
from modules.services.rights.types import Addressed, Found, RequestOutcome
from modules.services.skills.skills import Skills

SKILL = "rights-answer"
_TOOL = "answer_request"
_TOKENS = 300
_MOST_CHARS = 1_000
_LEAST_CHARS = 6
_NUMBER = re.compile(r"\d{1,3}(?:[.,'\u2019\u00a0\u202f\u066c]\d{3})+(?!\d)|\d+")
_WITH_FACTS: frozenset[RequestKind] = frozenset({"know", "why"})
_TOLD_ROOM = 0.9
"""The model is told of less room than there is: it does not count exactly."""
MOST = PORTABLE_MAX_GRAPHEMES
"""The most graphemes of an answer."""
Misfit = Literal["no words", "too long", "a link", "a figure that is no fact", "no command"]
"""What is wrong with an answer of the model; the skill tells it in `Again`."""
_EDGES = " \"'`\u201c\u201d"


@dataclass(frozen=True, slots=True)
class RightsVoice:
    """What the SOUL says to whoever asked; `contact` is who answers for it."""

    contact: str
    sentences: SentenceAsker
    skills: Skills

    async def say(
        self, told: Mapping[RequestKind, Sequence[str]], language: str, importance: Importance, *, most: int = MOST
    ) -> tuple[str, str]:
        """Return the answer to all requests of a post, each with its facts, in their order, and why words are fixed.

        The reason is "" where all words are the model's. The answer has at most `most` graphemes. What counts or
        explains gets the room that the other answers leave.

        Raises:
            BudgetExceeded: there is no budget for whoever asked.
            Fatal: the process must stop.

        """
        answers: dict[RequestKind, str] = {}
        fixed: dict[str, None] = {}
        joined = self.skills.section(SKILL, "Joined") if len(told) > 1 else ""
        # NOTE(self): of what is deleted within the hour nothing is left that anybody could show.
        contact = "" if "forget" in told else self.contact
        room = most - len(told) + 1
        for number, kind in enumerate(sorted(told, key=lambda kind: kind in _WITH_FACTS)):
            left = room - sum(map(grapheme_len, answers.values()))
            share = left // (len(told) - number)
            variables = {
                "facts": "\n".join(f"- {fact}" for fact in told[kind]),
                "language": language,
                "contact": contact,
            }
            answers[kind], why = await self._say(kind, told[kind], variables, importance, most=share, joined=joined)
            fixed |= {why: None} if why else {}
        return " ".join(answers[kind] for kind in told), "; ".join(fixed)

    async def _say(
        self,
        kind: RequestKind,
        facts: Sequence[str],
        variables: Mapping[str, str],
        importance: Importance,
        *,
        most: int,
        joined: str,
    ) -> tuple[str, str]:
        asked = self.skills.render(SKILL, "Ask", kind, **variables, most=int(most * _TOLD_ROOM))
        counted = facts if kind == "know" else None
        fits = partial(fitting_answer, counted=counted, contacts=(variables["contact"],), most=most)
        text, why = await self._ask(kind, f"{asked}\n{joined}", facts, importance, fits)
        if text:
            return text, ""
        for kept in range(len(facts) or 1, 0, -1):
            shown = {"facts": "; ".join(facts[:kept]), "more": kept < len(facts)}
            plain = one_line(self.skills.render(SKILL, "Plain", kind, **{**variables, **shown}), _MOST_CHARS)
            if grapheme_len(plain) <= most:
                break
        return fit_post_text(plain, max_graphemes=most), why

    async def tell_owner(self, facts: Sequence[str], commands: Sequence[str], language: str) -> str:
        """Return the answer to the owner, with the `commands` in it word for word. Raises as `say`."""
        asked = self.skills.render(
            SKILL,
            "Ask",
            "owner",
            facts="\n".join(f"- {fact}" for fact in facts),
            language=language,
            command="` and `".join(commands),
        )
        fits = partial(fitting_answer, counted=facts, contacts=commands, needed=commands)
        text, _ = await self._ask("owner", asked, facts, "owner", fits)
        return text or fit_post_text(one_line(f"{'; '.join(facts)}.", _MOST_CHARS))

    async def _ask(
        self,
        kind: str,
        asked: str,
        facts: Sequence[str],
        importance: Importance,
        fits: Callable[[str], tuple[str, Misfit | None]],
    ) -> tuple[str, str]:
        """Return what the model says, asked once more where that does not fit; else "" and why."""
        about, misfit = QuestionFacts(f"{SKILL}: {kind}", {"facts": tuple(facts)}), None
        for _ in range(2):
            question = SentenceQuestion(SKILL, asked, _TOOL, "Tool", about, _TOKENS, importance)
            try:
                said = await self.sentences.ask(question)
            except (BudgetExceeded, Fatal):
                raise
            except SoulError as error:
                return "", f"in fixed words, as the model did not answer: {error}"
            text, misfit = fits(said)
            if not misfit:
                return text, ""
            asked += f"\n{self.skills.render(SKILL, 'Again', misfit, said=text)}"
        return "", f"in fixed words, as the model's were refused twice: {misfit}"


def fitting_answer(
    said: str,
    *,
    counted: Sequence[str] | None = None,
    contacts: Sequence[str] = (),
    needed: Sequence[str] = (),
    most: int = MOST,
) -> tuple[str, Misfit | None]:
    """Return the model's words on one line, with nobody named in them, and what is wrong with them, if anything.

    Where facts were `counted`, no figure stands in the words that the facts do not tell; a number may be told in words,
    or not at all.
    """
    words = one_line(said, _MOST_CHARS)
    for span in reversed(detect_mentions(words)):
        words = words[: span.start] + words[span.start :].replace("@", "", 1)
    words = bare = words.strip(_EDGES)
    for contact in filter(None, contacts):
        bare = bare.replace(contact, "")
    misfits: dict[Misfit, bool] = {
        "no words": len(words) < _LEAST_CHARS,
        "too long": grapheme_len(words) > most,
        "a link": bool(detect_urls(bare)),
        "a figure that is no fact": counted is not None and not _figures(bare) <= _figures(" ".join(counted)),
        "no command": not all(command in words for command in needed),
    }
    return words, next((misfit for misfit, is_so in misfits.items() if is_so), None)


def _figures(text: str) -> set[int]:
    """The numbers that a text tells in digits of any script, whatever separates their thousands."""
    return {int("".join(filter(str.isdecimal, found))) for found in _NUMBER.findall(text)}


_REASON_CHARS = 160
_CAME = {"mention": "mention", "reply": "reply", "quote": "quote", "message": "message"}
"""How a post reached us, and the fact in the skill that says so."""


@dataclass(frozen=True, slots=True)
class ReplyStory:
    """Reads the journal, in a transaction that its caller opened; `own_did` is our account.

    Of direct messages it tells in direct messages only.
    """

    skills: Skills
    own_did: Callable[[], str]

    def facts(self, connection: sqlite3.Connection, asked: Addressed) -> list[str]:
        """Return why the reply was given that `asked` answers, else the newest one to its author."""
        stories = (self._story(connection, what, asked.did) for what in self._replies(connection, asked))
        story = next(filter(None, stories), None)
        if story is None or story.trigger is None:
            return [self.skills.render(SKILL, "Facts", "no reply")]
        came = _CAME.get(story.trigger.reason)
        facts = [self.skills.render(SKILL, "Facts", came)] if came else []
        noted = next((one.reason for one in story.decisions if one.act in {"replied", "answered"} and one.reason), "")
        if noted:
            reason = one_line(noted, _REASON_CHARS)
            facts.append(self.skills.render(SKILL, "Facts", "weighed", reason=reason))
        return facts or [self.skills.render(SKILL, "Facts", "no reply")]

    def _replies(self, connection: sqlite3.Connection, asked: Addressed) -> list[str]:
        if asked.uri.startswith(MESSAGES):
            return [*messages_to(connection, asked.did), *replies_to(connection, asked.did)]
        ours = [asked.answers] if asked.answers.startswith(f"at://{self.own_did()}/") else []
        return [*ours, *replies_to(connection, asked.did)]

    def _story(self, connection: sqlite3.Connection, what: str, did: str) -> Story | None:
        try:
            story = story_of(connection, what)
        except SoulError:
            return None
        return story if story.trigger and story.trigger.did == did else None


LOOP = "rights"
_TURN, _NONE = "request-turn", "no-request"
_MOST_READ = 2_000
_PUBLIC_STORES = (
    "received posts",
    *get_args(ActEnd),
    "conversations",
    "memories",
    "rights",
    "journal",
    "store",
    "files",
)
_TOLD_TO_OWNER: frozenset[RequestKind] = frozenset({"know", "forget", "why"})
"""What an owner who asks is told, with the command that does it; the rest of their words are orders, for a turn."""
_SUMMARIES: dict[RequestKind, str] = {
    "know": "@{} asked what is known of them",
    "forget": "@{} asked to be forgotten",
    "no_reply": "@{} asked for no reply",
    "reply_again": "@{} allows replies again",
    "why": "@{} asked why they were answered",
}


@dataclass(slots=True, kw_only=True)
class PersonRequests:
    """What lives ask about a post or a message before they read anything else of it.

    Attributes:
        preferences: says whose posts no model may read; the words alone tell what those ask for.
        reader: asks the model which request it is.
        voice: finds the words of the answer.
        forgetting: tells what the home holds.
        requests: where a request to forget is kept.
        story: tells why a reply was given.
        skills: the words for facts.
        database: who is muted, and who asked for no reply.
        journal: counts the turns, and tells what was asked.
        clock: the time.
        owner_is_visitor: whether the owner's account is one that visitors use: they are answered as anybody.

    """

    preferences: Preferences
    reader: RequestReader
    voice: RightsVoice
    forgetting: Forgetting
    requests: ForgetRequests
    story: ReplyStory
    skills: Skills
    database: Database
    journal: Journal
    clock: Clock
    owner_is_visitor: bool = False
    _read: LRUCache[str, Reading] = field(default_factory=lambda: LRUCache(_MOST_READ), init=False)

    async def carry_out(self, asked: Addressed, found: Found = "possible") -> RequestOutcome | None:
        """Do what somebody asks about their own data; None if they ask for nothing of the kind.

        The owner is told what there is and which command does it; nothing is done. Where others ask for nothing and
        asked for no reply before, nothing is said (`silent`).

        `found` says which posts are read: those in which a request is `possible` by their words; `first`, before its
        turn, such a post only if it asks plainly or its turn would find none; any that the model of a turn `called`
        one. A reading judges the post alone.

        A process reads each post once, and not beyond the limits of `REQUESTS` (but for the owner's).

        Raises:
            BudgetExceeded: there is no budget for whoever wrote it.
            Fatal: the process must stop.
            Transient: the model or the store is briefly unable.

        """
        # NOTE(self): who asked for no reply gets no turn, the owner's turn does not look for requests, and the model of
        # a turn may answer a plain one as if it had carried it out.
        is_plain = kind_by_words(asked.text) is not None
        if found == "first" and not (is_plain or self._is_owners(asked) or await self._no_request(asked)):
            return None
        if found != "called" and not self._may_be_read(asked):
            return await self._no_request(asked)
        reading = self._read.get(asked.uri)
        if reading is None:
            if asked.importance != "owner":
                waits = [(await self._wait_s(rule, asked.did), rule) for rule in REQUESTS]
                wait_s, rule = max(waits, key=itemgetter(0))
                if wait_s:
                    reason = f"{rule.name}: {rule.limit:g} turns are enough for now"
                    return RequestOutcome("later", reason=reason, retry_in_s=wait_s)
                await self._begin_turn(asked)
            reading = await self._reading(asked)
            self._read[asked.uri] = reading = await self._noted(asked, reading)
        if not reading.kinds:
            return await self._no_request(asked)
        if self._is_owners(asked):
            return await self._tell_owner(asked, reading.kinds, reading.language)
        return await self._answer(asked, reading.kinds, reading.language)

    def _may_be_read(self, asked: Addressed) -> bool:
        """Return whether the words of a post are worth a reading.

        The owner's words are orders: of theirs only what plainly asks about themselves is; the rest is for their turn.
        """
        if self._is_owners(asked):
            return kind_by_words(asked.text) in _TOLD_TO_OWNER
        return may_be_rights_request(asked.text)

    async def _reading(self, asked: Addressed) -> Reading | None:
        """What a post asks for; None if the model did not say. Who denies inference is read without the model."""
        preference = (await self.preferences.of([asked.did])).get(asked.did)
        if may_stand_in_prompt(preference):
            return await self.reader.read(asked.text, asked.importance)
        kind = kind_by_words(asked.text)
        if kind == "forget" and also_asks_for_no_reply(asked.text):
            return Reading(("no_reply", "forget"))
        return Reading((kind,) if kind else ())

    def asks_nothing(self, uri: str) -> bool:
        """Return whether a post was read, and asks for nothing."""
        reading = self._read.get(uri)
        return reading is not None and not reading.kinds

    async def _noted(self, asked: Addressed, reading: Reading | None) -> Reading:
        """Note that a post asks for nothing; the owner is told where the model did not say what it asks for."""
        if reading and reading.kinds:
            return reading
        who, data = f"@{asked.handle}", {"act": _NONE}
        entry = Entry("life", LOOP, f"Not a request about personal data: {who}", line=None, data=data)
        if reading is None:
            summary = f"The model did not say whether {who} asks about their own data"
            entry = Entry("error", LOOP, summary, line="warn", reason="`soul why` shows the post", data=data)
        await self.journal.record(replace(entry, trigger_uri=asked.uri, author=asked.handle))
        return reading or Reading()

    def _is_owners(self, asked: Addressed) -> bool:
        return asked.importance == "owner" and not self.owner_is_visitor

    async def _tell_owner(self, asked: Addressed, kinds: Sequence[RequestKind], language: str) -> RequestOutcome | None:
        """Tell the owner what there is, and the commands that show it or do it: a post of theirs deletes nothing."""
        told = [kind for kind in kinds if kind in _TOLD_TO_OWNER]
        if not told:
            return None
        commands: list[str] = []
        facts: list[str] = []
        for kind in told:
            named = {"know": f"soul know {asked.handle}", "forget": "soul run --flush-all"}
            commands.append(named.get(kind, f"soul why {asked.answers or asked.uri}"))
            facts += [] if kind == "forget" else await self._do(asked, kind)
            facts.append(self.skills.render(SKILL, "Facts", f"owner {kind}", command=commands[-1]))
        text = await self.voice.tell_owner(facts, commands, language)
        reason = f"the owner asked about their own data ({', '.join(told)})"
        return RequestOutcome("answer", ("know",), text, reason=reason)

    async def _no_request(self, asked: Addressed) -> RequestOutcome | None:
        if self._is_owners(asked):
            return None
        did = asked.did
        wants_none = await self.database.run(partial(store.no_reply_among, dids=[did]))
        return RequestOutcome("silent", reason="the author asked for no reply") if wants_none else None

    async def _answer(self, asked: Addressed, kinds: tuple[RequestKind, ...], language: str) -> RequestOutcome:
        """Carry out all that a post asks for, in its order, and answer it once."""
        facts = {kind: await self._carried_out(asked, kind) for kind in kinds}
        if await self.database.run(partial(store.muted_among, dids=[asked.did])):
            return RequestOutcome("silent", kinds, reason="the owner muted the author")
        text, fixed = await self.voice.say(facts, language, asked.importance)
        if "forget" in kinds:
            await self._ask_to_forget(asked.did, is_answered=True)
        reason = f"they asked about their own data ({', '.join(kinds)})"
        return RequestOutcome("answer", kinds, text, reason="; ".join(filter(None, (reason, fixed))))

    async def _carried_out(self, asked: Addressed, kind: RequestKind) -> Sequence[str]:
        """Carry a request out and note it; return the facts for the answer."""
        facts = await self._do(asked, kind)
        summary = _SUMMARIES[kind].format(asked.handle)
        entry = Entry("life", LOOP, summary, line="social", trigger_uri=asked.uri, author=asked.handle)
        await self.journal.record(replace(entry, data={"act": REQUEST, "kind": kind}))
        return facts

    async def _do(self, asked: Addressed, kind: RequestKind) -> Sequence[str]:
        """Carry a request out; return the facts for the answer."""
        now = self.clock.now()
        if kind == "know":
            return await self._held(asked)
        if kind == "why":
            return await self.database.run(partial(self.story.facts, asked=asked))
        if kind == "forget":
            at = await self._ask_to_forget(asked.did, is_answered=False)
            hours = math.ceil((at - now).total_seconds() / (HOUR_MS / 1000))
            return [self.skills.render(SKILL, "Facts", "forgotten" if hours <= 1 else "forgotten again", hours=hours)]
        if kind == "no_reply":
            await self.database.run(partial(store.want_no_reply, did=asked.did, now=now))
        else:
            await self.database.run(partial(store.allow_replies, did=asked.did))
        return [self.skills.render(SKILL, "Facts", "asked")]

    async def _ask_to_forget(self, did: str, *, is_answered: bool) -> datetime:
        """Keep the request to forget somebody; return when that is due. Of two the earlier moment holds."""
        last = (await self.database.run(partial(tombstones.forgotten, dids=[did]))).get(did)
        at = forget_at(self.clock, last, is_answered=is_answered)
        self.requests.give(ForgetRequest(did, at))
        return at

    async def _held(self, asked: Addressed) -> list[str]:
        trace = await self.forgetting.trace(asked.did)
        held = {one.store: one.count for one in await self.forgetting.about(trace)}
        held |= await self.database.run(partial(counts_by_end, ids=trace.intents))
        counted = ((name, held.get(name, 0)) for name in _PUBLIC_STORES)
        return [self.skills.render(SKILL, "Facts", name, count=count) for name, count in counted if count]

    async def _begin_turn(self, asked: Addressed) -> None:
        begins = f"A turn about a request of @{asked.handle} begins"
        entry = Entry("life", LOOP, begins, line=None, author=asked.handle, data={"act": _TURN}, dids=(asked.did,))
        await self.journal.record(entry)
        await self.database.run(partial(counts.note, now=self.clock.now(), what=_TURN, did=asked.did))

    async def _wait_s(self, rule: EtiquetteRule, did: str) -> float:
        """Seconds until somebody may have another turn under this rule; 0 if now."""
        now, window = self.clock.now(), timedelta(seconds=self.clock.real(rule.window_s or 0.0))
        begun = await self.database.run(partial(counts.noted, now=now, what=_TURN, did=did, window=window))
        limit = int(rule.limit)
        if len(begun) < limit:
            return 0.0
        return max(1.0, (begun[-limit] + window - now).total_seconds())
