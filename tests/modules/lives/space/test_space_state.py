"""Proves what is kept of a room: each message once, each pause noticed, agents and host told apart.

Proves which peer events count, what the owner sees of the room, and when the loop looks.
"""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from common.clock import FakeClock, iso
from modules.lives.space.commitment_maker import show_event
from modules.lives.space.perceive import (
    SPACE_READ_CHARS,
    Classified,
    Delivered,
    LeftRoom,
    MessagesArrived,
    Paused,
    RoomConversation,
    Spoke,
    new_entries,
    peer_events_in,
)
from modules.lives.space.types import HistoryEntry, Meaning, PeerEvent
from modules.runtime.console import SilentConsole
from tests.exploration import examples

NOW = FakeClock().now()


def said(name: str, content: str, second: float = 0, *, replayed: bool = False, agent_id: str = "") -> Said:
    at = iso(NOW + timedelta(seconds=second))
    return Said(name, agent_id or (f"host-{name}" if name == "host" else f"{name}-1"), content, at, replayed=replayed)


def receive(talk: RoomConversation, words: Sequence[Said], now: datetime) -> tuple[HistoryEntry, ...]:
    """Add the messages `words` to the conversation, and return those that are new."""
    new = new_entries(talk.state, words, now)
    talk.handle(MessagesArrived(new, now))
    return new


def contents(talk: RoomConversation) -> list[str]:
    return [entry.content for entry in talk.state.history]


def test_a_replayed_record_is_merged_without_repeating_anything() -> None:
    talk = RoomConversation("marvin")
    receive(talk, [said("host", "one", 1), said("rebecca", "two", 2)], NOW)
    new = receive(
        talk,
        [said("rebecca", word, at, replayed=True) for word, at in (("zero", 0), ("two", 2))]
        + [said("host", "one", 1, replayed=True), said("rebecca", "three", 3, replayed=True)],
        NOW,
    )
    assert [entry.content for entry in new] == ["zero", "three"]
    assert contents(talk) == ["zero", "one", "two", "three"]


def test_the_same_words_at_another_time_are_other_words() -> None:
    talk = RoomConversation("marvin")
    assert len(receive(talk, [said("host", "well?", 1), said("host", "well?", 9)], NOW)) == 2


def test_the_rooms_echo_of_our_own_words_is_not_kept_twice() -> None:
    talk = RoomConversation("marvin")
    talk.handle(Spoke("a thought", NOW))
    assert receive(talk, [said("marvin", "a thought", 3)], NOW) == ()
    assert len(receive(talk, [said("marvin", "Done \u2014 the clock", 4)], NOW)) == 1
    assert len(talk.state.own_messages) == 2


def test_who_is_named_is_found_once_for_each_message() -> None:
    talk = RoomConversation("marvin")
    entries = receive(
        talk, [said("ann", "@Marvin, well?", 1), said("ann", "marvinella knows", 2), said("ann", "hm", 3)], NOW
    )
    assert [entry.addresses_me for entry in entries] == [True, False, False]


def test_a_departed_agent_stays_an_agent_and_the_host_a_host() -> None:
    talk = RoomConversation("marvin")
    receive(talk, [said("gone", "bye", 1), said("host", "hm", 2), said("Ann", "hello", 3, agent_id="host-abc")], NOW)
    assert [entry.content for entry in talk.state.host_messages] == ["hm", "hello"]
    assert [entry.content for entry in talk.state.history if not entry.is_host] == ["bye"]


def test_a_pause_is_seen_before_the_words_that_end_it_and_leaves_the_repository_pinned() -> None:
    talk = RoomConversation("marvin")
    receive(talk, [said("host", "in github.com/acme/site", 0)], NOW)
    assert not talk.state.is_idle(NOW + timedelta(seconds=300))
    later = NOW + timedelta(seconds=301)
    assert talk.state.is_idle(later)
    talk.handle(Paused())
    assert talk.state.pinned == ("Repo: acme/site",)
    receive(talk, [said("host", "again", 301)], later)
    assert contents(talk) == ["again"]
    assert not talk.state.is_idle(later)
    talk.handle(Paused())
    assert talk.state.pinned == ("Repo: acme/site",)


def test_a_replayed_record_is_no_sign_of_life() -> None:
    talk = RoomConversation("marvin")
    receive(talk, [said("host", "yesterday", -9000, replayed=True)], NOW)
    assert talk.state.last_activity_at is None


def test_leaving_a_room_forgets_everything_of_it() -> None:
    talk = RoomConversation("marvin")
    talk.handle(Delivered(NOW))
    receive(talk, [said("rebecca", "github.com/acme/site", 2)], NOW)
    talk.handle(LeftRoom(NOW))
    left = talk.state
    assert (contents(talk), left.pinned, left.repo, left.cooldown_until, left.joined_at) == ([], (), None, None, NOW)


def test_intents_are_noted_and_the_latest_is_found() -> None:
    talk = RoomConversation("marvin")
    first, second = receive(talk, [said("host", "open an issue", 1), said("host", "any news?", 2)], NOW)
    talk.handle(Classified({first.id: Meaning("action_request"), second.id: Meaning("follow_up")}))
    host_request, latest = talk.state.latest_host(intent="action_request"), talk.state.latest_host()
    assert host_request is not None
    assert latest is not None
    assert (host_request.content, latest.content, latest.intent) == ("open an issue", "any news?", "follow_up")
    assert talk.state.latest_host(intent="discussion") is None


@settings(max_examples=examples(60))
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["host", "rebecca", "marvin"]),
            st.sampled_from(["a", "b", "c"]),
            st.integers(0, 5),
            st.booleans(),
        ),
        max_size=30,
    )
)
def test_taking_in_the_same_again_changes_nothing(words: list[tuple[str, str, int, bool]]) -> None:
    talk = RoomConversation("marvin")
    batch = [said(name, text, second, replayed=replayed) for name, text, second, replayed in words]
    receive(talk, batch, NOW)
    before = list(talk.state.history)
    assert receive(talk, batch, NOW) == ()
    assert list(talk.state.history) == before
    ids = [entry.id for entry in before]
    assert len(ids) == len(set(ids))


def test_of_a_long_message_the_beginning_is_read_and_it_is_one_message() -> None:
    talk = RoomConversation("marvin")
    long = said("rebecca", "word " * 19_000, 1)
    (entry,) = receive(talk, [long], NOW)
    assert (len(entry.content), entry.content[-1]) == (SPACE_READ_CHARS, "\u2026")
    assert receive(talk, [long], NOW) == ()
    talk.handle(Spoke("mine " * 2_000, NOW))
    assert receive(talk, [said("marvin", "mine " * 2_000, 3)], NOW) == ()


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
    show_event(console, event)
    assert console.lines == [("social", f"[space] {line}", detail)]


@pytest.mark.parametrize("event", [Typing("r", "r", AT), StateChanged("r", "r", "idle", AT), ShuttingDown("x", AT)])
def test_what_says_nothing_to_people_is_not_shown(event: SpaceEvent) -> None:
    console = SilentConsole()
    show_event(console, event)
    assert console.lines == []
