"""`app.bsky.*`: search for posts and people, feeds, lists, starter packs, and trends.

A feed of the town shows the posts that hold its key as a word or a hashtag; elsewhere its creator runs a service.
"""

import re
from collections import Counter
from collections.abc import Iterable

from common.clock import iso, parse_iso_or_none
from town.atproto.index import GENERATOR, LIST, STARTER_PACK, Address, Json, StoredRecord, XrpcError, tags_of
from town.atproto.schemas import Fields, Integer, Shape, String
from town.atproto.views import Method, MethodCall, with_did

_FROM = "from:"
_TREND_POSTS, _TREND_ACTORS, _SAMPLE = 1_000, 5, 12


def _search_posts(call: MethodCall) -> Json:
    said = call.params["q"].split()
    words = [word.strip('"').casefold() for word in said if not word.startswith(_FROM)]
    names = [word.removeprefix(_FROM) for word in said if word.startswith(_FROM)]
    names += [call.params["author"]] if "author" in call.params else []
    authors = {account.did if (account := call.network.find(name)) else "" for name in names}
    since, until = (parse_iso_or_none(call.params.get(name, "")) for name in ("since", "until"))
    found = [
        post
        for post in _newest(call)
        if all(word in str(post.value.get("text", "")).casefold() for word in words)
        and authors <= {post.at.did}
        and (since is None or post.sort_at >= since)
        and (until is None or post.sort_at < until)
        and ("lang" not in call.params or call.params["lang"] in post.value.get("langs", ()))
        and not _is_blocked(call, post.at.did)
    ]
    if call.params["sort"] == "top":
        likes = call.network.index.likes
        top = sorted(found, key=lambda post: likes.count(post.uri), reverse=True)
        return {"posts": [call.views.post(post) for post in top[: call.params["limit"]]]}
    page, cursor = call.page(found)
    return {"posts": [call.views.post(post) for post in page], **cursor}


def _search_actors(call: MethodCall) -> Json:
    term = str(call.params.get("q", "")).casefold().removeprefix("@")
    found = []
    for account in call.network.accounts():
        view = call.views.profile(account.did)
        texts = (view["handle"], view.get("displayName", ""), view.get("description", ""))
        if term and any(term in text.casefold() for text in texts) and not _is_blocked(call, account.did):
            found.append(view)
    return {"actors": found[: call.params["limit"]]}


def _get_feed_generator(call: MethodCall) -> Json:
    generator = _record(call, call.params["feed"], GENERATOR, "could not find feed")
    return {"view": call.views.generator(generator), "isOnline": True, "isValid": True}


def _get_feed(call: MethodCall) -> Json:
    uri = call.params["feed"]
    generator = _record(call, uri, GENERATOR, f"Could not locate record: {uri}", name="RecordNotFound")
    word = re.compile(rf"(?<!\w){re.escape(generator.at.rkey)}(?!\w)", re.IGNORECASE)
    return _feed(call, [post for post in _newest(call) if word.search(str(post.value.get("text", "")))])


def _get_list(call: MethodCall) -> Json:
    listed = _record(call, call.params["list"], LIST, "List not found")
    page, cursor = call.page(call.views.list_items(listed))
    return {"list": call.views.account_list(listed), "items": [call.views.list_item(item) for item in page], **cursor}


def _get_list_feed(call: MethodCall) -> Json:
    at = Address.parse(with_did(call, call.params["list"]))
    listed = call.network.record(at.did, at.collection, at.rkey) if call.network.find(at.did) else None
    members = {str(item.value["subject"]) for item in (call.views.list_items(listed) if listed else ())}
    return _feed(call, [post for post in _newest(call) if post.at.did in members])


def _get_starter_pack(call: MethodCall) -> Json:
    pack = _record(call, call.params["starterPack"], STARTER_PACK, "Starter pack not found")
    return {"starterPack": call.views.starter_pack(pack, _SAMPLE)}


