"""Which of a person's records holds for us, and what it allows."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.atproto.types import Record
from modules.services.rights.policy import INTENTS, PREFERENCE, may_reply, may_stand_in_prompt, preference_of
from modules.services.rights.types import Choice, Preference

KIT, US = "did:plc:kit", ("did:plc:rowan", "rowan.test")
GLOBAL = {"$type": f"{PREFERENCE}#globalScope"}
POSTS = {"$type": f"{PREFERENCE}#collectionScope", "collection": "app.bsky.feed.post"}


def record(key: str = "self", /, collection: str = PREFERENCE, **value: Any) -> Record:
    return Record(f"at://{KIT}/{collection}/{key}", "bafy", value)


def naming(entity: str) -> dict[str, str]:
    return {"$type": f"{PREFERENCE}#entityScope", "entity": entity}


@pytest.mark.parametrize(
    ("value", "choice"),
    [
        (False, "deny"),
        (True, "allow"),
        ({"allow": False}, "deny"),
        ({"allow": True}, "allow"),
        ({"allow": "no"}, "unset"),
    ],
)
def test_a_choice_is_a_truth_value_or_an_object_that_holds_one(value: object, choice: Choice) -> None:
    assert preference_of([record(inference=value)], [], US).inference == choice
    assert preference_of([record(preferences={"inference": value})], [], US).inference == choice


def test_all_four_fields_are_read_and_what_is_not_set_stays_unset() -> None:
    told = record(training=False, inference=True, syntheticContent=False)
    assert preference_of([told], [], US) == Preference("deny", "allow", "deny", "unset")
    assert preference_of([], [], US) == Preference()


@pytest.mark.parametrize("entity", ["Rowan.test"])
def test_what_names_us_goes_before_what_is_about_posts_and_that_before_everything(entity: str) -> None:
    about_all = record(inference=True, scope=GLOBAL)
    about_posts = record("3k1", inference=False, embedding=False, scope=POSTS)
    about_us = record("3k2", inference=True, scope=naming(entity))
    assert preference_of([about_all, about_posts], [], US).inference == "deny"
    assert preference_of([about_all, about_posts, about_us], [], US) == Preference(inference="allow", embedding="deny")


def test_what_names_somebody_else_or_another_collection_is_not_for_us() -> None:
    likes = {"collection": "app.bsky.feed.like"}
    others = [record("3k1", inference=False, scope=naming("did:plc:wren")), record("3k2", inference=False, scope=likes)]
    assert preference_of(others, [], US) == Preference()


@pytest.mark.parametrize("scope", [None, "region", 7, {"$type": f"{PREFERENCE}#regionScope", "region": "eu"}])
def test_of_a_record_whose_reach_is_not_understood_only_what_it_denies_counts(scope: object) -> None:
    odd = record("3k1", inference=False, embedding=True, scope=scope)
    assert preference_of([odd], [], US) == Preference(inference="deny")


def test_of_two_records_with_the_same_reach_the_newest_counts() -> None:
    newer, older = record("3k2", inference=True, scope=POSTS), record("3k1", inference=False, scope=POSTS)
    assert preference_of([newer, older], [], US).inference == "allow"


def test_the_older_declaration_fills_in_what_no_other_record_sets() -> None:
    older = record(collection=INTENTS, syntheticContentGeneration={"allow": False})
    assert preference_of([], [older], US) == Preference(synthetic_content="deny")
    assert preference_of([record(syntheticContent=True)], [older], US).synthetic_content == "allow"


@pytest.mark.parametrize(
    ("preference", "in_prompt"),
    [(Preference(), True), (Preference(inference="allow"), True), (Preference(inference="deny"), False), (None, False)],
)
def test_a_post_stands_in_a_prompt_unless_its_author_denies_it_or_nobody_knows(
    preference: Preference | None, *, in_prompt: bool
) -> None:
    assert may_stand_in_prompt(preference) is in_prompt


@pytest.mark.parametrize(("choice", "unasked"), [("unset", True), ("allow", True), ("deny", False)])
def test_who_denies_synthetic_content_gets_a_reply_only_where_they_asked(choice: Choice, *, unasked: bool) -> None:
    preference = Preference(synthetic_content=choice)
    assert may_reply(preference, asked=True)
    assert may_reply(preference, asked=False) is unasked
