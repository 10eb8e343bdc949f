"""Converts JSON of direct messages into our types. Pure and tolerant, like `convert`."""

from __future__ import annotations

from adapters.atproto import convert
from adapters.atproto.convert import Json, object_of, prose_of, text_of
from adapters.atproto.types import Conversation, DirectMessage, MessageEvent, MessageEventKind
from common.clock import parse_iso_or_none

MESSAGE_MAX_BYTES = 10_000

_DEFS = "chat.bsky.convo.defs#"
_OF_A_PAIR = 2
_MOST_MEMBERS = 100
_EVENTS: dict[str, MessageEventKind] = {
    "logBeginConvo": "began",
    "logAcceptConvo": "accepted",
    "logLeaveConvo": "left",
    "logCreateMessage": "message",
    "logDeleteMessage": "deleted",
    "logReadMessage": "read",
    "logReadConvo": "read",
}


def message(view: Json) -> DirectMessage | None:
    """Return a message; None without id, revision, sender or readable time, as for the service's own messages."""
    sender, sent_at = text_of(object_of(view, "sender"), "did"), text_of(view, "sentAt")
    if not text_of(view, "id") or not text_of(view, "rev") or not sender or parse_iso_or_none(sent_at) is None:
        return None
    return DirectMessage(
        id=text_of(view, "id"),
        rev=text_of(view, "rev"),
        sender_did=sender,
        sent_at=sent_at,
        text=prose_of(view, "text", MESSAGE_MAX_BYTES),
        links=convert.links(view),
        is_deleted=_name(view) == "deletedMessageView",
    )


def is_unreadable(item: object) -> bool:
    """Return whether an item of a list should be a message but is none; messages of the service itself do not count."""
    return not isinstance(item, dict) or (_name(item) != "systemMessageView" and message(item) is None)


def conversation(view: Json) -> Conversation | None:
    """Return a conversation; None without id or revision."""
    if not text_of(view, "id") or not text_of(view, "rev"):
        return None
    members = convert.items_of(view, "members", convert.actor)[:_MOST_MEMBERS]
    return Conversation(
        id=text_of(view, "id"),
        rev=text_of(view, "rev"),
        members=members,
        status="request" if text_of(view, "status") == "request" else "accepted",
        unread_count=convert.count_of(view, "unreadCount"),
        is_muted=view.get("muted") is True,
        is_group=_name(object_of(view, "kind")) == "groupConvo" or len(members) > _OF_A_PAIR,
    )


def event(view: Json) -> MessageEvent | None:
    """Return an event; None without conversation or revision. Unknown kinds become `other`."""
    if not text_of(view, "convoId") or not text_of(view, "rev"):
        return None
    kind = _EVENTS.get(_name(view), "other")
    return MessageEvent(kind, text_of(view, "convoId"), text_of(view, "rev"), message(object_of(view, "message")))


def _name(view: Json) -> str:
    """Return the name of a view among the definitions of conversations; "" if it is not one of them."""
    kind = text_of(view, "$type")
    return kind.removeprefix(_DEFS) if kind.startswith(_DEFS) else ""
