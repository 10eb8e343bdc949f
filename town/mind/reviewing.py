"""Reviews of pull requests: a verdict by what the tests came to, and words that name what was read. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from common.facts import ReviewFacts
from town.mind.turn import MindTurn
from town.model.types import Completion

_MOST_NAMED = 4


def review(turn: MindTurn, about: ReviewFacts) -> Completion:
    """The call of the tool that submits a review; changes are asked for where tests fail, or are weakened."""
    offer = turn.first_offer
    if offer is None:
        return turn.anything(turn.words(text=about.title))
    words = turn.words(text=about.title)
    blanks = {
        "files": _listed(about.files),
        "file": _most_telling(about.files),
        "command": about.commands[0] if about.commands else "",
        "failing": _quoted(about.failing) or "what tests it",
        "weakened": _listed(about.weakened),
    }
    said = [words.line("reviews", about.tests, **blanks)]
    said += [words.line("reviews", "weakened", **blanks)] if about.weakened else []
    against = about.tests == "failed" or bool(about.weakened)
    event = "REQUEST_CHANGES" if against else ("COMMENT" if about.tests == "unrun" else "APPROVE")
    return turn.call(offer.name, {"event": event, "body": "\n\n".join(said)})


def _most_telling(files: Sequence[str]) -> str:
    """The file that a reader opens first: code before its tests, and those before settings."""
    rank = {True: 1, False: 0}
    return min(files, key=lambda path: (rank["test" in path], path.endswith((".json", ".yml", ".toml"))), default="it")


def _listed(files: Sequence[str]) -> str:
    """The names of files as somebody lists them."""
    names = [f"`{path}`" for path in files[:_MOST_NAMED]]
    if len(files) > _MOST_NAMED:
        names.append(f"{len(files) - _MOST_NAMED} more")
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:]))) or "it"


def _quoted(names: Sequence[str]) -> str:
    return " and ".join(f'"{name}"' for name in names[:2])
