"""Taking part in a room: decides from what a SOUL is told whether to speak, what, and what to promise.

Nothing is said that stands in the conversation already; who finds nothing new stays silent.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Literal

from town.mind.bank import COMMON
from town.mind.replies import answer_freely
from town.mind.room_reading import HOST, Moment, read_moment, title_of
from town.mind.types import Json
from town.mind.words import Words, lower_first

TOOL = "space_decision"

_NUMBER = re.compile(r"(?:#|\bissue )(\d+)\b", re.IGNORECASE)
_PLAN = re.compile(r"\bplan\b", re.IGNORECASE)
_EAGER_ASKED, _EAGER_AGAIN, _EAGER_PEERS, _EAGER_QUESTION = 0.9, 0.4, 0.35, 0.7
_FAR_FETCHED = 0.4
_OWN_SAY = 3
_FEW_LETTERS = 2

Why = Literal["own", "asked", "said", "quiet", "answer"]


def decide(words: Words) -> Json:
    """The arguments of the tool."""
    moment = read_moment(words.scene.prompt)
    latest = next((said for said in reversed(moment.said) if said.who), None)
    words = Words(
        words.bank,
        replace(words.scene, text=latest.text if latest else "", conversation=moment.said, recent=""),
        words.rng,
    )
    if moment.has("YOU are the action owner") and moment.wish and not moment.has("Ask the host once"):
        return _promise(words, moment)
    if answer := _answer(words, moment):
        return answer
    if moment.has("is the action owner") or moment.has("CRITICAL"):
        return _silent(words.bank.room, "owner")
    if held := _held_back(moment):
        return _silent(words.bank.room, held)
    return _to_host(words, moment) or _talk_along(words, moment)


def _answer(words: Words, moment: Moment) -> Json | None:
    """What the notes want the host to hear, if anything."""
    lines = words.bank.room
    if moment.link:
        return _say(words.pick(lines["link"]).format(link=moment.link), lines, "answer")
    if moment.has("Say so in one sentence"):
        return _say(words.pick(lines["queued"]), lines, "answer")
    if moment.has("you have no GitHub here. Say so once"):
        return _once(words, moment, words.fill(words.pick(lines["no_github"])))
    return _once(words, moment, words.pick(lines["no_repo"])) if moment.has("Ask the host once") else None


def _held_back(moment: Moment) -> str:
    """Why to listen, whatever comes to mind; "" if nothing holds us back."""
    if moment.has("The talk is saturated"):
        return "saturated"
    if moment.has("The host wants something done") and not moment.has("The host speaks to you"):
        return "owner"
    own = sum(not said.who for said in moment.since_host)
    if own >= _OWN_SAY or moment.has("Act, or be silent"):
        return "spoken"
    quiet = moment.has("It has been quiet here")
    return "" if quiet or (moment.said and moment.said[-1].who) else "nobody"


def _to_host(words: Words, moment: Moment) -> Json | None:
    """What one says to the host's hello, sum or the like; None where that calls for a thought. One answer is enough."""
    if not moment.said or moment.said[-1].who != HOST:
        return None
    intent = next((intent for intent in words.bank.intents if intent.match.search(words.scene.text)), None)
    if intent is None or intent.act == "thought":
        return None
    if intent.act != "reply":
        return _silent(words.bank.room, "listening")
    return _say(words.fill(words.pick(words.for_field(intent.say))), words.bank.room, "asked")


def _talk_along(words: Words, moment: Moment) -> Json:
    lines = words.bank.room
    if moment.has("It has been quiet here"):
        idea = words.next_idea()
        return _say(f"{idea.say} {idea.ask}", lines, "quiet")
    own = sum(not said.who for said in moment.since_host)
    by_host = moment.said[-1].who == HOST or not any(said.who not in ("", HOST) for said in moment.since_host)
    eager = (_EAGER_AGAIN if own else _EAGER_ASKED) if by_host else _EAGER_PEERS
    if moment.has("The host speaks to you"):
        eager = 1.0 / _FAR_FETCHED
    elif not by_host and not own and words.bank.asked_in(words.scene.text):
        eager = _EAGER_QUESTION
    thought, touches = _new_thought(words)
    if by_host and not moment.since_host:
        thought, touches = (thought if touches else answer_freely(words)), True
    if words.rng.random() > (eager if touches else eager * _FAR_FETCHED):
        return _silent(lines, "listening")
    if not thought:
        return _silent(lines, "nothing")
    name = moment.said[-1].who
    if name != HOST and name in moment.present:
        thought = words.rng.choice(lines["to"]).format(name=name[:1].upper() + name[1:], said=_inside(thought))
    return _say(thought, lines, "asked" if by_host else "said")


def _inside(said: str) -> str:
    """`said` behind a name and a comma: a name or a day at its beginning keeps its capital."""
    first = said.split(maxsplit=1)[0].lower()
    return lower_first(said) if len(first) <= _FEW_LETTERS or first in COMMON else said


def _new_thought(words: Words) -> tuple[str, bool]:
    """Something of our own that was not said yet, "" if there is nothing, and whether it touches what was said."""
    text = words.scene.text
    if asked := words.bank.asked_in(text):
        idea = asked[1]
        for key in (words.field.name, "any"):
            if key in idea.answers and words.fresh(idea.answers[key]):
                return idea.answers[key], True
    near = words.match(text, words.own_fields)
    idea = near or words.next_idea()
    for said in (idea.say, idea.more, *idea.answers.values()):
        if words.fresh(said):
            return (f"{said} {idea.ask}" if said == idea.say and words.fresh(idea.ask) else said), near is not None
    return next((said for said in words.field.general if words.fresh(said)), ""), False


def _promise(words: Words, moment: Moment) -> Json:
    """The work itself, as far as words go."""
    lines = words.bank.room
    wish, title = moment.wish, title_of(moment.wish)
    thought = words.next_idea().say
    number = _NUMBER.search(wish)
    commitment: Json
    if "comment" in wish.lower() and number:
        text = words.fill(words.pick(lines["comment"]), said=thought)
        commitment = {"type": "comment_issue", "issue_number": int(number[1]), "description": text}
    elif "bluesky" in wish.lower():
        commitment = {"type": "post_bluesky", "content": thought}
    else:
        kind = "create_plan" if re.search(r"\bplan\b", wish, re.IGNORECASE) else "create_issue"
        body = lines["body"].format(title=title, said=thought)
        commitment = {"type": kind, "title": title, "description": body}
    if moment.repo and commitment["type"] != "post_bluesky":
        commitment["repo"] = moment.repo
    said = words.pick(lines["post" if commitment["type"] == "post_bluesky" else "promise"]).format(title=title)
    return _say(said, lines, "own") | {"commitments": [commitment]}


def _once(words: Words, moment: Moment, text: str) -> Json:
    if any(not said.who for said in moment.since_host):
        return _silent(words.bank.room, "spoken")
    return _say(text, words.bank.room, "asked")


def _say(message: str, lines: dict[str, Any], why: Why) -> Json:
    return {"shouldSpeak": True, "reason": lines["why"][why], "message": message}


def _silent(lines: dict[str, Any], why: str) -> Json:
    return {"shouldSpeak": False, "reason": lines["why_not"][why]}
