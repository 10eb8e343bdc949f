"""What is kept in mind of a room: each word once, each pause noticed, agents and host told apart."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.space.types import Said
from common.clock import FakeClock, iso
from common.constants import SPACE_READ_CHARS
from modules.lives.space.state import Conversation
from tests.exploration import examples

NOW = FakeClock().now()


def said(name: str, content: str, second: float = 0, *, replayed: bool = False, agent_id: str = "") -> Said:
    at = iso(NOW + timedelta(seconds=second))
    return Said(name, agent_id or (f"host-{name}" if name == "host" else f"{name}-1"), content, at, replayed=replayed)


def contents(talk: Conversation) -> list[str]:
    return [entry.content for entry in talk.history]


def test_a_replayed_record_is_merged_without_repeating_anything() -> None:
    talk = Conversation("marvin")
    talk.take_in([said("host", "one", 1), said("rebecca", "two", 2)], NOW)
    new = talk.take_in(
        [said("rebecca", word, at, replayed=True) for word, at in (("zero", 0), ("two", 2))]
        + [said("host", "one", 1, replayed=True), said("rebecca", "three", 3, replayed=True)],
        NOW,
    )
    assert [entry.content for entry in new] == ["zero", "three"]
    assert contents(talk) == ["zero", "one", "two", "three"]


def test_the_same_words_at_another_time_are_other_words() -> None:
    talk = Conversation("marvin")
    assert len(talk.take_in([said("host", "well?", 1), said("host", "well?", 9)], NOW)) == 2


def test_the_rooms_echo_of_our_own_words_is_not_kept_twice() -> None:
    talk = Conversation("marvin")
    talk.spoke("a thought", NOW)
    assert talk.take_in([said("marvin", "a thought", 3)], NOW) == []
    assert len(talk.take_in([said("marvin", "Done \u2014 the clock", 4)], NOW)) == 1
    assert len(talk.own_messages) == 2


def test_words_that_the_room_never_heard_are_taken_back() -> None:
    talk = Conversation("marvin")
    entry = talk.spoke("lost", NOW)
    talk.take_back(entry)
    talk.take_back(entry)
    assert contents(talk) == []


def test_a_departed_agent_stays_an_agent_and_the_host_a_host() -> None:
    talk = Conversation("marvin")
    talk.take_in([said("gone", "bye", 1), said("host", "hm", 2), said("Ann", "hello", 3, agent_id="host-abc")], NOW)
    assert [entry.content for entry in talk.host_messages] == ["hm", "hello"]
    assert [entry.content for entry in talk.agent_messages] == ["bye"]


def test_a_pause_is_seen_before_the_words_that_end_it_and_leaves_the_repository_pinned() -> None:
    talk = Conversation("marvin")
    talk.take_in([said("host", "in acme/site", 0)], NOW)
    talk.repo = "acme/site"
    assert not talk.is_idle(NOW + timedelta(seconds=300))
    later = NOW + timedelta(seconds=301)
    assert talk.is_idle(later)
    talk.reset()
    assert talk.pinned == ("Repo: acme/site",)
    talk.take_in([said("host", "again", 301)], later)
    assert contents(talk) == ["again"]
    assert not talk.is_idle(later)
    talk.reset()
    assert not talk.pinned


def test_a_replayed_record_is_no_sign_of_life() -> None:
    talk = Conversation("marvin")
    talk.take_in([said("host", "yesterday", -9000, replayed=True)], NOW)
    assert talk.last_activity_at is None


def test_leaving_a_room_forgets_everything_of_it() -> None:
    talk = Conversation("marvin", repo="acme/site", cooldown_until=NOW)
    talk.take_in([said("rebecca", "two", 2)], NOW)
    talk.leave(NOW)
    assert (contents(talk), talk.pinned, talk.repo, talk.cooldown_until, talk.joined_at) == ([], (), None, None, NOW)


def test_intents_are_noted_and_the_latest_is_found() -> None:
    talk = Conversation("marvin")
    first, second = talk.take_in([said("host", "open an issue", 1), said("host", "any news?", 2)], NOW)
    talk.classified({first.id: "action_request", second.id: "follow_up"})
    wish, latest = talk.latest_host(intent="action_request"), talk.latest_host()
    assert wish is not None
    assert latest is not None
    assert (wish.content, latest.content, latest.intent) == ("open an issue", "any news?", "follow_up")
    assert talk.latest_host(intent="discussion") is None


def test_a_point_is_an_author_and_ten_words() -> None:
    talk = Conversation("marvin")
    for number in range(20):
        talk.take_in([said("rebecca", f"{number}, one, two! three four five six seven eight nine ten", number)], NOW)
    assert len(talk.points) == 15
    assert talk.points[-1] == "rebecca: 19 one two three four five six seven eight nine"


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
    talk = Conversation("marvin")
    batch = [said(name, text, second, replayed=replayed) for name, text, second, replayed in words]
    talk.take_in(batch, NOW)
    before = list(talk.history)
    assert talk.take_in(batch, NOW) == []
    assert list(talk.history) == before
    ids = [entry.id for entry in before]
    assert len(ids) == len(set(ids))


def test_of_a_long_message_the_beginning_is_read_and_it_is_one_message() -> None:
    talk = Conversation("marvin")
    long = said("rebecca", "word " * 19_000, 1)
    (entry,) = talk.take_in([long], NOW)
    assert (len(entry.content), entry.content[-1]) == (SPACE_READ_CHARS, "\u2026")
    assert talk.take_in([long], NOW) == []
    talk.spoke("mine " * 2_000, NOW)
    assert talk.take_in([said("marvin", "mine " * 2_000, 3)], NOW) == []
