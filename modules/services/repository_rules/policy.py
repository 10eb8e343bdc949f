"""Which files of a repository may have rules for AI agents, which sentences may be such rules, what follows. Pure.

A total ban in plain words is recognised here, by code alone. Of what else may be a rule a model reads only these
sentences and says which kind it is; the verdict follows from that word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from adapters.github.types import ContentEntry
from common.clock import parse_iso
from modules.services.repository_rules.types import Rule, Verdict, VerdictCode

FOLDERS = ("", ".github", "docs")
"""Where such files stand: the root, and two folders where there are any."""
MOST_FILES = 8
MOST_SENTENCES = 12
KEPT_FOR = timedelta(days=30)
"""So long a verdict holds; one that is not clear holds a week."""
UNCLEAR_FOR = timedelta(days=7)

_SENTENCE_CHARS = 500
_FILE = re.compile(
    r"(?:contributing|agents?|claude|gemini|copilot-instructions|code_of_conduct|pull_request_template"
    r"|(?:\w{1,20}[-_]){0,3}(?:ai|llm|genai|agents?)(?:[-_]\w{1,20}){0,3}[-_](?:polic(?:y|ies)|rules|guidelines|usage)"
    r"|(?:ai|llm|genai)(?:[-_](?:polic(?:y|ies)|rules|guidelines|usage|contributions?))?)"
    r"(?:\.(?:md|markdown|rst|txt|adoc))?",
    re.IGNORECASE,
)
_AI = (
    r"(?:a\.?i\.?|artificial intelligence|gen(?:erative)?[ -]?ai|llms?|(?:large )?language models?|chat ?gpt|gpt"
    r"|copilot|claude|gemini|machine[- ]generated|bots?|(?:coding|autonomous|automated) (?:agents?|tools?|accounts?))"
)
_SUBJECT = re.compile(rf"\b{_AI}\b", re.IGNORECASE)
_NORM = re.compile(
    r"\b(?:not|no|never|don['\u2019]?t|doesn['\u2019]?t|won['\u2019]?t|cannot|can['\u2019]?t|without|prohibit\w{0,4}|forbid\w{0,5}|ban(?:s|ned)?"
    r"|refus\w{1,4}|reject\w{0,4}|declin\w{1,4}|clos(?:e|ed|ing)|allow\w{0,3}|permit\w{0,4}|accept\w{0,5}|welcome\w{0,2}|may"
    r"|must|should|shall|require\w{0,2}|disclos\w{1,4}|polic(?:y|ies)|only|please|discourage\w{0,2}|encourage\w{0,2}|unwelcome)\b",
    re.IGNORECASE,
)
_NOT = r"(?:(?:do|does|will|can) ?not|don['\u2019]?t|doesn['\u2019]?t|won['\u2019]?t)"
_TAKE = r"(?:accept|allow|permit|merge|want|take)"
_BAN = re.compile(
    rf"\b{_AI}\b[^.;:,]{{0,80}} (?:is|are) (?:strictly |currently |explicitly )?"
    r"(?:not (?:allowed|permitted|accepted|welcome)|prohibited|forbidden|banned|unwelcome)\b"
    rf"|\b{_AI}\b[^.;:,]{{0,80}} will (?:all )?(?:be|get) (?:closed|rejected|declined|banned)\b"
    rf"|\b{_NOT} {_TAKE}\b[^.;:,]{{0,60}}\b{_AI}\b"
    r"|\b(?:we|project|policy|repository) (?:strictly )?(?:bans?|forbids?|prohibits?|rejects?|refuses?|declines?)\b"
    rf"[^.;:,]{{0,60}}\b{_AI}\b"
    rf"|\b(?:do not|don['\u2019]?t|never) (?:use|submit|open|post|send)\b[^.;:,]{{0,40}}\b{_AI}\b"
    rf"|^\W{{0,5}}no {_AI}\b",
    re.IGNORECASE,
)
_SOFTENED = re.compile(
    r"\b(?:unless|except|without|if|only|solely|entirely|purely|fully|blindly|undisclosed|unreviewed"
    r"|low[- ](?:quality|effort)|spam\w{0,4}|disclos\w{1,4}|you (?:understand|have|can)|review(?:ed|ing)?"
    r"|until|first issues?|security|secrets?|training|train|but|however|signed[- ]off)\b",
    re.IGNORECASE,
)
_BREAK = re.compile(r"(?<=[.!?])\s|\n\s*\n|\n(?=\s{0,8}(?:[-*#|>]|\d{1,3}[.)]))")
_BLANKS = re.compile(r"\s+")


def files_to_read(listed: Iterable[ContentEntry]) -> list[ContentEntry]:
    """Return the files that may have such rules, those about AI first, at most `MOST_FILES`."""
    found = [one for one in listed if one.type == "file" and _FILE.fullmatch(one.name)]
    return sorted(found, key=lambda one: (not _SUBJECT.search(one.name.replace("_", " ")), one.path))[:MOST_FILES]


def rule_sentences(text: str) -> list[str]:
    """Return the sentences of a file that may be rules for AI agents, each at most 500 characters, at most 12."""
    pieces = (_BLANKS.sub(" ", piece).strip() for piece in _BREAK.split(text))
    found = [one[:_SENTENCE_CHARS] for one in pieces if _SUBJECT.search(one) and _NORM.search(one)]
    return found[:MOST_SENTENCES]


def is_plain_ban(sentence: str) -> bool:
    """Return whether a sentence forbids AI altogether, in plain English and without any condition."""
    return _BAN.search(sentence) is not None and _SOFTENED.search(sentence) is None


def verdict_of(rules: Sequence[tuple[str, Rule]]) -> tuple[VerdictCode, str]:
    """Return what follows from what the files say, each by its path, and which of them decided: the strictest."""
    codes: dict[Rule, VerdictCode] = {
        "forbidden": VerdictCode.FORBIDDEN,
        "conditions": VerdictCode.CONDITIONS,
        "allowed": VerdictCode.ALLOWED,
    }
    for rule, code in codes.items():
        for path, said in rules:
            if said == rule:
                return code, path
    return VerdictCode.NO_RULES, ""


def is_fresh(verdict: Verdict, now: datetime, speed: float) -> bool:
    """Return whether a verdict still holds. At `speed` 10 it holds a tenth as long."""
    holds = UNCLEAR_FOR if verdict.welcome == "unclear" else KEPT_FOR
    return now - parse_iso(verdict.at) < holds / speed
