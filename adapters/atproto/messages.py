"""Direct messages of the account: reading, sending, and finding out whether one was sent.

The account's server passes these calls on to another service. Sending has no key that would make it repeatable, so a
caller that sends again must look first (`find_sent_messages`). That service has its own limits: when it asks us to
wait, only direct messages wait, and none of them leaves until then. Nothing here survives the process.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from adapters.atproto import convert
from adapters.atproto.convert import MESSAGE_MAX_BYTES, Json
from adapters.atproto.reads import RawPage
from adapters.atproto.richtext import build_facets
from adapters.atproto.types import Conversation, DirectMessage, MessageEventPage, MessagePage, MessagesSince
from adapters.atproto.writes import Writer
from common.clock import Clock
from common.result import ApiResult, Err, Ok, answering
from common.text.graphemes import grapheme_len

if TYPE_CHECKING:
    from adapters.atproto.xrpc import Xrpc

T = TypeVar("T")

MESSAGE_MAX_GRAPHEMES = 1_000

_CONVO = "chat.bsky.convo."
_TOO_MANY_REQUESTS = 429
_WAIT_UNTOLD_S = 60.0
_MESSAGES_A_PAGE = 100
_MOST_PAGES = 10


class Messenger(Writer):
    """Reads and writes conversations. Each call returns an `Err` for a failure outside the program."""

    def __init__(self, xrpc: Xrpc, clock: Clock, languages: tuple[str, ...]) -> None:
        super().__init__(xrpc, clock, languages)
        self._messages_from = float("-inf")

    async def get_conversation_with(self, did: str) -> ApiResult[Conversation]:
        """Return the conversation with one other account; it is created if there is none.

        Returns `Err` of kind `invalid` if they do not accept messages from us or if `did` is our own, and `not_found`
        if there is no such account.
        """
        if not did.startswith("did:") or did == self.did:
            return Err(f"there is no conversation with {did or 'nobody'}", kind="invalid")
        answer = await self._call(lambda: self._xrpc.query(f"{_CONVO}getConvoForMembers", members=[did]))
        return answer if isinstance(answer, Err) else _conversation_in(answer.data)

    async def get_conversation(self, conversation_id: str) -> ApiResult[Conversation]:
        """Return one of our conversations as it is now; `Err` of kind `not_found` if there is none with this id."""
        answer = await self._call(lambda: self._xrpc.query(f"{_CONVO}getConvo", convoId=conversation_id))
        return answer if isinstance(answer, Err) else _conversation_in(answer.data)

    @answering
    async def get_messages(
        self, conversation_id: str, limit: int = 50, cursor: str | None = None
    ) -> ApiResult[MessagePage]:
        """Return a page of messages, newest first; at most `limit`, from 1 to 100."""
        page = (await self._listed("getMessages", "messages", limit, cursor, convoId=conversation_id)).or_raise()
        items = page.items
        left_out = page.unreadable + sum(map(convert.is_unreadable, items))
        return Ok(MessagePage(convert.each(items, convert.message), page.cursor, left_out))

    @answering
    async def get_messages_since(self, conversation_id: str, rev: str) -> ApiResult[MessagesSince]:
        """Return the messages newer than `rev` ("" for all), oldest first; at most the latest 1 000."""
        messages: list[DirectMessage] = []
        cursor, unreadable = None, 0
        for _ in range(_MOST_PAGES):
            page = (
                await self._listed("getMessages", "messages", _MESSAGES_A_PAGE, cursor, convoId=conversation_id)
            ).or_raise()
            unreadable += page.unreadable
            for item in page.items:
                message = convert.message(item) if isinstance(item, dict) else None
                if message and message.rev <= rev:
                    return Ok(MessagesSince(tuple(reversed(messages)), complete=True, unreadable=unreadable))
                if message:
                    messages.append(message)
                unreadable += convert.is_unreadable(item)
            cursor = page.cursor
            if not cursor:
                return Ok(MessagesSince(tuple(reversed(messages)), complete=True, unreadable=unreadable))
        return Ok(MessagesSince(tuple(reversed(messages)), complete=False, unreadable=unreadable))

    @answering
    async def get_message_log(self, cursor: str | None = None) -> ApiResult[MessageEventPage]:
        """Return the events of all our conversations since `cursor`, oldest first."""
        answer = (await self._call(lambda: self._xrpc.query(f"{_CONVO}getLog", cursor=cursor))).or_raise()
        items = answer.get("logs")
        if not isinstance(items, list):
            return Err("the answer holds no list of logs", kind="transient")
        found = convert.each(items, convert.event)
        return Ok(MessageEventPage(found, convert.text_of(answer, "cursor") or cursor, len(items) - len(found)))

    @answering
    async def send_message(
        self, conversation_id: str, text: str, *, to_owner: bool = False
    ) -> ApiResult[DirectMessage]:
        """Send a message, with facets for its links and tags. One `to_owner` is sent even while writes are blocked.

        Each call sends another message. After an `Err` of kind `unknown_outcome`, call `find_sent_messages` before the
        next try. An empty or too long text is refused here (kind `invalid`).
        """
        if problem := _message_problem(text):
            return Err(problem, kind="invalid")
        message: dict[str, object] = {"text": text}
        if facets := build_facets(text, {}):
            message["facets"] = facets
        body = {"convoId": conversation_id, "message": message}
        answer = (
            await self._call(
                lambda: self._xrpc.procedure(f"{_CONVO}sendMessage", body, write=True, is_public=not to_owner)
            )
        ).or_raise()
        sent = convert.message(answer)
        return Ok(sent) if sent else Err("the answer holds no message", kind="unknown_outcome")

    @answering
    async def find_sent_messages(
        self, conversation_id: str, text: str, after_rev: str
    ) -> ApiResult[tuple[DirectMessage, ...]]:
        """Return our messages with this text that are newer than `after_rev`, oldest first; () if none arrived.

        `after_rev` is the revision of the newest message known before the first try ("" if there was none), so no
        clocks are compared. A deleted message may have had any text, so it counts. More than one result means that the
        text was sent more than once, or by two acts. Returns an `Err` if that is uncertain: a message in between could
        not be read, or more than 1 000 came since.
        """
        read = (await self.get_messages_since(conversation_id, after_rev)).or_raise()
        found = tuple(
            message
            for message in read.messages
            if message.sender_did == self.did and (message.is_deleted or message.text.strip() == text.strip())
        )
        if not found and read.unreadable:
            return Err("a message that may be the one cannot be read", kind="transient")
        if not found and not read.complete:
            return Err("so many messages came since that not all could be read", kind="transient")
        return Ok(found)

    async def mark_read(self, conversation_id: str) -> ApiResult[None]:
        """Mark a conversation as read up to its end. Nobody else sees this."""
        body = {"convoId": conversation_id}
        answer = await self._call(lambda: self._xrpc.procedure(f"{_CONVO}updateRead", body, write=False))
        return answer if isinstance(answer, Err) else Ok(None)

    async def _listed(
        self, method: str, key: str, limit: int, cursor: str | None, **params: str | list[str] | None
    ) -> ApiResult[RawPage]:
        return await self._call(lambda: self._page(f"{_CONVO}{method}", key, limit, cursor, **params))

    async def _call(self, call: Callable[[], Awaitable[ApiResult[T]]]) -> ApiResult[T]:
        """Call the service of direct messages, unless it told us to wait. None of its errors stays `fatal`."""
        if (wait := self._messages_from - self._clock.monotonic()) > 0:
            return Err(f"direct messages must wait for {wait:.0f} s", kind="transient", retry_after=wait)
        answer = await call()
        if not isinstance(answer, Err):
            return answer
        if answer.status == _TOO_MANY_REQUESTS:
            pause = _WAIT_UNTOLD_S if answer.retry_after is None else answer.retry_after
            self._messages_from = self._clock.monotonic() + pause
        # NOTE(self): a suspended account may be the other person's.
        return replace(answer, kind="invalid") if answer.kind == "fatal" else answer


def _conversation_in(answer: Json) -> ApiResult[Conversation]:
    found = convert.conversation(convert.object_of(answer, "convo"))
    return Ok(found) if found else Err("the answer holds no conversation", kind="transient")


def _message_problem(text: str) -> str:
    """Return why a text cannot be sent; "" if it can."""
    if not text.strip():
        return "there is nothing to say"
    if (length := grapheme_len(text)) > MESSAGE_MAX_GRAPHEMES:
        return f"the text has {length} characters, {length - MESSAGE_MAX_GRAPHEMES} over {MESSAGE_MAX_GRAPHEMES}"
    if (size := len(text.encode())) > MESSAGE_MAX_BYTES:
        return f"the text has {size} bytes, {size - MESSAGE_MAX_BYTES} over {MESSAGE_MAX_BYTES}"
    return ""
