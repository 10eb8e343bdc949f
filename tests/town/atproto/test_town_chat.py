"""Proves over HTTP, with the unmodified SDK, that the town's direct messages behave as Bluesky's are known to.

Proves the limits of direct messages in the town, how they fail, and who can reach them at all.
"""

from datetime import timedelta
from typing import Any

import httpx
import pytest
from atproto import models
from atproto_client.exceptions import AtProtocolError, BadRequestError

from common.clock import FakeClock, iso
from tests.loopback import NO_TLS
from tests.patience import HANG_S, until
from tests.town.atproto.chat_people import SEND, LogIn, Meet, Person, bearer, name_of, posted
from town.atproto.chat import LOG_PAGE
from town.atproto.index import BLOCK
from town.atproto.service import AtprotoFaults, Fault, FaultKind

Convo = models.ChatBskyConvoDefs

# Who may write to whom


@pytest.mark.parametrize(
    ("policy", "is_followed", "refusal"),
    [
        ("all", False, ""),
        ("following", True, ""),
        ("following", False, "NotFollowedBySender"),
        ("none", True, "MessagesDisabled"),
    ],
)
async def test_the_recipient_says_from_whom_it_takes_messages(
    meet: Meet, kit: Person, policy: str, refusal: str, *, is_followed: bool
) -> None:
    zoe = await meet("zoe")
    if policy:
        zoe.allows(policy)
    if is_followed:
        zoe.follows(kit)
    can = await kit.chat.get_convo_availability({"members": [zoe.did]})
    assert (can.can_chat, can.convo) == (not refusal, None)
    if not refusal:
        assert (await kit.convo(zoe)).status == "accepted"
        return
    with pytest.raises(BadRequestError) as refused:
        await kit.convo(zoe)
    assert name_of(refused) == refusal


async def test_a_block_ends_a_conversation_in_both_directions(kit: Person, ada: Person) -> None:
    convo = await kit.convo(ada)
    await kit.says(convo, "Hello.")
    await ada.says(convo, "Hello, Kit.")
    record = {"$type": BLOCK, "subject": kit.did, "createdAt": iso(kit.network.clock.now())}
    kit.network.create(ada.did, BLOCK, record)
    for person in (kit, ada):
        with pytest.raises(BadRequestError, match="block between recipient and sender"):
            await person.says(convo, "Still there?")


async def test_who_was_accepted_may_write_on_whatever_the_policy_becomes(kit: Person, ada: Person) -> None:
    convo = await kit.convo(ada)
    await kit.says(convo, "Hello.")
    ada.allows("none")
    with pytest.raises(BadRequestError, match="disabled incoming"):
        await kit.says(convo, "And another thing.")
    await ada.says(convo, "Go on.")
    assert (await kit.says(convo, "Thank you.")).text == "Thank you."


async def test_nobody_writes_to_themselves_to_many_or_to_nobody(meet: Meet, kit: Person, ada: Person) -> None:
    zoe = await meet("zoe")
    for members, problem in (
        ([kit.did], "InvalidRequest"),
        ([ada.did, zoe.did], "InvalidRequest"),
        (["did:plc:aaaaaaaaaaaaaaaaaaaaaaaa"], "RecipientNotFound"),
    ):
        with pytest.raises(BadRequestError) as refused:
            await kit.chat.get_convo_for_members({"members": members})
        assert name_of(refused) == problem


# Conversations


async def test_a_conversation_begins_once_and_is_a_request_until_it_is_accepted(kit: Person, ada: Person) -> None:
    convo = await kit.convo(ada)
    assert (await kit.convo(ada)).id == (await ada.convo(kit)).id == convo.id
    assert (await ada.chat.list_convos()).convos == []
    await kit.says(convo, "Hello.")
    (seen,) = (await ada.chat.list_convos({"status": "request"})).convos
    assert (seen.status, seen.unread_count, seen.last_message.text) == ("request", 1, "Hello.")
    assert {member.did for member in seen.members} == {kit.did, ada.did}
    (request,) = (await ada.chat.list_convo_requests()).requests
    assert request.id == convo.id
    counts = await ada.chat.get_unread_counts()
    assert (counts.unread_accepted_convos, counts.unread_request_convos) == (0, 1)
    assert (await ada.chat.accept_convo({"convo_id": convo.id})).rev
    assert (await ada.chat.accept_convo({"convo_id": convo.id})).rev is None
    assert (await ada.chat.get_convo({"convo_id": convo.id})).convo.status == "accepted"


async def test_messages_are_read_newest_first_page_by_page(kit: Person, ada: Person) -> None:
    convo = await kit.convo(ada)
    await ada.says(convo, "Well?")
    for number in range(5):
        await kit.says(convo, f"number {number}")
    texts: list[str] = []
    cursor = None
    while True:
        page = await ada.chat.get_messages({"convo_id": convo.id, "limit": 4, "cursor": cursor})
        texts += [message.text for message in page.messages]
        cursor = page.cursor
        if not cursor:
            break
    assert texts == ["number 4", "number 3", "number 2", "number 1", "number 0", "Well?"]
    assert {profile.handle for profile in page.related_profiles} == {"kit.test", "ada.test"}


