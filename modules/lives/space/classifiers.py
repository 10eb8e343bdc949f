"""Small questions about talk: what the host means, whether a message repeats or has a fault, whether to look closer.

An intent is read from the form of the text if that is clear, else by the model, which also sees the lines before. If
the model fails, a doubtful message counts as discussion, from which nothing follows, and the next look asks again; if
its answer has no label, up to three times.

In doubt a message may be said: a judge that fails blocks nobody. Answers are kept in memory as long as the process and
the conversation last.

A first look at talk among peers saves the whole prompt. It is taken only if silence leaves nobody without an answer:
the host said nothing new except a request that a peer took on, nothing else is open, and nobody names us. In doubt, or
if the question fails, the whole prompt decides. While the host waits too long for a peer, no model is asked.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from cachetools import LRUCache

from common.constants import ECHO_SHORT_STEMS
from common.errors import BudgetExceeded, Fatal, SoulError
from common.text.closings import is_low_value_closing
from common.text.echo import EnsembleEchoResult, tokenize_with_stemming
from common.text.host_intent import HostIntent, classify_host_intent_structural
from common.text.untrusted import one_line
from modules.lives.space.commitment_maker import LOOP
from modules.lives.space.host_request import is_done_chat
from modules.lives.space.request_parser import shown as name_shown
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.types import Check, HistoryEntry, HostLine, Meaning
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.agent.verdicts import SKILL, Verdicts


class MessageJudge(Protocol):
    """Confirms suspicions about a message."""

    async def is_echo_by_llm_judge(self, candidate: str, peers: Sequence[str]) -> bool:
        """Return whether `candidate` repeats the point of one of `peers`; False when in doubt."""
        ...

    async def has_fault(self, check: Check, candidate: str, said: Sequence[str]) -> bool:
        """Return whether `candidate`, said after the lines `said`, has the fault of `check`; False when in doubt."""
        ...

    def clear(self) -> None:
        """Forget all verdicts, because another conversation begins."""
        ...


MOST_INTENTS = 200

_LABELS: dict[str, HostIntent] = {
    "ACTION_REQUEST": "action_request",
    "FOLLOW_UP": "follow_up",
    "DISCUSSION": "discussion",
    "GO_AHEAD": "action_request",
    "WITHDRAWAL": "withdrawal",
}
_ANSWER = "GO_AHEAD"
_SHOWN_CHARS = 80
_ASKED_CHARS = 4_000
_MOST_TRIES = 3


class ModelIntentClassifier:
    """Classifies the host's messages by their form, and in doubt by the skill `space-judgement`.

    A message that may answer an agent's question always counts as doubtful. Decisions and failures of the model go to
    `journal`.
    """

    def __init__(self, verdicts: Verdicts, journal: Journal) -> None:
        self._verdicts = verdicts
        self._journal = journal
        self._known: LRUCache[HostLine, Meaning] = LRUCache(MOST_INTENTS)
        self._tries: LRUCache[HostLine, int] = LRUCache(MOST_INTENTS)

    async def classify_host_message(self, line: HostLine) -> Meaning:
        """Return the meaning of `line`; `discussion` when in doubt."""
        known = self._known.get(line)
        if known is not None:
            return known
        form = classify_host_intent_structural(line.content)
        by_form = Meaning(form.intent)
        if not line.content.strip() or (form.confidence == "high" and line.question is None):
            self._known[line] = by_form
            return by_form
        try:
            answer = await self._verdicts.ask("Intent", said=line.before, content=line.content[:_ASKED_CHARS])
        except Fatal:
            raise
        except SoulError as error:
            await self._tell("Intent could not be classified", line, str(error), failed=True)
            return by_form
        label = next((label for label in _LABELS if label in answer), None)
        if label is None:
            await self._tell("Intent could not be classified", line, "the model gave no label", failed=True)
            return self._unlabelled(line, by_form)
        meaning = Meaning(_LABELS[label], line.question if label == _ANSWER else None)
        await self._tell("Intent classified via LLM", line, label.lower())
        self._known[line] = meaning
        return meaning

    async def classify_host_messages(self, lines: Sequence[HostLine]) -> list[Meaning]:
        """Return the meaning of each, in the given order; the model is asked about all at once, equal ones once."""
        distinct = list(dict.fromkeys(lines))
        meanings = await asyncio.gather(*map(self.classify_host_message, distinct))
        found = dict(zip(distinct, meanings, strict=True))
        return [found[line] for line in lines]

    async def taken_back(self, line: HostLine, asked: Sequence[str]) -> Sequence[int] | None:
        """Return the places in `asked` of what the withdrawal `line` takes back.

        None if the model could not be asked; then the next look asks again. An answer without a number takes back none.
        """
        try:
            answer = await self._verdicts.ask(
                "Withdrawal",
                examples="Withdrawal Examples",
                said=line.before or ("-",),
                asked=tuple(asked),
                content=line.content[:_ASKED_CHARS],
            )
        except Fatal:
            raise
        except SoulError as error:
            await self._tell("A withdrawal could not be understood", line, str(error), failed=True)
            self._known.pop(line, None)
            return None
        await self._tell("Withdrawal understood via LLM", line, answer.lower())
        return [int(number) - 1 for number in re.findall(r"\d+", answer, re.ASCII) if 0 < int(number) <= len(asked)]

    def is_settled(self, line: HostLine) -> bool:
        """Return whether its meaning is known and not a guess."""
        return line in self._known

    def clear(self) -> None:
        """Forget all meanings, because another conversation begins."""
        self._known.clear()
        self._tries.clear()

    def _unlabelled(self, line: HostLine, form: Meaning) -> Meaning:
        """Return the meaning by form, and after three answers without a label keep it, so that none is asked again."""
        tries = self._tries[line] = self._tries.get(line, 0) + 1
        if tries >= _MOST_TRIES:
            self._known[line] = form
        return form

    async def _tell(self, summary: str, line: HostLine, reason: str, *, failed: bool = False) -> None:
        await self._journal.record(
            Entry(
                "error" if failed else "decision",
                LOOP,
                f"[space] {summary}",
                line="warn" if failed else "social",
                reason=reason,
                data={"content": one_line(line.content, _SHOWN_CHARS)},
            )
        )


MOST_VERDICTS = 500
MOST_PEERS = 10


class ModelMessageJudge:
    """Judges by the skill `space-judgement` whether a message repeats one of the peers', or has a fault.

    Failures go to `journal`.
    """

    def __init__(self, verdicts: Verdicts, journal: Journal) -> None:
        self._verdicts = verdicts
        self._journal = journal
        self._known: LRUCache[str, bool] = LRUCache(MOST_VERDICTS)

    async def is_echo_by_llm_judge(self, candidate: str, peers: Sequence[str]) -> bool:
        """Return whether `candidate` repeats the point of one of `peers`; False when in doubt.

        `peers` are ordered oldest first; only the newest ten are compared.
        """
        newest = peers[-MOST_PEERS:]
        if not newest:
            return False

        async def ask() -> bool:
            return _yes(await self._verdicts.ask("Judge", said=newest, candidate=candidate))

        return await self._remembered(_key(candidate, newest), ask)

    async def has_fault(self, check: Check, candidate: str, said: Sequence[str]) -> bool:
        """Return whether `candidate` has the fault of `check`, as the skill describes it; False when in doubt."""

        async def ask() -> bool:
            fault = self._verdicts.skills.subsection(SKILL, "Faults", check)
            return _yes(await self._verdicts.ask("Fault", said=said, candidate=candidate, fault=fault))

        return await self._remembered(_key(f"{check}: {candidate}", said), ask)

    async def _remembered(self, key: str, judge: Callable[[], Awaitable[bool]]) -> bool:
        known = self._known.get(key)
        if known is not None:
            return known
        try:
            found = await judge()
        except Fatal:
            raise
        except SoulError as error:
            await self._journal.record(
                Entry("error", LOOP, "[space] Judge of messages did not answer", line="warn", reason=str(error))
            )
            return False
        self._known[key] = found
        return found

    def clear(self) -> None:
        """Forget all verdicts, because another conversation begins."""
        self._known.clear()


def _yes(answer: str) -> bool:
    return answer.startswith("YES")


def _key(candidate: str, peers: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps([candidate, sorted(peers)]).encode()).hexdigest()


_FEWEST_ANSWERS = 2
_AFTER_MARK = " )\"'*_"
_FACT = re.compile(r"https?://\S*\w|`[^`\n]+`|#\d+|(?<![\w.])\d+(?:[.,:]\d+)*")


@dataclass(frozen=True, slots=True)
class JudgeWanted:
    """Whether to ask the judge, and why or why not."""

    should: bool
    reason: str


def judge_wanted(
    message: str,
    answers: Sequence[str],
    echo: EnsembleEchoResult,
    *,
    partners: int,
    names: Collection[str] = (),
) -> JudgeWanted:
    """Return whether `message` should be judged.

    Args:
        message: what is about to be said.
        answers: what agents, including us, have said since the host last spoke, oldest first.
        echo: the result of comparing the words.
        partners: how many messages it was compared with.
        names: who is in the room.

    """
    near = echo.is_near
    refusals = (
        (echo.is_echo, "it is an echo already"),
        (partners < _FEWEST_ANSWERS, "too little was said to repeat"),
        (not near and len(answers) < _FEWEST_ANSWERS, "few have answered the host yet"),
        (not near and message.rstrip(_AFTER_MARK).endswith("?"), "it asks something"),
        (not near and len(tokenize_with_stemming(message, names)) < ECHO_SHORT_STEMS, "it is too short for a point"),
        (not near and bool(new_facts(message, answers)), "it brings a new figure, link or name of code"),
    )
    for refused, reason in refusals:
        if refused:
            return JudgeWanted(should=False, reason=reason)
    told = "its words come near to what was said" if near else "one more answer to the same words of the host"
    return JudgeWanted(should=True, reason=told)


def new_facts(message: str, said: Sequence[str]) -> tuple[str, ...]:
    """Return the figures, links and names of code in `message` that nobody has used, in order."""
    known = {fact for text in said for fact in _FACT.findall(text)}
    return tuple(fact for fact in dict.fromkeys(_FACT.findall(message)) if fact not in known)


QUESTION = "First Look"
_SILENT = "LISTEN"
_SHOWN, _CHARS = 6, 320
_CLOSINGS = "only thanks, good-byes and announcements of finished work were said"
_NOTHING = "a first look found nothing to add"
_AT_WORK = "only the one who acts on the request has spoken"


@dataclass(frozen=True, slots=True)
class FirstLook:
    """Asks `verdicts`, worded by the skill `space-judgement`."""

    verdicts: Verdicts

    async def reason_for_silence(self, snapshot: RoomSnapshot) -> str:
        """Return why nothing is to be said; "" if the whole prompt has to decide.

        Raises:
            BudgetExceeded: there is no budget for the question.
            Fatal: as the gateway.

        """
        if not is_idle_talk(snapshot):
            return ""
        if snapshot.is_open and all(entry.name == snapshot.owner for entry in snapshot.batch):
            return _AT_WORK
        if all(is_low_value_closing(entry.content) or is_done_chat(entry.content) for entry in snapshot.batch):
            return _CLOSINGS
        try:
            answer = await self.verdicts.ask(QUESTION, examples=f"{QUESTION} Examples", said=shown(snapshot.history))
        except (BudgetExceeded, Fatal):
            raise
        except SoulError:
            # NOTE(self): the whole prompt goes to the same model, and an error that persists is reported there.
            return ""
        return _NOTHING if answer.startswith(_SILENT) else ""


def is_idle_talk(snapshot: RoomSnapshot) -> bool:
    """Return whether everything new is talk of peers that needs nothing from us."""
    if not snapshot.batch or snapshot.opens or snapshot.needs_repo or snapshot.follow_up != "none":
        return False
    if snapshot.is_open and (snapshot.is_owner or not snapshot.is_claimed):
        return False
    taken = snapshot.request.entry_id
    return not (_calls_us(snapshot) or any(entry.is_host and entry.id != taken for entry in snapshot.batch))


def is_late(snapshot: RoomSnapshot) -> bool:
    """Return whether the host has waited too long for a peer to act, and nothing new is for us to answer."""
    waits = snapshot.is_open and not snapshot.is_owner and snapshot.escalation == "critical" and snapshot.owner_is_here
    if not waits or not snapshot.batch or snapshot.needs_repo or snapshot.mode != "action":
        return False
    asks_all = any(entry.is_host and entry.intent == "discussion" for entry in snapshot.batch)
    return not (asks_all or _calls_us(snapshot))


def _calls_us(snapshot: RoomSnapshot) -> bool:
    """Return whether something new names or addresses us."""
    me = snapshot.me.casefold()
    named = any(me in entry.content.casefold() for entry in snapshot.batch)
    return named or snapshot.me in snapshot.addressed


def shown(history: Sequence[HistoryEntry]) -> list[str]:
    """Return the newest messages, cut, each with its speaker."""
    return [f"{name_shown(entry.name, is_host=entry.is_host)}: {entry.content[:_CHARS]}" for entry in history[-_SHOWN:]]
