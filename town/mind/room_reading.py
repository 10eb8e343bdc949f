"""Reading what a SOUL is told of a room: who is there, what was said, what its notes want. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from town.mind.reading import FRAME, Said

HOST = "host"

_HERE = re.compile(r"You are (\S+)\. Also in the room: (.*?)\. Typing now:")
_LINE = re.compile(r"^\[\d{1,2}:\d{2}\] ([^:\n]{1,100}): (.*)$")
_WISH = re.compile(r'(?:Open request of the host|has waited \d+ s for this): "(.*?)"(?:\.|$)', re.MULTILINE)
_ACTION = re.compile(r"The host's request:\n(.*?)\n\nRepository:", re.DOTALL)
_REPO = re.compile(r"^(?:The repository is|Repository:) ([\w.-]+/[\w.-]*\w)", re.MULTILINE)
_LINKS = re.compile(r"Answer with the link: (\S+?)[.,]?(?:\s|$)")
_URL = re.compile(r"\b(?:in |on |at |to )?(?:https?://|github\.com/)\S+", re.IGNORECASE)
_POLITE = re.compile(
    r"^(?:@[\w.-]+[,:]? +|[\w-]+[,:] +|please |hey |ok(?:ay)?,? |just |go ahead and |let's "
    r"|i(?:'d like| need| want) you to |(?:can|could|would|will) (?:you|someone|one of you|somebody) (?:please )?)+",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"^(?:open|create|file|write|make|draft|submit|post|add|start)\s+(?:up )?(?:an?|the)?\s*(?:new )?(?:github )?"
    r"(?:issue|ticket|plan|comment|post|note)?\s*(?:on bluesky |(?:for|about|on|saying|that)\s+)?(?:the |a )?",
    re.IGNORECASE,
)
_TITLE_CHARS = 100


@dataclass(frozen=True, slots=True)
class Moment:
    """What the prompt tells of the room just now. `said` is the talk; who is "" for ourselves."""

    me: str
    present: tuple[str, ...]
    said: tuple[Said, ...]
    notes: str

    @property
    def wish(self) -> str:
        """The host's open request, as far as it is told."""
        found = _WISH.search(self.notes)
        return found[1] if found else ""

    @property
    def link(self) -> str:
        """Where that stands which the host asks about."""
        found = _LINKS.search(self.notes)
        return found[1] if found else ""

    @property
    def repo(self) -> str:
        found = _REPO.search(self.notes)
        return found[1] if found else ""

    @property
    def since_host(self) -> tuple[Said, ...]:
        """What was said after the host's last words."""
        at = next((number for number, said in enumerate(reversed(self.said)) if said.who == HOST), len(self.said))
        return self.said[len(self.said) - at :]

    def has(self, words: str) -> bool:
        return words in self.notes


def read_moment(prompt: str) -> Moment:
    """Make sense of the message that the turn answers."""
    here = _HERE.search(prompt)
    frames = list(FRAME.finditer(prompt))
    talk = next((frame[4] for frame in reversed(frames) if frame[1] == "conversation"), "")
    notes = prompt[frames[-1].end() :] if frames else prompt
    if asked := _ACTION.search(prompt):
        wish = next((frame[4] for frame in FRAME.finditer(asked[1])), asked[1])
        notes = f'YOU are the action owner.\nOpen request of the host: "{" ".join(wish.split())}"\n{prompt}'
    present = tuple(name.strip() for name in here[2].split(",")) if here else ()
    return Moment(here[1] if here else "", present, _talk(talk), notes)


def title_of(wish: str) -> str:
    """What was asked for, without the asking."""
    bare = _VERB.sub("", _POLITE.sub("", _URL.sub("", wish).strip()).strip()).strip(" ?.!,:")
    named = bare or wish.strip(" ?.!")
    return (named[:1].upper() + named[1:])[:_TITLE_CHARS]


def _talk(block: str) -> tuple[Said, ...]:
    said: list[Said] = []
    for line in block.splitlines():
        if match := _LINE.match(line.strip()):
            said.append(Said("" if match[1] == "YOU" else match[1], match[2]))
        elif said and line.strip():
            said[-1] = Said(said[-1].who, f"{said[-1].text} {line.strip()}")
    return tuple(said)
