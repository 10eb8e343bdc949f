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
from town.mind.posts import came_to, post
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
_CALL_ME = re.compile(r"\b(?:call me|my name is|i am|i'm) ((?-i:[A-Z])[\w-]*|(?<=call me )[\w-]+)", re.IGNORECASE)
_END_OF_FIRST_TALK, _NAME_WORDS = "complete_commissioning", 2
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
    if result := told(turn, words, about.account, is_order=about.is_owner):
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
    if turn.may("data_request") and right_in(about.text) != "none":
        return turn.call("data_request", {"reason": "they ask about their own data"})
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
    if turn.last and not (about.first and turn.last.tool == _END_OF_FIRST_TALK):
        return Completion(came_to(words, turn.last))
    if turn.force:
        return turn.anything(words)
    if about.first:
        return _first_talk(turn, about, words)
    return Completion(_say_to_owner(turn, about, words))


def _say_to_owner(turn: MindTurn, about: OwnerFacts, words: BankWords) -> str:
    """The words for a line that no tool answers: a refusal, how things stand, or talk."""
    if cannot := refused(words, about.line, is_order=True):
        return cannot
    if about.situation and _STATUS.search(about.line):
        return words.line("owner", "status")
    intent = turn.bank.intent_of(about.line)
    if intent and intent.act == "reply":
        return words.say(intent.say)
    return (
        words.line("cannot")
        if intent and intent.name == "like_it"
        else answer_freely(words, {ANY: turn.bank.lines["owner"]["plain"]})
    )


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
    return _call_owner(turn, about)


def _call_owner(turn: MindTurn, about: OwnerFacts) -> Completion | None:
    """Write down what the owner wants to be called; in the first talk that comes with the rest of it."""
    called = _CALL_ME.search(about.line)
    if called is None or about.first or (turn.last and turn.last.tool != "more_tools"):
        return None
    if "profile_update" in turn.offers:
        given = {"subject": "user", "field": "name", "value": called[1], "evidence": about.line}
        return turn.call("profile_update", given)
    return turn.call("more_tools", {"family": "self"}) if "more_tools" in turn.offers and turn.last is None else None


def _first_talk(turn: MindTurn, about: OwnerFacts, words: BankWords) -> Completion:
    """Greet, then ask for what is not known yet: a name for the owner, and what the agent is for."""
    if not about.line:
        return Completion(words.line("first", "greeting"))
    if turn.last:
        return Completion(words.line("first", "known") if not turn.last.failed else words.line("owner", "failed"))
    lines = [one.text for one in about.said if one.who and "?" not in one.text and not _POST_THIS.match(one.text)]
    named = [found[1] for line in lines if (found := _CALL_ME.search(line))]
    name = next(iter(named), next((line.strip(" .!") for line in lines if len(line.split()) <= _NAME_WORDS), ""))
    rest = (_CALL_ME.sub("", line).strip(" ,.;") for line in lines)
    purpose = next((line for line in rest if len(line.split()) > _NAME_WORDS), "")
    if name and purpose and len(lines) > 1 and turn.may(_END_OF_FIRST_TALK):
        return turn.call(_END_OF_FIRST_TALK, {"user_name": name, "role": purpose})
    if name and purpose:
        return Completion(words.line("first", "check", who=name, purpose=purpose))
    asked = words.line("first", "purpose" if name else "name")
    return Completion(f"{words.line('first', 'called', who=name)} {asked}" if name else asked)
