"""Takes part in a room: decides from its state whether to speak, what, and what to commit to. Also reflects.

Nothing that was said in the conversation is repeated; a SOUL that finds nothing new stays silent.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from adapters.space.room_addressing import parse_addressed
from adapters.space.types import HOST
from common.facts import ExperienceFact, ReflectionFacts, RoomFacts, SaidLine
from common.text.host_intent import requests
from town.mind.questions import bare_request, refused, row_for
from town.mind.replies import MindTurn, answer_freely
from town.mind.words import ANY, COMMON, SENTENCE_END, BankWords, lower_first, stems
from town.model.types import Completion, Json, ToolUse
from town.residents import RESIDENTS

_TOOL = "self_update"
_SECTION, _PART = "Recent Learnings", "learnings"
_MOST_CHARS = 160
_NAMED = re.compile(r"@\S+|https?://\S+")


def reflect(turn: MindTurn, about: ReflectionFacts) -> Completion:
    """Return the change of SELF.md, then one sentence on it; only a sentence if there are no grounds for a change.

    If the proposal is about a slip that we have a skill for, that skill comes first.
    """
    words = replace(turn, facts=replace(turn.facts, outcomes=())).words()
    slip = words.field.slip
    if slip and slip.friction in about.proposal and "skill_propose" in turn.offers:
        given = {"name": slip.name, "purpose": slip.purpose, "page": slip.page, "turns": list(slip.turns)}
        done = Completion(words.line("reflected", "skill"))
        return done if turn.last else Completion(calls=(ToolUse("skill_propose", given),))
    cited = _grounds(about.experiences)
    if not cited:
        return Completion(words.line("reflected", "nothing"))
    day = turn.facts.at[:10]
    learned = _learned(words, cited)
    if turn.last is not None or _TOOL not in turn.offers:
        return Completion(learned)
    text = about.sections.get(_PART, "").strip()
    if learned in text:
        return Completion(words.line("reflected", "nothing"))
    given = {
        "section": _SECTION,
        "content": f"{text}\n- {day}: {learned}".strip() if day else f"{text}\n- {learned}".strip(),
        "reason": words.line("reflected", "reason", cited[0].trust),
        "experiences": [one.name for one in cited],
    }
    return Completion(calls=(ToolUse(_TOOL, given),))


def _grounds(experiences: Sequence[ExperienceFact]) -> list[ExperienceFact]:
    """Return the grounds for a change: the owner's newest word, else our newest work, else talks with two others."""
    for trust in ("owner", "self"):
        if found := [one for one in experiences if one.trust == trust and _tells(one.about)]:
            return found[-1:]
    by_person = {one.did: one for one in experiences if one.did}
    return list(by_person.values())[-2:] if len(by_person) > 1 else []


def _tells(about: str) -> bool:
    """Return whether a text tells something worth keeping: it neither asks nor requests anything."""
    return bool(about) and "?" not in about and not requests(about)


def _learned(words: BankWords, cited: Sequence[ExperienceFact]) -> str:
    """Return one sentence: what the owner said, what our own work showed, or the idea nearest to the talks."""
    said = " ".join(one.about for one in cited)
    if cited[0].trust == "owner":
        return words.line("reflected", "heard", about=_short(said))
    if cited[0].trust == "self":
        return words.line("reflected", "work")
    if not said:
        return words.line("reflected", "talks")
    idea = words.match(said, words.own_fields) or words.next_idea()
    return words.line("reflected", "said", about=_short(idea.say))


def _short(text: str) -> str:
    """Return the longest sentence of a text that fits, without names and addresses."""
    plain = " ".join(_NAMED.sub("", text).split())
    sentences = [one for one in SENTENCE_END.split(plain) if len(one) <= _MOST_CHARS] or [plain[:_MOST_CHARS]]
    return max(sentences, key=len).rstrip(" .?!")


_NUMBER = re.compile(r"(?:#|\bissue )(\d+)\b", re.IGNORECASE)
_URL = re.compile(r"\b(?:in |on |at |to )?(?:https?://|github\.com/)\S+", re.IGNORECASE)
_VERB = re.compile(
    r"^(?:open|create|file|write|make|draft|submit|post|add|start|build|fix|mend)\s+(?:us |me |up )?(?:an?|the)?\s*"
    r"(?:new |small )*(?:github )?(?:issue|ticket|plan|comment|post|note|bug)?"
    r"(?: (?:in|to) (?:the )?[\w./-]+(?=:))?:?\s*"
    r"(?:on bluesky |(?:for|about|on|saying|that)\s+)?(?:the |a )?",
    re.IGNORECASE,
)
_ISSUE = re.compile(
    r"\b(?:open|create|file|write|make|draft|submit|post|add)\b(?:(?!https?:|github\.com)[^.!?]){0,40}?\b(?:issue|ticket)\b",
    re.IGNORECASE,
)
_POST_OF_OURS = re.compile(
    r"\b(?:post|share|write|say|on bluesky) (?:a post )?"
    r"(?:something|anything|what|about|a (?:thought|post|note)\b(?! that))",
    re.IGNORECASE,
)
"""A request for a post of our choice: a post in given words is beyond this mind."""
_TITLE_CHARS = 100
_EAGER_ASKED, _EAGER_AGAIN, _EAGER_PEERS, _EAGER_QUESTION = 0.9, 0.4, 0.35, 0.7
_FAR_FETCHED = 0.4
_OWN_SAY = 3
_FEW_LETTERS = 2
_OF_ANY_WORK = stems(
    "done finish finished ready complete completed issue plan link open opened build built begin started yet"
)

