"""A post of one's own: a line of SELF.md, an idea from the bank or a note, in one of several forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from common.facts import ExpressionFacts, ToolOutcome
from common.text.graphemes import grapheme_len
from town.mind.bank import ANY, Idea
from town.mind.turn import MindTurn
from town.mind.words import MAX_GRAPHEMES, BankWords, fit, is_sentence, lower_first
from town.model.types import Completion

_OWN_LINE = 0.35
_INVITES = 0.35
_STANDS_BY_IT = 0.8
_NEIGHBOUR_EVERY = 3
_TITLE_CHARS = 60
_FORMS: Mapping[str, int] = {"note": 3, "idea": 4, "idea and question": 3, "question and answer": 2}
"""How often a post takes each form. A good post may end without asking anything."""
_STATEMENTS = {"values", "patterns", "learnings"}
_LISTS = {"explorations", "currentFocus"}


def express(turn: MindTurn, about: ExpressionFacts) -> Completion:
    """A post of one's own; a second try says it otherwise."""
    tried, last = turn.tried, turn.last
    tool = "bluesky_post_picture" if about.picture else "bluesky_post"
    words = turn.words(text=" ".join(about.lines), earlier=(*about.recent, *(() if last and last.draft else tried)))
    if tool not in turn.offers:
        return turn.anything(words)
    if last and not last.failed:
        return Completion(came_to(words, last))
    if about.picture:
        text = post_with_picture(words, about.picture)
    elif last is None:
        text = post(words, about)
    else:
        text = revised(words, last.draft) if last.draft else post_of_two(words, about)
    return turn.call(tool, {"text": text})


def came_to(words: BankWords, last: ToolOutcome) -> str:
    """What is said of the last call, by its result: it failed, waits for approval, leaves later, or is done."""
    leaves = last.tool.startswith(("bluesky_", "github_"))
    return words.line("owner", "failed" if last.failed else "held" if last.held else "queued" if leaves else "done")


def post_with_picture(words: BankWords, title: str) -> str:
    """The text of a post that shows a picture: short, for its source stands below."""
    shown: Mapping[str, Sequence[str]] = words.bank.lines["shown"]
    phrase = words.pick([*shown.get(words.field.name, ()), *shown[ANY]])
    return f"{words.fill(phrase, title=title[:_TITLE_CHARS])} {words.line('invite', 'picture')}"


def post(words: BankWords, about: ExpressionFacts) -> str:
    """The text of one post."""
    neighbour = _neighbour_due(words, about)
    if not neighbour and words.rng.random() < _OWN_LINE and (own := _from_self(words, about)):
        return fit(own)
    idea, turned = words.next_page()
    if neighbour and turned:
        return fit(f"{idea.ask} {idea.answers[ANY]} {words.line('back_to', handle=neighbour)}")
    if neighbour:
        return fit(f"{idea.say} {_asked_of(words, idea, neighbour)}")
    notes = [note for note in words.field.notes if words.fresh(note)]
    texts = {
        "note": words.pick(notes) if notes else idea.say,
        "idea": idea.say,
        "idea and question": f"{idea.say} {idea.ask}",
        "question and answer": f"{idea.ask} {idea.answers[ANY]}",
    }
    return fit(texts[words.rng.choices(list(_FORMS), list(_FORMS.values()))[0]])


def post_of_two(words: BankWords, about: ExpressionFacts) -> str:
    """Two ideas side by side, where what comes to mind first was said before: enough of them for days."""
    first, second = words.rng.sample([idea for field in words.own_fields for idea in field.ideas], 2)
    if neighbour := _neighbour_due(words, about):
        return fit(f"{first.say} {_asked_of(words, second, neighbour)}")
    return fit(_inviting(words, f"{first.say} {words.rng.choice([second.say, second.ask])}", "pair"))


def revised(words: BankWords, draft: str) -> str:
    """A draft that was sent back: as it is, or with a way in for readers."""
    if words.rng.random() < _STANDS_BY_IT:
        return draft
    near = words.match(draft, [words.field]) or words.next_idea()
    whole = f"{draft} {words.line('widen') if '?' in draft else near.ask}"
    return whole if grapheme_len(whole) <= MAX_GRAPHEMES else fit(draft)


def _from_self(words: BankWords, about: ExpressionFacts) -> str:
    """The lines of SELF.md that it is about, as a post; empty if they do not read as one."""
    lines = [line for line in about.lines if words.fresh(line) and is_sentence(line)]
    if not lines:
        return ""
    if "+" in about.source:
        return _inviting(words, f"{lines[0]} {lines[1]}", "pair") if len(lines) > 1 else ""
    if lines[0].endswith("?"):
        return _inviting(words, lines[0], "question")
    if about.source in _STATEMENTS:
        return _inviting(words, lines[0], "statement")
    if about.source in _LISTS:
        return _inviting(words, f"{words.line('list_lead')} {lower_first(lines[0])}", "list")
    return ""


def _inviting(words: BankWords, text: str, kind: str) -> str:
    """The text, now and then with a question to its readers after it."""
    return f"{text} {words.line('invite', kind)}" if words.rng.random() < _INVITES else text


def _neighbour_due(words: BankWords, about: ExpressionFacts) -> str:
    """A neighbour to speak to: one that the post is about, or any when none of our latest posts spoke to one."""
    neighbours = words.neighbours
    named = [handle for handle in neighbours for line in about.lines if handle in line]
    if named:
        return named[0]
    latest = about.recent[: _NEIGHBOUR_EVERY - 1]
    lately = any(f"@{handle}" in line for handle in neighbours for line in latest)
    return "" if lately or not neighbours else words.rng.choice(sorted(neighbours))


def _asked_of(words: BankWords, idea: Idea, handle: str) -> str:
    forms: list[str] = words.bank.lines["address"]
    plain = [form for form in forms if ":" not in idea.ask or ":" not in form]
    return words.fill(words.pick(plain), handle=handle, ask=lower_first(idea.ask), Ask=idea.ask)
