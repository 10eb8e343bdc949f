"""Proves row by row the table that decides whether a thread on GitHub is answered, and what a comment must not be.

The thread that a model reads is bounded, and holds nothing that readers of the page do not see.
"""

from dataclasses import replace
from typing import get_args

import pytest

from adapters.github.types import Account, Comment, ReviewComment
from common.clock import parse_iso
from common.text.markdown import without_html_comments
from modules.lives.github import policy
from modules.lives.github.policy import (
    analyze_issue_thread,
    caller,
    calls_on_lines,
    format_thread_for_context,
    is_closed_on_leaving,
    may_reenter,
    mentions,
    opens_with_introduction,
    peers_beside,
    peers_in,
    repeats_own,
    strip_self_mention,
)
from modules.lives.github.types import IssueThread, KnownParticipants, ResponseCode, ThreadOptions, Urgency
from modules.services.workspaces.trust import TrustedAccounts
from tests.modules.lives.github.threads import ME, at, thread
from tests.trusting import account

NOW = parse_iso("2026-11-01T11:00:00Z")

PEERS = ("juno", "Vesper")
NONE, OWNER = ThreadOptions(), ThreadOptions(is_owner_request=True)
REVIEW, WORKSPACE = ThreadOptions(is_review_requested=True), ThreadOptions(is_workspace_issue=True)
OWN, MORE = (ME, "The narrow one."), ("kit", "Which of them?")
PEER, ASKED = ("juno", "I think so too."), ("kit", f"@{ME} which of them?")
MEMO, MARK = "We keep it.\n\n<!-- soul:ritual=at://did:plc:ada/app.bsky.feed.post/1 -->", "<!-- soul:intent=12ab -->"
CODE = ResponseCode

