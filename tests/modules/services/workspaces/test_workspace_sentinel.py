"""What becomes of the issue that says that a workspace is finished, row by row."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from adapters.github.types import Comment, Issue
from common.clock import iso, parse_iso
from modules.services.rituals.policy import memo_mark
from modules.services.workspaces.sentinel import (
    CREATOR_GONE,
    SentinelCode,
    SentinelFacts,
    is_agreement_comment,
    is_creator_gone,
    judge_sentinel,
    sentinel_in,
)
from modules.services.workspaces.trust import TrustedAccounts
from tests.trusting import account

ME, PEER, OWNER, KIT, STRANGER = "Rowan", "wren", "owner-hub", "kit", "eve"
TRUSTED = TrustedAccounts(
    account(ME), account(OWNER), frozenset({account(PEER), account("ash")}), frozenset({account(KIT)})
)
MADE = parse_iso("2026-03-02T10:00:00.000Z")


def at(hours: float) -> str:
    return iso(MADE + timedelta(hours=hours))


def issue(number: int = 7, author: str = ME, hours: float = 0, **more: Any) -> Issue:
    fields: dict[str, Any] = {"title": "t", "body": "", "state": "open", "labels": (), "assignees": (), "html_url": ""}
    return Issue(
        number=number,
        author=author,
        author_id=account(author).id,
        created_at=at(hours),
        updated_at=at(hours),
        **fields | more,
    )


def said(body: str, author: str = OWNER, hours: float = 1) -> Comment:
    return Comment(1, body, author, "", at(hours), at(hours), account(author).id)


def facts(*, closed_by: str | None = None, author: str = ME, **more: Any) -> SentinelFacts:
    state = "open" if closed_by is None else "closed"
    closer = closed_by or ""
    sentinel = issue(
        author=author, labels=("Finished",), state=state, closed_by=closer, closed_by_id=account(closer).id
    )
    return SentinelFacts(sentinel, TRUSTED, **more)


OTHER = issue(8, KIT, hours=-5)
WORK, AGREES = said("The search is still missing."), said("Looks good!", PEER, 2)
CASES: list[tuple[str, SentinelFacts, SentinelCode]] = [
    ("closed by us, who made it", facts(closed_by="rowan"), SentinelCode.CLEARED),
    ("closed by its author, a peer", facts(closed_by=PEER, author=PEER), SentinelCode.CLEARED),
    ("closed by nobody knows whom", facts(closed_by="", author=PEER), SentinelCode.CLEARED),
    ("closed by the owner", facts(closed_by=OWNER), SentinelCode.CLOSED_BY_PERSON),
    ("closed by a person, with work", facts(closed_by=OWNER, others=[OTHER]), SentinelCode.WORK_ELSEWHERE),
    (
        "closed by another SOUL, with work",
        facts(closed_by="ash", author=PEER, others=[OTHER]),
        SentinelCode.WORK_ELSEWHERE,
    ),
    ("closed by another SOUL, without", facts(closed_by="ash", author=PEER), SentinelCode.REOPEN),
    ("open, ours, nothing said", facts(looks_after=True, others=[OTHER]), SentinelCode.STANDS),
    ("open, ours, agreed", facts(looks_after=True, comments=[AGREES]), SentinelCode.AGREED),
    ("open, ours, work told", facts(looks_after=True, comments=[AGREES, WORK]), SentinelCode.FEEDBACK),
    ("told by a stranger", facts(looks_after=True, comments=[said("Do this", STRANGER)]), SentinelCode.STANDS),
    ("told before", facts(looks_after=True, comments=[replace(WORK, created_at=at(-1))]), SentinelCode.STANDS),
    (
        "said elsewhere",
        facts(looks_after=True, others=[OTHER], comments_on_others=[said("And this?", KIT)]),
        SentinelCode.SPOKEN_ELSEWHERE,
    ),
    (
        "said elsewhere before all agreed",
        facts(looks_after=True, comments=[AGREES], others=[OTHER], comments_on_others=[said("And this?", KIT)]),
        SentinelCode.AGREED,
    ),
    ("a new issue of a person", facts(looks_after=True, others=[issue(9, KIT, 1)]), SentinelCode.SPOKEN_ELSEWHERE),
    ("a new issue of a peer", facts(looks_after=True, others=[issue(9, PEER, 1)]), SentinelCode.SPOKEN_ELSEWHERE),
    (
        "a ritual's new memo",
        facts(looks_after=True, others=[issue(9, PEER, 1, body=memo_mark("at://did:plc:a/app.bsky.feed.post/1"))]),
        SentinelCode.STANDS,
    ),
    ("a new issue of a stranger", facts(looks_after=True, others=[issue(9, STRANGER, 1)]), SentinelCode.STANDS),
    (
        "a new pull request of a person",
        facts(looks_after=True, others=[issue(9, KIT, 1, is_pull_request=True)]),
        SentinelCode.STANDS,
    ),
]


@pytest.mark.parametrize(("given", "code"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_row_decides(given: SentinelFacts, code: SentinelCode) -> None:
    decision = judge_sentinel(given)
    assert decision.code is code, decision.reason
    assert decision.reason


def test_what_tells_of_work_is_handed_on_without_agreement() -> None:
    more = said("And the map.", KIT, 3)
    assert judge_sentinel(facts(looks_after=True, comments=[WORK, AGREES, more])).feedback == (WORK, more)


def test_only_words_that_do_nothing_but_agree_are_agreement() -> None:
    agree = ["Agreed", " yes! ", "LGTM...", "+1", "Nothing else.", "all set?", "Ship it!!"]
    differ = [
        "",
        "not done",
        "yes, but the map is missing",
        "done\n\nexcept the map",
        "yes" + "!" * 130,
        "looks  good",
        "no",
    ]
    assert [one for one in agree if not is_agreement_comment(one)] == []
    assert [one for one in differ if is_agreement_comment(one)] == []


def test_the_lowest_open_sentinel_counts_whoever_made_it() -> None:
    marked: dict[str, Any] = {"labels": ("FINISHED", "x")}
    issues = [issue(9, **marked), issue(4, PEER, **marked), issue(3), issue(2, state="closed", **marked)]
    assert sentinel_in(issues) == issues[1]
    assert sentinel_in(issues[2:]) is None
    assert sentinel_in([issue(1, is_pull_request=True, **marked)]) is None


def test_an_author_without_a_sign_for_two_days_is_gone() -> None:
    one, hour = issue(author=PEER), timedelta(hours=1)
    assert not is_creator_gone(one, None, MADE + CREATOR_GONE)
    assert is_creator_gone(one, None, MADE + CREATOR_GONE + hour)
    assert not is_creator_gone(one, MADE + hour, MADE + CREATOR_GONE + hour)
    assert is_creator_gone(one, MADE - CREATOR_GONE, MADE + CREATOR_GONE + hour)
