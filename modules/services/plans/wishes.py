"""Which plan is the one that somebody asked for in a post on Bluesky: each wish has a plan of its own. Pure.

A plan that is made for a post ends in a mark that readers do not see. All SOULs to whom the post speaks reckon the same
mark, so that they find the plan of the first of them, and take no plan for another wish for it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from adapters.github.types import Issue
from common.text.closings import without_handles
from common.text.stems import plain_words, tokenize_with_stemming
from common.text.strings import normalized_title
from modules.services.plans.parse import TITLE_MARK, parse_plan

_MARK = re.compile(r"<!-- soul:wish=([0-9a-f]{16}) -->")
_LEAST_SHARED, _LEAST_SHARE = 2, 0.25


@dataclass(frozen=True, slots=True)
class Wish:
    """What the post at `uri` asks for: its `text`, the `title` of a plan for it, and what else its thread says."""

    uri: str
    text: str
    title: str = ""
    said: tuple[str, ...] = ()


def wish_mark(uri: str) -> str:
    """Return the mark of a plan that is made for the post at `uri`."""
    return f"<!-- soul:wish={_digest(uri)} -->"


def wish_of(body: str) -> str:
    """Return what tells the wish for which a plan was made from all others, "" where the plan does not say."""
    found = _MARK.search(body)
    return found[1] if found else ""


def plan_for(wish: Wish, plans: Iterable[Issue]) -> Issue | None:
    """Return the plan of a wish among those that stand, the first that fits best; None where it has none.

    It is the one that is made for the post; else one whose link stands in the thread; else one that does not say for
    which post it is made, and has the same title or a good part of the words that ask for it.
    """
    standing = list(plans)
    made = (one for one in standing if wish_of(one.body) == _digest(wish.uri))
    named = (one for one in standing if any(tells_link(text, one.html_url) for text in (wish.text, *wish.said)))
    alike = (one for one in standing if not wish_of(one.body) and _is_alike(wish, one))
    return next((one for found in (made, named, alike) for one in found), None)


def tells_link(text: str, url: str) -> bool:
    """Return whether the link stands in a text, and not just one that begins so."""
    return re.search(rf"{re.escape(url)}(?![\w/])", text) is not None


def _is_alike(wish: Wish, plan: Issue) -> bool:
    if wish.title and normalized_title(wish.title) == normalized_title(plan.title.replace(TITLE_MARK, "", 1)):
        return True
    wanted = {stem for word in plain_words(without_handles(wish.text)) for stem in tokenize_with_stemming(word)}
    read = parse_plan(plan.body, plan.title)
    texts = [read.title, read.goal, *(f"{one.title}\n{one.description}" for one in read.tasks)] if read else []
    shared = wanted & set(tokenize_with_stemming("\n".join(texts)))
    return len(shared) >= max(_LEAST_SHARED, _LEAST_SHARE * len(wanted))


def _digest(uri: str) -> str:
    return hashlib.sha256(uri.encode()).hexdigest()[:16]
