"""Recognises and carries out what people ask about their own data, in their own words, and finds the answer to send.

The model gets that one post and a page of instructions, and no tools. Its answer is words from a fixed list and a
language code, so that nothing in the post can do more than ask.

The model that answers a post reports the request. Words that plainly ask, or that may ask where no model is to answer,
lead to a reading too. A model that sees nothing but the post then says which kind of request it is. Code does the rest,
and only for the account that wrote the post. The request is carried out before the answer and can be repeated: after a
crash in between both are repeated, and the life that sends the answer sends it once.
"""

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
from common.provenance import Importance
from common.text.graphemes import fit_post_text, grapheme_len
from common.text.rights_requests import (
    MOST_CHARS,
    RequestKind,
    also_asks_for_no_reply,
    kind_by_words,
    may_be_rights_request,
)
from common.text.untrusted import one_line
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.gateway import LLMGateway
from modules.services.agent.one_sentence import SentenceAsker, SentenceQuestion
from modules.services.agent.verdicts import without_quotation_marks
from modules.services.explanation.rendering import story_of
from modules.services.explanation.story import Story
from modules.services.inbox.messages import MESSAGES
from modules.services.inbox.received import MESSAGES_OF_PEOPLE
from modules.services.outbox.bodies import DeleteBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.people import (
    ACTS_OF_PEOPLE,
    ActKind,
    about_account,
    counts_by_kind,
    messages_to,
    replies_to,
)
from modules.services.outbox.rules import counts
from modules.services.outbox.rules.rules import REQUESTS, EtiquetteRule
from modules.services.outbox.types import ProposedAction
from modules.services.rights import store, tombstones
from modules.services.rights.forgetting import Forgetting
from modules.services.rights.mute import want_no_reply
from modules.services.rights.policy import Addressed, Found, RequestOutcome, may_stand_in_prompt
from modules.services.rights.preferences import Preferences
from modules.services.rights.records import REQUEST
from modules.services.rights.requests import ForgetRequest, ForgetRequests, forget_at
from modules.services.skills.questions import ModelQuestion
from modules.services.skills.skills import Skills

_READER_SKILL = "rights-request"
_READER_TOKENS = 80
_ANSWER_CHARS = 1_000
_FIELD = re.compile(r'"kinds?"\s{0,3}:\s{0,3}(?:"\w{1,20}"|\[[^\[\]]{0,200}\])')
_NAMED = re.compile(r'"(\w{1,20})"')
_LANGUAGE = re.compile(r'"language"\s{0,3}:\s{0,3}"([a-z]{2})\b')
_ENGLISH = "en"
_KINDS: Mapping[str, RequestKind | None] = {kind: kind for kind in get_args(RequestKind)} | {"none": None}


@dataclass(frozen=True, slots=True)
class Reading:
    """The requests in a post, in their order (none if there are none), and the two-letter code of its language."""

    kinds: tuple[RequestKind, ...] = ()
    language: str = _ENGLISH


@dataclass(frozen=True, slots=True)
class RequestReader:
    """Asks `gateway` with the texts of the skill `rights-request`."""

    gateway: LLMGateway
    skills: Skills

    async def read(self, text: str, importance: Importance) -> Reading | None:
        """Return what a post asks for, or None if two answers of the model cannot be read. Raises `SoulError`."""
        question = ModelQuestion(self.gateway, self.skills, _READER_SKILL, _READER_TOKENS, importance)
        shown = without_quotation_marks(one_line(text, MOST_CHARS))
        return await question.read("post", shown, (text,), reading_of)


def reading_of(answer: str) -> Reading | None:
    """Return what a model's answer says, or None if it names no kind or an unknown one."""
    said = answer[:_ANSWER_CHARS].lower()
    found = _FIELD.search(said)
    named = _NAMED.findall(found[0].partition(":")[2]) if found else [said.strip(" .\"'`\n")]
    if not _KINDS.keys() >= set(named):
        return None
    language = _LANGUAGE.search(said)
    kinds = tuple(kind for one in dict.fromkeys(named) if (kind := _KINDS[one]))
    return Reading(kinds, language[1] if language else _ENGLISH)


