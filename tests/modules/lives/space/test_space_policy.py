"""All agents come to the same owner and the same parts, each by itself, and nobody owns what it cannot do."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.space.types import OWNS_ADDRESSED, OWNS_ANSWERED
from common.text.host_intent import HostIntent
from modules.lives.space.policy import (
    action_owner,
    assign_role,
    conversation_mode,
    elect_action_owner,
    eligible_agents,
    required_capability,
    role_now,
)
from modules.lives.space.types import Mode, Role

ISSUE = "Create an issue for the release checklist in github.com/acme/site"
NAMES = st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=8, unique=True)


def test_the_owner_is_the_name_whose_hash_with_the_request_is_lowest() -> None:
    prefixes = {
        name: hashlib.sha256(f"{name}{ISSUE}".encode()).hexdigest()[:8] for name in ("marvin", "rebecca", "peterben")
    }
    assert prefixes == {"peterben": "05f429e8", "rebecca": "07392094", "marvin": "84234c24"}
    assert elect_action_owner(["marvin", "rebecca", "peterben"], ISSUE) == "peterben"


@given(NAMES, st.text(max_size=150), st.randoms(use_true_random=False))
def test_the_election_knows_no_order_and_is_the_same_in_every_head(
    names: list[str], content: str, chance: random.Random
) -> None:
    owner = elect_action_owner(names, content)
    shuffled = sorted(names, key=lambda _: chance.random())
    assert owner in names
    assert elect_action_owner(shuffled, content) == owner
    capabilities = dict.fromkeys(names)
    for me in names:
        peers = [name for name in shuffled if name != me]
        eligible = eligible_agents(me, peers, capabilities, social_only=False)
        assert sorted(eligible) == sorted(names)
        assert elect_action_owner(eligible, content) == owner


@given(NAMES, st.text(min_size=100, max_size=120, alphabet="abc é"), st.text(max_size=20))
def test_what_follows_the_first_hundred_units_changes_no_owner(names: list[str], content: str, more: str) -> None:
    assert elect_action_owner(names, content) == elect_action_owner(names, content[:100] + more)


@pytest.mark.parametrize(
    ("content", "agent", "role"),
    [
        ("Open a plan for the migration", "marvin", "observer"),
        ("Open a plan for the migration", "rebecca", "reviewer"),
        ("Draft the retro notes", "marvin", "actor"),
        ("Draft the retro notes", "peterben", "reviewer"),
    ],
)
def test_parts_are_those_that_the_other_agents_reckon(content: str, agent: str, role: Role) -> None:
    assert assign_role(agent, content) == role
    assert assign_role(agent, content, is_owner=True) == "actor"


@pytest.mark.parametrize(
    ("content", "mode", "peers", "is_owner", "role"),
    [
        ("Open a plan for the migration", "action", ["rebecca"], False, "observer"),
        ("Open a plan for the migration", "action", ["rebecca"], True, "actor"),
        ("Open a plan for the migration", "action", [], False, "actor"),
        ("Open a plan for the migration", "discussion", ["rebecca"], False, "actor"),
        ("", "action", ["rebecca"], False, "actor"),
    ],
)
def test_without_a_request_or_company_everyone_is_an_actor(
    content: str, mode: Mode, peers: list[str], *, is_owner: bool, role: Role
) -> None:
    assert role_now("marvin", content, mode, peers, is_owner=is_owner) == role


@pytest.mark.parametrize(
    ("intent", "mode"),
    [("action_request", "action"), ("follow_up", "action"), ("discussion", "discussion"), (None, "discussion")],
)
def test_the_newest_message_of_the_host_sets_the_mode(intent: HostIntent | None, mode: str) -> None:
    assert conversation_mode(intent) == mode


def test_who_names_no_capabilities_has_all_and_who_lacks_github_owns_nothing() -> None:
    capabilities = {"rebecca": None, "peterben": ["social"], "sh-marvin": ["social", "github"]}
    peers = ["rebecca", "peterben", "sh-marvin", "unknown", "rebecca", "marvin"]
    able = eligible_agents("marvin", peers, capabilities, social_only=False)
    assert able == ["marvin", "rebecca", "sh-marvin", "unknown"]
    assert eligible_agents("marvin", peers, capabilities, social_only=True) == ["rebecca", "sh-marvin", "unknown"]


KNOWS = ["social", "github", OWNS_ADDRESSED]
ASKED = "Marvin, can you open an issue for the checklist in github.com/acme/site?"


def _owners(content: str, able: Mapping[str, Sequence[str] | None]) -> set[str | None]:
    """Whom each of those present takes for the owner; who does not know the rule computes the hash."""
    owners: set[str | None] = set()
    for me in able:
        peers = [name for name in able if name != me]
        if OWNS_ADDRESSED in (able[me] or ()):
            without_me = {name: able[name] for name in peers}
            social_only = "github" not in (able[me] or ())
            owners.add(action_owner(me, peers, without_me, social_only=social_only, content=content, need="github"))
        else:
            can = [name for name in able if able[name] is None or "github" in (able[name] or ())]
            owners.add(elect_action_owner(can, content))
    return owners


@pytest.mark.parametrize("order", [("marvin", "rebecca", "peterben"), ("peterben", "marvin", "rebecca")])
def test_who_alone_is_addressed_owns_the_request_where_all_know_that(order: tuple[str, ...]) -> None:
    able = dict.fromkeys(order, KNOWS)
    for name in order:
        assert _owners(ASKED.replace("Marvin", name.title()), able) == {name}
        assert _owners(f"@{name} {ISSUE}", able) == {name}
    assert _owners(ISSUE, able) == {elect_action_owner(order, ISSUE)}
    both = f"marvin and rebecca: {ISSUE}"
    assert _owners(both, able) == {elect_action_owner(order, both)}


@given(NAMES, st.data())
def test_there_are_never_two_owners_whoever_knows_the_rule(names: list[str], data: st.DataObject) -> None:
    kinds = st.sampled_from([KNOWS, ["social", OWNS_ADDRESSED], ["social", "github"], None])
    able = {name: data.draw(kinds) for name in names}
    content = f"{data.draw(st.sampled_from([*names, 'nobody']))}, {ISSUE}"
    if len(names) > 1:
        assert len(_owners(content, able)) == 1


def test_whose_question_the_host_answered_owns_the_request_where_all_know_that_rule() -> None:
    def owner(*rules: str) -> str | None:
        able = {"rebecca": ["social", "github", *rules]}
        return action_owner(
            "marvin", able, able, social_only=False, content="Rebecca: yes", need="github", assignee="marvin"
        )

    assert owner(OWNS_ADDRESSED, OWNS_ANSWERED) == "marvin"
    assert owner(OWNS_ADDRESSED) == "rebecca"


def test_who_is_addressed_and_cannot_do_it_does_not_own_it() -> None:
    able = {"marvin": ["social", OWNS_ADDRESSED], "rebecca": KNOWS, "peterben": KNOWS}
    assert _owners(ASKED, able) == {elect_action_owner(["rebecca", "peterben"], ASKED)}


def test_who_lives_without_github_may_own_a_post() -> None:
    able = eligible_agents("marvin", ["rebecca"], {"rebecca": ["social"]}, social_only=True, capability="social")
    assert able == ["marvin", "rebecca"]


def test_alone_one_owns_every_request_and_a_group_without_github_owns_none() -> None:
    assert action_owner("marvin", [], {}, social_only=True, content=ISSUE, need="github") == "marvin"
    nobody = action_owner(
        "marvin", ["rebecca"], {"rebecca": ["social"]}, social_only=True, content=ISSUE, need="github"
    )
    assert nobody is None


@pytest.mark.parametrize(
    ("content", "versions", "own", "need"),
    [
        ("Post something about autumn on Bluesky", ["0.1.0", "0.3.2"], "0.1.0", "social"),
        ("Share it on social media", ["v0.2.0"], "0.1.0", "social"),
        ("Post something about autumn on Bluesky", ["0.1.0", "10.1.0"], "0.1.0", "github"),
        ("Post something about autumn on Bluesky", ["0.0.9"], "0.1.0", "github"),
        ("Post the issue on Bluesky", ["0.1.0"], "0.1.0", "github"),
        ("Comment on #12 that the post is out", ["0.1.0"], "0.1.0", "github"),
        ("Create an issue", ["0.1.0"], "0.1.0", "github"),
    ],
)
def test_a_post_needs_no_github_where_all_agents_know_that(
    content: str, versions: list[str], own: str, need: str
) -> None:
    assert required_capability(content, versions, own) == need