_RESIDENTS = frozenset(resident.name for resident in RESIDENTS)

Why = Literal["own", "asked", "said", "quiet", "answer", "cannot"]


def take_part(turn: MindTurn, about: RoomFacts) -> Completion:
    """Return the decision on a room, as a call of its tool."""
    latest = next((line.text for line in reversed(about.said) if line.who), "")
    words = turn.words(text=latest, earlier=tuple(line.text for line in about.said))
    offer = turn.first_offer
    return Completion(calls=(ToolUse(offer.name, _decide(words, about)),)) if offer else turn.anything(words)


def _decide(words: BankWords, room: RoomFacts) -> Json:
    """Return the arguments of the tool; `words` are about what somebody else said last."""
    if room.is_owner and room.request and not room.needs_repo:
        return _commitment(words, room)
    if answer := _answer(words, room):
        return answer
    if not room.request and (unmet := _unmet(words, room)):
        return unmet
    if held := _held_back(room):
        return _silent(words, held)
    return _unmet(words, room) or _to_host(words, room) or _talk_along(words, room)


def title_of(request: str) -> str:
    """Return what was asked for, without the words that ask."""
    bare = _VERB.sub("", bare_request(_URL.sub("", request))).strip(" ?.!,:")
    named = bare or request.strip(" ?.!")
    return (named[:1].upper() + named[1:])[:_TITLE_CHARS]


def _answer(words: BankWords, room: RoomFacts) -> Json | None:
    """Return the answer that the host must get before anything else, if any; what is missing is said once."""
    lines = words.bank.room
    asked = _asked_by_host(room)
    if room.follow_up == "link" and room.links and _kept(asked, room.done or room.links):
        return _say(words, words.pick(lines["link"]).format(link=room.links[0]), "answer")
    if room.follow_up == "wake_commitments" and _kept(asked, room.doing or [asked]):
        return _say(words, words.pick(lines["queued"]), "answer")
    if told := _told_of_work(words, room, asked):
        return _say_for_all(words, room, told)
    if not room.without_github and not room.needs_repo:
        return None
    if any(not line.who for line in _since_host(room)):
        return _silent(words, "spoken")
    missing = words.say({ANY: lines["no_github"]}) if room.without_github else words.pick(lines["no_repo"])
    return _say(words, missing, "asked")


def _told_of_work(words: BankWords, room: RoomFacts, asked: str) -> str:
    """Return the answer to a question about what was done today, or about work that nobody promised; "" for neither."""
    intent = words.bank.intent_of(asked)
    name = intent.name if intent else ""
    if name == "today" and room.today:
        return words.pick(words.bank.room["today"]).format(today=room.today)
    return words.line("unpromised") if name == "did_you" and not _kept(asked, (*room.doing, *room.done)) else ""


def _held_back(room: RoomFacts) -> str:
    """Return why we must listen in any case; "" if there is no reason."""
    if room.request and (room.critical or (room.owner and not room.is_owner)):
        return "owner"
    if room.signal == "saturated":
        return "saturated"
    if room.mode == "action" and room.me not in room.addressed:
        return "owner"
    if _named(room) and room.me not in _named(room):
        return "named"
    if sum(not line.who for line in _since_host(room)) >= _OWN_SAY or room.signal == "spoken":
        return "spoken"
    return "" if room.opens or (room.said and room.said[-1].who) else "nobody"


def _named(room: RoomFacts) -> list[str]:
    """Return whom the host's last words name, including residents who are not there yet."""
    return parse_addressed(_asked_by_host(room), sorted({room.me, *room.present, *_RESIDENTS}))


def _unmet(words: BankWords, room: RoomFacts) -> Json | None:
    """Return the refusal of host's words that are not English or ask for impossible work; one of us says it."""
    line = _asked_by_host(room)
    refusal = refused(words, line, is_order=True) if words.is_english(line) else words.pick(words.bank.room["foreign"])
    return _say_for_all(words, room, refusal) if line and refusal else None


def _say_for_all(words: BankWords, room: RoomFacts, message: str) -> Json:
    """Return what one of us says to the host for all, once; the others stay silent."""
    here = {room.me, *room.present}
    if room.me != (_named(room) or sorted(here & _RESIDENTS or here))[0] or any(
        not one.who for one in _since_host(room)
    ):
        return _silent(words, "named")
    return _say(words, message, "cannot")


