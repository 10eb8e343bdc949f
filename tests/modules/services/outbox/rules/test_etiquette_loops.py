"""Programs do not talk to each other forever, and a text that is posted again is answered once.

Our acts notify only people who gave a reason for it, and the reason is in our rows. Acts on GitHub and in a space need
a commitment, and cost no points of Bluesky.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.atproto.types import Actor, Notification, Post
from common.clock import FakeClock
from modules.services.outbox import policy as pace
from modules.services.outbox.bodies import DeleteBody, FollowBody, IntentKind, OpaqueBody, PostBody
from modules.services.outbox.rules.policy import consent_by_commitment
from modules.services.outbox.rules.rules import (
    HOUR_S,
    POINTS_PER_HOUR,
    REPLIES_PER_PERSON,
    STRANGERS,
    ReplyAdvice,
    TrustCircle,
)
from modules.services.outbox.types import Intent, Pacing, ProposedAction
from tests.modules.services.outbox.body_values import body_of, reply_body
from tests.modules.services.outbox.rules.etiquette_outbox import (
    FOUND,
    OWN,
    OWNER,
    PEER,
    EtiquetteOutbox,
    like,
    open_etiquette_outbox,
    reply_to,
    uri,
)

HOUR, DAY = 3600, 86_400
LOOPS = {"loop-thread-soft", "loop-thread-hard", "loop-pair-soft", "loop-pair-hard"}


async def turns(etiquette_outbox: EtiquetteOutbox, *names: str, root: str, answered: bool = True) -> Notification:
    """Let each of `names` post in one thread, and answer each post if we may. Return the last post."""
    for name in names:
        subject = chr(0x4E00 + next(etiquette_outbox._keys)) * 20
        received = await etiquette_outbox.receive(name, f"{name}: {subject}", root=root, is_bot=name != "ada")
        await etiquette_outbox.clock.advance(61)
        if answered:
            await etiquette_outbox.answer(received)
            await etiquette_outbox.clock.advance(61)
    return received


async def runs(etiquette_outbox: EtiquetteOutbox, received: Notification) -> tuple[float, float]:
    """Return how many automated turns are in the thread, and how many between us and the author."""
    said = await etiquette_outbox.verdicts(reply_to(received))
    thread, pair = said["loop-thread-soft"].value, said["loop-pair-soft"].value
    assert isinstance(thread, int)
    assert isinstance(pair, int)
    return thread, pair


async def test_a_talk_with_a_bot_ends_after_six_turns(etiquette_outbox: EtiquetteOutbox) -> None:
    last = await turns(etiquette_outbox, *["bot"] * 6, root=uri("bot", "root"))
    assert len(etiquette_outbox.sender.departures) == 3
    assert await runs(etiquette_outbox, last) == (9, 9)
    assert await etiquette_outbox.blocked_by(reply_to(last)) == {"loop-thread-soft", "loop-pair-soft"}
    assert await etiquette_outbox.blocked_by(like(last.uri)) == set()


async def test_after_twelve_turns_there_is_silence(etiquette_outbox: EtiquetteOutbox) -> None:
    last = await turns(etiquette_outbox, *["bot"] * 9, root=uri("bot", "root"))
    assert await runs(etiquette_outbox, last) == (12, 12)
    assert await etiquette_outbox.blocked_by(reply_to(last)) == LOOPS
    assert await etiquette_outbox.blocked_by(like(last.uri)) == {"loop-thread-hard", "loop-pair-hard"}


async def test_a_person_who_speaks_up_starts_the_count_afresh(etiquette_outbox: EtiquetteOutbox) -> None:
    root = uri("bot", "root")
    await turns(etiquette_outbox, *["bot", "bat"] * 5, root=root)
    last = await turns(etiquette_outbox, "ada", root=root, answered=False)
    assert await runs(etiquette_outbox, last) == (0, 0)
    assert await etiquette_outbox.answer(last)
    assert await runs(etiquette_outbox, last) == (0, 0)


async def test_a_person_who_asks_much_at_once_gets_an_answer_to_each_in_time_and_nobody_waits_for_that(
    etiquette_outbox: EtiquetteOutbox,
) -> None:
    asked = [
        await turns(etiquette_outbox, "ada", root=uri("ada", f"question{number}"), answered=False)
        for number in range(8)
    ]
    assert [await etiquette_outbox.answer(question) for question in asked] == [True] * 6 + [False] * 2
    assert await etiquette_outbox.blocked_by(reply_to(asked[6])) == {"replies-per-person"}
    assert (await etiquette_outbox.etiquette.before_reply(asked[6], [])).act == "later"
    assert await etiquette_outbox.answer(await etiquette_outbox.receive("bob"))
    assert await etiquette_outbox.answer(await etiquette_outbox.receive("owner"))
    await etiquette_outbox.clock.advance(3660)
    assert [await etiquette_outbox.answer(question) for question in asked[6:]] == [True, True]


@pytest.mark.slow
async def test_nobody_but_the_owner_gets_more_than_sixty_answers_a_day(etiquette_outbox: EtiquetteOutbox) -> None:
    for number in range(60):
        await etiquette_outbox.clock.advance(660)
        asked = await turns(etiquette_outbox, "ada", root=uri("ada", f"question{number}"), answered=False)
        assert await etiquette_outbox.answer(asked)
    await etiquette_outbox.clock.advance(3660)
    asked = await turns(etiquette_outbox, "ada", root=uri("ada", "one-more"), answered=False)
    assert await etiquette_outbox.blocked_by(reply_to(asked)) == {"replies-per-day"}
    assert await etiquette_outbox.answer(await etiquette_outbox.receive("owner"))
    await etiquette_outbox.clock.advance(86_400)
    assert await etiquette_outbox.answer(asked)


async def test_what_was_admitted_before_waits_at_departure_too(etiquette_outbox: EtiquetteOutbox) -> None:
    asked = [
        await turns(etiquette_outbox, "ada", root=uri("ada", f"question{number}"), answered=False)
        for number in range(7)
    ]
    held = await etiquette_outbox.outbox.submit(replace(reply_to(asked[6]), hold="the owner wants to see it"))
    for question in asked[:6]:
        await etiquette_outbox.answer(question)
    await etiquette_outbox.outbox.approve(held.intent.id)
    await etiquette_outbox.outbox.deliver_due()
    assert len(etiquette_outbox.sender.departures) == 6
    await etiquette_outbox.drain(3660)
    assert len(etiquette_outbox.sender.departures) == 7


async def test_the_pair_is_counted_wherever_it_meets_within_a_day(etiquette_outbox: EtiquetteOutbox) -> None:
    for number in range(3):
        last = await turns(etiquette_outbox, "bot", root=uri("bot", f"root{number}"))
    assert await runs(etiquette_outbox, last) == (2, 6)
    fresh = await etiquette_outbox.receive("bot", "a wholly different matter", is_bot=True)
    assert await etiquette_outbox.blocked_by(reply_to(fresh)) == {"loop-pair-soft"}
    await etiquette_outbox.clock.advance(DAY + 1)
    fresh = await etiquette_outbox.receive("bot", "and yet another thing to say", is_bot=True)
    assert await runs(etiquette_outbox, fresh) == (1, 1)


async def test_a_peer_is_automated_even_without_a_label_and_the_owner_never(etiquette_outbox: EtiquetteOutbox) -> None:
    for _ in range(8):
        peer = await etiquette_outbox.receive("peer", root=uri("peer", "root"))
        owner = await etiquette_outbox.receive("owner", root=uri("owner", "root"), is_bot=True)
    assert await runs(etiquette_outbox, peer) == (8, 8)
    assert await runs(etiquette_outbox, owner) == (0, 0)


async def test_the_owner_may_ask_for_one_more(etiquette_outbox: EtiquetteOutbox) -> None:
    last = await turns(etiquette_outbox, *["bot"] * 9, root=uri("bot", "root"))
    assert await etiquette_outbox.blocked_by(reply_to(last, by_owner=True)) == set()


async def test_what_a_bot_dates_back_does_not_hide_from_the_count(etiquette_outbox: EtiquetteOutbox) -> None:
    root = uri("bot", "root")
    await turns(etiquette_outbox, "ada", root=root)
    for number in range(6):
        received = await etiquette_outbox.receive("bot", f"{number}", root=root, is_bot=True)
        await etiquette_outbox.clock.advance(60)
    await etiquette_outbox.database.run(
        lambda connection: connection.execute(
            "UPDATE pending_notifications SET indexed_at = '2020-01-01T00:00:00.000Z' WHERE author_did = ?",
            (received.author.did,),
        )
    )
    assert (await runs(etiquette_outbox, received))[0] == 7


async def test_a_reply_that_still_waits_counts_as_a_turn(etiquette_outbox: EtiquetteOutbox) -> None:
    received = await etiquette_outbox.receive("bot", is_bot=True)
    assert (await etiquette_outbox.outbox.submit(reply_to(received))).accepted
    assert await runs(etiquette_outbox, received) == (2, 2)


def seen(notification: Notification, *names: str) -> list[Post]:
    """Return a thread as it was read, oldest first: "" is the author, "us" ourselves, and `bot…` carries the label."""
    authors = [notification.author if name == "" else None for name in names]
    return [
        Post(
            uri=uri(name or "x", f"t{number}"),
            cid="cid",
            author=author
            or type(notification.author)(
                OWN if name == "us" else f"did:plc:{name}", f"{name}.example", is_bot=name.startswith("bot")
            ),
            text="words",
            created_at=notification.created_at,
        )
        for number, (name, author) in enumerate(zip(names, authors, strict=True))
    ]


@pytest.mark.parametrize(
    ("names", "act"),
    [
        (["ada"], "free"),
        (["ada", *["bot1", "bot2"] * 2, "bot3"], "free"),
        (["ada", *["bot1", "bot2"] * 3], "like"),
        (["ada", *["bot1", "peer", "us"] * 2], "like"),
        (["bot1", "us"] * 6, "silence"),
        ([*["bot1", "us"] * 6, "ada"], "free"),
    ],
)
async def test_turns_of_third_bots_are_seen_in_the_thread_that_was_read(
    etiquette_outbox: EtiquetteOutbox, names: list[str], act: str
) -> None:
    received = await etiquette_outbox.receive("bot1", is_bot=True)
    outlook = await etiquette_outbox.etiquette.before_reply(received, seen(received, *names))
    assert outlook.act == act
    assert outlook.reason.startswith("loop-thread") or act == "free"


async def test_before_anybody_thinks_the_rows_are_asked_too(tmp_path: Path) -> None:
    async with open_etiquette_outbox(tmp_path, born_at=None) as etiquette_outbox:
        for number in range(6):
            await etiquette_outbox.answer(await etiquette_outbox.receive(f"p{number}"))
        received = await etiquette_outbox.receive("ada")
        outlook = await etiquette_outbox.etiquette.before_reply(received, [])
        assert outlook.act == "later"
        assert HOUR_S <= outlook.retry_in_s < HOUR_S + 1, "when the first of the six is an hour old"
        assert outlook.reason == "strangers-while-young: 6 people already, the limit is 6"
        assert (
            await etiquette_outbox.etiquette.before_reply(await etiquette_outbox.receive("peer"), []) == ReplyAdvice()
        )


@pytest.mark.parametrize(
    ("first", "second", "alike"),
    [
        ("Which roof is the louder one in rain?", "@soul.example which roof is the louder one, in rain?? 🌧️", True),
        ("Which roof is the louder one in rain?", "Which roof is the loudest one in rain?", True),
        ("Which roof is the louder one in rain?", "Which roof would you choose for a shed?", False),
        ("What is 17 times 3?", "What is 19 times 42?", False),
        ("Tin?", "Ton?", False),
    ],
)
async def test_a_near_identical_text_of_the_same_author_is_answered_once(
    etiquette_outbox: EtiquetteOutbox, first: str, second: str, *, alike: bool
) -> None:
    assert await etiquette_outbox.answer(await etiquette_outbox.receive("ada", first))
    again = await etiquette_outbox.receive("ada", second)
    assert await etiquette_outbox.blocked_by(reply_to(again)) == ({"repost-sense"} if alike else set())
    assert await etiquette_outbox.blocked_by(like(again.uri)) == set()
    assert (await etiquette_outbox.etiquette.before_reply(again, [])).act == ("like" if alike else "free")
    assert await etiquette_outbox.blocked_by(reply_to(await etiquette_outbox.receive("bea", second))) == set()
    await etiquette_outbox.clock.advance(DAY + 1)
    assert await etiquette_outbox.blocked_by(reply_to(again)) == set()


async def test_what_was_not_answered_may_be_posted_again(etiquette_outbox: EtiquetteOutbox) -> None:
    await etiquette_outbox.receive("ada", "Which roof is the louder one in rain?")
    again = await etiquette_outbox.receive("ada", "Which roof is the louder one in rain?")
    assert await etiquette_outbox.blocked_by(reply_to(again)) == set()


async def test_a_short_question_may_be_asked_again_elsewhere(etiquette_outbox: EtiquetteOutbox) -> None:
    root = uri("ada", "root")
    assert await etiquette_outbox.answer(
        await etiquette_outbox.receive("ada", "why?", root=root, parent=uri("soul", "1"))
    )
    elsewhere = await etiquette_outbox.receive("ada", "why?", root=root, parent=uri("soul", "2"))
    same_place = await etiquette_outbox.receive("ada", "why?", root=root, parent=uri("soul", "1"))
    assert await etiquette_outbox.blocked_by(reply_to(elsewhere)) == set()
    assert await etiquette_outbox.blocked_by(reply_to(same_place)) == {"repost-sense"}


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


CIRCLE = TrustCircle(own=set(), owner=set(), peers=set(), github={"rowan-soul", "owner-hub"})


def draft(kind: IntentKind = "issue", *, hold: str = "", by_owner: bool = False, **stored: Any) -> ProposedAction:
    return ProposedAction(body_of(kind, **stored), "commitment-1-a#1", hold=hold, by_owner=by_owner)


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (draft(promise="c", source="space", repo="acme/site"), "hold"),
        (draft(promise="c", source="space", repo="acme/site", host_named=True), "pass"),
        (draft(promise="c", source="space", repo="acme/site", host_wish=True), "pass"),
        (draft(promise="c", source="space", repo="Owner-Hub/site"), "pass"),
        (draft("issue_comment", promise="c", source="space", repo="acme/site"), "hold"),
        (draft("issue_comment", promise="c", source="space", repo="acme/site", host_named=True), "pass"),
        (draft(promise="c", source="bluesky", repo="acme/site", host_named=True), "hold"),
        (draft("space_chat", promise="c"), "pass"),
        (draft(promise="c", source="bluesky", repo="acme/site"), "hold"),
        (draft(promise="c", source="bluesky", repo="Owner-Hub/site"), "pass"),
        (draft(promise="c", source="bluesky", repo="rowan-soul/notes"), "pass"),
        (draft(repo="rowan-soul/notes"), "block"),
        (draft(repo="rowan-soul/notes", hold="the owner decides"), "hold"),
        (draft(repo="acme/site", by_owner=True), "pass"),
    ],
)
def test_what_nobody_was_committed_stays_undone(act: ProposedAction, says: str) -> None:
    verdict = consent_by_commitment(act, CIRCLE)
    assert verdict.says == says
    assert verdict.reason


@pytest.mark.parametrize(
    ("stored", "says"),
    [
        ({"source": "workspace", "repo": "Acme/www-lil-intdev-site"}, "pass"),
        ({"source": "workspace", "repo": "acme/site"}, "block"),
        ({"source": "workspace", "repo": "acme/www-lil-intdev-site", "promise": "c"}, "hold"),
        ({"repo": "acme/www-lil-intdev-site"}, "block"),
    ],
)
async def test_work_in_a_workspace_that_is_watched_needs_no_commitment(
    tmp_path: Path, stored: dict[str, Any], says: str
) -> None:
    async with open_etiquette_outbox(tmp_path) as etiquette_outbox:
        verdicts = await etiquette_outbox.verdicts(draft("ref", action="create", branch="b", **stored))
        assert verdicts["consent-by-commitment"].says == says


async def test_what_goes_elsewhere_takes_nothing_from_the_points_of_bluesky(tmp_path: Path) -> None:
    async with open_etiquette_outbox(tmp_path) as etiquette_outbox:
        await etiquette_outbox.spend(int(POINTS_PER_HOUR.limit) - 3)
        for number in range(5):
            one = ProposedAction(body_of("issue", promise="c", source="space"), f"commitment-1-a#{number}")
            assert (await etiquette_outbox.outbox.submit(one)).accepted
        post = ProposedAction(PostBody(text="Rain."))
        assert "points-per-hour" not in await etiquette_outbox.blocked_by(post)


@pytest.mark.parametrize(
    ("kind", "last", "waits"),
    [
        ("issue", "post", 0),
        ("issue", "issue", 0),
        ("issue", "reply", 0),
        ("post", "issue", 0),
        ("like", "space_chat", 0),
        ("like", "reply", 10),
    ],
)
def test_each_service_has_a_pace_of_its_own(kind: IntentKind, last: IntentKind, waits: float) -> None:
    now = FakeClock().now()
    intent = Intent("1", kind, "t", OpaqueBody(), "", "", "", None, now.isoformat(), now.isoformat(), "pending")
    pacing = Pacing(post_s=1800, reply_s=60, like_s=45, follow_s=3600, action_s=10)
    assert pace.pace_wait(intent, acts={last: now}, pacing=pacing, now=now, started=now).seconds == waits


async def test_so_many_things_are_created_on_github_in_an_hour_and_a_share_of_them_is_the_owners(
    tmp_path: Path,
) -> None:
    async with open_etiquette_outbox(tmp_path) as etiquette_outbox:
        departures = etiquette_outbox.sender.departures
        creating: tuple[IntentKind, ...] = ("issue", "issue_comment", "pull_request", "review")
        for number in range(24):
            body = body_of(creating[number % 4], promise="c", source="space", host_wish=True)
            assert (await etiquette_outbox.outbox.submit(ProposedAction(body, f"c#{number}"))).accepted
        labels = body_of("label", promise="c", source="space", host_wish=True)
        assert (await etiquette_outbox.outbox.submit(ProposedAction(labels, "c#labels"))).accepted
        await etiquette_outbox.drain(120)
        assert len(departures) == 15 + 1
        for number in range(6):
            body = body_of("issue_comment", promise="c", source="space", host_wish=True)
            assert (await etiquette_outbox.outbox.submit(ProposedAction(body, f"o#{number}", by_owner=True))).accepted
        await etiquette_outbox.drain(120)
        assert len(departures) == 20 + 1
        await etiquette_outbox.drain(3900)
        assert len(departures) == 24 + 1 + 6


@pytest.mark.parametrize(
    ("path", "by_owner", "says"),
    [
        (".github/workflows/test.yml", False, "hold"),
        (".GitHub/Workflows/test.yml", False, "hold"),
        (".github/actions/x/action.yml", False, "hold"),
        (".github/workflows/test.yml", True, "pass"),
        (".github/ISSUE_TEMPLATE.md", False, "pass"),
        ("docs/.github/workflows/a.yml", False, "pass"),
    ],
)
async def test_a_workflow_waits_for_the_owner(tmp_path: Path, path: str, *, by_owner: bool, says: str) -> None:
    async with open_etiquette_outbox(tmp_path) as etiquette_outbox:
        act = draft("contents", path=path, promise="c", source="space", host_wish=True, by_owner=by_owner)
        verdicts = await etiquette_outbox.verdicts(act)
        assert verdicts["workflow-files"].says == says


@pytest.mark.parametrize(
    ("path", "says"),
    [("web/package-lock.json", "hold"), ("a.js", "pass")],
)
async def test_a_push_of_what_runs_for_others_waits_for_the_owner(tmp_path: Path, path: str, says: str) -> None:
    async with open_etiquette_outbox(tmp_path) as etiquette_outbox:
        act = draft("push", branch="task-1-a", sha="a" * 40, folder="x", paths=("README.md", path))
        verdicts = await etiquette_outbox.verdicts(act)
        assert verdicts["workflow-files"].says == says
