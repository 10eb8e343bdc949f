"""Decides who acts on a host request, who opens a conversation, how much talk is enough, and when to be silent. Pure.

Every agent computes the assignee for itself and arrives at the same name: the agent whose question the host answered
(`OWNS_ANSWERED`) or the only one that the host named (`OWNS_ADDRESSED`), each if all present know that rule; else the
one with the lowest hash, which agents of other makers compute in the same way.
The cuts of the hashed text, in UTF-16 code units, are part of that agreement.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from itertools import takewhile
from typing import Literal
from urllib.parse import urlsplit

import regex

from adapters.space.room_addressing import parse_addressed
from adapters.space.types import OWNS_ADDRESSED, OWNS_ANSWERED
from common.constants import HOUR_MS, MINUTE_MS
from common.election import elect, lot
from common.result import Decision
from common.settings import Settings
from common.text.host_intent import HostIntent
from common.text.strings import u16_slice
from modules.lives.space.request_parser import may_be_a_post
from modules.lives.space.types import Counts, HistoryEntry, Mode, Role

SPACE_SATURATION_BASE = 4
SPACE_ACTION_OBSERVER_THRESHOLD = 3
DISCUSSION_SATURATION_BONUS = 10
DISCUSSION_OBSERVER_THRESHOLD = 8
DISCUSSION_ROLE_BUDGET_MULTIPLIER = 4
ROLE_MESSAGE_BUDGET_ACTOR = 4
ROLE_MESSAGE_BUDGET_REVIEWER = 3
ROLE_MESSAGE_BUDGET_OBSERVER = 2
SPACE_OPENER_FIRST_SILENCE_MS = MINUTE_MS
SPACE_OPENER_SILENCE_MS = 10 * MINUTE_MS
SPACE_OPENER_INTERVAL_MS = HOUR_MS

# NOTE(self): a timer may end a rounding error before its moment; waiting for the rest again would never end.
_CLOSE_S = 0.01

Capability = Literal["github", "social"]
Capabilities = Mapping[str, Sequence[str] | None]
"""What each agent says it can do; absent or None means everything."""

_OWNER_UNITS = 100
_ROLE_UNITS = 50
_ROLE_DIGITS = 8
_ROLES: tuple[Role, ...] = ("actor", "reviewer", "observer")
_VERSION = regex.compile(r"v?(\d{1,9})\.(\d{1,9})")
# NOTE(self): since this version of ours a request for a post goes to an agent that can post; agents of another major
# version elect among those with GitHub, whatever is asked.
_POSTS_OWNED_SINCE = (0, 1)

_SILENT = "Silent in rooms: SOUL_APPROVAL=drafts with SOUL_APPROVAL_ROOM=on needs approval of every message"
_SILENT_IN_FOUND = "Silent in this room: SOUL_APPROVAL=drafts, and it is neither on this machine nor in SPACE_URL"
_ONLY_ANSWERS = "SOUL_APPROVAL=drafts: it only answers the host"


def conversation_mode(latest_intent: HostIntent | None) -> Mode:
    """Return what the room is about, by the intent of the host's newest message (None if it has not spoken)."""
    return "action" if latest_intent in ("action_request", "follow_up") else "discussion"


def eligible_agents(
    me: str,
    peers: Iterable[str],
    capabilities: Capabilities,
    social_only: bool,  # noqa: FBT001 - the name under which all agents know this function
    capability: Capability = "github",
) -> list[str]:
    """Return who may act on a request that needs `capability`: ourselves first, then peers as given, each once."""
    able = [] if social_only and capability == "github" else [me]
    able += [peer for peer in peers if peer != me and _can(capabilities.get(peer), capability)]
    return list(dict.fromkeys(able))


def elect_action_owner(eligible: Iterable[str], content: str) -> str | None:
    """Return the name whose hash with the request is lowest; None if there is none. The order does not matter."""
    return elect(eligible, u16_slice(content, _OWNER_UNITS))


