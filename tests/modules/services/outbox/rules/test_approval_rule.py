"""Proves by a table which acts wait for the owner's approval before they become public.

No action that contains a secret is admitted, whichever field it is in.
"""

import sqlite3
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from common.redact import LEAK, Redactor
from common.settings import Approval
from modules.services.outbox.bodies import DeleteBody, FollowBody, LikeBody, PostBody, RepostBody
from modules.services.outbox.gates import SecretScan
from modules.services.outbox.rules.approval import ApprovalRule, judge
from modules.services.outbox.rules.rules import TrustCircle
from modules.services.outbox.types import ProposedAction, Verdict
from tests.modules.services.outbox.body_values import body_of, reply_body

OWNER, PEER, STRANGER, OWN = "did:plc:owner", "did:plc:peer", "did:plc:kit", "did:plc:rowan"
FOUND = "did:plc:wren"
CIRCLE = TrustCircle(
    own={OWN, "rowan.test"},
    owner={OWNER, "owner.test"},
    peers={PEER, "peer.test"},
    github={"rowan-soul", "owner-hub"},
    found={FOUND, "found.test"},
    workspaces={"acme/www-lil-intdev-tides"},
)


def at(did: str) -> str:
    return f"at://{did}/app.bsky.feed.post/1"


def reply(did: str, text: str = "yes") -> ProposedAction:
    return ProposedAction(reply_body(text, at(did)))


def post(text: str) -> ProposedAction:
    return ProposedAction(PostBody(text=text))


def issue(repo: str, *, host_request: bool = False) -> ProposedAction:
    return ProposedAction(
        body_of("issue", repo=repo, promise="commitment-1-a", host_wish=host_request), "commitment-1-a#1"
    )


@pytest.mark.parametrize(
    ("draft", "strangers_hold"),
    [
        (post("slate or tin?"), False),
        (post("ask @owner.test or @Peer.test"), False),
        (post("ask @kit.test about it"), True),
        (reply(OWNER), False),
        (reply(PEER), False),
        (reply(OWN), False),
        (reply(STRANGER), True),
        (reply(FOUND), True),
        (post("meet @found.test"), True),
        (ProposedAction(FollowBody(did=FOUND)), True),
        (reply("kit.test"), True),
        (reply("peer.test"), False),
        (reply(OWNER, "like @kit.test said"), True),
        (ProposedAction(LikeBody(uri=at(STRANGER), cid="cid")), True),
        (ProposedAction(RepostBody(uri=at(PEER), cid="cid")), False),
        (ProposedAction(FollowBody(did=STRANGER)), True),
        (ProposedAction(FollowBody(did=PEER)), False),
        (ProposedAction(DeleteBody(uri=at(OWN))), False),
        (issue("rowan-soul/notes"), False),
        (issue("Owner-Hub/site"), False),
        (issue("Acme/www-lil-intdev-tides"), False),
        (issue("acme/www-lil-intdev-other"), True),
        (issue("acme/site"), True),
        (issue("acme/site", host_request=True), False),
    ],
)
def test_each_choice_holds_what_it_says(draft: ProposedAction, *, strangers_hold: bool) -> None:
    assert judge("off", draft, CIRCLE).says == "pass"
    assert judge("drafts", draft, CIRCLE).says == "hold"
    verdict = judge("strangers", draft, CIRCLE)
    assert verdict.says == ("hold" if strangers_hold else "pass")
    assert verdict.reason


@pytest.mark.parametrize(("approval", "says"), [("off", "pass"), ("strangers", "pass"), ("drafts", "hold")])
def test_that_a_commitment_was_kept_waits_only_where_rooms_need_approval_too(approval: Approval, says: str) -> None:
    draft = ProposedAction(body_of("space_chat", text="Done", promise="commitment-1-a"), "commitment-1-a#done")
    assert judge(approval, draft, CIRCLE).says == "pass"
    assert judge(approval, draft, CIRCLE, in_room=True).says == says


@pytest.mark.parametrize("approval", ["off", "strangers", "drafts"])
def test_what_the_owner_asked_for_never_waits(approval: Approval) -> None:
    assert judge(approval, replace(reply(STRANGER), by_owner=True), CIRCLE).says == "pass"


@pytest.mark.parametrize(("approval", "says"), [("off", "pass"), ("strangers", "pass"), ("drafts", "hold")])
def test_what_the_owner_asked_for_without_its_words_is_shown_first_where_everything_waits(
    approval: Approval, says: str
) -> None:
    ordered = replace(post("tides"), by_owner=True, own_words=True)
    follow = replace(ordered, body=body_of("follow", did="did:plc:kit", handle="kit.test"))
    assert [judge(approval, one, CIRCLE).says for one in (ordered, follow)] == [says] * 2
    answer = replace(ordered, body=reply(STRANGER).body)
    reasons = {judge("drafts", one, CIRCLE).reason for one in (ordered, follow, answer)}
    assert len(reasons) == 3, "the owner reads which part of the order was left open"


def test_the_rule_asks_whom_we_know_each_time() -> None:
    known = [CIRCLE]
    rule = ApprovalRule("strangers", lambda: known[-1])
    now = datetime(2026, 1, 5, tzinfo=UTC)
    with sqlite3.connect(":memory:") as connection:
        (before,) = rule(connection, reply(STRANGER), now)
        known.append(replace(CIRCLE, peers={STRANGER}))
        (after,) = rule(connection, reply(STRANGER), now)
    connection.close()
    assert (before.says, after.says) == ("hold", "pass")
    assert STRANGER in before.reason


SECRET = "tell-nobody-77"
CID = "bafyreib2rxk3rybk3aobmv5cjuql3bm2twh4jo5uxgxqknbqmyxxlpyq4u"
URI = "at://did:plc:ewvi7nxzyoun6zhxrhs64oiz/app.bsky.feed.post/3jt5tsfznls2r"


@pytest.mark.parametrize(
    ("draft", "says"),
    [
        (ProposedAction(PostBody(text="Slate remembers the rain.")), "pass"),
        (ProposedAction(LikeBody(uri=URI, cid=CID)), "pass"),
        (ProposedAction(PostBody(text=f"my key is {SECRET}")), "block"),
        (ProposedAction(body_of("post", images=[{"alt": "77-YDOBON-LLET"}])), "block"),
        (ProposedAction(body_of("post", more={SECRET: 1})), "block"),
        (ProposedAction(PostBody(text="x"), part=f"{SECRET}#1"), "block"),
        (ProposedAction(FollowBody(did=f"did:web:{SECRET}.example")), "block"),
    ],
)
def test_every_string_of_a_draft_is_looked_at(draft: ProposedAction, says: str) -> None:
    with sqlite3.connect(":memory:") as connection:
        verdicts = SecretScan(Redactor([SECRET]))(connection, draft, datetime.now(UTC))
    connection.close()
    assert verdicts == [Verdict("secrets", "block", LEAK, withhold=True) if says == "block" else Verdict("secrets")]
