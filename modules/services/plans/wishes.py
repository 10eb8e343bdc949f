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
from common.text.strings import normalized_title
from modules.services.plans.parse import TITLE_MARK

_MARK = re.compile(r"<!-- soul:wish=([0-9a-f]{16}) -->")


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
    which post it is made, and has the same title.
    """
    standing = list(plans)
    made = (one for one in standing if wish_of(one.body) == _digest(wish.uri))
    named = (one for one in standing if any(tells_link(text, one.html_url) for text in (wish.text, *wish.said)))
    titled = (one for one in standing if not wish_of(one.body) and _has_title(one, wish.title))
    return next((one for found in (made, named, titled) for one in found), None)


def tells_link(text: str, url: str) -> bool:
    """Return whether the link stands in a text, and not just one that begins so."""
    return re.search(rf"{re.escape(url)}(?![\w/])", text) is not None


def _has_title(plan: Issue, title: str) -> bool:
    return bool(title) and normalized_title(title) == normalized_title(plan.title.replace(TITLE_MARK, "", 1))


def _digest(uri: str) -> str:
    return hashlib.sha256(uri.encode()).hexdigest()[:16]
