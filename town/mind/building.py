"""Work on something that is asked for: the workspace, the plan in it, and what a plan lacks. Pure.

What shall be built stands in a list behind a colon. The mind plans the first two parts that it reads; so another one
finds something that is missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from town.mind.bank import Bank, stems
from town.mind.turn import MindTurn
from town.mind.words import ADDRESS, BankWords, fit
from town.model.types import Completion, Json

PLANNED_AT_ONCE = 2

_MOST_PARTS, _TITLE_CHARS = 8, 60
_WORKSPACE = re.compile(
    r"\b(?:make|open|create|set up)\b.{0,40}\bworkspace\b(?: and a plan\b)?"
    r"(?: (?:for|about|called|named) (?:the |an? )?([\w -]{1,60}?)(?= for us\b| and\b|[^\w -]|$))?",
    re.IGNORECASE,
)
_BUILD = re.compile(
    r"\b(?:build|write|make|create|code) (?:us |me )an? ((?:[\w-]+ ){0,3}?[\w-]+)"
    r"(?= (?:that|which|for|to|with)\b|[^\w -]|$)",
    re.IGNORECASE,
)
_PLAN = re.compile(r"\b(?:write|make|create|draw up)\b.{0,40}\bplan\b", re.IGNORECASE)
_LIST = re.compile(r":\s([^.!?:\n]{3,300})")
_BETWEEN = re.compile(r",? and (?=\w+ )|[,;]")
_OPENING = re.compile(r"^(?:and |it |that |which |should |shall |can |must |to )+", re.IGNORECASE)
_POLITE = re.compile(
    r"^(?:@[\w.-]+[,:]? +|[\w-]+[,:] +|please |hey |ok(?:ay)?,? |just |go ahead and |let's "
    r"|i(?:'d like| need| want) you to |(?:can|could|would|will) (?:you|someone|one of you|somebody) (?:please )?)+",
    re.IGNORECASE,
)
_NO_SIGNS = re.compile(r"[^a-z0-9]+")


def shared_work(turn: MindTurn, text: str) -> Completion | None:
    """The workspace that `text` asks for, then the plan in it, each where there is a tool for it; None once done.

    Who asks us to build a program that we know asks for both; for another one nothing is begun.
    """
    asked, build = _WORKSPACE.search(text), _BUILD.search(text)
    found = asked or build
    if found is None or (turn.last and turn.last.failed) or (not asked and row_for(turn.bank, text) is None):
        return None
    name = (found[1] or "together").strip()
    done = {outcome.tool for outcome in turn.facts.outcomes}
    if "more_tools" in turn.offers and "workspace_create" not in turn.offers and "more_tools" not in done:
        return turn.call("more_tools", {"family": "workspace"})
    if "workspace_create" in turn.offers and "workspace_create" not in done:
        return turn.call("workspace_create", {"name": name})
    if "plan_create" in turn.offers and "plan_create" not in done and (build or _PLAN.search(text)):
        tasks = [_task(part) for part in _parts(text)[:PLANNED_AT_ONCE]]
        if not tasks and (known := plan_of(turn.bank, text))["tasks"]:
            return turn.call("plan_create", known)
        begun = {"title": f"Begin {name}", "description": f"What {name} needs first.", "files": ["README.md"]}
        return turn.call("plan_create", {"title": name, "goal": f"{name} can be used.", "tasks": tasks or [begun]})
    return None


def refused(words: BankWords, text: str, *, is_order: bool) -> str:
    """What is said to somebody who asks for work that this mind cannot do; "" where nobody does.

    `is_order`: the text is the owner's, so that a sentence with a verb in front asks for something.
    """
    bank = words.bank
    asks = _BUILD.search(text) or (is_order and _is_errand(bank, text))
    return words.line("cannot") if asks and not bank.intent_of(text) and row_for(bank, text) is None else ""


def bare_request(text: str) -> str:
    """A request without its courtesies and names."""
    return _POLITE.sub("", text.strip())


def _is_errand(bank: Bank, text: str) -> bool:
    """Whether a text begins as an order, or says something about a repository that it links to."""
    plain = ADDRESS.sub(" ", text).strip(" .!")
    links = "github.com/" in text and bool(plain) and "?" not in text
    return links or re.match(rf"(?:{bank.lines['errands']})\b", bare_request(text), re.IGNORECASE) is not None


def told(turn: MindTurn, words: BankWords, account: str = "", *, is_order: bool = False) -> Completion | None:
    """What is said of work that was done in this turn, or cannot be; a like where a plan lacked nothing; else None.

    `account` is our name on GitHub, where it is to be told; `is_order` as for `refused`.
    """
    done = next(
        (outcome for outcome in reversed(turn.facts.outcomes) if outcome.act in words.bank.lines["built"]), None
    )
    if done is None or (turn.last and turn.last.failed):
        cannot = refused(words, words.text, is_order=is_order) if turn.may("bluesky_reply") else ""
        return turn.call("bluesky_reply", {"text": fit(cannot)}) if cannot else None
    if done.act == "plan_found" and turn.may("bluesky_like"):
        return turn.call("bluesky_like", {"reason": words.line("reasons", "like")})
    if not turn.may("bluesky_reply"):
        return None
    act = "plan_made" if done.act == "plan_extended" and not done.words else done.act
    said = words.line("built", act, words="; ".join(done.words), url=done.url)
    introduced = f"{words.line('account', username=account)} {said}" if account else said
    return turn.call("bluesky_reply", {"text": fit(introduced)})


def plan_of(bank: Bank, title: str) -> Json:
    """The title, goal and tasks of a plan for what a title asks for; without tasks where no program is known for it."""
    row = row_for(bank, title) or {}
    tasks = [dict(one) for one in row.get("tasks", ())]
    return {"title": row.get("title", title), "goal": row.get("goal", f"{title}."), "tasks": tasks}


def row_for(bank: Bank, title: str) -> Mapping[str, Any] | None:
    """The row of the table of programs that does all that a title asks for; None where a word of it is unknown."""
    asked = ADDRESS.sub(" ", title)
    matching = (row for row in bank.code if re.search(row["match"], asked, re.IGNORECASE | re.DOTALL))
    return next((row for row in matching if stems(asked) <= stems(row["words"])), None)


def buildable(bank: Bank) -> str:
    """What can be built, as a phrase lists it."""
    return ", ".join(row["label"] for row in bank.code if "label" in row)


def missing(fields: Mapping[str, tuple[str, ...]]) -> Json:
    """The parts that no task does: a telling word of each stands in none."""
    known = [stems(text) for text in fields.get("tasks", ())]
    parts = (part for text in fields.get("wanted", ()) for part in _parts(text))
    return {
        "missing": [{"asked": part} | _task(part) for part in parts if not any(stems(part) <= one for one in known)]
    }


def _parts(text: str) -> list[str]:
    """What shall be built, a few words each, in the words of the text."""
    listed = (piece for found in _LIST.finditer(text) for piece in _BETWEEN.split(found[1]))
    return [part for piece in listed if (part := _OPENING.sub("", piece.strip()))][:_MOST_PARTS]


def _task(part: str) -> Json:
    title = part[:1].upper() + part[1:_TITLE_CHARS]
    name = _NO_SIGNS.sub("-", part[:_TITLE_CHARS].lower()).strip("-") or "more"
    return {"title": title, "description": f"Somebody opens it, and it does this: {part}.", "files": [f"{name}.py"]}
