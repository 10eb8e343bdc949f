"""Checks drafts of the SOUL's own skills, and names the turns in which their pages are read. Pure.

A page is the SOUL's own text, approved by the owner: guidance below every rule. It gives no tool, right or limit, as
none of these is read from a prompt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from common.text.hidden import HIDDEN, names_of
from common.text.markdown import outline
from common.text.untrusted import clean

OwnTurns = Literal["mentions", "messages", "posts", "github", "rooms", "own-time", "reflection"]

READ_IN: Mapping[str, frozenset[str]] = {
    "mentions": frozenset({"bluesky-response"}),
    "messages": frozenset({"direct-messages"}),
    "posts": frozenset({"expression"}),
    "github": frozenset({"github-response", "pr-review"}),
    "rooms": frozenset({"space-participation", "space-action"}),
    "own-time": frozenset({"own-time"}),
    "reflection": frozenset({"reflection"}),
}
"""The turns that a page can name, each with the skills that are its task."""

NEEDS_YES = "a skill of the SOUL's own counts once its owner approved it"
MOST_SKILLS, MOST_IN_TURN, MOST_WAITING = 12, 3, 3
MOST_PAGE_CHARS, MOST_PURPOSE_CHARS = 800, 160

_NAME = re.compile(r"(?=.{2,40}\Z)[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_SPACES, _BLANK_LINES = re.compile(r"[^\S\n]{2,}"), re.compile(r"\n{3,}")
_RULE = re.compile(r"\s*(?:`{3,}|~{3,}|[-=*_](?:\s*[-=*_]){2,}\s*\Z)")
_TEMPLATE = re.compile(r"\{[{%#]|[%#}]\}")
_CALL = re.compile(r"(?<![\w/.@#-])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?![\w/-])")
_OFF = "off: true"


@dataclass(frozen=True, slots=True)
class SkillDraft:
    """A proposed skill; `turns` are those in which its page is read, besides talks with the owner."""

    name: str
    purpose: str
    page: str
    turns: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, purpose: str, page: str, turns: Collection[str]) -> SkillDraft:
        """Return a draft without superfluous white space."""
        lines = (line.rstrip() for line in _SPACES.sub("  ", page.replace("\r\n", "\n")).strip().split("\n"))
        text = _BLANK_LINES.sub("\n\n", "\n".join(lines))
        return cls(name.strip(), _SPACES.sub(" ", purpose).strip(), text, tuple(dict.fromkeys(turns)))

    @property
    def text(self) -> str:
        """The content of the file."""
        turns = f"turns: [{', '.join(self.turns)}]\n" if self.turns else ""
        described = json.dumps(self.purpose, ensure_ascii=False)
        return f"---\nname: {self.name}\ndescription: {described}\n{turns}---\n\n{self.page}\n"


def objection(
    draft: SkillDraft,
    *,
    shipped: Collection[str],
    others: Mapping[str, Collection[str]],
    waiting: Collection[str],
    words: Mapping[str, Collection[str]],
) -> str:
    """Return why a draft cannot become a skill, in one line; "" if it can.

    Args:
        draft: the proposal.
        shipped: the names of the program's skills.
        others: the own skills, by name, each with its turns.
        waiting: the names of skills with a waiting change.
        words: the names of the tools and their fields in each kind of turn; those of the owner's talks under "".

    """
    room = _of_room(draft, others, waiting)
    return next(chain(_of_name(draft.name, shipped), _of_text(draft), room, _of_tools(draft, words)), "")


def _of_name(name: str, shipped: Collection[str]) -> Iterator[str]:
    if not _NAME.fullmatch(name):
        yield "a name has 2 to 40 small letters and digits, with single hyphens between them"
    if name in shipped:
        yield "the program has a skill of that name"


def _of_text(draft: SkillDraft) -> Iterator[str]:
    for what, text, most in (("purpose", draft.purpose, MOST_PURPOSE_CHARS), ("page", draft.page, MOST_PAGE_CHARS)):
        if not text:
            yield f"the {what} is empty"
        if len(text) > most:
            yield f"the {what} has {len(text)} characters, the most is {most}"
        if clean(text) != text:
            unseen = names_of("".join(one[0] for one in HIDDEN.finditer(text) if not one["seen"]))
            signs = f"{unseen}, which nobody sees" if unseen else "marks by which programs tell who speaks"
            yield f"the {what} has {signs}: leave them out"
        if "<!--" in text or "-->" in text:
            yield f"the {what} has a comment, which readers do not see"
        if _TEMPLATE.search(text):
            yield f"the {what} has signs of a template, such as {{{{: no variable is filled in"
    lines = draft.page.split("\n")
    if outline(lines).headings or any(map(_RULE.match, lines)):
        yield "the page has a heading, a rule or a block of code: sentences and lists only"
    if "\n" in draft.purpose:
        yield "the purpose is one line"


def _of_room(draft: SkillDraft, others: Mapping[str, Collection[str]], waiting: Collection[str]) -> Iterator[str]:
    if len(others.keys() | set(waiting) | {draft.name}) > MOST_SKILLS:
        yield f"there are {MOST_SKILLS} skills of your own: change one of them instead"
    if draft.name not in waiting and len(waiting) >= MOST_WAITING:
        yield f"{MOST_WAITING} skills wait for your owner's approval: no more until they decided"
    for turn in draft.turns:
        there = sorted(name for name, turns in others.items() if turn in turns and name != draft.name)
        if len(there) >= MOST_IN_TURN:
            yield f"{turn} has {MOST_IN_TURN} skills of your own ({', '.join(there)}): change one of them instead"


def _of_tools(draft: SkillDraft, words: Mapping[str, Collection[str]]) -> Iterator[str]:
    known = {word for turn in draft.turns or ("",) for word in words[turn]}
    if strange := sorted(set(_CALL.findall(f"{draft.purpose}\n{draft.page}")) - known):
        where = " and ".join(draft.turns) or "talks with your owner"
        yield f"{', '.join(strange)}: no tool of {where}, nor a field of one; leave that out, or write it without _"


def is_off(front: Mapping[str, object]) -> bool:
    """Return whether the front matter says that the owner switched the skill off."""
    off = front.get("off")
    return isinstance(off, str) and off.lower() in {"true", "yes", "on"}


def switched(text: str, *, off: bool) -> str:
    """Return the file of a skill, switched off or on."""
    front, rule, page = text.partition("\n---")
    kept = [line for line in front.split("\n") if not line.startswith("off:")]
    return "\n".join([*kept, *([_OFF] if off else [])]) + rule + page
