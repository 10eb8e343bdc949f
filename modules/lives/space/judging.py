"""When a message is worth a judge: one who repeats a point in other words shares no word with it. Pure.

Words that are near tell nothing of such an echo, so the state of the talk decides: several agents have answered the
same words of the host, and this is one more answer. The judge is asked at most once for each message that is about to
be said, after every cheaper check; a room where each agent answers a host's message twice costs an agent one judgement
or two, since the first two answers, questions, promises, short remarks and words that bring a new figure, link or name
of code need none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from common.constants import ECHO_JUDGE_BORDERLINE_LOW, ECHO_JUDGE_NOVELTY_HIGH, ECHO_SHORT_STEMS
from common.text.echo import EnsembleEchoResult
from common.text.stems import tokenize_with_stemming

_FEWEST_ANSWERS = 2
_AFTER_MARK = " )\"'*_"
_FACT = re.compile(r"https?://\S*\w|`[^`\n]+`|#\d+|(?<![\w.])\d+(?:[.,:]\d+)*")


@dataclass(frozen=True, slots=True)
class JudgeWanted:
    """Whether to ask the judge, and why or why not."""

    should: bool
    reason: str


def judge_wanted(
    message: str,
    answers: Sequence[str],
    echo: EnsembleEchoResult,
    *,
    partners: int,
    commitments: int = 0,
    names: Collection[str] = (),
) -> JudgeWanted:
    """Whether `message` should be judged.

    Args:
        message: what is about to be said.
        answers: what agents, we among them, have said since the host last spoke, oldest first.
        echo: what the comparison of words found.
        partners: how many messages it was compared with.
        commitments: promises made with it.
        names: who is in the room.

    """
    near = echo.score >= ECHO_JUDGE_BORDERLINE_LOW and echo.novelty < ECHO_JUDGE_NOVELTY_HIGH
    refusals = (
        (commitments > 0, "it promises something"),
        (echo.is_echo, "it is an echo already"),
        (partners < _FEWEST_ANSWERS, "too little was said to repeat"),
        (not near and len(answers) < _FEWEST_ANSWERS, "few have answered the host yet"),
        (not near and message.rstrip(_AFTER_MARK).endswith("?"), "it asks something"),
        (not near and len(tokenize_with_stemming(message, names)) < ECHO_SHORT_STEMS, "it is too short for a point"),
        (not near and bool(new_facts(message, answers)), "it brings a new figure, link or name of code"),
    )
    for refused, reason in refusals:
        if refused:
            return JudgeWanted(should=False, reason=reason)
    told = "its words come near to what was said" if near else "one more answer to the same words of the host"
    return JudgeWanted(should=True, reason=told)


def new_facts(message: str, said: Sequence[str]) -> tuple[str, ...]:
    """Figures, links and names of code in `message` that nobody has used, in order."""
    known = {fact for text in said for fact in _FACT.findall(text)}
    return tuple(fact for fact in dict.fromkeys(_FACT.findall(message)) if fact not in known)