def _get_trends(call: MethodCall) -> Json:
    """Return the hashtags of the newest posts, most frequent first; each links to the feed of that name, if any."""
    tagged: dict[str, list[StoredRecord]] = {}
    for post in _newest(call)[:_TREND_POSTS]:
        for tag in dict.fromkeys(tags_of(post)):
            tagged.setdefault(tag, []).append(post)
    counts = Counter({tag: len(posts) for tag, posts in tagged.items()})
    trends = [_trend(call, tag, tagged[tag]) for tag, _ in counts.most_common(call.params["limit"])]
    return {"trends": trends}


def _trend(call: MethodCall, tag: str, posts: list[StoredRecord]) -> Json:
    generators = (one for account in call.network.accounts() for one in call.network.records(account.did, GENERATOR))
    handles = (call.network.actor(one.at.did).handle for one in generators if one.at.rkey == tag)
    maker = next(handles, "")
    authors = list(dict.fromkeys(post.at.did for post in posts))
    return {
        "topic": tag,
        "displayName": tag,
        "link": f"/profile/{maker}/feed/{tag}" if maker else f"/hashtag/{tag}",
        "startedAt": iso(posts[-1].sort_at),
        "postCount": len(posts),
        "actors": [call.views.profile_basic(did) for did in authors[:_TREND_ACTORS]],
    }


def _newest(call: MethodCall) -> list[StoredRecord]:
    return sorted(call.network.index.posts.values(), key=lambda record: record.order, reverse=True)


def _feed(call: MethodCall, posts: Iterable[StoredRecord]) -> Json:
    """Return posts as lines of a feed, without those of muted or blocked accounts."""
    page, cursor = call.page([post for post in posts if not call.network.is_shut(call.did, post.at.did)])
    return {"feed": [call.views.feed_line(post) for post in page], **cursor}


def _is_blocked(call: MethodCall, did: str) -> bool:
    return bool(call.network.blocking(call.did, did) or call.network.blocking(did, call.did))


def _record(call: MethodCall, uri: str, collection: str, problem: str, *, name: str = "InvalidRequest") -> StoredRecord:
    at = Address.parse(with_did(call, uri))
    is_there = at.collection == collection and call.network.find(at.did) is not None
    if not (is_there and (found := call.network.record(at.did, collection, at.rkey))):
        raise XrpcError(400, name, problem)
    return found


_A = "app.bsky."
_URI = String("at-uri")
_PAGE: dict[str, Shape] = {"limit": Integer(1, 100), "cursor": String()}
_DEFAULTS = {"limit": 50}
_SEARCH: dict[str, Shape] = {
    **_PAGE,
    **{name: String() for name in ("sort", "since", "until")},
    "author": String("AT identifier"),
    "lang": String("language"),
}
DISCOVERY_METHODS = (
    Method(
        f"{_A}feed.searchPosts",
        _search_posts,
        params=Fields({"q": String()}, _SEARCH),
        defaults={"limit": 25, "sort": "latest"},
    ),
    Method(
        f"{_A}actor.searchActors", _search_actors, params=Fields({}, {"q": String(), **_PAGE}), defaults={"limit": 25}
    ),
    Method(f"{_A}feed.getFeedGenerator", _get_feed_generator, params=Fields({"feed": _URI})),
    Method(f"{_A}feed.getFeed", _get_feed, params=Fields({"feed": _URI}, _PAGE), defaults=_DEFAULTS),
    Method(f"{_A}feed.getListFeed", _get_list_feed, params=Fields({"list": _URI}, _PAGE), defaults=_DEFAULTS),
    Method(f"{_A}graph.getList", _get_list, params=Fields({"list": _URI}, _PAGE), defaults=_DEFAULTS),
    Method(f"{_A}graph.getStarterPack", _get_starter_pack, params=Fields({"starterPack": _URI})),
    Method(
        f"{_A}unspecced.getTrends", _get_trends, params=Fields({}, {"limit": Integer(1, 25)}), defaults={"limit": 10}
    ),
)
