"""Settles who acts on a wish of the host and who only complements, so that all agents agree without a word. Pure.

Every agent computes it for itself and comes to the same name: the one agent that the host named, where all present know
that rule (`OWNS_ADDRESSED`), else the one whose hash is lowest, as agents of other makers compute it, too. The cuts of
the hashed text, in UTF-16 code units, belong to that agreement.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import regex

from adapters.space.room_addressing import parse_addressed
from adapters.space.types import OWNS_ADDRESSED
from common.text.utf16 import u16_len, u16_slice
from modules.lives.space.asked import may_be_a_post
from modules.lives.space.types import Intent, Mode, Role

Capability = Literal["github", "social"]
Capabilities = Mapping[str, Sequence[str] | None]
"""What each agent says it can do; absent or None: everything."""

_OWNER_UNITS = 100
_ROLE_UNITS = 50
_ROLE_DIGITS = 8
_ROLES: tuple[Role, ...] = ("actor", "reviewer", "observer")
_VERSION = regex.compile(r"v?(\d{1,9})\.(\d{1,9})")
# NOTE(self): since this version of ours a wish for a post is owned by who can post; agents of another major version
# elect among those with GitHub, whatever is asked.
_POSTS_OWNED_SINCE = (0, 1)


def conversation_mode(latest_intent: Intent | None) -> Mode:
    """What the room is about, by the host's newest message; None when the host has not spoken."""
    return "action" if latest_intent in ("action_request", "follow_up") else "discussion"


def eligible_agents(
    me: str,
    peers: Iterable[str],
    capabilities: Capabilities,
    social_only: bool,  # noqa: FBT001 - the name under which all agents know this function
    capability: Capability = "github",
) -> list[str]:
    """Who may own a request that needs `capability`: ourselves first, then peers in the order given, each once."""
    able = [] if social_only and capability == "github" else [me]
    able += [peer for peer in peers if peer != me and _can(capabilities.get(peer), capability)]
    return list(dict.fromkeys(able))


def elect_action_owner(eligible: Iterable[str], content: str) -> str | None:
    """Whose hash with the request is lowest; None when nobody may own it. The order of names does not matter."""
    return min(eligible, key=lambda name: _digest(name, content, _OWNER_UNITS), default=None)


def addressed_agent(names: Iterable[str], content: str) -> str | None:
    """The one of `names` that the request names; None where it names none or several. The order does not matter."""
    named = parse_addressed(content, sorted(names))
    return named[0] if len(named) == 1 else None


def action_owner(
    me: str, peers: Iterable[str], capabilities: Capabilities, *, social_only: bool, content: str, need: Capability
) -> str | None:
    """Who acts on the request: whoever is alone, else the one addressed or elected; None when nobody can."""
    others = [peer for peer in peers if peer != me]
    if not others:
        return me
    able = eligible_agents(me, others, capabilities, social_only, need)
    if all(OWNS_ADDRESSED in (capabilities.get(peer) or ()) for peer in others):
        named = addressed_agent([me, *others], content)
        if named in able:
            return named
    return elect_action_owner(able, content)


def assign_role(agent: str, content: str, is_owner: bool = False) -> Role:  # noqa: FBT001, FBT002 - a name agreed on
    """The part of an agent in a request: the owner acts, the others by their hash."""
    if is_owner:
        return "actor"
    return _ROLES[int(_digest(agent, content, _ROLE_UNITS)[:_ROLE_DIGITS], 16) % len(_ROLES)]


def role_now(me: str, content: str, mode: Mode, peers: Iterable[str], *, is_owner: bool) -> Role:
    """Our part at this moment: all are actors while they talk, are alone, or nothing is asked (`content` is "")."""
    return assign_role(me, content, is_owner) if mode == "action" and content and any(True for _ in peers) else "actor"


def required_capability(content: str, versions: Iterable[str], own_version: str) -> Capability:
    """What the owner of a request must be able to do.

    `social` for a post, but only where all who elect know that rule: `versions` are those of all peers. Else `github`,
    whatever is asked.
    """
    rule_known = all(_owns_posts(version, own_version) for version in versions)
    return "social" if rule_known and may_be_a_post(content) else "github"


def _can(capabilities: Sequence[str] | None, capability: Capability) -> bool:
    return capabilities is None or capability in capabilities


def _owns_posts(version: str, own_version: str) -> bool:
    theirs, ours = _VERSION.match(version), _VERSION.match(own_version)
    if theirs is None or ours is None or theirs[1] != ours[1]:
        return False
    return (int(theirs[1]), int(theirs[2])) >= _POSTS_OWNED_SINCE


def _digest(name: str, content: str, units: int) -> str:
    """SHA-256 in hex, half a surrogate pair told by U+FFFD."""
    text = name + u16_slice(content, units)
    return hashlib.sha256(u16_slice(text, u16_len(text)).encode()).hexdigest()
