"""The state of a room at the moment of one check: everything that a decision about it is based on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from adapters.space.types import Claimed, IdentitySummary, Presence, Reflected, WorkspaceProgress
from modules.lives.space.host_request import FollowUp
from modules.lives.space.policy import Signal, agent_messages
from modules.lives.space.request_parser import told
from modules.lives.space.types import (
    Counts,
    Escalation,
    HistoryEntry,
    HostRequest,
    Mode,
    OwnCommitments,
    PeerEvent,
    RefusedWords,
    RequestContent,
    Role,
)
from modules.services.commitments.naming import resolve_repo

_TOLD_FOR_A_BODY = 20


@dataclass(frozen=True, slots=True)
class RoomContents:
    """What the room shows just now, except the talk itself. Peers' own words are untrusted text, as received."""

    peers: Mapping[str, Presence] = field(default_factory=dict)
    typing: tuple[str, ...] = ()
    claims: tuple[Claimed, ...] = ()
    identities: Mapping[str, IdentitySummary] = field(default_factory=dict)
    reflections: Mapping[str, Reflected] = field(default_factory=dict)
    workspaces: Mapping[str, WorkspaceProgress] = field(default_factory=dict)

    @property
    def shared_workspace(self) -> str | None:
        """The workspace in which peers work, as `owner/name`; None if there is not exactly one."""
        repos = {repo for one in self.workspaces.values() if (repo := resolve_repo(one.workspace))}
        return repos.pop().full_name if len(repos) == 1 else None


@dataclass(frozen=True, slots=True)
class RoomSnapshot:
    """One moment. `owner` is the assignee of the open request, None if nobody can act or nothing is asked.

    Attributes:
        now: aware UTC.
        me: our own name in the room.
        batch: what is new since the last check.
        history: the whole talk, oldest first.
        timezone: IANA name of the zone in which times are shown; "" for the machine's own.
        room: who is there, and what they do.
        own_commitments: our own commitments.
        request: the host's request, and its state.
        asked: what its text asks for.
        is_open: whether that request still waits for somebody.
        is_claimed: whether a peer's claim on it holds.
        mode: what the room is about.
        owner: see above.
        is_owner: whether that is us.
        role: our role.
        counts: messages since the host spoke.
        saturation: how many of them are enough.
        budget: how many of our own without a commitment are enough.
        signal: what the model is told of that.
        escalation: how urgent the request is.
        follow_up: what the host's newest message calls for.
        addressed: whom the host's newest message addresses, if it is new.
        repo: the repository that the host's newest words name, else the one that the talk is about, else the workspace
            that the host means or peers share; None if those words name several.
        workspace: the watched workspace that the host means: the one it names in short, or the only one. None if
            several are watched and none is named, and in a room that we only found.
        workspaces: all that are watched, `owner/name`; none in a room that we only found.
        pinned: what is kept from the talk before.
        refusals: what we last wanted to say or commit to, and what stopped it.
        peer_events: the acts of peers that concern requests.
        opens: whether we open a conversation now.
        needs_repo: whether the host is to be asked for a repository.
        social_only: whether this SOUL has no GitHub.
        thread_uri: the conversation that our commitments here belong to.

    """

    now: datetime
    me: str
    batch: tuple[HistoryEntry, ...] = ()
    history: tuple[HistoryEntry, ...] = ()
    timezone: str = ""
    room: RoomContents = field(default_factory=RoomContents)
    own_commitments: OwnCommitments = field(default_factory=OwnCommitments)
    request: HostRequest = field(default_factory=HostRequest)
    asked: RequestContent = field(default_factory=RequestContent)
    is_open: bool = False
    is_claimed: bool = False
    mode: Mode = "discussion"
    owner: str | None = None
    is_owner: bool = False
    role: Role = "actor"
    counts: Counts = field(default_factory=lambda: Counts(0, 0))
    saturation: int = 0
    budget: int = 0
    signal: Signal = "none"
    escalation: Escalation = "none"
    follow_up: FollowUp = "none"
    addressed: tuple[str, ...] = ()
    repo: str | None = None
    workspace: str | None = None
    workspaces: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()
    refusals: tuple[RefusedWords, ...] = ()
    peer_events: tuple[PeerEvent, ...] = ()
    opens: bool = False
    needs_repo: bool = False
    social_only: bool = False
    thread_uri: str = ""

    @property
    def peers(self) -> frozenset[str]:
        """The names of all others in the room, except the host."""
        return frozenset(self.room.peers)

    @property
    def names(self) -> frozenset[str]:
        """The names of all agents in the room, including our own."""
        return self.peers | {self.me}

    @property
    def owner_is_here(self) -> bool:
        """Whether the assignee of the open request is a peer who is in the room."""
        return self.owner in self.room.peers

    @property
    def agent_messages(self) -> tuple[str, ...]:
        """What agents said recently, oldest first; a message of ours is compared with it."""
        return agent_messages(self.history)

    @property
    def lines(self) -> tuple[str, ...]:
        """The talk as a transcript shows it, a line for each message."""
        return tuple(told(entry, self.timezone, self.me) for entry in self.history)

    @property
    def latest_lines(self) -> str:
        """The latest lines of the talk, for writing the body of a commitment."""
        return "\n".join(self.lines[-_TOLD_FOR_A_BODY:])

    @property
    def peer_results(self) -> tuple[PeerEvent, ...]:
        """What peers have made, oldest first."""
        return tuple(event for event in self.peer_events if event.kind == "success")

    @property
    def is_settled(self) -> bool:
        """Whether the host asks about a request that we have met or committed to, which is not met a second time."""
        return self.follow_up in {"link", "wake_commitments"}

    @property
    def is_met(self) -> bool:
        """Whether the host's request is committed to, done or given up, and the host has asked for nothing since."""
        latest = next((entry for entry in reversed(self.history) if entry.is_host), None)
        if latest is None or not self.request.content or self.is_open:
            return False
        return latest.id == self.request.entry_id or latest.intent == "follow_up"

    @property
    def withdrawal(self) -> HistoryEntry | None:
        """The host's newest message if it takes back what the host asked for."""
        latest = next((entry for entry in reversed(self.history) if entry.is_host), None)
        return latest if latest is not None and latest.intent == "withdrawal" else None

    @property
    def is_withdrawn(self) -> bool:
        """Whether the host's newest message takes back its latest request."""
        return self.withdrawal is not None and not self.withdrawal.spares_request

    @property
    def from_host(self) -> bool:
        """Whether the host said something new."""
        return any(entry.is_host for entry in self.batch)