async def test_what_was_read_is_unread_no_more(kit: Person, ada: Person) -> None:
    convo = await kit.convo(ada)
    first = await kit.says(convo, "One.")
    await kit.says(convo, "Two.")
    read = await ada.chat.update_read({"convo_id": convo.id, "message_id": first.id})
    assert read.convo.unread_count == 1
    assert len((await ada.chat.list_convos({"read_state": "unread"})).convos) == 1
    assert (await ada.chat.update_all_read({})).updated_count == 1
    assert (await ada.chat.list_convos({"read_state": "unread"})).convos == []
    assert (await kit.chat.get_convo({"convo_id": convo.id})).convo.unread_count == 0


async def test_a_message_carries_an_answer_a_quote_and_facets(kit: Person, ada: Person) -> None:
    post_uri, post_cid = ada.network.post_as(ada.did, "Slate sings.")
    convo = await kit.convo(ada)
    first = await kit.says(convo, "Look:")
    embed = {"$type": "app.bsky.embed.record", "record": {"uri": post_uri, "cid": post_cid}}
    await kit.says(convo, "this one", embed=embed, reply_to={"message_id": first.id})
    newest, *_ = (await ada.chat.get_messages({"convo_id": convo.id})).messages
    assert newest.embed.record.value.text == "Slate sings."
    assert (newest.reply_to.text, newest.reply_to.reply_to) == ("Look:", None)
    with pytest.raises(BadRequestError, match="not found"):
        await kit.says(convo, "to whom?", reply_to={"message_id": "3aaaaaaaaaaaa"})


async def test_leaving_and_deleting_are_for_oneself(kit: Person, ada: Person) -> None:
    convo = await kit.convo(ada)
    first = await kit.says(convo, "One.")
    gone = await ada.chat.delete_message_for_self({"convo_id": convo.id, "message_id": first.id})
    assert gone.id == first.id
    (seen,) = (await ada.chat.get_messages({"convo_id": convo.id})).messages
    assert isinstance(seen, Convo.DeletedMessageView)
    await ada.chat.leave_convo({"convo_id": convo.id})
    assert (await ada.chat.list_convos()).convos == []
    assert len((await kit.chat.list_convos()).convos) == 1
    await kit.says(convo, "Two.")
    (back,) = (await ada.chat.list_convos()).convos
    assert back.status == "request"


async def test_a_stranger_sees_nothing_of_a_conversation(meet: Meet, kit: Person, ada: Person) -> None:
    convo = await kit.convo(ada)
    await kit.says(convo, "Between us.")
    zoe = await meet("zoe")
    for attempt in (
        zoe.chat.get_messages({"convo_id": convo.id}),
        zoe.chat.get_convo({"convo_id": convo.id}),
        zoe.says(convo, "Hello?"),
    ):
        with pytest.raises(BadRequestError) as refused:
            await attempt
        assert name_of(refused) == "InvalidConvo"
    assert (await zoe.chat.get_log({"cursor": "0"})).logs == []


# The log


async def test_one_log_tells_of_all_conversations_after_a_cursor(meet: Meet, kit: Person, ada: Person) -> None:
    zoe = await meet("zoe")
    start = await ada.chat.get_log()
    assert (start.logs, bool(start.cursor)) == ([], True)
    for person in (kit, zoe):
        await person.says(await person.convo(ada), f"I am {person.did}")
    log = await ada.chat.get_log({"cursor": start.cursor})
    kinds = [event.py_type.partition("#")[2] for event in log.logs]
    assert kinds == ["logBeginConvo", "logCreateMessage"] * 2
    assert [event.message.text for event in log.logs[1::2]] == [f"I am {kit.did}", f"I am {zoe.did}"]
    convo_id = log.logs[0].convo_id
    await ada.chat.mute_convo({"convo_id": convo_id})
    await ada.chat.unmute_convo({"convo_id": convo_id})
    await ada.chat.accept_convo({"convo_id": convo_id})
    await ada.chat.update_read({"convo_id": convo_id})
    rest = await ada.chat.get_log({"cursor": log.cursor})
    assert [event.py_type.partition("#")[2] for event in rest.logs] == [
        "logMuteConvo",
        "logUnmuteConvo",
        "logAcceptConvo",
        "logReadConvo",
    ]
    again = await ada.chat.get_log({"cursor": rest.cursor})
    assert (again.logs, again.cursor) == ([], rest.cursor)


async def test_a_long_log_comes_in_pages(kit: Person, ada: Person) -> None:
    convo = await kit.convo(ada)
    await ada.says(convo, "Count, please.")
    items = [{"convo_id": convo.id, "message": {"text": str(number)}} for number in range(LOG_PAGE)]
    start = await ada.chat.get_log()
    await kit.chat.send_message_batch({"items": items})
    await kit.says(convo, "done")
    first = await ada.chat.get_log({"cursor": start.cursor})
    second = await ada.chat.get_log({"cursor": first.cursor})
    assert (len(first.logs), [event.message.text for event in second.logs]) == (LOG_PAGE, ["done"])


