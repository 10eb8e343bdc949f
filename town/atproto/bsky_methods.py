"""`app.bsky.*`: reading people, posts, threads and notifications."""

from __future__ import annotations

from common.clock import iso, parse_iso
from town.atproto import schemas
from town.atproto.index import Edges, parent_uri, root_uri
from town.atproto.lexicon import Boolean, Fields, Integer, Listing, Shape, String
from town.atproto.methods import Method, MethodCall, require_account
from town.atproto.values import POST, REPOST, Address, AtprotoAccount, Json, StoredRecord, XrpcError

_FROM = "from:"


def _get_profile(call: MethodCall) -> Json:
    return call.views.profile_detailed(_actor(call).did)


def _get_profiles(call: MethodCall) -> Json:
    found = [call.network.find(actor) for actor in call.params["actors"]]
    return {"profiles": [call.views.profile_detailed(account.did) for account in found if account]}


def _get_preferences(call: MethodCall) -> Json:
    return {"preferences": call.network.preferences(call.did)}


def _put_preferences(call: MethodCall) -> None:
    call.network.preferences(call.did)[:] = call.body["preferences"]


def _get_posts(call: MethodCall) -> Json:
    found = [call.network.index.posts.get(_with_did(call, uri)) for uri in call.params["uris"]]
    return {"posts": [call.views.post(record) for record in found if record]}


def _get_post_thread(call: MethodCall) -> Json:
    uri = _with_did(call, call.params["uri"])
    record = call.network.index.posts.get(uri)
    if record is None:
        raise XrpcError(400, "NotFound", f"Post not found: {uri}")
    return {"thread": call.views.thread(record, call.params["depth"], call.params["parentHeight"])}


def _get_author_feed(call: MethodCall) -> Json:
    account = _actor(call)
    wanted = call.params["filter"]
    lines = [r for r in call.network.index.feed([account.did]) if _passes(r, wanted, account.did)]
    return _feed(call, lines)


def _get_timeline(call: MethodCall) -> Json:
    followed = [str(follow.value["subject"]) for follow in call.network.index.follows.out_of(call.did)]
    return _feed(call, call.network.index.feed({call.did, *followed}))


def _get_likes(call: MethodCall) -> Json:
    page, cursor = _reactions(call, call.network.index.likes)
    likes = [
        {
            "actor": call.views.profile(like.at.did),
            "createdAt": like.value["createdAt"],
            "indexedAt": iso(like.indexed_at),
        }
        for like in page
    ]
    return {"likes": likes, "uri": call.params["uri"], **cursor}


def _get_reposted_by(call: MethodCall) -> Json:
    page, cursor = _reactions(call, call.network.index.reposts)
    return {"repostedBy": [call.views.profile(r.at.did) for r in page], "uri": call.params["uri"], **cursor}


def _search_posts(call: MethodCall) -> Json:
    words = [word for word in call.params["q"].split(" ") if not word.startswith(_FROM)]
    names = [w.removeprefix(_FROM) for w in call.params["q"].split(" ") if w.startswith(_FROM)]
    account = call.network.find(names[0]) if names else None
    phrase = " ".join(words)
    found = [
        post
        for post in sorted(call.network.index.posts.values(), key=lambda record: record.order, reverse=True)
        if phrase in str(post.value.get("text", "")) and (not names or (account and post.at.did == account.did))
    ]
    page, cursor = call.page(found)
    return {"posts": [call.views.post(post) for post in page], **cursor}


def _get_followers(call: MethodCall) -> Json:
    account = _actor(call, "Actor not found: {}")
    page, cursor = call.page(call.network.index.follows.to(account.did))
    followers = [call.views.profile(follow.at.did) for follow in page]
    return {"subject": call.views.profile(account.did), "followers": followers, **cursor}


def _get_follows(call: MethodCall) -> Json:
    account = _actor(call, "Actor not found: {}")
    page, cursor = call.page(call.network.index.follows.out_of(account.did))
    found = [call.network.find(str(follow.value["subject"])) for follow in page]
    follows = [call.views.profile(followed.did) for followed in found if followed]
    return {"subject": call.views.profile(account.did), "follows": follows, **cursor}


def _list_notifications(call: MethodCall) -> Json:
    reasons = call.params.get("reasons")
    notices = [
        notice
        for notice in call.network.index.notices(call.did)
        if (not reasons or notice.kind in reasons) and not call.network.is_shut(call.did, notice.record.at.did)
    ]
    page, cursor = call.page([notice.record for notice in notices])
    shown = {record.uri for record in page}
    seen = call.network.seen(call.did)
    if seen is None and page and "cursor" not in call.params:
        seen = (page[0].sort_at, page[0].seq - 1)  # NOTE(self): before the first marking only the newest is unread
    return {
        "notifications": [
            call.views.notification(n, is_read=seen is None or n.record.order <= seen)
            for n in notices
            if n.record.uri in shown
        ],
        "priority": False,
        **({"seenAt": iso(seen[0])} if seen else {}),
        **cursor,
    }


def _get_unread_count(call: MethodCall) -> Json:
    notices, seen = call.network.index.notices(call.did), call.network.seen(call.did)
    return {"count": sum(1 for notice in notices if seen is None or notice.record.order > seen)}


def _update_seen(call: MethodCall) -> None:
    call.network.mark_seen(call.did, parse_iso(call.body["seenAt"]))


