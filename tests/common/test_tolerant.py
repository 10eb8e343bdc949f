"""Proves that a model's JSON is understood however it spells names and words of a fixed set, and never guessed."""

from enum import StrEnum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, StrictBool

from common.schemas import ExtractedCommitment, brought_home, parse_space_decision, validate_commitments


class Colour(StrEnum):
    DARK_RED = "dark-red"
    BLUE = "blue"


class Inner(BaseModel):
    post_uri: str = ""


class Sent(BaseModel):
    should_speak: StrictBool = Field(default=False, alias="shouldSpeak")
    kind: Literal["create_issue", "comment_issue"] | None = None
    kinds: list[Literal["create_issue", "comment_issue"]] = []
    colour: Colour = Colour.BLUE
    either: Colour | str = ""
    inner: Inner | None = None


@pytest.mark.parametrize(
    ("sent", "home"),
    [
        ({"shouldSpeak": "true"}, {"shouldSpeak": True}),
        ({"should_speak": "False"}, {"shouldSpeak": False}),
        ({"ShouldSpeak": " TRUE "}, {"shouldSpeak": True}),
        ({"should-speak": True}, {"shouldSpeak": True}),
        ({"shouldSpeak": "perhaps"}, {"shouldSpeak": "perhaps"}),
        ({"kind": "CREATE_ISSUE"}, {"kind": "create_issue"}),
        ({"Kind": "create issue"}, {"kind": "create_issue"}),
        ({"kind": "createIssue"}, {"kind": "create_issue"}),
        ({"kind": "Comment-Issue"}, {"kind": "comment_issue"}),
        ({"kind": "issue"}, {"kind": "issue"}),
        ({"kinds": ["Create Issue", "x"]}, {"kinds": ["create_issue", "x"]}),
        ({"colour": "DARK_RED"}, {"colour": "dark-red"}),
        ({"either": "BLUE"}, {"either": "BLUE"}),
        ({"inner": {"postUri": "at://x"}}, {"inner": {"post_uri": "at://x"}}),
        ({"KIND": "comment_issue", "kind": "create_issue"}, {"kind": "create_issue"}),
        ({"other": "true"}, {"other": "true"}),
    ],
)
def test_names_and_words_of_a_fixed_set_are_known_in_every_spelling(sent: dict[str, Any], home: dict[str, Any]) -> None:
    assert brought_home(Sent.model_json_schema(), sent) == home


@pytest.mark.parametrize(
    "spelt",
    [
        {"type": "CREATE_ISSUE", "Title": "Slate"},
        {"commitment_type": "create issue", "title": "Slate"},
        {"CommitmentType": "Create-Issue", "TITLE": "Slate"},
        {"Action": "createIssue", "Subject": "Slate"},
    ],
)
def test_a_commitment_is_read_in_every_spelling(spelt: dict[str, Any]) -> None:
    (kept,) = validate_commitments([spelt]).valid
    assert (kept.type, kept.title) == ("create_issue", "Slate")


def test_a_decision_and_what_was_found_in_words_are_read_in_every_spelling() -> None:
    decision = parse_space_decision({"should_speak": "true", "Message": "Hi"}).data
    assert decision is not None
    assert (decision.should_speak, decision.message) == (True, "Hi")
    found = ExtractedCommitment.model_validate({"Description": "File it", "Type": "CREATE_ISSUE", "Confidence": "High"})
    assert (found.type, found.confidence) == ("create_issue", "high")
