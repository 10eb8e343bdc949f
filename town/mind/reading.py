"""Reading a request as any model would: who am I, what is asked, who says what. Pure; the messages are all it sees."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from common.text.strings import straighten
from town.mind.bank import flatten
from town.mind.remembering import TOOL
from town.mind.types import ChatRequest, Message

Task = Literal[
    "answer",
    "express",
    "owner",
    "ground",
    "judge",
    "remember",
    "room",
    "repeats",
    "wanted",
    "worth",
    "promises",
    "other",
]

_HANDLE = re.compile(r"(?<![\w@])@((?:[a-z0-9-]+\.)+[a-z][a-z0-9-]*)", re.IGNORECASE)
_ON_BLUESKY = re.compile(r"\b[Yy]ou are (?:on Bluesky as )?@([\w.-]+?)[.,]?(?:\s|$)")
_OWNER = re.compile(r"\bowner(?: is| \()\s*@([\w.-]+?)[.,)]?(?:\s|$)")
_NAMED = re.compile(r"\bI(?:'m| am) ([A-Z][\w-]+)|\bYou are ([A-Z][\w-]+)[,.]")
FRAME = re.compile(r"<(post|conversation)-([\w-]+)([^>]*)>\s*(.*?)\s*</\1-\2>", re.DOTALL)
_SAID = re.compile(r"^(YOU|@[\w.-]+): (.*)$")
_JOINED = re.compile(r"\s(?:and|but|because|so|when|while|who|which)\s", re.IGNORECASE)
_DRAFT = re.compile(r"Your draft was: (.*?)(?:\n\n|\Z)", re.DOTALL)
_CLOCK = re.compile(r"\b(\d{1,2}):(\d{2})\b")
_SECTION = re.compile(r"^## +(.+?)\s*$")
_BULLET = re.compile(r"^[-*] +(.+?)\s*$")
_JUDGE = re.compile(r"\b(?:answer|reply|respond)\b[^.]{0,40}\byes\b", re.IGNORECASE)
_FAILED = re.compile(r"^(?:error|blocked|skipped|converted|not posted|the reply was not sent)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Character:
    """Who the mind is in this request, as SOUL.md and SELF.md tell it. `lines` are the bullets by heading."""

    name: str
    handle: str
    owner: str
    text: str
    lines: dict[str, tuple[str, ...]]

    def about(self, *headings: str) -> tuple[str, ...]:
        """The bullets under the headings that begin with one of these words."""
        wanted = tuple(word.lower() for word in headings)
        return tuple(line for title, found in self.lines.items() if title.startswith(wanted) for line in found)

    def neighbours(self) -> dict[str, str]:
        """Handles named under Relationships, each with its line."""
        lines = self.about("relationship", "people", "connection", "communit")
        return {handle: line for line in lines for handle in _HANDLE.findall(line) if handle != self.handle}


@dataclass(frozen=True, slots=True)
class Said:
    """A line of a conversation; `who` is empty for our own."""

    who: str
    text: str


@dataclass(frozen=True, slots=True)
class Scene:
    """What is going on. `problem` is why an earlier try did not work; `done`, that one did."""

    task: Task
    me: Character
    prompt: str
    text: str = ""
    author: str = ""
    reason: str = ""
    uri: str = ""
    cid: str = ""
    source: str = ""
    conversation: tuple[Said, ...] = ()
    notes: str = ""
    recent: str = ""
    situation: str = ""
    draft: str = ""
    problem: str = ""
    done: bool = False
    minute: int = 0
    pictures: int = 0

    @property
    def own(self) -> tuple[str, ...]:
        """What we said in this conversation."""
        return tuple(said.text for said in self.conversation if not said.who)

    def heard(self) -> str:
        """Everything that should not be said again, flattened."""
        if self.task == "express":
            return flatten(self.recent)
        return flatten(" ".join([self.recent, *(said.text for said in self.conversation), self.text]))


def read_scene(request: ChatRequest) -> Scene:
    """Make sense of a request, whatever it is."""
    system = "\n\n".join(message.text for message in request.messages if message.role == "system")
    me = _character(system)
    asked = _asked(request.messages)
    tools = {offer.name for offer in request.offers}
    clock = _CLOCK.search(_field(asked, "today") or asked) or _CLOCK.search(system)
    minute = int(clock[1]) * 60 + int(clock[2]) if clock else 0
    after = _after(request.messages, asked)
    problem = "" if not after or (after.role == "tool" and not _FAILED.match(after.text)) else after.text
    draft = _DRAFT.search(after.text if after else asked)
    tried = " ".join(str(call.input.get("text", "")) for message in request.messages for call in message.calls)
    common = Scene(
        task="other",
        me=me,
        prompt=asked,
        text=asked,
        situation=_situation(system),
        problem=problem,
        done=bool(after) and not problem,
        draft=draft[1].strip() if draft else "",
        minute=minute,
        pictures=sum(message.pictures for message in request.messages if message.text == asked),
        recent="" if draft else tried,
    )
    if _field(asked, "uri").startswith("at://") and tools & {"bluesky_reply", "bluesky_like"}:
        return _answering(common)
    if "bluesky_post" in tools and (request.force or _field(asked, "source") or common.draft):
        text = _field(asked, "prompt") or asked
        return replace(
            common,
            task="express",
            source=_field(asked, "source"),
            text=text,
            recent=f"{_recent(asked)}\n{common.recent}",
        )
    plain: dict[Task, bool] = {
        "room": "space_decision" in tools and (" in the room: " in asked or "The host's request:" in asked),
        "repeats": not tools and ("\nNew message: " in asked or "\nBob says: " in asked),
        "wanted": not tools and "ACTION_REQUEST" in system,
        "worth": not tools and "Answer SPEAK or LISTEN" in asked,
        "promises": not tools and "\nThe JSON array:" in asked,
        "remember": tools == {TOOL},
        "judge": not tools and bool(_JUDGE.search(asked) or _JUDGE.search(system)),
        "ground": "who are you today" in asked,
    }
    for task, holds in plain.items():
        if holds:
            return replace(common, task=task)
    if not request.force and (common.situation or not tools):
        return replace(common, task="owner")
    return common


def quote(text: str, *, shortest: int = 3, longest: int = 10) -> str:
    """A piece of someone's own words, short enough to be quoted; empty if none is."""
    bare = re.sub(r"https?://\S+|@[\w.-]+", " ", straighten(text))
    pieces = [piece.strip(" \"'-") for piece in re.split(r"[.,;:!?\n()\u2013\u2014]+|\s-\s", bare)]
    parts = [part for piece in pieces for part in (piece, *_JOINED.split(piece))]
    whole = [part for part in parts if shortest <= len(part.split()) <= longest and '"' not in part]
    return max(whole, key=len, default="")


