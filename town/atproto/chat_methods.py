"""`chat.bsky.*`: direct messages, as a personal data server forwards them to Bluesky's chat service."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from common.clock import iso
from town.atproto.chat import ChatMessage, Convo, LogEvent
from town.atproto.index import Json, XrpcError, invalid
from town.atproto.schemas import CHAT_MESSAGE, Boolean, Fields, Integer, Listing, Shape, String
from town.atproto.views import Method, MethodCall, require_account

_C = "chat.bsky.convo."
_DEFS = f"{_C}defs"
_MEMBERS = 2
_MOST_UNREAD = 100

T = TypeVar("T")


def _get_convo_for_members(call: MethodCall) -> Json:
    return {"convo": _convo_view(call, call.network.chat.begin(call.did, _other(call)))}


def _get_convo_availability(call: MethodCall) -> Json:
    other, chat = _other(call), call.network.chat
    convo = chat.between(call.did, other)
    shown = {"convo": _convo_view(call, convo)} if convo else {}
    return {"canChat": convo is not None or chat.why_not(call.did, other) is None, **shown}


def _get_convo(call: MethodCall) -> Json:
    return {"convo": _convo_view(call, _convo(call))}


def _list_convos(call: MethodCall) -> Json:
    found = call.network.chat.convos(call.did)
    if status := call.params.get("status"):
        found = [convo for convo in found if convo.members[call.did].status == status]
    if call.params.get("readState") == "unread":
        found = [convo for convo in found if convo.unread(call.did)]
    if call.params.get("kind") == "group":
        found = []
    page, cursor = _page(call, found, lambda convo: convo.rev)
    return {"convos": [_convo_view(call, convo) for convo in page], **cursor}


def _list_convo_requests(call: MethodCall) -> Json:
    found = [c for c in call.network.chat.convos(call.did) if c.members[call.did].status == "request"]
    page, cursor = _page(call, found, lambda convo: convo.rev)
    return {"requests": [{"$type": f"{_DEFS}#convoView", **_convo_view(call, convo)} for convo in page], **cursor}


def _get_unread_counts(call: MethodCall) -> Json:
    unread = [c.members[call.did].status for c in call.network.chat.convos(call.did) if c.unread(call.did)]
    counts = {status: min(_MOST_UNREAD, unread.count(status)) for status in ("accepted", "request")}
    return {"unreadAcceptedConvos": counts["accepted"], "unreadRequestConvos": counts["request"]}


def _get_messages(call: MethodCall) -> Json:
    convo = _convo(call)
    page, cursor = _page(call, convo.messages[::-1], lambda message: message.id)
    profiles = [_member_view(call, did) for did in dict.fromkeys(message.sender for message in page)]
    return {"messages": [_message_view(call, convo, m) for m in page], "relatedProfiles": profiles, **cursor}


def _send_message(call: MethodCall) -> Json:
    return _sent(call, call.body)


def _send_message_batch(call: MethodCall) -> Json:
    for item in call.body["items"]:
        call.network.chat.convo(call.did, item["convoId"])
    return {"items": [_sent(call, item) for item in call.body["items"]]}


def _update_read(call: MethodCall) -> Json:
    convo = _convo(call)
    call.network.chat.read(call.did, convo, call.body.get("messageId"))
    return {"convo": _convo_view(call, convo)}


def _update_all_read(call: MethodCall) -> Json:
    chat, status = call.network.chat, call.body.get("status")
    convos = [c for c in chat.convos(call.did) if status in (None, c.members[call.did].status)]
    return {"updatedCount": sum(chat.read(call.did, convo, None) for convo in convos if convo.unread(call.did))}


def _accept_convo(call: MethodCall) -> Json:
    rev = call.network.chat.accept(call.did, _convo(call))
    return {"rev": rev} if rev else {}


def _leave_convo(call: MethodCall) -> Json:
    convo = _convo(call)
    return {"convoId": convo.id, "rev": call.network.chat.leave(call.did, convo)}


def _mute_convo(call: MethodCall) -> Json:
    convo = _convo(call)
    call.network.chat.mute(call.did, convo, muted=True)
    return {"convo": _convo_view(call, convo)}


def _unmute_convo(call: MethodCall) -> Json:
    convo = _convo(call)
    call.network.chat.mute(call.did, convo, muted=False)
    return {"convo": _convo_view(call, convo)}


def _delete_message_for_self(call: MethodCall) -> Json:
    convo = _convo(call)
    message = call.network.chat.delete_for_self(call.did, convo, call.body["messageId"])
    return _message_view(call, convo, message)


def _get_log(call: MethodCall) -> Json:
    events, cursor = call.network.chat.log(call.did, call.params.get("cursor"))
    return {"logs": [_event_view(call, event) for event in events], "cursor": cursor}


def _convo(call: MethodCall) -> Convo:
    return call.network.chat.convo(call.did, call.params.get("convoId") or call.body.get("convoId", ""))


def _other(call: MethodCall) -> str:
    """Return the one other member in the request. Raises `XrpcError`."""
    others = {*call.params["members"]} - {call.did}
    if len(others) != _MEMBERS - 1:
        raise invalid("A direct conversation has two members")
    (other,) = others
    if call.network.find(other) is None:
        raise XrpcError(400, "RecipientNotFound", "One or more recipients not found")
    return require_account(call.network, other, "Profile not found").did


def _sent(call: MethodCall, item: Json) -> Json:
    convo, message = call.network.chat.convo(call.did, item["convoId"]), item["message"]
    extras = {key: message[key] for key in ("facets", "embed", "replyTo") if key in message}
    return _message_view(call, convo, call.network.chat.send(call.did, convo, message["text"], extras))


def _convo_view(call: MethodCall, convo: Convo) -> Json:
    member = convo.members[call.did]
    last = {"lastMessage": _message_view(call, convo, convo.messages[-1])} if convo.messages else {}
    return {
        "id": convo.id,
        "rev": convo.rev,
        "members": [_member_view(call, did) for did in convo.members],
        "muted": member.muted,
        "status": member.status,
        "unreadCount": convo.unread(call.did),
        "kind": {"$type": f"{_DEFS}#directConvo"},
        **last,
    }


def _member_view(call: MethodCall, did: str) -> Json:
    kind = {"$type": "chat.bsky.actor.defs#directConvoMember"}
    return {**call.views.profile_basic(did), "chatDisabled": False, "kind": kind}


def _message_view(call: MethodCall, convo: Convo, message: ChatMessage, *, is_reply_shown: bool = True) -> Json:
    common = {
        "id": message.id,
        "rev": message.rev,
        "sender": {"did": message.sender},
        "sentAt": iso(message.sent_at),
    }
    if message.id in convo.members[call.did].deleted:
        return {"$type": f"{_DEFS}#deletedMessageView", **common}
    view = {"$type": f"{_DEFS}#messageView", **common, "text": message.text}
    if facets := message.extras.get("facets"):
        view["facets"] = facets
    if (embed := message.extras.get("embed")) and embed["$type"] == "app.bsky.embed.record":
        view["embed"] = call.views.quote(embed["record"]["uri"])
    answered = convo.message((message.extras.get("replyTo") or {}).get("messageId", ""))
    if answered and is_reply_shown:
        view["replyTo"] = _message_view(call, convo, answered, is_reply_shown=False)
    return view


def _event_view(call: MethodCall, event: LogEvent) -> Json:
    view: Json = {"$type": f"{_DEFS}#{event.kind}", "rev": event.rev, "convoId": event.convo.id}
    if event.message:
        view["message"] = _message_view(call, event.convo, event.message)
        if event.kind == "logCreateMessage":
            view["relatedProfiles"] = [_member_view(call, event.message.sender)]
    return view


def _page(call: MethodCall, found: Sequence[T], key: Callable[[T], str]) -> tuple[list[T], Json]:
    """Return at most `limit` items after the cursor, and the next cursor. Items are newest first, so keys descend."""
    cursor, limit = call.params.get("cursor"), call.params["limit"]
    rest = [item for item in found if not cursor or key(item) < cursor]
    return rest[:limit], {"cursor": key(rest[limit - 1])} if len(rest) > limit else {}


_CONVO = {"convoId": String()}
_LIMITS: dict[str, Shape] = {"limit": Integer(1, 100), "cursor": String()}
_DEFAULTS = {"limit": 50}
_PEOPLE = Fields({"members": Listing(String("DID"), 10)})
_SENT = Fields({**_CONVO, "message": CHAT_MESSAGE})


def _method(
    name: str,
    handler: Callable[[MethodCall], Json],
    *,
    params: Fields | None = None,
    defaults: Mapping[str, object] | None = None,
    body: Fields | None = None,
) -> Method:
    return Method(f"{_C}{name}", handler, "chat", params or Fields(), defaults or {}, body)


CHAT_METHODS = (
    _method("getConvoForMembers", _get_convo_for_members, params=_PEOPLE),
    _method("getConvoAvailability", _get_convo_availability, params=_PEOPLE),
    _method("getConvo", _get_convo, params=Fields(_CONVO)),
    _method(
        "listConvos",
        _list_convos,
        params=Fields(
            {}, {**_LIMITS, "readState": String(), "status": String(), "kind": String(), "lockStatus": String()}
        ),
        defaults=_DEFAULTS,
    ),
    _method("listConvoRequests", _list_convo_requests, params=Fields({}, _LIMITS), defaults=_DEFAULTS),
    _method("getUnreadCounts", _get_unread_counts, params=Fields({}, {"includeGroupChats": Boolean()})),
    _method("getMessages", _get_messages, params=Fields(_CONVO, _LIMITS), defaults=_DEFAULTS),
    _method("sendMessage", _send_message, body=_SENT),
    _method("sendMessageBatch", _send_message_batch, body=Fields({"items": Listing(_SENT, 100)})),
    _method("updateRead", _update_read, body=Fields(_CONVO, {"messageId": String()})),
    _method("updateAllRead", _update_all_read, body=Fields({}, {"status": String()})),
    _method("acceptConvo", _accept_convo, body=Fields(_CONVO)),
    _method("leaveConvo", _leave_convo, body=Fields(_CONVO)),
    _method("muteConvo", _mute_convo, body=Fields(_CONVO)),
    _method("unmuteConvo", _unmute_convo, body=Fields(_CONVO)),
    _method("deleteMessageForSelf", _delete_message_for_self, body=Fields({**_CONVO, "messageId": String()})),
    _method("getLog", _get_log, params=Fields({}, {"cursor": String()})),
)
