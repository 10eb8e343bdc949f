"""Answers to somebody: to a post on Bluesky, and to a line that the owner typed."""

from __future__ import annotations

import re
from datetime import timedelta

from common.clock import parse_iso
from common.facts import ExpressionFacts, IssueFacts, MessageFacts, OwnerFacts, PostFacts
from common.text.graphemes import leading_sentences
from town.mind.bank import ANY
from town.mind.building import refused, shared_work, told
from town.mind.choosing import TOOLS, ToolChoice, choose
from town.mind.posts import post
from town.mind.questions import right_in
from town.mind.replies import answer_freely, reply
from town.mind.turn import MindTurn
from town.mind.words import BankWords, fit
from town.model.types import Completion, Json

_POST_THIS = re.compile(
    r"^(?:please |could you |can you )*(?:post|publish|share|say)\b(?: this| that)?[:,]?\s*(.*)$",
    re.IGNORECASE | re.DOTALL,
)
_MENTION = re.compile(r"@[A-Za-z0-9-]{1,40}")
_TITLE_CHARS, _ANSWER_CHARS = 60, 80
_VAGUE = re.compile(r"^(?:something|anything|a (?:post|thought)|what|your|about)\b|^$", re.IGNORECASE)
_TOMORROW = re.compile(r"\btomorrow\b(?: morning)? at (\d{1,2})\b:?\s*", re.IGNORECASE)
_STATUS = re.compile(
    r"\b(status|how (?:do )?things stand|how (?:are|is) (?:you|it|things)|what'?s up|report)\b", re.IGNORECASE
)


def answer_post(turn: MindTurn, about: PostFacts) -> Completion:
    """One act about a post: shared work, a request about its author's data, a reply, a like, a farewell or silence."""
    if work := shared_work(turn, about.text):
        return work
    if turn.may("data_request") and right_in(about.text) != "none":
        return turn.call("data_request", {"reason": "they ask about their own data"})
    return _meet(turn, about)


def _meet(turn: MindTurn, about: PostFacts) -> Completion:
    thread = tuple(line.text for line in about.thread)
    words = turn.words(text=about.text, earlier=(*thread, about.text, *turn.tried))
    if result := told(turn, words, about.account):
        return result
    choice = choose(about, turn.facts.agent.handle, turn.bank, turn.rng)
    if (last := turn.last) and last.failed and last.act == "silent":
        choice = ToolChoice("silent")
    act = next((act for act in (choice.act, *TOOLS) if turn.may(TOOLS[act])), None)
    if act is None:
        return turn.anything(words)
    known: Json = {"post_uri": about.uri, "post_cid": about.cid, "uri": about.uri, "cid": about.cid}
    if act == "reply":
        is_first = all(line.who for line in about.thread)
        known["text"] = reply(words, choice, is_first=is_first, pictures=about.pictures)
        if about.ritual:
            known["text"] = fit(f"{words.line('ritual_part', about.part)} {known['text']}")
        if about.account:
            known["text"] = fit(f"{words.line('account', username=about.account)} {known['text']}")
    elif choice.intent and choice.intent.act == act and choice.intent.say:
        known["reason"] = words.say(choice.intent.say)
    else:
        known["reason"] = words.line("reasons", act)
    if act == "reply" and about.offered and turn.may("bluesky_reply_picture"):
        shown = words.line("shows", title=about.offered[:_TITLE_CHARS])
        return turn.call(
            "bluesky_reply_picture", {"text": f"{leading_sentences(known['text'], _ANSWER_CHARS)} {shown}"}
        )
    return turn.call(TOOLS[act], known | {"closing_type": "like"})


def answer_message(turn: MindTurn, about: MessageFacts) -> Completion:
    """An answer to a direct message; silence to a program, and where an answer was sent back."""
    said = tuple(line.text for line in about.said)
    words = turn.words(text=about.text, earlier=(*said, about.text, *turn.tried))
    if turn.may("message_silence") and (about.is_bot or turn.last):
        return turn.call("message_silence", {"reason": words.line("reasons", "silent")})
    if not turn.may("message_answer"):
        return turn.anything(words)
    replying = (one for one in turn.bank.intents if one.act == "reply" and one.match.search(about.text))
    intent = next(replying, None)
    return turn.call("message_answer", {"text": fit(words.say(intent.say) if intent else answer_freely(words))})


def answer_issue(turn: MindTurn, about: IssueFacts) -> Completion:
    """A comment on a thread on GitHub, on what was said there last.

    Silence where a comment was sent back, and where nothing is asked and nobody names us.
    """
    others = [line.text for line in about.said if line.who]
    text = others[-1] if others else f"{about.title} {about.text}"
    words = turn.words(text=_MENTION.sub("", text), earlier=(*(line.text for line in about.said), *turn.tried))
    is_asked = about.is_owner_request or "?" in text or f"@{turn.facts.agent.name}" in text
    if turn.may("github_stay_silent") and (turn.last or not is_asked):
        return turn.call("github_stay_silent", {"reason": words.line("reasons", "silent")})
    if turn.may("github_submit_review"):
        return turn.call("github_submit_review", {"body": answer_freely(words)})
    if not turn.may("github_create_issue_comment"):
        return turn.anything(words)
    return turn.call("github_create_issue_comment", {"body": answer_freely(words)})


def answer_owner(turn: MindTurn, about: OwnerFacts) -> Completion:
    """What the owner is answered; the post or the workspace that the owner asked for."""
    words = turn.words(text=about.line, earlier=(*turn.tried, about.line), situation=about.situation)
    if act := _act_for_owner(turn, about, words):
        return act
    if last := turn.last:
        return Completion(words.line("owner", "failed" if last.failed else "done"))
    if turn.force:
        return turn.anything(words)
    if about.situation and _STATUS.search(about.line):
        return Completion(words.line("owner", "status"))
    replying = (one for one in turn.bank.intents if one.act == "reply" and one.match.search(about.line))
    if intent := next(replying, None):
        return Completion(words.say(intent.say))
    return Completion(answer_freely(words, {ANY: turn.bank.lines["owner"]["plain"]}))


def _act_for_owner(turn: MindTurn, about: OwnerFacts, words: BankWords) -> Completion | None:
    """What the owner asks for, where there is a tool for it."""
    if not (turn.last or turn.force) and "bluesky_post" in turn.offers and (asked := _POST_THIS.match(about.line)):
        later = _TOMORROW.search(asked[1]) if turn.facts.at else None
        text = (_TOMORROW.sub("", asked[1]) if later else asked[1]).strip().strip("\"“”'")
        given = post(words, ExpressionFacts()) if _VAGUE.match(text) else fit(text)
        if later:
            day = parse_iso(turn.facts.at) + timedelta(days=1)
            return turn.call("bluesky_post", {"text": given, "at": f"{day:%Y-%m-%d}T{int(later[1]):02}:00"})
        return turn.call("bluesky_post", {"text": given})
    if work := shared_work(turn, about.line):
        return work
    return Completion(cannot) if (cannot := refused(words)) else None