def addressed_agent(names: Iterable[str], content: str) -> str | None:
    """Return the only one of `names` in the request; None if it names none or several. The order does not matter."""
    named = parse_addressed(content, sorted(names))
    return named[0] if len(named) == 1 else None


def action_owner(
    me: str,
    peers: Iterable[str],
    capabilities: Capabilities,
    *,
    social_only: bool,
    content: str,
    need: Capability,
    assignee: str = "",
) -> str | None:
    """Return who acts on the request; None if nobody can.

    An agent that is alone; else the `assignee`, whose question the host answered; else the one addressed or elected.
    """
    others = [peer for peer in peers if peer != me]
    if not others:
        return me
    able = eligible_agents(me, others, capabilities, social_only, need)

    def all_know(rule: str) -> bool:
        return all(rule in (capabilities.get(peer) or ()) for peer in others)

    if assignee in able and all_know(OWNS_ANSWERED):
        return assignee
    named = addressed_agent([me, *others], content) if all_know(OWNS_ADDRESSED) else None
    return named if named in able else elect_action_owner(able, content)


def assign_role(agent: str, content: str, is_owner: bool = False) -> Role:  # noqa: FBT001, FBT002 - a name agreed on
    """Return the role of an agent in a request: the assignee is the actor, the others get one by their hash."""
    if is_owner:
        return "actor"
    return _ROLES[int(lot(agent, u16_slice(content, _ROLE_UNITS))[:_ROLE_DIGITS], 16) % len(_ROLES)]


def role_now(me: str, content: str, mode: Mode, peers: Iterable[str], *, is_owner: bool) -> Role:
    """Return our role now: actor in a discussion, alone, or if nothing is asked (`content` is ""); else as assigned."""
    return assign_role(me, content, is_owner) if mode == "action" and content and any(True for _ in peers) else "actor"


def required_capability(content: str, versions: Iterable[str], own_version: str) -> Capability:
    """Return what the assignee of a request must be able to do.

    `social` for a post, but only if all who elect know that rule: `versions` are those of all peers. Else `github`,
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


_FIRST = timedelta(milliseconds=SPACE_OPENER_FIRST_SILENCE_MS)
_SILENCE = timedelta(milliseconds=SPACE_OPENER_SILENCE_MS)
_BETWEEN = timedelta(milliseconds=SPACE_OPENER_INTERVAL_MS)


def elected_opener(names: Collection[str], now: datetime) -> str | None:
    """Return the name whose hash with the hour (UTC) is lowest; None if there is nobody."""
    return elect(names, f"{now.astimezone(UTC):%Y-%m-%dT%H}")


def should_open(
    me: str,
    peers: Collection[str],
    now: datetime,
    *,
    joined_at: datetime | None,
    last_message_at: datetime | None,
    opened_at: datetime | None,
) -> Decision:
    """Return whether we open a conversation now.

    Args:
        me: our own name.
        peers: who else is there.
        now: aware UTC.
        joined_at: when we joined.
        last_message_at: when anybody last spoke, the replayed record included.
        opened_at: when anybody last broke a long silence, or we tried to.

    """
    if not peers:
        return Decision(should=False, reason="nobody is there to talk with")
    if joined_at is None or now - joined_at < _FIRST:
        return Decision(should=False, reason="we have just come in")
    if last_message_at is not None and now - last_message_at < _SILENCE:
        return Decision(should=False, reason="somebody has spoken lately")
    if opened_at is not None and now - opened_at < _BETWEEN:
        return Decision(should=False, reason="a conversation was opened within the last hour")
    elected = elected_opener({me, *peers}, now)
    if elected != me:
        return Decision(should=False, reason=f"it is for {elected} to open one in this hour")
    return Decision(should=True, reason="the room is quiet, and it is for us to open a conversation in this hour")


Signal = Literal["none", "saturated", "spoken", "only_new"]
"""What the model is told: nothing; enough was said; it spoke enough itself; say only what is genuinely new."""

_SPOKEN_ENOUGH = 2
_ECHO_HISTORY = 20
COMPARED_CHARS = 5_000
"""How many characters of a message are compared with others, so that a long one cannot keep everybody computing."""

_BUDGETS: dict[Role, int] = {
    "actor": ROLE_MESSAGE_BUDGET_ACTOR,
    "reviewer": ROLE_MESSAGE_BUDGET_REVIEWER,
    "observer": ROLE_MESSAGE_BUDGET_OBSERVER,
}


def count_since_host(history: Sequence[HistoryEntry], me: str) -> Counts:
    """Return the counts of messages since the host last spoke; of all messages if the host never did."""
    since = list(takewhile(lambda entry: not entry.is_host, reversed(history)))
    return Counts(agents=len(since), own=sum(entry.is_me or entry.name == me for entry in since))


def saturation_threshold(connected: int, mode: Mode) -> int:
    """Return how many messages of agents are enough with `connected` agents in the room, including us."""
    return SPACE_SATURATION_BASE + connected + (DISCUSSION_SATURATION_BONUS if mode == "discussion" else 0)


def warning_threshold(threshold: int) -> int:
    """Return the number of agents' messages from which only a new thought is wanted."""
    return math.ceil(threshold / 2)