# Limits


@pytest.mark.parametrize(
    ("text", "problem"),
    [("x" * 1001, "grapheme too big (maximum 1000"), ("\U0001f469\u200d\U0001f467" * 950, "string too big")],
)
@pytest.mark.slow
async def test_a_message_that_is_too_long_is_refused(
    kit: Person, ada: Person, url: str, text: str, problem: str
) -> None:
    convo = await kit.convo(ada)
    answer = await posted(kit, url, {"convoId": convo.id, "message": {"text": text}})
    assert (answer.status_code, answer.json()["error"]) == (400, "InvalidRequest")
    assert problem in answer.json()["message"]


async def test_who_writes_to_many_strangers_is_stopped_for_six_hours_though_requests_are_left(
    kit: Person, meet: Meet, log_in: LogIn, clock: FakeClock
) -> None:
    convos = []
    for number in range(6):
        stranger = await meet(f"stranger{number}")
        stranger.allows("all")
        convos.append(await kit.convo(stranger))
    for convo in convos[:5]:
        await kit.says(convo, "Hello.")
    for later in (timedelta(), timedelta(hours=5, minutes=59)):
        await clock.advance(later.total_seconds())
        kit.client, kit.chat = await log_in("kit.test", "kit-pass")
        with pytest.raises(AtProtocolError) as refused:
            await kit.says(convos[5], "Hello.")
        response: Any = getattr(refused.value, "response", None)
        headers = {name.lower(): value for name, value in response.headers.items()}
        assert (response.status_code, "retry-after" in headers) == (429, False)
        assert int(headers["ratelimit-remaining"]) > 0
    await clock.advance(60)
    assert (await kit.says(convos[5], "Hello.")).text == "Hello."


async def test_a_conversation_with_answers_has_no_such_limit(kit: Person, ada: Person) -> None:
    convo = await kit.convo(ada)
    await kit.says(convo, "Hello.")
    await ada.says(convo, "Hello.")
    for number in range(20):
        await kit.says(convo, str(number))


# How it fails


async def test_a_message_whose_answer_is_lost_is_sent_and_a_second_try_sends_it_twice(
    kit: Person, ada: Person, faults: AtprotoFaults
) -> None:
    convo = await kit.convo(ada)
    faults.arm(Fault("lost_answer", SEND))
    with pytest.raises((AtProtocolError, httpx.HTTPError)):
        await kit.says(convo, "Once.")
    assert [message.text for message in (await kit.chat.get_messages({"convo_id": convo.id})).messages] == ["Once."]
    await kit.says(convo, "Once.")
    assert len((await kit.chat.get_messages({"convo_id": convo.id})).messages) == 2


@pytest.mark.parametrize("fails", [("server_error", 0), ("lost_request", 0), ("hang", 1)])
async def test_a_message_that_fails_is_sent_or_not(
    kit: Person, ada: Person, faults: AtprotoFaults, url: str, fails: tuple[FaultKind, int]
) -> None:
    kind, sent = fails
    convo = await kit.convo(ada)
    faults.arm(Fault(kind, SEND, seconds=3600))
    body = {"convoId": convo.id, "message": {"text": "Hello."}}
    if kind in {"hang", "lost_request"}:
        with pytest.raises(httpx.HTTPError):
            await posted(kit, url, body, patience_s=0.3 if kind == "hang" else HANG_S)
    else:
        assert (await posted(kit, url, body)).status_code >= 500
    await until(lambda: not faults.armed, what="the message")
    assert len((await kit.chat.get_messages({"convo_id": convo.id})).messages) == sent


# Access to the chat service


@pytest.mark.parametrize(
    ("proxy", "status", "message"),
    [
        ("", 501, "Method Not Implemented"),
        ("did:web:chat.example#bsky_chat", 400, "could not resolve proxy did"),
        ("did:web:api.bsky.chat#bsky_feed", 400, "could not resolve proxy did service url"),
    ],
)
async def test_without_the_right_header_there_is_no_chat(
    kit: Person, url: str, proxy: str, status: int, message: str
) -> None:
    headers = bearer(kit) | ({"atproto-proxy": proxy} if proxy else {})
    async with httpx.AsyncClient(verify=NO_TLS) as http:
        answer = await http.get(f"{url}/xrpc/chat.bsky.convo.listConvos", headers=headers)
    assert (answer.status_code, answer.json()["message"]) == (status, message)


async def test_an_app_password_needs_the_right_to_direct_messages(kit: Person, log_in: LogIn) -> None:
    passwords = kit.client.com.atproto.server
    for is_privileged in (False, True):
        name = f"privileged {is_privileged}"
        made = await passwords.create_app_password({"name": name, "privileged": is_privileged})
        assert made.privileged == is_privileged
        client, chat = await log_in("kit.test", made.password)
        assert (await client.get_profile(kit.did)).did == kit.did
        if is_privileged:
            assert (await chat.list_convos()).convos == []
            continue
        with pytest.raises(BadRequestError, match="Bad token method"):
            await chat.list_convos()
