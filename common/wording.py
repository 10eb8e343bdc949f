"""One way to write numbers and long lines for the owner, and plain words for names that the program uses.

A name without words here stays unchanged. Output for programs (`--json`, the journal) keeps every name unchanged.
"""

import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Literal

_PURPOSES = {
    "bluesky-pictures": "looking at pictures",
    "bluesky-response": "answers on Bluesky",
    "commissioning": "the first talk with you",
    "commitments": "fulfilling commitments",
    "commitments-enrichment": "writing the content of a commitment",
    "commitments-extraction": "finding commitments",
    "direct-messages": "answering direct messages of others",
    "doctor": "`soul doctor`",
    "expression": "own posts",
    "code-review": "reviewing pull requests whose tests it ran",
    "coding": "writing code",
    "github-announcement": "telling of its work on GitHub",
    "github-response": "comments on GitHub",
    "grounding": "the first words about itself",
    "memory-extraction": "keeping memories",
    "owner-communication": "talking with you",
    "peer-awareness": "words about itself and its peers",
    "plan-synthesis": "making plans",
    "pr-review": "reviewing pull requests",
    "reflection": "looking back on what it lived through",
    "self-improvement-decision": "deciding how to get better",
    "own-time": "what is due at a set time",
    "reading": "looking up what it wants to know",
    "repository-pages": "finding the rules of repositories",
    "repository-rules": "reading the rules of repositories",
    "rights-answer": "answering people about their own data",
    "rights-request": "understanding requests about people's own data",
    "review-wishes": "collecting what reviewers wished for",
    "ritual-initiation": "opening rituals",
    "ritual-memo": "writing down what came of rituals",
    "scenario-run": "trying scenarios",
    "space-action": "acts in the room",
    "space-judgement": "judging words with one small question",
    "space-participation": "talk in the room",
    "voice-phrases": "its own words for what it says often",
    "work-request": "reading who asked for the work of an issue",
    "workspace-health": "judging whether a workspace is finished",
}
_PARTS = {
    "CONTEXT.md": "the context",
    "MEMORY.md": "its memory",
    "MEMORY.md since the talk began": "its memory since the conversation began",
    "PROSOCHE.md": "what needs attention",
    "boot context": "what it knew when it stopped",
    "degraded services": "services that fail now",
    "extra": "other parts of the turn",
    "peer histories": "work with its peers",
    "moment": "the present situation",
    "profile": "who it is, in short",
    "runtime": "time, place and model",
    "skill": "the task of the turn",
    "skills": "the list of its skills",
    "skills/core": "the ground rules",
}
_RULES = {
    "approval": "whether it needs your approval",
    "consent": "who asked for it",
    "consent-by-name": "who is named",
    "consent-by-commitment": "the commitment behind it",
    "consent-to-message": "who wrote first",
    "messages-per-person": "messages to one person in an hour",
    "messages-per-person-a-day": "messages to one person in a day",
    "consent-by-promise": "the commitment behind it",
    "github-creations": "what is created on GitHub in an hour",
    "github-creations-of-others": "what is created on GitHub in an hour, but for your share",
    "injection": "posts that give orders",
    "loop-pair-hard": "endless talk with one bot",
    "loop-pair-soft": "long talk with one bot",
    "loop-thread-hard": "endless talk of bots in a thread",
    "loop-thread-soft": "long talk of bots in a thread",
    "mute": "whom you muted",
    "once": "what is said or done only once",
    "points-per-day": "Bluesky's limit for a day",
    "points-per-hour": "Bluesky's limit for an hour",
    "replies-per-day": "replies to one account in a day",
    "replies-per-peer": "replies to one peer in an hour",
    "replies-per-person": "replies to one person in an hour",
    "requests-per-day": "what one person asks about their own data in a day",
    "requests-per-person": "what one person asks about their own data in an hour",
    "repost-sense": "posts that come again",
    "same-reply": "the same words to many",
    "same-repository": "whether a repository is the one it was",
    "schedule": "posts for a later moment",
    "secrets": "secrets in its words",
    "own-program": "changes of its own program",
    "strangers": "strangers in an hour",
    "strangers-while-young": "strangers in an hour, for a young account",
    "turns-on-github": "threads of strangers on GitHub in an hour",
    "turns-per-repository": "threads of one repository in an hour",
    "turns-per-day": "posts of one account in a day",
    "turns-per-peer": "posts of one peer in an hour",
    "turns-per-person": "posts of one person in an hour",
    "welcome": "whether a repository wants AI agents",
    "pulls-per-repository": "pull requests in one repository",
    "moderation": "whom and what our account chose to avoid",
    "workflow-files": "files that run on GitHub",
}
_DEEDS = {
    "comment_issue": "comment",
    "contents": "file",
    "create_issue": "issue",
    "create_plan": "plan",
    "delete": "deletion",
    "issue_comment": "comment",
    "post_bluesky": "post",
    "ref": "branch",
    "space_chat": "line in the room",
    "threadgate": "who may reply",
}
_OUTCOMES = {
    "contest": "several claimed it at once",
    "earlier_claim": "another claim came first",
    "failed": "it came to nothing",
    "held": "it waits for your approval",
    "lock_held": "somebody is about to claim it",
    "needs-owner": "it waits for your approval",
    "no_room": "its issue holds no more characters",
    "not_claimable": "it is not to be had any more",
    "not_permitted": "GitHub does not permit it",
    "taken": "somebody else has it",
}
_SOURCES = {
    "bluesky": "a thread on Bluesky",
    "message": "a direct message",
    "owner": "your conversation",
    "self": "itself",
    "space": "the room",
}
_DAY = re.compile(r"memory/(\d{4}-\d{2}-\d{2})(?:\.md)?(?P<part> \(since\))?")
_SKILL = "skill "