def _mute_actor(call: MethodCall) -> None:
    account = require_account(call.network, call.body["actor"], "Actor not found")
    if account.did == call.did:
        raise XrpcError(400, "InvalidRequest", "Cannot mute oneself")
    call.network.mutes(call.did).add(account.did)


def _unmute_actor(call: MethodCall) -> None:
    account = require_account(call.network, call.body["actor"], "Actor not found")
    call.network.mutes(call.did).discard(account.did)


def _put_activity_subscription(call: MethodCall) -> Json:
    subject, wanted = call.body["subject"], call.body["activitySubscription"]
    if subject == call.did:
        raise XrpcError(400, "InvalidRequest", "Cannot subscribe to own activity")
    require_account(call.network, subject, "Profile not found")
    call.network.subscribe_to_activity(call.did, subject, wanted)
    return {"subject": subject, "activitySubscription": wanted}


def _actor(call: MethodCall, problem: str = "Profile not found") -> AtprotoAccount:
    actor = call.params["actor"]
    return require_account(call.network, actor, problem.format(actor))


def _with_did(call: MethodCall, uri: str) -> str:
    at = Address.parse(uri)
    account = call.network.find(at.did)
    return at._replace(did=account.did).uri if account else uri


def _reactions(call: MethodCall, edges: Edges) -> tuple[list[StoredRecord], Json]:
    return call.page(edges.to(_with_did(call, call.params["uri"])))


def _feed(call: MethodCall, lines: list[StoredRecord]) -> Json:
    page, cursor = call.page(lines)
    return {"feed": [call.views.feed_line(record) for record in page], **cursor}


def _passes(record: StoredRecord, wanted: str, author: str) -> bool:
    if wanted in {"posts_with_media", "posts_with_video"}:
        embed = record.value.get("embed") or {}
        kind = "app.bsky.embed.images" if wanted == "posts_with_media" else "app.bsky.embed.video"
        return record.at.collection == POST and kind in (embed.get("$type"), (embed.get("media") or {}).get("$type"))
    if record.at.collection == REPOST or not parent_uri(record):
        return True
    if wanted == "posts_no_replies":
        return False
    return wanted != "posts_and_author_threads" or Address.parse(root_uri(record)).did == author


_A = "app.bsky."
_ACTOR = {"actor": String("AT identifier")}
_PAGE: dict[str, Shape] = {"limit": Integer(1, 100), "cursor": String()}
_PAGE_DEFAULTS = {"limit": 50}
_URI = {"uri": String("at-uri")}
_HEIGHTS: dict[str, Shape] = {"depth": Integer(0, 1000), "parentHeight": Integer(0, 1000)}
_PEOPLE = Fields(_ACTOR, _PAGE)
_UNREAD = Fields({}, {"priority": Boolean(), "seenAt": String("datetime")})
BSKY_METHODS = (
    Method(f"{_A}actor.getProfile", _get_profile, params=Fields(_ACTOR)),
    Method(f"{_A}actor.getProfiles", _get_profiles, params=Fields({"actors": Listing(String("AT identifier"), 25)})),
    Method(f"{_A}actor.getPreferences", _get_preferences),
    Method(f"{_A}actor.putPreferences", _put_preferences, body=schemas.PREFERENCES),
    Method(f"{_A}feed.getPosts", _get_posts, params=Fields({"uris": Listing(String("at-uri"), 25)})),
    Method(
        f"{_A}feed.getPostThread",
        _get_post_thread,
        params=Fields(_URI, _HEIGHTS),
        defaults={"depth": 6, "parentHeight": 80},
    ),
    Method(
        f"{_A}feed.getAuthorFeed",
        _get_author_feed,
        params=Fields(_ACTOR, {**_PAGE, "filter": String()}),
        defaults={**_PAGE_DEFAULTS, "filter": "posts_with_replies"},
    ),
    Method(f"{_A}feed.getTimeline", _get_timeline, params=Fields({}, _PAGE), defaults=_PAGE_DEFAULTS),
    Method(f"{_A}feed.getLikes", _get_likes, params=Fields(_URI, _PAGE), defaults=_PAGE_DEFAULTS),
    Method(f"{_A}feed.getRepostedBy", _get_reposted_by, params=Fields(_URI, _PAGE), defaults=_PAGE_DEFAULTS),
    Method(
        f"{_A}feed.searchPosts",
        _search_posts,
        params=Fields({"q": String()}, _PAGE),
        defaults={"limit": 25},
    ),
    Method(f"{_A}graph.getFollowers", _get_followers, params=_PEOPLE, defaults=_PAGE_DEFAULTS),
    Method(f"{_A}graph.getFollows", _get_follows, params=_PEOPLE, defaults=_PAGE_DEFAULTS),
    Method(f"{_A}graph.muteActor", _mute_actor, body=schemas.MUTE),
    Method(f"{_A}graph.unmuteActor", _unmute_actor, body=schemas.MUTE),
    Method(
        f"{_A}notification.listNotifications",
        _list_notifications,
        params=Fields({}, {**_PAGE, "reasons": Listing(String())}),
        defaults=_PAGE_DEFAULTS,
    ),
    Method(f"{_A}notification.getUnreadCount", _get_unread_count, params=_UNREAD),
    Method(f"{_A}notification.putActivitySubscription", _put_activity_subscription, body=schemas.ACTIVITY_SUBSCRIPTION),
    Method(f"{_A}notification.updateSeen", _update_seen, body=schemas.UPDATE_SEEN),
)