def saturation_signal(counts: Counts, threshold: int) -> Signal:
    """Return what the model is told about how much was said: the strongest signal that applies, or `none`."""
    if counts.agents >= threshold:
        return "saturated"
    if counts.own >= _SPOKEN_ENOUGH:
        return "spoken"
    return "only_new" if counts.agents >= warning_threshold(threshold) else "none"


def role_budget(role: Role, mode: Mode) -> int:
    """Return how many messages without a commitment a role may say between two messages of the host."""
    return _BUDGETS[role] * (DISCUSSION_ROLE_BUDGET_MULTIPLIER if mode == "discussion" else 1)


def observer_threshold(mode: Mode) -> int:
    """Return the number of agents' messages after which an observer stays silent."""
    return DISCUSSION_OBSERVER_THRESHOLD if mode == "discussion" else SPACE_ACTION_OBSERVER_THRESHOLD


def agent_messages(history: Sequence[HistoryEntry]) -> tuple[str, ...]:
    """Return what agents, including us, said in the last 20 messages, oldest first: a message is compared with it."""
    return tuple(entry.content[:COMPARED_CHARS] for entry in history[-_ECHO_HISTORY:] if not entry.is_host)


def wait_s(not_before: float, now: float) -> float:
    """Return the seconds until a message may be said; 0.0 from 10 ms before its moment on. Times are monotonic."""
    left_s = not_before - now
    return left_s if left_s > _CLOSE_S else 0.0


def is_on_this_machine(url: str) -> bool:
    """Return whether the host of `url` is a loopback address or `localhost`."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True, slots=True)
class RoomSilence:
    """Decides on silence by the pause and the owner's choice of approval; each method returns the reason or "".

    With `SOUL_APPROVAL=drafts` the host of a trusted room is answered without approval, as the host is present.
    """

    settings: Settings
    write_block_reason: Callable[[], str]
    is_trusted_room: Callable[[], bool]

    def reason(self) -> str:
        """Return why nothing may be shown or said in the room just now."""
        return self.write_block_reason() or self.of_approval()

    def unasked(self) -> str:
        """Return why a message that does not answer the host may not be said just now."""
        return self.reason() or (_ONLY_ANSWERS if self.settings.soul_approval == "drafts" else "")

    def of_approval(self) -> str:
        """Return why the owner's choice of approval keeps the SOUL silent."""
        if self.settings.soul_approval != "drafts":
            return ""
        if self.settings.soul_approval_room:
            return _SILENT
        return "" if self.is_trusted_room() else _SILENT_IN_FOUND
