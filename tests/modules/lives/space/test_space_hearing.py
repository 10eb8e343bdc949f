"""What is heard besides words: whose peer_events count, what the owner sees of the room, and when the loop looks."""

from __future__ import annotations

import json

import pytest

from adapters.space.types import (
    ActionDone,
    Claimed,
    EntryType,
    History,
    Identified,
    IdentitySummary,
    Joined,
    Left,
    LogEntry,
    Reflected,
    Said,
    ShuttingDown,
    SpaceEvent,
    StateChanged,
    Typing,
    WorkspaceProgress,
)
from common.clock import FakeClock
from modules.lives.space.commitment_maker import SpaceLines
from modules.lives.space.perceive import peer_events_in
from modules.lives.space.types import PeerEvent
from modules.runtime.console import SilentConsole

NOW = FakeClock().now()
AT = "2026-01-05T12:00:00.000Z"
RESULT = json.dumps({"action": "create_issue", "target": "acme/site#Clock", "success": True, "link": "x"})


def recorded(kind: EntryType, content: str, name: str = "rebecca", agent_id: str = "rebecca-1") -> History:
    return History((LogEntry(AT, name, agent_id, kind, content),))


@pytest.mark.parametrize(
    ("event", "peer_event"),
    [
        (Claimed("rebecca", "r", "create_issue", "t", AT), PeerEvent("claim", "rebecca", NOW, "create_issue", "t")),
        (
            ActionDone("rebecca", "r", "a", "t", success=True, timestamp=AT),
            PeerEvent("success", "rebecca", NOW, "a", "t"),
        ),
        (
            ActionDone("rebecca", "r", "a", "t", success=False, timestamp=AT),
            PeerEvent("failure", "rebecca", NOW, "a", "t"),
        ),
        (Said("rebecca", "r", "Done \u2014 the clock: https://x", AT), PeerEvent("done_chat", "rebecca", NOW)),
        (Said("rebecca", "r", "Done with that talk", AT), None),
        (Said("host", "host-1", "Done \u2014 I did it myself", AT), None),
        (Claimed("marvin", "marvin-2", "create_issue", "t", AT), None),
        (Joined("rebecca", "r", "1"), None),
        (
            recorded("claim", "create_issue:acme/site#Clock"),
            PeerEvent("claim", "rebecca", NOW, "create_issue", "acme/site#Clock"),
        ),
        (recorded("action_result", RESULT), PeerEvent("success", "rebecca", NOW, "create_issue", "acme/site#Clock")),
        (recorded("action_result", "{broken"), PeerEvent("failure", "rebecca", NOW)),
        (recorded("action_result", "[1]"), PeerEvent("failure", "rebecca", NOW)),
        (recorded("chat", "Done \u2014 the clock"), PeerEvent("done_chat", "rebecca", NOW)),
        (recorded("chat", "hello"), None),
        (recorded("chat", "Done \u2014 hm", "host", "host-1"), None),
        (recorded("claim", "a:b", "marvin", "marvin-2"), None),
        (recorded("claim", "a:b", "marvin", "marvin-1"), PeerEvent("claim", "marvin", NOW, "a", "b")),
    ],
    ids=str,
)
def test_deeds_are_those_of_peers_and_of_our_former_lives(event: SpaceEvent, peer_event: PeerEvent | None) -> None:
    assert list(peer_events_in([event], "marvin", "marvin-2", NOW)) == ([peer_event] if peer_event else [])


@pytest.mark.parametrize(
    ("event", "line", "detail"),
    [
        (Said("rebecca", "r", "hello\x1b[31m there", AT), "rebecca", "hello[31m there"),
        (Joined("rebecca", "r", "0.1.0"), "rebecca joined", ""),
        (Left("rebecca", "r", AT), "rebecca left", ""),
        (Identified("rebecca", "r", IdentitySummary(voice="warm"), AT), "rebecca identity", "warm"),
        (
            Claimed("rebecca", "r", "create_issue", "acme/site#Clock", AT),
            "rebecca claimed",
            "create_issue acme/site#Clock",
        ),
        (
            ActionDone("rebecca", "r", "create_issue", "t", success=True, timestamp=AT, link="https://x"),
            "rebecca create_issue",
            "https://x",
        ),
        (
            ActionDone("rebecca", "r", "create_issue", "t", success=False, timestamp=AT),
            "rebecca create_issue",
            "failed",
        ),
        (Reflected("rebecca", "r", "I listen", AT), "rebecca reflected", "I listen"),
        (WorkspaceProgress("rebecca", "r", "garden", 1, 9, 3, 0, 0, AT), "rebecca workspace", "garden 3/9"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_owner_sees_what_the_room_says_and_no_terminal_obeys_it(event: SpaceEvent, line: str, detail: str) -> None:
    console = SilentConsole()
    SpaceLines(console).show(event)
    assert console.lines == [("social", f"[space] {line}", detail)]


@pytest.mark.parametrize("event", [Typing("r", "r", AT), StateChanged("r", "r", "idle", AT), ShuttingDown("x", AT)])
def test_what_says_nothing_to_people_is_not_shown(event: SpaceEvent) -> None:
    console = SilentConsole()
    SpaceLines(console).show(event)
    assert console.lines == []
