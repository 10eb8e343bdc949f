"""What we ask about direct messages is what the SDK's own client asks, and both read the same answers.

The SDK's client is made from the lexicons of the service, whose program is not public.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from atproto_client import AsyncClient

from adapters.atproto.client import Atproto
from common.result import ApiResult
from tests.adapters.atproto.atproto_scripted import DID, Answer, Asked, Scripted
from tests.adapters.results import ok

pytestmark = pytest.mark.asyncio(loop_scope="session")

BOB = "did:plc:bbbbbbbbbbbbbbbbbbbbbbbb"
AT = "2026-01-05T12:00:00.000Z"
DEFS = "chat.bsky.convo.defs#"
SYSTEM = {"$type": f"{DEFS}systemMessageDataMemberLeave", "member": {"did": BOB}}
MESSAGE = {"$type": f"{DEFS}messageView", "id": "m", "rev": "r", "sender": {"did": BOB}, "sentAt": AT, "text": "hello"}
GONE = {"$type": f"{DEFS}deletedMessageView", "id": "g", "rev": "q", "sender": {"did": BOB}, "sentAt": AT}
SERVICE = {"$type": f"{DEFS}systemMessageView", "id": "s", "rev": "p", "sentAt": AT, "data": SYSTEM}
MEMBERS = [{"did": DID, "handle": "alice.test"}, {"did": BOB, "handle": "bob.test"}]
CONVO = {
    "$type": f"{DEFS}convoView",
    "id": "c",
    "rev": "r",
    "members": MEMBERS,
    "muted": False,
    "unreadCount": 1,
    "status": "request",
    "kind": {"$type": f"{DEFS}directConvo"},
    "lastMessage": MESSAGE,
}
LOGS = [
    {"$type": f"{DEFS}logBeginConvo", "convoId": "c", "rev": "r"},
    {"$type": f"{DEFS}logCreateMessage", "convoId": "c", "rev": "r", "message": MESSAGE},
    {"$type": f"{DEFS}logReadConvo", "convoId": "c", "rev": "r", "message": MESSAGE},
]

Ours = Callable[[Atproto], Awaitable[ApiResult[Any]]]
Theirs = Callable[[Any], Awaitable[Any]]
Compared = tuple[str, object, Ours, Theirs]
CALLS: list[Compared] = [
    (
        "getMessages",
        {"messages": [MESSAGE, GONE, SERVICE], "cursor": "next"},
        lambda alice: alice.get_messages("c", 5, "cur"),
        lambda convo: convo.get_messages({"convoId": "c", "limit": 5, "cursor": "cur"}),
    ),
    (
        "getConvoForMembers",
        {"convo": CONVO},
        lambda alice: alice.get_conversation_with(BOB),
        lambda convo: convo.get_convo_for_members({"members": [BOB]}),
    ),
    (
        "getLog",
        {"logs": LOGS, "cursor": "next"},
        lambda alice: alice.get_message_log("cur"),
        lambda convo: convo.get_log({"cursor": "cur"}),
    ),
    (
        "sendMessage",
        MESSAGE,
        lambda alice: alice.send_message("c", "hello"),
        lambda convo: convo.send_message({"convoId": "c", "message": {"text": "hello"}}),
    ),
    (
        "updateRead",
        {"convo": CONVO},
        lambda alice: alice.mark_read("c"),
        lambda convo: convo.update_read({"convoId": "c"}),
    ),
]


@pytest.mark.parametrize("compared", CALLS, ids=[method for method, *_ in CALLS])
async def test_we_ask_as_the_sdk_asks_and_read_what_it_reads(
    scripted: Scripted, alice: Atproto, compared: Compared
) -> None:
    method, body, ours, theirs = compared
    scripted.answers = [Answer(body=body)]
    client = AsyncClient(base_url=scripted.url)
    proxied = client.with_bsky_chat_proxy()
    try:
        await theirs(proxied.chat.bsky.convo)
    finally:
        await proxied.request.close()
        await client.request.close()
    ok(await ours(alice))
    expected, asked = scripted.asked
    assert asked.method == f"chat.bsky.convo.{method}"
    assert _told(asked) == _told(expected)


def _told(asked: Asked) -> tuple[object, ...]:
    """What a request says: its method, whom it is passed on to, its parameters and its body without names of types."""
    body = json.loads(asked.content) if asked.content else {}
    body.pop("$type", None)
    if "message" in body:
        body["message"].pop("$type", None)
    return asked.method, asked.headers["atproto-proxy"], asked.query, body


async def test_what_a_full_answer_says_is_read(scripted: Scripted, alice: Atproto) -> None:
    scripted.answers = [
        Answer(body={"convo": CONVO}),
        Answer(body={"messages": [MESSAGE, GONE, SERVICE]}),
        Answer(body={"logs": LOGS, "cursor": "next"}),
    ]
    conversation = ok(await alice.get_conversation("c"))
    assert (conversation.status, conversation.unread_count, conversation.is_group) == ("request", 1, False)
    assert [member.did for member in conversation.members] == [DID, BOB]
    messages = ok(await alice.get_messages("c"))
    assert [(message.id, message.is_deleted) for message in messages.messages] == [("m", False), ("g", True)]
    assert messages.unreadable == 0
    log = ok(await alice.get_message_log())
    assert [event.kind for event in log.events] == ["began", "message", "read"]
    assert log.cursor == "next"