def mentioned(text: str) -> tuple[str, ...]:
    """The handles that a text speaks to."""
    return tuple(handle.lower() for handle in _HANDLE.findall(text))


def _answering(common: Scene) -> Scene:
    asked = common.prompt
    frames = {match[1]: match[4] for match in FRAME.finditer(asked)}
    return replace(
        common,
        task="answer",
        text=frames.get("post", ""),
        author=_field(asked, "author").lstrip("@").split(" ")[0],
        reason=_field(asked, "reason"),
        uri=_field(asked, "uri"),
        cid=_field(asked, "cid"),
        conversation=_conversation(frames.get("conversation", "")),
        notes="\n".join(line for line in asked.splitlines() if line.startswith("note: ")),
    )


def _conversation(block: str) -> tuple[Said, ...]:
    said: list[Said] = []
    for line in block.splitlines():
        match = _SAID.match(line.strip())
        if match:
            said.append(Said("" if match[1] == "YOU" else match[1].lstrip("@"), match[2]))
        elif said and line.strip():
            said[-1] = Said(said[-1].who, f"{said[-1].text} {line.strip()}")
    return tuple(said)


def _character(system: str) -> Character:
    lines: dict[str, tuple[str, ...]] = {}
    title = ""
    for line in system.splitlines():
        if heading := _SECTION.match(line):
            title = heading[1].lower()
        elif line.startswith(("---", "# ")):
            title = ""
        elif title and (bullet := _BULLET.match(line)):
            lines[title] = (*lines.get(title, ()), bullet[1])
    named = _NAMED.search(straighten(system))
    handle = _ON_BLUESKY.search(system)
    owner = _OWNER.search(system)
    name = (named[1] or named[2]) if named else (handle[1].split(".")[0].capitalize() if handle else "someone")
    own = handle[1].lower() if handle else ""
    return Character(name, own, owner[1].lower() if owner else "", system, lines)


def _asked(messages: tuple[Message, ...]) -> str:
    """The message that set the task: the last of the user's that is not a remark on an earlier try."""
    users = [message.text for message in messages if message.role == "user"]
    tasks = [text for text in users if _field(text, "uri") or _field(text, "source")]
    return (tasks or users or [""])[-1]


def _after(messages: tuple[Message, ...], asked: str) -> Message | None:
    """What was said to us last, if that came after the task."""
    last = messages[-1]
    return last if last.role == "tool" or (last.role == "user" and last.text != asked) else None


def _field(text: str, name: str) -> str:
    label = "Today is" if name == "today" else f"{name}:"
    match = re.search(rf"^{label}[ \t]*(.*)$", text, re.MULTILINE)
    return match[1].strip() if match else ""


def _recent(asked: str) -> str:
    """Our latest posts, the newest first, one a line."""
    _, _, rest = asked.partition("Your latest posts")
    listed = rest.partition("\n\n")[0].splitlines()
    return "\n".join(line[2:] for line in listed if line.startswith("- "))


def _situation(system: str) -> str:
    match = re.search(r"^How things stand:\n(.+?)(?:\n\n|\Z)", system, re.MULTILINE | re.DOTALL)
    return match[1].strip() if match else ""