SKILL = "rights-answer"
_TOOL = "answer_request"
_TOKENS = 300
_MOST_CHARS = 1_000
_LEAST_CHARS = 6
_NUMBER = re.compile(r"\d{1,3}(?:[.,'\u2019\u00a0\u202f\u066c]\d{3})+(?!\d)|\d+")
_WITH_FACTS: frozenset[RequestKind] = frozenset({"know", "why"})
_TOLD_ROOM = 0.9
"""The model is told a smaller limit than the real one because it does not count exactly."""
MOST = PORTABLE_MAX_GRAPHEMES
"""The maximum length of an answer, in graphemes."""
Misfit = Literal["no words", "too long", "a link", "a figure that is no fact", "no command"]
"""The problems of an answer of the model; the section `Again` of the skill explains each."""
_EDGES = " \"'`\u201c\u201d"


@dataclass(frozen=True, slots=True)
class RightsVoice:
    """Writes what the SOUL says to the person who asked; `contact` returns who is responsible for it."""

    contact: Callable[[], str]
    sentences: SentenceAsker
    skills: Skills

    async def say(
        self, told: Mapping[RequestKind, Sequence[str]], language: str, importance: Importance, *, most: int = MOST
    ) -> tuple[str, str]:
        """Return one answer to all requests of a post, in their order, and the reason for fixed words.

        The reason is "" if all words are the model's. The answer has at most `most` graphemes. The kinds with facts
        (`know`, `why`) get the space that the other answers leave.

        Raises:
            BudgetExceeded: there is no budget for the person who asked.
            Fatal: the process must stop.

        """
        answers: dict[RequestKind, str] = {}
        fixed: dict[str, None] = {}
        joined = self.skills.section(SKILL, "Joined") if len(told) > 1 else ""
        # NOTE(self): nobody can show anything of what is deleted within the hour.
        contact = "" if "forget" in told else self.contact()
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
        fits = partial(fitting_answer, counted=facts, contacts=(variables["contact"],), most=most)
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
        """Return the answer to the owner, with each of the `commands` word for word. Raises as `say`."""
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
        """Return the model's answer, asked once more if the first does not fit; otherwise "" and the reason."""
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
    counted: Sequence[str],
    contacts: Sequence[str] = (),
    needed: Sequence[str] = (),
    most: int = MOST,
) -> tuple[str, Misfit | None]:
    """Return the model's words on one line, without mentions, and what is wrong with them, or None.

    The words may contain no figure that the `counted` facts lack; a number may be written in words or left out.
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
        "a figure that is no fact": not _figures(bare) <= _figures(" ".join(counted)),
        "no command": not all(command in words for command in needed),
    }
    return words, next((misfit for misfit, is_so in misfits.items() if is_so), None)


def _figures(text: str) -> set[int]:
    """Return the numbers that a text writes in digits of any script, with any separator of thousands."""
    return {int("".join(filter(str.isdecimal, found))) for found in _NUMBER.findall(text)}


_REASON_CHARS = 160
_CAME = {"mention": "mention", "reply": "reply", "quote": "quote", "message": "message"}
"""Maps how a post reached us to the fact in the skill that says so."""


@dataclass(frozen=True, slots=True)
class ReplyStory:
    """Reads from the journal why a reply was given, in a transaction that its caller opened; `own_did` is our account.

    It tells about direct messages only in direct messages.
    """

    skills: Skills
    own_did: Callable[[], str]

    def facts(self, connection: sqlite3.Connection, asked: Addressed) -> list[str]:
        """Return why we gave the reply that `asked` answers; otherwise why we gave the newest reply to its author."""
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
_OUR_MESSAGE: ActKind = "direct message"
_TOLD_TO_OWNER: frozenset[RequestKind] = frozenset({"know", "forget", "why"})
"""The kinds about which the owner is told a command; any other request of the owner is an order, for a turn."""
_SUMMARIES: dict[RequestKind, str] = {
    "know": "@{} asked what is known of them",
    "forget": "@{} asked to be forgotten",
    "no_reply": "@{} asked for no reply",
    "reply_again": "@{} allows replies again",
    "why": "@{} asked why they were answered",
    "delete": "@{} asked for a post or reply about them to be deleted",
}


@dataclass(slots=True, kw_only=True)
class PersonRequests:
    """Handles the requests in a post or a message before a life reads anything else of it.

    Attributes:
        preferences: says whose posts no model may read; such posts are judged by their words alone.
        reader: asks the model which request it is.
        voice: writes the answer.
        forgetting: says what the home holds.
        requests: stores a request to forget.
        story: says why a reply was given.
        skills: the texts of the facts.
        database: who is muted, and who asked for no reply.
        journal: counts the turns and records the requests.
        clock: the time.
        outbox: deletes our own posts and replies.
        owner_is_visitor: whether visitors use the owner's account too; it is then answered like any other.

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
    outbox: Outbox
    owner_is_visitor: bool = False
    _read: LRUCache[str, Reading] = field(default_factory=lambda: LRUCache(_MOST_READ), init=False)

    async def carry_out(self, asked: Addressed, found: Found = "possible") -> RequestOutcome | None:
        """Carry out what a person asks about their own data; return None if there is nothing to answer.

        The owner is told what there is and which command does it; nothing is carried out. If a person who asked for no
        reply before now asks for nothing, the outcome is `silent`.

        `found` says which posts are read. `possible`: those whose words may be a request. `first` (before a turn): of
        these, only posts that ask plainly, of the owner, or of people who asked for no reply. `called`: any post in
        which the model of a turn found a request. A reading judges the post alone.

        A process reads each post once, within the limits of `REQUESTS`; the owner's posts are not limited.

        Raises:
            BudgetExceeded: there is no budget for the author.
            Fatal: the process must stop.
            Transient: the model or the store is briefly unavailable.

        """
        # NOTE(self): a person who asked for no reply gets no turn, the owner's turn does not look for requests, and the
        # model of a turn may answer a plain request as if it had carried it out.
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
            reading = await self._reading(asked)
            if asked.importance != "owner":
                await self._count_turn(asked)
            self._read[asked.uri] = reading = await self._noted(asked, reading)
        if not reading.kinds:
            return await self._no_request(asked)
        if self._is_owners(asked):
            return await self._tell_owner(asked, reading.kinds, reading.language)
        return await self._answer(asked, reading.kinds, reading.language)

    def _may_be_read(self, asked: Addressed) -> bool:
        """Return whether the words of a post justify a reading.

        The owner's words are orders for their turn; only a post that plainly asks about the owner is read here.
        """
        if self._is_owners(asked):
            return kind_by_words(asked.text) in _TOLD_TO_OWNER
        return may_be_rights_request(asked.text)

    async def _reading(self, asked: Addressed) -> Reading | None:
        """Return what a post asks for, or None if the model did not say; no model reads authors who deny inference."""
        preference = (await self.preferences.of([asked.did])).get(asked.did)
        if may_stand_in_prompt(preference):
            return await self.reader.read(asked.text, asked.importance)
        kind = kind_by_words(asked.text)
        if kind == "forget" and also_asks_for_no_reply(asked.text):
            return Reading(("no_reply", "forget"))
        return Reading((kind,) if kind else ())

    def asks_nothing(self, uri: str) -> bool:
        """Return whether a post was read and asks for nothing."""
        reading = self._read.get(uri)
        return reading is not None and not reading.kinds

    async def _noted(self, asked: Addressed, reading: Reading | None) -> Reading:
        """Record that a post asks for nothing; warn the owner if the model did not say what it asks for."""
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
        """Tell the owner what there is and the commands that show it or do it; a post of the owner deletes nothing."""
        told = [kind for kind in kinds if kind in _TOLD_TO_OWNER]
        if not told:
            return None
        commands: list[str] = []
        shown: list[str] = []
        facts: list[str] = []
        for kind in told:
            named = {"know": f"soul know {asked.handle}", "forget": "soul run --flush-all"}
            commands.append(named.get(kind, f"soul why {asked.answers or asked.uri}"))
            facts += [] if kind == "forget" else await self._do(asked, kind)
            shown.append(self.skills.render(SKILL, "Facts", f"owner {kind}", command=commands[-1]))
        # NOTE(self): the end of a text that is too long is cut off.
        text = await self.voice.tell_owner([*shown, *facts], commands, language)
        reason = f"the owner asked about their own data ({', '.join(told)})"
        return RequestOutcome("answer", ("know",), text, reason=reason)

    async def _no_request(self, asked: Addressed) -> RequestOutcome | None:
        if self._is_owners(asked):
            return None
        did = asked.did
        wants_none = await self.database.run(partial(store.no_reply_among, dids=[did]))
        return RequestOutcome("silent", reason="the author asked for no reply") if wants_none else None

    async def _answer(self, asked: Addressed, kinds: tuple[RequestKind, ...], language: str) -> RequestOutcome:
        """Carry out everything that a post asks for, in its order, and answer once."""
        facts = {kind: await self._carried_out(asked, kind) for kind in kinds}
        if await self.database.run(partial(store.muted_among, dids=[asked.did])):
            return RequestOutcome("silent", kinds, reason="the owner muted the author")
        text, fixed = await self.voice.say(facts, language, asked.importance)
        if "forget" in kinds:
            await self._ask_to_forget(asked.did, is_answered=True)
        reason = f"they asked about their own data ({', '.join(kinds)})"
        return RequestOutcome("answer", kinds, text, reason="; ".join(filter(None, (reason, fixed))))

    async def _carried_out(self, asked: Addressed, kind: RequestKind) -> Sequence[str]:
        """Carry out a request and record it; return the facts for the answer."""
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
        if kind == "delete":
            return [self.skills.render(SKILL, "Facts", await self._delete(asked))]
        if kind == "no_reply":
            for entry in await self.database.run(partial(want_no_reply, did=asked.did, now=now)):
                await self.journal.record(entry)
        else:
            await self.database.run(partial(store.allow_replies, did=asked.did))
        return [self.skills.render(SKILL, "Facts", "asked")]

    async def _delete(self, asked: Addressed) -> str:
        """Delete the post or reply that is meant; return the fact in the skill that says what became of it.

        It is the one that `asked` answers, if it answers or names the person; elsewhere our newest reply to them.
        """
        before = await self.outbox.accepted(asked.uri, "delete")
        if not before:
            about = partial(about_account, did=asked.did, handle=asked.handle, own_did=self.story.own_did())
            uri = await self.database.run(partial(about, answered=asked.answers))
            action = ProposedAction(DeleteBody(uri=uri), cause_id=asked.uri, urgent=True)
            submitted = await self.outbox.submit(action) if uri else None
            before = [submitted.intent] if submitted and submitted.accepted else []
        return ("delete waits" if before[0].state == "held" else "deleted") if before else "nothing to delete"

    async def _ask_to_forget(self, did: str, *, is_answered: bool) -> datetime:
        """Store the request to forget a person and return when it is due; the earlier of two requests holds."""
        last = (await self.database.run(partial(tombstones.forgotten, dids=[did]))).get(did)
        at = forget_at(self.clock, last, is_answered=is_answered)
        self.requests.give(ForgetRequest(did, at))
        return at

    async def _held(self, asked: Addressed) -> list[str]:
        """Return a fact for each store, and for each kind of act; in public none about direct messages."""
        is_private = asked.uri.startswith(MESSAGES)
        trace = await self.forgetting.trace(asked.did)
        acts = await self.database.run(partial(counts_by_kind, ids=trace.intents))
        told: list[str] = []
        for held in await self.forgetting.about(trace):
            if held.store == ACTS_OF_PEOPLE.store:
                told += [
                    self.skills.render(SKILL, "Facts", end, acts=self._acts(kind), count=count)
                    for (kind, end), count in acts.items()
                    if is_private or kind != _OUR_MESSAGE
                ]
            elif held.count and (is_private or held.store != MESSAGES_OF_PEOPLE.store):
                told.append(self.skills.render(SKILL, "Facts", held.store, count=held.count))
        return told

    def _acts(self, kind: ActKind) -> str:
        return self.skills.subsection(SKILL, "Acts", kind).strip()

    async def _count_turn(self, asked: Addressed) -> None:
        read = f"A turn about a request of @{asked.handle}"
        entry = Entry("life", LOOP, read, line=None, author=asked.handle, data={"act": _TURN}, dids=(asked.did,))
        await self.journal.record(entry)
        await self.database.run(partial(counts.note, now=self.clock.now(), what=_TURN, did=asked.did))

    async def _wait_s(self, rule: EtiquetteRule, did: str) -> float:
        """Return the seconds until a person may have another turn under this rule; 0 if at once."""
        now, window = self.clock.now(), timedelta(seconds=self.clock.real(rule.window_s or 0.0))
        begun = await self.database.run(partial(counts.noted, now=now, what=_TURN, did=did, window=window))
        limit = int(rule.limit)
        if len(begun) < limit:
            return 0.0
        return max(1.0, (begun[-limit] + window - now).total_seconds())