def number(count: float) -> str:
    """Return a whole number with commas between thousands: `40,000,000`."""
    return f"{count:,.0f}"


def set_aside(amount: float, spoken: Callable[[float], str] = number) -> str:
    """Return how much of a budget is reserved in addition to what was spent, to end a line with; "" for nothing."""
    return f"; {spoken(amount)} more set aside for calls not answered yet" if amount else ""


def cut_off(amount: float, spoken: Callable[[float], str] = number) -> str:
    """Return the most that calls without an answer can have cost, as part of what was spent; "" for nothing."""
    return f", at most {spoken(amount)} of it for calls without an answer, which may have been billed" if amount else ""


def counted(count: int, one: str, many: str = "") -> str:
    """Return `count` with its noun: `1 reply`, `2 replies`. `many` is the plural; "" is `one` with an s."""
    return f"{number(count)} {one if count == 1 else many or f'{one}s'}"


def wrapped(indent: str, text: str, width: int) -> list[str]:
    """Return `text` in lines of `width` characters, no word broken, later lines indented by the length of `indent`."""
    blank = " " * len(indent)
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=blank, break_long_words=False, break_on_hyphens=False
    )


def purpose(name: str) -> str:
    """Return the purpose of a call to the model."""
    return _PURPOSES.get(name, name)


def rule(name: str) -> str:
    """Return what a rule for public acts is about."""
    return _RULES.get(name, name)


def deed(kind: str) -> str:
    """Return what a public act is, by the kind of its intent."""
    return _DEEDS.get(kind, kind.replace("_", " "))


def source(name: str) -> str:
    """Return where a memory comes from: the conversation or the file in which it was said."""
    kind, _, rest = name.partition(":")
    return rest if kind == "file" else _SOURCES.get(kind, name)


def told_outcome(code: str) -> str:
    """Return what became of a piece of work, by its code."""
    return _OUTCOMES.get(code, re.sub("[-_]", " ", code))


def told_reason(reason: str) -> str:
    """Return in plain words a reason that begins with the name of a rule, such as `same-reply: twice today`."""
    name, colon, rest = reason.partition(": ")
    return f"{rule(name)}{colon}{rest}"


def part_name(name: str) -> str:
    """Return the words for a part of the prompt; the owner's own files keep their names."""
    if day := _DAY.fullmatch(name):
        return f"what it noted on {day[1]}{', since the conversation began' if day['part'] else ''}"
    if name.startswith(_SKILL):
        return f"instructions: {purpose(name.removeprefix(_SKILL))}"
    return _PARTS.get(name, name)


def part_note(note: str) -> str:
    """Return in the same words a note that begins with the name of a part, such as `MEMORY.md was cut`."""
    name, verb, rest = note.rpartition(" was ")
    return f"{part_name(name)}{verb}{rest}" if verb else part_name(note)


_WAITS = {
    "drafts": ("draft for your approval (`soul drafts`)", "drafts for your approval (`soul drafts`)"),
    "tasks": ("task that needs you (`soul tasks`)", "tasks that need you (`soul tasks`)"),
    "owner_messages": ("message of yours", "messages of yours"),
    "posts": ("post to answer", "posts to answer"),
    "messages": ("direct message", "direct messages"),
    "threads": ("thread on GitHub", "threads on GitHub"),
    "acts": ("act to send", "acts to send"),
}


def waiting_text(waits: Mapping[str, int]) -> str:
    """Return what waits, by kind, for the owner; "" for nothing."""
    return ", ".join(counted(count, *said) for name, said in _WAITS.items() if (count := waits.get(name, 0)))


def counts_text(counts: Mapping[str, int]) -> str:
    """Return what the SOUL did on a day, and how much it did not answer."""
    done = (("posts", "post", "posts"), ("replies", "reply", "replies"), ("likes", "like", "likes"))
    told = [counted(counts.get(name, 0), one, many) for name, one, many in done]
    return f"{', '.join(told)}, {counts.get('silences', 0)} left alone"


LineKind = Literal[
    "info", "done", "warn", "error", "act", "think", "mem", "sys", "refl", "mind", "queue", "social", "said"
]
"""`said` is a line in which the text after the first colon and space was said in public."""