def _asked_by_host(room: RoomFacts) -> str:
    """Return the host's last words; "" if there are none."""
    return next((line.text for line in reversed(room.said) if line.who == HOST), "")


def _kept(question: str, promises: Iterable[str]) -> list[str]:
    """Return the promises that a question about work is about; all of them if it names nothing."""
    asked = stems(question) - _OF_ANY_WORK
    return [one for one in promises if not asked or asked & stems(one)]


def _to_host(words: BankWords, room: RoomFacts) -> Json | None:
    """Return the answer to the host's hello, sum or the like, unless one was given; None if it calls for a thought."""
    intent = words.bank.intent_of(words.text) if room.said and room.said[-1].who == HOST else None
    if intent is None or intent.act == "thought":
        return None
    if intent.name == "doing" and room.doing:
        return _say(
            words, words.fill(words.pick(words.bank.room["doing"]), work="; ".join(room.doing[:_OWN_SAY])), "asked"
        )
    return _say(words, words.say(intent.say), "asked") if intent.act == "reply" else _silent(words, "listening")


def _talk_along(words: BankWords, room: RoomFacts) -> Json:
    if room.opens:
        idea = words.next_idea()
        return _say(words, f"{idea.say} {idea.ask}", "quiet")
    since = _since_host(room)
    own = sum(not line.who for line in since)
    by_host = room.said[-1].who == HOST or not any(line.who not in ("", HOST) for line in since)
    eager = (_EAGER_AGAIN if own else _EAGER_ASKED) if by_host else _EAGER_PEERS
    if room.me in room.addressed:
        eager = 1.0 / _FAR_FETCHED
    elif not by_host and not own and words.bank.asked_in(words.text):
        eager = _EAGER_QUESTION
    thought, touches = _new_thought(words)
    if by_host and not since:
        thought, touches = (thought if touches else answer_freely(words)), True
    if words.rng.random() > (eager if touches else eager * _FAR_FETCHED):
        return _silent(words, "listening")
    if not thought:
        return _silent(words, "nothing")
    name = room.said[-1].who
    if name != HOST and name in room.present:
        form = words.rng.choice(words.bank.room["to"])
        thought = form.format(name=name[:1].upper() + name[1:], said=_inside(thought))
    return _say(words, thought, "asked" if by_host else "said")


def _since_host(room: RoomFacts) -> tuple[SaidLine, ...]:
    """Return what was said after the host's last words."""
    at = next((number for number, line in enumerate(reversed(room.said)) if line.who == HOST), len(room.said))
    return room.said[len(room.said) - at :]


def _inside(said: str) -> str:
    """Return `said` for use after a name and a comma; a name or a day at its beginning keeps its capital."""
    first = said.split(maxsplit=1)[0].lower()
    return lower_first(said) if len(first) <= _FEW_LETTERS or first in COMMON else said


def _new_thought(words: BankWords) -> tuple[str, bool]:
    """Return something of our own not said yet ("" if there is nothing), and whether it relates to what was said."""
    if asked := words.bank.asked_in(words.text):
        for key in (words.field.name, ANY):
            if key in asked.answers and words.fresh(asked.answers[key]):
                return asked.answers[key], True
    near = words.match(words.text, words.own_fields)
    idea = near or words.next_idea()
    for said in (idea.say, idea.more, *idea.answers.values()):
        if words.fresh(said):
            return (f"{said} {idea.ask}" if said == idea.say and words.fresh(idea.ask) else said), near is not None
    return next((said for said in words.field.general if words.fresh(said)), ""), False


def _commitment(words: BankWords, room: RoomFacts) -> Json:
    """Return a commitment to the requested work, or a refusal if this mind cannot do it."""
    lines = words.bank.room
    request = " ".join(room.request.split())
    title, thought = title_of(request), words.next_idea().say
    number = _NUMBER.search(request)
    commitment: Json
    promise = "promise"
    is_code = row_for(words.bank, title) is not None
    if "comment" in request.lower() and number:
        text = words.fill(words.pick(lines["comment"]), said=thought)
        commitment = {"type": "comment_issue", "issue_number": int(number[1]), "description": text}
    elif _POST_OF_OURS.search(request):
        commitment, promise = {"type": "post_bluesky", "content": thought}, "post"
    elif is_code or _ISSUE.search(request):
        kind = "create_plan" if is_code else "create_issue"
        commitment = {"type": kind, "title": title, "description": lines["body"].format(title=title)}
    else:
        return _say(words, words.line("cannot"), "cannot") | {"declines": True}
    if room.repo and promise != "post":
        commitment["repo"] = room.repo
    return _say(words, words.pick(lines[promise]).format(title=title), "own") | {"commitments": [commitment]}


def _say(words: BankWords, message: str, why: Why) -> Json:
    return {"shouldSpeak": True, "reason": words.bank.room["why"][why], "message": message}


def _silent(words: BankWords, why: str) -> Json:
    return {"shouldSpeak": False, "reason": words.bank.room["why_not"][why]}
