"""Proves the limits of direct messages in the town, how they fail, and who reaches them at all."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx
import pytest
from atproto_client.exceptions import AtProtocolError, BadRequestError

from common.clock import FakeClock
from tests.loopback import NO_TLS
from tests.patience import HANG_S, until
from tests.town.atproto.chat_people import SEND, LogIn, Meet, Person, bearer, posted
from town.atproto.service import AtprotoFaults, Fault, FaultKind

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


# The way to the chat service


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
