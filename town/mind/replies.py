"""An answer to a post: to a known question, to what people usually say, from our field, or that it is not ours."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from town.mind.bank import ANY, GENERAL, Field, Idea
from town.mind.choosing import ToolChoice
from town.mind.words import BankWords, fit, quote, without_questions

_ASK_BACK = 0.3
_ASK_TOO = 0.35
_REMARK = 0.15
_LONGEST_OPTION = 3
_OPTIONS = re.compile(
    r"(?<![\w' -])([\w' -]{1,80}?),? or ([\w' -]{1,80}?)"
    r"(?: (?:for|in|at|on|to|with|when|this|these|today)\b[^?]{0,80})?\?"
)


def reply(words: BankWords, choice: ToolChoice, *, is_first: bool, pictures: int) -> str:
    """The text of a reply, our first one in that talk or not; `pictures` hang on the post."""
    text = _answer(words, choice, is_first=is_first)
    if pictures:
        text = f"{words.line('picture' if pictures == 1 else 'pictures')} {text}"
    if choice.closing:
        text = f"{without_questions(text)} {words.line('last')}"
    return fit(text)


def answer_freely(words: BankWords, fallback: Mapping[str, Sequence[str]] | None = None) -> str:
    """An answer to anything: a choice of two, our field, a neighbour's; else `fallback`, else that it is not ours."""
    text = words.text
    if option := _option(words, text):
        return words.line("choice", pick=option)
    if near := words.match(text, words.own_fields):
        if "?" not in text and quote(text) and words.rng.random() < _REMARK:
            return _remark(words)
        ask = f" {near.ask}" if words.rng.random() < _ASK_TOO else ""
        lead = "" if "?" in text else f"{words.line('bridge')} "
        return f"{lead}{near.say}{ask}"
    field = words.bank.field_of(text)
    if field == words.field:
        return words.say({ANY: field.general})
    if (referred := _refer(words)) or fallback:
        return referred or words.say(fallback or {})
    return words.say(words.bank.lines["unknown"]) if "?" in text else _remark(words)


def _remark(words: BankWords) -> str:
    """On a statement outside everything known: in their own words, if a piece of them can be quoted."""
    quotable = bool(quote(words.text))
    remarks: Mapping[str, Sequence[str]] = words.bank.lines["remark"]
    return words.say({key: [one for one in said if ("{quote}" in one) == quotable] for key, said in remarks.items()})


def _answer(words: BankWords, choice: ToolChoice, *, is_first: bool) -> str:
    if choice.asked:
        return _to_question(words, choice.asked, is_first=is_first)
    if prepared := _prepared(words, choice):
        return words.say(prepared)
    if line := _about_neighbour(words):
        return words.line("neighbour", line=line)
    if choice.answered:
        return _to_answer(words, choice.answered)
    thought = choice.intent.say if choice.intent and choice.intent.act == "thought" else {}
    return answer_freely(words, thought)


def _prepared(words: BankWords, choice: ToolChoice) -> Mapping[str, Sequence[str]]:
    """Phrases for what they said: a general invitation, or a thing that people usually say."""
    if invited := words.bank.invited_in(words.text):
        answers: Mapping[str, Sequence[str]] = words.bank.lines["invited"][invited]
        return answers
    return choice.intent.say if choice.intent and choice.intent.act == "reply" else {}


def _to_question(words: BankWords, idea: Idea, *, is_first: bool) -> str:
    keys = dict.fromkeys((words.field.name, ANY, *idea.answers))
    answers = [idea.answers[key] for key in keys if key in idea.answers]
    answer = next((answer for answer in answers if words.fresh(answer)), idea.more)
    if is_first and not answer.endswith("?") and words.rng.random() < _ASK_BACK:
        answer = f"{answer} {words.line('back')}"
    return answer


def _to_answer(words: BankWords, idea: Idea) -> str:
    """They answered our question; if they turned it round, we answer it too."""
    if "?" in words.text and words.fresh(idea.answers[ANY]):
        return idea.answers[ANY]
    if words.fresh(idea.more):
        return idea.more
    return words.say(words.bank.lines["received"])


def _refer(words: BankWords) -> str:
    """The question belongs to a neighbour: say whose it is, and ask back."""
    theirs = words.bank.field_of(words.text)
    if not theirs or theirs.name in {words.field.name, GENERAL}:
        return ""
    other = _neighbour_for(words, theirs)
    if not other:
        return ""
    if idea := words.match(words.text, [theirs]):
        return words.line("refer", theirs=theirs.label, other=other, ask=idea.ask)
    return words.line("direct", theirs=theirs.label, other=other)


def _neighbour_for(words: BankWords, field: Field) -> str:
    for handle, line in words.neighbours.items():
        if words.bank.field_of(line) == field:
            return _first_name(handle)
    return ""


def _about_neighbour(words: BankWords) -> str:
    """What SELF.md says of the neighbour that they ask about."""
    for handle, line in words.neighbours.items():
        name = _first_name(handle)
        if "?" in words.text and re.search(rf"(?<![@\w]){name}\b", words.text, re.IGNORECASE):
            return line.replace(f"@{handle}", name)
    return ""


def _first_name(handle: str) -> str:
    return handle.split(".", maxsplit=1)[0].capitalize()


def _option(words: BankWords, text: str) -> str:
    """One of two things to choose from, as they named it."""
    match = _OPTIONS.search(text)
    second = match[2].split() if match else []
    first = match[1].split()[-len(second) :] if match else []
    if not 0 < len(second) <= _LONGEST_OPTION or len(first) < len(second):
        return ""
    chosen = words.rng.choice([first, second])
    bare = chosen[1:] if len(chosen) > 1 and chosen[0].lower() in {"a", "an", "my", "your"} else chosen
    return " ".join(bare)[:1].upper() + " ".join(bare)[1:]
