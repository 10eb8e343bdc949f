"""Whoever is notified by what we do has given a reason for it, and the reason stands in our rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapters.atproto.types import Actor
from modules.services.outbox.bodies import DeleteBody, FollowBody, IntentKind, PostBody
from modules.services.outbox.rules.rules import REPLIES_PER_PERSON, STRANGERS
from modules.services.outbox.types import ProposedAction
from tests.modules.services.outbox.body_values import body_of, reply_body
from tests.modules.services.outbox.rules.etiquette_outbox import (
    FOUND,
    OWN,
    OWNER,
    PEER,
    EtiquetteOutbox,
    like,
    reply_to,
    uri,
)

STRANGE = uri("ada", "unheard")
KINDS_OF_ACT: list[IntentKind] = ["reply", "like", "repost"]


def act(kind: IntentKind, target: str, *, root: str = "", by_owner: bool = False) -> ProposedAction:
    body = reply_body("Slate sings.", target, root=root) if kind == "reply" else body_of(kind, target)
    return ProposedAction(body, by_owner=by_owner)


@pytest.mark.parametrize(
    ("kind", "reason", "said"),
    [
        ("reply", "mention", "they mentioned us"),
        ("like", "reply", "they replied to us"),
        ("repost", "quote", "they quoted us"),
    ],
)
async def test_a_post_that_reached_us_may_be_answered_and_the_reason_is_recorded(
    etiquette_outbox: EtiquetteOutbox, kind: IntentKind, reason: str, said: str
) -> None:
    received = await etiquette_outbox.receive("ada", reason=reason)
    verdict = (await etiquette_outbox.verdicts(act(kind, received.uri)))["consent"]
    assert (verdict.says, verdict.reason, verdict.value) == ("pass", said, "did:plc:ada")


@pytest.mark.parametrize("kind", KINDS_OF_ACT)
async def test_a_post_that_did_not_reach_us_is_left_alone_whatever_the_caller_claims(
    etiquette_outbox: EtiquetteOutbox, kind: IntentKind
) -> None:
    received = await etiquette_outbox.receive("ada")
    draft = replace(act(kind, STRANGE, root=received.uri), cause_id=received.uri, urgent=True)
    assert await etiquette_outbox.blocked_by(draft) == {"consent"}


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (f"at://{OWNER}/app.bsky.feed.post/1", "they are the owner"),
        ("at://Owner.example/app.bsky.feed.post/1", "they are the owner"),
        (f"at://{PEER}/app.bsky.feed.post/1", "they are a listed peer"),
        ("at://peer.example/app.bsky.feed.post/1", "they are a listed peer"),
        (f"at://{OWN}/app.bsky.feed.post/1", "it is our own"),
    ],
)
async def test_owner_peers_and_ourselves_need_no_other_reason(
    etiquette_outbox: EtiquetteOutbox, target: str, said: str
) -> None:
    for kind in KINDS_OF_ACT:
        verdict = (await etiquette_outbox.verdicts(act(kind, target)))["consent"]
        assert (verdict.says, verdict.reason) == ("pass", said)


async def test_in_a_thread_of_ours_everybody_may_be_answered(etiquette_outbox: EtiquetteOutbox) -> None:
    ours = f"at://{OWN}/app.bsky.feed.post/1"
    verdict = (await etiquette_outbox.verdicts(act("reply", STRANGE, root=ours)))["consent"]
    assert (verdict.says, verdict.reason) == ("pass", "the thread is ours")


async def test_a_like_is_in_a_thread_of_ours_only_if_a_row_says_so(etiquette_outbox: EtiquetteOutbox) -> None:
    ours = f"at://{OWN}/app.bsky.feed.post/1"
    received = await etiquette_outbox.receive("ada", reason="some newer word", root=ours)
    assert (await etiquette_outbox.verdicts(like(received.uri)))["consent"].reason == "the thread is ours"
    assert await etiquette_outbox.blocked_by(act("like", STRANGE, root=ours)) == {"consent"}


@pytest.mark.parametrize("kind", [*KINDS_OF_ACT, "follow"])
async def test_what_the_owner_asked_for_may_be_done(etiquette_outbox: EtiquetteOutbox, kind: IntentKind) -> None:
    verdict = (await etiquette_outbox.verdicts(act(kind, STRANGE, by_owner=True)))["consent"]
    assert (verdict.says, verdict.reason) == ("pass", "the owner asked for it")


@pytest.mark.parametrize(
    ("who", "said"),
    [
        (OWNER, "they are the owner"),
        (PEER, "they are a listed peer"),
        ("did:plc:fan", "they follow us"),
        ("did:plc:ada", ""),
    ],
)
async def test_a_follow_needs_a_tie(etiquette_outbox: EtiquetteOutbox, who: str, said: str) -> None:
    etiquette_outbox.followers.add("did:plc:fan")
    await etiquette_outbox.receive("ada")
    verdict = (await etiquette_outbox.verdicts(ProposedAction(FollowBody(did=who))))["consent"]
    assert (verdict.says == "pass", verdict.reason if said else "") == (bool(said), said)


@pytest.mark.parametrize("target", ["", "https://x.example/1", "at:///app.bsky.feed.post/1"])
async def test_a_target_that_belongs_to_nobody_gets_nothing(etiquette_outbox: EtiquetteOutbox, target: str) -> None:
    assert "consent" in await etiquette_outbox.blocked_by(act("like", target))


async def test_what_notifies_nobody_needs_no_reason(etiquette_outbox: EtiquetteOutbox) -> None:
    for draft in (
        ProposedAction(PostBody(text="Tin sings.")),
        ProposedAction(DeleteBody(uri=f"at://{OWN}/app.bsky.feed.post/1")),
    ):
        assert not {"consent", "consent-by-name"} & set(await etiquette_outbox.verdicts(draft))


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("hello @owner.example", True),
        ("hello @ada.example", True),
        ("hello @bea.example", False),
        ("hello @ada.example and @bea.example", False),
        ("write to ada@bea.example", True),
        ("see https://bsky.app/profile/bea.example/post/3kabc", False),
        ("see https://bsky.app/profile/did:plc:bea/post/3kabc", False),
        ("see https://bsky.app/profile/did:plc:ada/post/3kabc", True),
        ("see https://bsky.app/profile/bea.example", True),
    ],
)
@pytest.mark.parametrize("kind", ["post", "reply"])
async def test_only_those_may_be_named_or_quoted_who_spoke_with_us(
    etiquette_outbox: EtiquetteOutbox, kind: IntentKind, text: str, *, allowed: bool
) -> None:
    received = await etiquette_outbox.receive("ada")
    draft = ProposedAction(PostBody(text=text)) if kind == "post" else reply_to(received, text)
    assert ("consent-by-name" in await etiquette_outbox.blocked_by(draft)) is not allowed
    assert not await etiquette_outbox.blocked_by(ProposedAction(PostBody(text=text), by_owner=True))


async def test_who_spoke_with_us_long_ago_is_not_named_any_more(etiquette_outbox: EtiquetteOutbox) -> None:
    await etiquette_outbox.receive("ada")
    named = ProposedAction(PostBody(text="I remember @ada.example"))
    await etiquette_outbox.clock.advance(29.9 * 86_400)
    assert not await etiquette_outbox.blocked_by(named)
    await etiquette_outbox.clock.advance(0.2 * 86_400)
    assert await etiquette_outbox.blocked_by(named) == {"consent-by-name"}


async def test_what_waits_for_the_owners_yes_anyway_is_the_owners_to_decide(etiquette_outbox: EtiquetteOutbox) -> None:
    draft = replace(act("follow", "did:plc:ada"), hold="others' words are in this turn")
    assert (await etiquette_outbox.verdicts(draft))["consent"].says == "hold"
    submitted = await etiquette_outbox.outbox.submit(draft)
    assert (submitted.held, submitted.reason) == (True, f"{draft.hold}; they neither follow us nor are a peer")
    named = ProposedAction(PostBody(text="hello @bea.example"), hold="others' words are in this turn")
    assert (await etiquette_outbox.outbox.submit(named)).held


@pytest.mark.parametrize("kind", ["reply", "like", "repost", "follow"])
async def test_a_peer_by_identity_posts_on_both_sides_may_be_reached(
    etiquette_outbox: EtiquetteOutbox, kind: IntentKind
) -> None:
    target = FOUND if kind == "follow" else uri("found", "k0")
    verdict = (await etiquette_outbox.verdicts(act(kind, target)))["consent"]
    assert (verdict.says, verdict.reason) == ("pass", "they are a peer, by identity posts on both sides")


async def test_such_a_peer_may_be_named(etiquette_outbox: EtiquetteOutbox) -> None:
    assert not await etiquette_outbox.blocked_by(ProposedAction(PostBody(text="@found.example is found on GitHub")))


async def test_such_a_peer_is_a_stranger_for_every_counter_and_counts_as_a_program(
    etiquette_outbox: EtiquetteOutbox,
) -> None:
    assert etiquette_outbox.etiquette.is_stranger(FOUND)
    assert etiquette_outbox.etiquette.is_automated(Actor(FOUND, "found.example"))
    assert not etiquette_outbox.etiquette.is_stranger(PEER)
    told = await etiquette_outbox.verdicts(reply_to(await etiquette_outbox.receive("found")))
    assert {STRANGERS.name, REPLIES_PER_PERSON.name} <= set(told)
    told = await etiquette_outbox.verdicts(reply_to(await etiquette_outbox.receive("peer")))
    assert not {STRANGERS.name, REPLIES_PER_PERSON.name} & set(told)