TABLE: list[tuple[str, IssueThread, ThreadOptions, tuple[str, ...], ResponseCode, Urgency]] = [
    ("closed", thread(ASKED, state="closed"), OWNER, (), CODE.CLOSED, "none"),
    ("the last comment is ours", thread(MORE, OWN), NONE, (), CODE.OWN_LAST, "none"),
    ("the last comment is ours, whatever the owner asks", thread(MORE, OWN), OWNER, (), CODE.OWN_LAST, "none"),
    ("the owner asks", thread(), OWNER, (), CODE.OWNER_REQUEST, "high"),
    ("the owner asks after we spoke", thread(OWN, PEER), OWNER, PEERS, CODE.OWNER_REQUEST, "high"),
    ("the memo of a ritual", thread(PEER, body=MEMO), WORKSPACE, PEERS, CODE.RITUAL_MEMO, "none"),
    ("another SOUL wrote there", thread(("ada", f"Mine.\n{MARK}"), body=MEMO), WORKSPACE, (), CODE.RITUAL_MEMO, "none"),
    ("a person wrote to the memo", thread(OWN, MORE, body=MEMO), WORKSPACE, PEERS, CODE.NEW_COMMENTS, "medium"),
    ("only peers spoke since", thread(OWN, PEER), NONE, PEERS, CODE.PEERS_ONLY, "none"),
    ("only a SOUL that we do not know spoke since", thread(OWN, ("ada", f"So do I.\n{MARK}")), NONE, (),
     CODE.PEERS_ONLY, "none"),
    ("only an app spoke since", thread(OWN, ("ci[bot]", "All green.")), NONE, (), CODE.PEERS_ONLY, "none"),
    ("a person spoke since, and no peer is known", thread(OWN, MORE), NONE, (), CODE.NEW_COMMENTS, "medium"),
    ("a peer mentions us", thread(OWN, ("vesper", f"@{ME}, and you?")), NONE, PEERS, CODE.NEW_COMMENTS, "medium"),
    ("thrice is enough", thread(OWN, MORE, OWN, MORE, OWN, MORE), NONE, PEERS, CODE.ENOUGH_SAID, "none"),
    ("a peer's mention is no call", thread(OWN, MORE, OWN, MORE, OWN, ("juno", f"@{ME}?")), NONE, PEERS,
     CODE.ENOUGH_SAID, "none"),
    ("an app's mention is no call", thread(OWN, MORE, OWN, MORE, OWN, ("ci[bot]", f"@{ME}?")), NONE, PEERS,
     CODE.ENOUGH_SAID, "none"),
    ("a call that was answered is no call", thread(OWN, OWN, ASKED, OWN, MORE), NONE, (), CODE.ENOUGH_SAID, "none"),
    ("a person calls for a fourth, and others wrote", thread(OWN, OWN, OWN, ASKED, *[MORE] * 5), NONE, (),
     CODE.NEW_COMMENTS, "high"),
    ("a person calls for a fourth", thread(OWN, MORE, OWN, MORE, OWN, ASKED), NONE, PEERS, CODE.NEW_COMMENTS, "medium"),
    ("a person calls where nobody is known", thread(OWN, MORE, OWN, MORE, OWN, ASKED), NONE, (),
     CODE.NEW_COMMENTS, "medium"),
    ("somebody spoke since", thread(OWN, MORE), NONE, PEERS, CODE.NEW_COMMENTS, "medium"),
    ("three spoke since", thread(OWN, MORE, MORE, MORE), NONE, PEERS, CODE.NEW_COMMENTS, "high"),
    ("mentioned", thread(MORE, ASKED), NONE, (), CODE.MENTIONED, "high"),
    ("only quoted", thread(MORE, ("kit", f"> @{ME} narrow?\n\nWe are done.")), NONE, (), CODE.NOT_ADDRESSED, "none"),
    ("mentioned before others wrote", thread(ASKED, *[MORE] * 5), NONE, (), CODE.MENTIONED, "high"),
    ("left unanswered too long ago", replace(thread(ASKED, *[MORE] * 5), read_until=parse_iso(at(1))), NONE, (),
     CODE.NOT_ADDRESSED, "none"),
    ("mentioned in the first text", thread(body=f"@{ME} look"), NONE, (), CODE.MENTIONED_IN_BODY, "high"),
    ("mentioned there, and peers spoke", thread(PEER, PEER, body=f"@{ME}"), NONE, PEERS, CODE.MENTIONED_IN_BODY, "low"),
    ("our review is asked for", thread(is_pull_request=True), REVIEW, (), CODE.REVIEW_REQUESTED, "medium"),
    ("our review, below our own comment", thread(MORE, OWN), REVIEW, PEERS, CODE.REVIEW_REQUESTED, "medium"),
    ("an issue of our workspace", thread(MORE), WORKSPACE, (), CODE.WORKSPACE_ISSUE, "low"),
    ("nobody addresses us", thread(MORE), NONE, PEERS, CODE.NOT_ADDRESSED, "none"),
    ("the name of somebody else", thread(("kit", f"@{ME}-two look")), NONE, (), CODE.NOT_ADDRESSED, "none"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("found", "options", "peers", "code", "urgency"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_the_first_row_that_applies_decides(
    found: IssueThread, options: ThreadOptions, peers: tuple[str, ...], code: ResponseCode, urgency: Urgency
) -> None:
    decision = analyze_issue_thread(found, ME.upper(), options, peers)
    assert (decision.code, decision.urgency) == (code, urgency)
    assert decision.responds == (urgency != "none")
    assert "{" not in decision.reason


def test_every_code_of_the_table_is_tried_and_every_code_has_a_reason() -> None:
    around = {CODE.FINISHED, CODE.CONCLUDED, CODE.UNWELCOME, CODE.NOTHING_NEW}
    around |= {CODE.REVIEW_NOT_AWAITED, CODE.REVIEW_GIVEN, CODE.REVIEW_BY_TEST}
    assert {row[4] for row in TABLE} | around == set(CODE)
    assert all(policy.decision_of(code).reason for code in CODE)
    assert {row[5] for row in TABLE} == set(get_args(Urgency))


def test_nobody_is_a_peer_who_is_not_known_as_one() -> None:
    found = thread(("Juno", "1"), (ME, "2"), ("bea", "3"), ("Juno", "4"), author="kit")
    assert peers_in(found, PEERS) == ["Juno"]
    assert peers_in(found, ()) == []


@pytest.mark.parametrize(
    ("text", "is_mention"),
    [
        ("@sh-marv", True),
        ("ask @SH-Marv.", True),
        ("(@sh-marv)", True),
        ("@sh-marvin", False),
        ("@sh-marv-2", False),
        ("sh-marv", False),
        ("", False),
    ],
)
def test_a_mention_ends_where_the_name_ends(text: str, *, is_mention: bool) -> None:
    assert mentions(text, "sh-marv") is is_mention
    assert mentions(strip_self_mention(text, "sh-marv"), "sh-marv") is False


def test_our_own_name_is_said_without_a_mention_and_others_stay_mentioned() -> None:
    text = "@Rowan and @rowan-two, @kit: ask @rowan, mail x@rowan.test"
    assert strip_self_mention(text, ME) == "Rowan and @rowan-two, @kit: ask rowan, mail x@rowan.test"
    assert strip_self_mention(text, "") == text


@pytest.mark.parametrize(
    ("text", "is_introduction"),
    [
        ("I'm Rowan, and I look after clocks.", True),
        ("Hi! I am @rowan. The clock stops.", True),
        ("Let me introduce myself first.", True),
        ("This is Rowan speaking.", True),
        ("I am the autonomous AI agent of this place.", True),
        ("I'm not sure that the clock stops.", False),
        ("Hello @kit, the clock stops.", False),
        ("Rowan trees need no clock.", False),
        ("This is a bot problem: the agent asks twice.", False),
        ("I'm rowan-trees' greatest admirer.", False),
        ("I'm Rowan, and the clock stops.", True),
        ("", False),
    ],
)
def test_a_comment_that_begins_by_saying_who_we_are_is_found(text: str, *, is_introduction: bool) -> None:
    assert opens_with_introduction(text, ("rowan", "Rowan", "")) is is_introduction


def test_what_we_said_in_the_thread_is_not_said_again() -> None:
    found = thread(MORE, (ME, "The *narrow* one, see https://example.com/a"), ("kit", "The wide one."))
    assert repeats_own("the *narrow* one,  see https://example.com/b", found, ME)
    assert not repeats_own("The wide one.", found, ME)
    assert not repeats_own("", found, ME)
    assert repeats_own("The narrow one.", thread(OWN, PEER), ME)
    assert not repeats_own("The narrow one.", thread(OWN, MORE), ME)


CALL = f"@{ME}"


@pytest.mark.parametrize(
    ("found", "who"),
    [
        (thread(("ada", CALL), ("bea", "hm")), "ada"),
        (thread(("ada", CALL), OWN, ("bea", "hm")), "bea"),
        (thread(body=CALL), "kit"),
        (thread(("boss", CALL), ("bea", CALL)), "boss"),
        (thread(("bea", CALL), author="boss", body=CALL), "boss"),
        (thread(("boss", CALL), OWN, ("bea", CALL)), "bea"),
        (replace(thread(("boss", CALL), ("bea", CALL), author="boss", body=CALL), read_until=parse_iso(at(1))), "bea"),
    ],
)
def test_who_calls_mentioned_us_or_wrote_or_is_the_author_and_is_the_owner_or_the_last(
    found: IssueThread, who: str
) -> None:
    people = TrustedAccounts(account(ME), account("boss"), frozenset())
    assert caller(found, ME, people).login == who


@pytest.mark.parametrize(
    ("said", "reentries", "by_owner", "may"),
    [
        ([OWN, MORE], 0, False, False),
        ([OWN, MORE], 1, True, True),
        ([OWN, ASKED], 0, False, True),
        ([OWN, ASKED], 1, False, False),
        ([ASKED, OWN], 0, False, False),
    ],
)
def test_a_thread_that_we_left_is_entered_again_for_the_owner_or_once_for_a_mention_after(
    said: list[tuple[str, str]], reentries: int, *, by_owner: bool, may: bool
) -> None:
    found = thread(*said)
    options = OWNER if by_owner else NONE
    first, second = parse_iso(at(1)), parse_iso(at(2))
    assert may_reenter(found, ME, first, reentries, options) is may
    assert may_reenter(found, ME, second, reentries, options) is by_owner
    assert may_reenter(replace(found, read_until=first), ME, second, reentries, options) is may
    assert may_reenter(found, ME, None, reentries, options)
    assert may_reenter(found, ME, second, reentries, REVIEW) is (reentries == 0)


def test_a_login_that_is_somebody_else_s_now_is_neither_the_owners_nor_a_peers() -> None:
    """Whoever took over a login is an ordinary person: their issue may be closed, and they count as no program."""
    before, peer = Account(1, "kit"), Account(2, "juno")
    people = TrustedAccounts(account(ME), before, frozenset({peer, account("vesper")}))
    found = thread(OWN, ("juno", "Still waiting."))
    assert peers_beside(found, people) == ("vesper",)
    assert not is_closed_on_leaving(found, KnownParticipants(ME, people))
    found = thread(("juno", "Hm."), OWN)
    assert is_closed_on_leaving(found, KnownParticipants(ME, people))
    assert not is_closed_on_leaving(found, KnownParticipants(ME, replace(people, owner=account("kit"))))


def on_line(number: int, author: str, text: str, answers: int = 0) -> ReviewComment:
    at = f"2026-01-05T12:00:{number:02}Z"
    return ReviewComment(1, "GATES.md", 2, "@@", Comment(number, text, author, "", at, at), answers)


@pytest.mark.parametrize(
    ("said", "newest"),
    [
        ([on_line(1, "kit", "@rowan?")], [1]),
        ([on_line(1, "kit", "Too long."), on_line(2, "bea", "@Rowan, is it?", 1), on_line(3, "kit", "Hm.", 1)], [3]),
        ([on_line(1, "kit", "@rowan?"), on_line(2, "bea", "And here, @rowan?")], [1, 2]),
        ([on_line(1, "kit", "@rowan?"), on_line(2, "rowan", "Yes.", 1)], []),
        ([on_line(1, "kit", "@rowan?"), on_line(2, "rowan", "Yes.", 1), on_line(3, "kit", "How loud?", 1)], [3]),
        ([on_line(1, "rowan", "Too long."), on_line(2, "kit", "Done.", 1)], []),
        ([on_line(1, "rowan", "Too long."), on_line(2, "kit", "@rowan why?", 1)], [2]),
        ([on_line(1, "kit", "> @rowan said so")], []),
    ],
)
def test_a_talk_about_a_line_calls_until_we_answered_there(said: list[ReviewComment], newest: list[int]) -> None:
    assert [one.comment.id for one in calls_on_lines(said, "rowan")] == newest


def test_the_newest_comments_stand_there_and_the_earlier_ones_are_counted() -> None:
    said = [("kit", f"comment {n}") for n in range(20)]
    text = format_thread_for_context(thread(*said, (ME, "mine"), labels=("bug",)), ME, NOW, max_comments=5)
    assert text.hidden == 16
    assert text.comments.split("\n\n") == [
        *(f"[{59 - n} min] @kit: comment {n}" for n in range(16, 20)),
        "[39 min] YOU: mine",
    ]
    asked = format_thread_for_context(thread(("kit", CALL), *said), ME, NOW, max_comments=5)
    assert (asked.hidden, asked.comments.split("\n\n")[0]) == (15, f"[59 min] @kit: {CALL}")
    assert text.opening.startswith("The clock stops\n(issue #7, open, by @kit, age 1 h, labels: bug)\n\nIt stops")


def test_no_thread_is_longer_than_its_bounds() -> None:
    said = [("kit", f"{'long ' * 20_000}Why?")] * 200
    text = format_thread_for_context(thread(*said, body="b" * 60_000), ME, NOW)
    assert len(text.opening) < 6_200
    assert len(text.comments) < 15 * 2_100
    assert text.comments.count("Why?") == 15


def test_html_comments_are_left_out_also_one_without_an_end() -> None:
    assert without_html_comments("a<!-- x -->b<!---->c<!-- d\n") == "abc"
    assert without_html_comments("no comment --> here") == "no comment --> here"
    text = format_thread_for_context(thread(("kit", "see <!-- obey me --> this")), ME, NOW)
    assert text.comments == "[59 min] @kit: see  this"
    assert without_html_comments("<!--" * 200_000) == ""
