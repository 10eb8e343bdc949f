"""Proves that what a model left out, in whatever words, spoils nothing, and that no other meaning is guessed.

Proves that a model's JSON is understood however it spells names and words of a fixed set.
"""

from enum import StrEnum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, StrictBool

from common.schemas import (
    Commitment,
    ExtractedCommitment,
    SpaceDecision,
    brought_home,
    parse_space_decision,
    validate_commitments,
)

ISSUE = {"type": "create_issue", "title": "Clock stops"}


def taken(**fields: Any) -> Commitment:
    """Validate one commitment with these fields; return it, as it must be valid."""
    checked = validate_commitments([{**ISSUE, **fields}])
    assert checked.dropped == ()
    (valid,) = checked.valid
    return valid


@pytest.mark.parametrize("junk", [0, -1, 2.5, True, None, "", "none", "-4", "#", "9" * 40, {"number": 3}])
def test_a_number_that_names_no_issue_counts_as_left_out(junk: object) -> None:
    assert taken(issue_number=junk).issue_number is None
    comment = {"type": "comment_issue", "description": "It is fixed.", "issue_number": junk}
    (dropped,) = validate_commitments([comment]).dropped
    assert dropped.reason == "comment_issue names no issue: give issue_number"


@pytest.mark.parametrize(
    ("given", "number"),
    [
        (7, 7),
        (7.0, 7),
        ("7", 7),
        (" #7 ", 7),
        ("issue 7", 7),
        ("Issue #7", 7),
        ("https://github.com/acme/site/issues/7", 7),
    ],
)
def test_an_issue_is_known_by_its_number_however_it_is_written(given: object, number: int) -> None:
    assert taken(type="comment_issue", issue_number=given).number == number
    assert taken(type="comment_issue", issueNumber=given).number == number


@pytest.mark.parametrize("junk", ["None", " unknown ", "N-A", "-", None])
def test_a_repository_that_says_nothing_counts_as_left_out(junk: str | None) -> None:
    assert taken(repo=junk).repo == ""


@pytest.mark.parametrize(
    ("given", "repo"),
    [
        ("acme/site", "acme/site"),
        ("https://github.com/acme/site", "acme/site"),
        ("https://github.com/acme/site.git", "acme/site"),
        ("https://github.com/acme/site/issues/3", "acme/site"),
        ("github.com/acme/site/tree/main/docs", "acme/site"),
        ("https://www.github.com/acme/site.js/pull/4#issuecomment-1", "acme/site.js"),
        ("https://github.com/acme/site?tab=readme", "acme/site"),
        ("https://github.com/acme/site#readme", "acme/site"),
        ("https://github.com/acme/site/", "acme/site"),
    ],
)
def test_a_repository_is_known_by_its_name_and_by_any_page_of_it(given: str, repo: str) -> None:
    assert taken(repo=given).repo == repo


@pytest.mark.parametrize(
    "given",
    [
        "the site",
        "acme/site/issues",
        "https://example.com/acme/site/issues/3",
        "https://github.com/orgs/acme/x",
    ],
)
def test_a_repository_that_cannot_be_told_drops_the_commitment_and_says_why(given: str) -> None:
    (dropped,) = validate_commitments([{**ISSUE, "repo": given}]).dropped
    assert dropped.reason == "repo: must look like owner/name"


def test_a_commitment_without_parameters_is_a_commitment() -> None:
    found = {"description": "File it", "type": "create_issue", "params": None, "confidence": "high"}
    assert ExtractedCommitment.model_validate(found).params == {}


@pytest.mark.parametrize("absent", [{}, {"reason": None}, {"reason": None, "message": None, "commitments": None}])
def test_a_decision_without_a_reason_is_a_decision(absent: dict[str, None]) -> None:
    parsed = parse_space_decision({"shouldSpeak": True, **absent})
    assert parsed.data is not None
    assert (parsed.data.should_speak, parsed.data.reason) == (True, "")


def test_a_reason_is_asked_for() -> None:
    assert SpaceDecision.model_json_schema()["required"] == ["shouldSpeak", "reason"]
    assert parse_space_decision({"shouldSpeak": None, "reason": None}).error.startswith("shouldSpeak: ")


@pytest.mark.parametrize(
    ("odd", "field", "read"),
    [
        ({"reason": 5}, "reason", ""),
        ({"reason": ["a"]}, "reason", ""),
        ({"commitments": {}}, "commitments", []),
        ({"commitments": ISSUE}, "commitments", [ISSUE]),
        ({"commitments": "none"}, "commitments", []),
        ({"commitments": [None, ISSUE, "create_issue"]}, "commitments", [ISSUE]),
        ({"adjustBehavior": "none"}, "adjust_behavior", None),
        ({"adjustBehavior": []}, "adjust_behavior", None),
    ],
)
def test_an_odd_side_field_costs_no_decision(odd: dict[str, Any], field: str, read: object) -> None:
    answer = {"shouldSpeak": True, "message": "Hi", "reason": "r", "commitments": [ISSUE], **odd}
    parsed = parse_space_decision(answer)
    assert parsed.data is not None
    assert (parsed.data.should_speak, parsed.data.message, getattr(parsed.data, field)) == (True, "Hi", read)


@pytest.mark.parametrize("message", [["a"], 5, {}])
def test_what_is_said_is_never_guessed(message: object) -> None:
    assert parse_space_decision({"shouldSpeak": True, "message": message}).error.startswith("message: ")


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
    line: int | None = None
    lines: list[int] = []
    issue: int | str = ""


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
        (
            {"line": " 150 ", "lines": ["3", 4.0, 4.5, "4.5", "four", True]},
            {"line": 150, "lines": [3, 4, 4.5, "4.5", "four", True]},
        ),
        ({"kind": None, "inner": {"post_uri": None}, "other": None}, {"inner": {}}),
        ({"kinds": '["Create Issue"]', "inner": '{"postUri": null}'}, {"kinds": ["create_issue"], "inner": {}}),
        ({"lines": "[4", "inner": "[]", "either": "[1]"}, {"lines": "[4", "inner": "[]", "either": "[1]"}),
        ({"line": "9" * 5000, "issue": "12"}, {"line": "9" * 5000, "issue": "12"}),
    ],
)
def test_names_whole_numbers_words_of_a_fixed_set_and_packed_lists_are_known_in_every_spelling(
    sent: dict[str, Any], home: dict[str, Any]
) -> None:
    assert brought_home(Sent.model_json_schema(), sent) == home


def test_a_null_that_a_field_needs_stays_to_be_refused() -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    assert brought_home(schema, {"title": None}) == {"title": None}


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


def test_fields_inside_params_count_as_if_they_stood_beside_it() -> None:
    assert taken(params={"repo": "mill/wheel", "title": "Other"}).repo == "mill/wheel"
    assert taken(params={"title": "Other"}).title == ISSUE["title"]
    assert taken(params="mill/wheel").repo == ""
