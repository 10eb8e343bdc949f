"""The network over HTTP, like Bluesky's own server: `/xrpc/*`, pictures under `/img/*`, faults under `/town/*`.

Rate limits work like those of Bluesky's server: points in a window that begins with its first request.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Literal, NamedTuple, TypeAlias, get_args

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from common.clock import iso, parse_iso
from town import faults
from town.atproto import schemas
from town.atproto.chat import CHAT_SERVICE
from town.atproto.chat_methods import CHAT_METHODS
from town.atproto.discovery_methods import DISCOVERY_METHODS
from town.atproto.index import (
    POST,
    REPOST,
    Address,
    AtprotoAccount,
    Edges,
    Json,
    StoredRecord,
    XrpcError,
    internal,
    invalid,
    parent_uri,
    root_uri,
)
from town.atproto.network import Network
from town.atproto.repo_methods import REPO_METHODS, SERVER_METHODS, blob_response
from town.atproto.schemas import (
    MAX_BLOB_BYTES,
    Boolean,
    Fields,
    Integer,
    Listing,
    MismatchError,
    Shape,
    String,
    check_data_model,
)
from town.atproto.views import Method, MethodCall, require_account, with_did
from town.faults import bad_gateway
from town.serving import drop, until_gone


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
    found = [call.network.index.posts.get(with_did(call, uri)) for uri in call.params["uris"]]
    return {"posts": [call.views.post(record) for record in found if record]}


def _get_post_thread(call: MethodCall) -> Json:
    uri = with_did(call, call.params["uri"])
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


def _actor(call: MethodCall, problem: str = "Profile not found") -> AtprotoAccount:
    actor = call.params["actor"]
    return require_account(call.network, actor, problem.format(actor))


def _reactions(call: MethodCall, edges: Edges) -> tuple[list[StoredRecord], Json]:
    return call.page(edges.to(with_did(call, call.params["uri"])))


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
    Method(f"{_A}notification.updateSeen", _update_seen, body=schemas.UPDATE_SEEN),
)


class Limit(NamedTuple):
    """A number of points in a window of `seconds`."""

    points: int
    seconds: int


_EVERYTHING = Limit(3000, 300)
_LOGINS = Limit(30, 300)
_LOGINS_DAILY = Limit(300, 86400)
_WRITES = Limit(5000, 3600)
_WRITES_DAILY = Limit(35000, 86400)


@dataclass(frozen=True, slots=True)
class AtprotoLimits:
    """The limits per address (`everything`), per account and address (`logins*`) and per account (the rest)."""

    everything: Limit = _EVERYTHING
    logins: Limit = _LOGINS
    logins_daily: Limit = _LOGINS_DAILY
    writes: Limit = _WRITES
    writes_daily: Limit = _WRITES_DAILY

    def at_speed(self, speed: float) -> AtprotoLimits:
        """Return the limits for clients that live `speed` times as fast: scaled points in the same windows."""
        limits: dict[str, Limit] = {one.name: getattr(self, one.name) for one in fields(self)}
        return AtprotoLimits(
            **{name: one._replace(points=max(1, round(one.points * speed))) for name, one in limits.items()}
        )


class Charge(NamedTuple):
    """Points to take from one bucket."""

    limit: Limit
    key: str
    points: int = 1


class BucketStanding(NamedTuple):
    """The state of a bucket after a charge; `left_s` is the rest of its window in seconds."""

    limit: Limit
    remaining: int
    left_s: float
    refused: bool

    def headers(self, now_epoch: float) -> dict[str, str]:
        """Return the `ratelimit-*` headers, with `retry-after` on a refusal."""
        told = {
            "ratelimit-limit": str(self.limit.points),
            "ratelimit-remaining": str(self.remaining),
            "ratelimit-reset": str(math.floor(now_epoch + self.left_s)),
            "ratelimit-policy": f"{self.limit.points};w={self.limit.seconds}",
        }
        return {**told, "retry-after": str(math.ceil(self.left_s))} if self.refused else told


class AtprotoMeter:
    """Counts the points that were spent. Windows live in memory."""

    def __init__(self) -> None:
        self._buckets: dict[tuple[Limit, str], tuple[float, int]] = {}

    def charge(self, charges: Iterable[Charge], now: float) -> BucketStanding:
        """Take all points (at least one charge) at `now` (monotonic, s); return the state of the tightest bucket."""
        standings = [self._take(charge, now) for charge in charges]
        return min(standings, key=lambda standing: (not standing.refused, standing.remaining))

    def _take(self, charge: Charge, now: float) -> BucketStanding:
        key = charge.limit, charge.key
        ends, spent = self._buckets.get(key, (0.0, 0))
        if ends <= now:
            ends, spent = now + charge.limit.seconds, 0
        spent += charge.points
        self._buckets[key] = (ends, spent)
        return BucketStanding(
            charge.limit, max(0, charge.limit.points - spent), ends - now, spent > charge.limit.points
        )


FaultKind = Literal[
    "rate_limited",  # 429 with retry-after
    "server_error",  # 500
    "bad_gateway",  # 502 with an HTML body
    "expired_token",  # 400 ExpiredToken
    "bad_request",  # 400 InvalidRequest
    "hang",  # do it, but answer only after `seconds`
    "lost_request",  # drop the connection before anything is done
    "lost_answer",  # do it, then drop the connection
    "lags",  # a GET shows posts, likes and notifications as of `seconds` ago, without what was deleted since
]
Fault: TypeAlias = faults.Fault[FaultKind]


class AtprotoFaults(faults.ArmedFaults[FaultKind]):
    """The armed faults of the network."""

    kinds = get_args(FaultKind)


_METHODS = {method.nsid: method for method in (*SERVER_METHODS, *REPO_METHODS, *BSKY_METHODS, *DISCOVERY_METHODS)}
_CHAT_METHODS = {method.nsid: method for method in CHAT_METHODS}
_LOGIN = "com.atproto.server.createSession"
_PICTURE_SIZES = {"avatar", "banner", "feed_thumbnail", "feed_fullsize"}
_PICTURE_FORMATS = {"", "jpeg", "webp"}


def atproto_app(
    network: Network, *, limits: AtprotoLimits | None = None, faults: AtprotoFaults | None = None
) -> Starlette:
    """Return the application that serves `network`; put it on loopback with `town.serving.serve`.

    Errors of a client are answered as by Bluesky's server. Every answer carries `ratelimit-*` headers, except
    refusals on arrival. Faults can be armed only if `faults` is given, in process or by
    `POST /town/faults`.
    """
    service = _AtprotoService(network, limits or AtprotoLimits(), faults if faults is not None else AtprotoFaults())
    routes = [
        Route("/xrpc/{nsid}", service.xrpc, methods=["GET", "POST"]),
        Route("/img/{size}/plain/{did}/{cid}", service.picture),
    ]
    if faults is not None:
        routes.append(Route("/town/faults", faults.answer, methods=["GET", "POST", "DELETE"]))
    return Starlette(routes=routes)


class _AtprotoService:
    def __init__(self, network: Network, limits: AtprotoLimits, faults: AtprotoFaults) -> None:
        self._network = network
        self._limits = limits
        self._faults = faults
        self._meter = AtprotoMeter()

    async def xrpc(self, request: Request) -> Response:
        nsid = request.path_params["nsid"]
        fault = self._faults.meet(nsid, query=request.url.query)
        content = await request.body()
        if fault and fault.kind == "lost_request":
            return drop(request)
        if fault and fault.kind not in {"hang", "lost_answer", "lags"}:
            return self._broken(fault)
        is_late = fault is not None and fault.kind == "lags" and request.method == "GET"
        network = self._network.as_of(fault.seconds) if fault and is_late else self._network
        answer = self._answer(nsid, request, content, network)
        if fault and fault.kind == "lost_answer":
            return drop(request)
        if fault and fault.kind == "hang":
            await until_gone(request, self._network.clock.sleep(fault.seconds))
        return answer

    async def picture(self, request: Request) -> Response:
        """Serve a picture as it was uploaded; Bluesky's own service would resize it and convert it to WebP."""
        cid, _, format_ = request.path_params["cid"].partition("@")
        if request.path_params["size"] not in _PICTURE_SIZES or format_ not in _PICTURE_FORMATS:
            return Response(status_code=400)
        blob = self._network.blob(request.path_params["did"], cid)
        if blob is None:
            return Response(status_code=404)
        return blob_response(blob) if blob.mime_type.startswith("image/") else Response("Not an image", 400)

    def _answer(self, nsid: str, request: Request, content: bytes, network: Network) -> Response:
        try:
            method = _method(nsid, request)
            call = self._call(method, request, content, network)
        except XrpcError as error:
            return _refusal(error)  # NOTE(self): a call refused on arrival costs nothing and reports no limits
        standing = self._meter.charge(self._charges(method, call, request), self._network.clock.monotonic())
        try:
            if standing.refused:
                raise _too_many()
            result = method.handler(call)
            answer = result if isinstance(result, Response) else _success(result)
        except XrpcError as error:
            answer = _refusal(error)
        answer.headers.update(standing.headers(self._network.clock.now().timestamp()))
        return answer

    def _call(self, method: Method, request: Request, content: bytes, network: Network) -> MethodCall:
        params = method.read_params(request.query_params)
        did, token = self._who(method, request)
        mime = request.headers.get("content-type", "")
        body = _read_body(method, mime, content)
        base_url = f"{request.url.scheme}://{request.url.netloc}"
        return MethodCall(network, base_url, did, token, params, body, content, mime)

    def _who(self, method: Method, request: Request) -> tuple[str, str]:
        if method.access == "open":
            return "", ""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if not scheme or (scheme.lower() != "bearer" and method.access == "refresh"):
            raise _no_token()
        if scheme.lower() != "bearer":
            raise XrpcError(400, "InvalidToken", "Unexpected authorization type")
        if method.access == "refresh":
            return "", token  # NOTE(self): whether a refresh token is still valid depends on the method
        did = self._network.sessions.did_of_access(
            token, main_password_only=method.access == "main_password", for_chat=method.access == "chat"
        )
        return did, token

    def _charges(self, method: Method, call: MethodCall, request: Request) -> list[Charge]:
        limits, client = self._limits, request.client.host if request.client else ""
        charges = [Charge(limits.everything, client)]
        if method.nsid == _LOGIN:
            key = f"{call.body['identifier']}-{client}"
            charges += [Charge(limits.logins, key), Charge(limits.logins_daily, key)]
        if points := method.points(call.body):
            charges += [Charge(limits.writes, call.did, points), Charge(limits.writes_daily, call.did, points)]
        return charges

    def _broken(self, fault: Fault) -> Response:
        match fault.kind:
            case "bad_gateway":
                return bad_gateway()
            case "expired_token":
                return _refusal(XrpcError(400, "ExpiredToken", "Token has expired"))
            case "bad_request":
                return _refusal(invalid("The service does not take this"))
            case "rate_limited":
                answer = _refusal(_too_many())
                standing = BucketStanding(self._limits.everything, 0, fault.seconds, refused=True)
                answer.headers.update(standing.headers(self._network.clock.now().timestamp()))
                return answer
        return _refusal(internal())


def _method(nsid: str, request: Request) -> Method:
    method = _CHAT_METHODS.get(nsid) if _is_for_chat(nsid, request) else _METHODS.get(nsid)
    if method is None:
        return Method(nsid, _nowhere if "authorization" in request.headers else _nobody, "open")
    if request.method != method.verb:
        raise invalid(f"Incorrect HTTP method ({request.method}) expected {method.verb}")
    return method


def _is_for_chat(nsid: str, request: Request) -> bool:
    """Return whether the header `atproto-proxy` sends a call to the chat service. Raises `XrpcError`."""
    wanted = request.headers.get("atproto-proxy")
    if not wanted or nsid in _METHODS:
        return False  # NOTE(self): the server ignores the header for its own methods
    did, _, service = wanted.partition("#")
    if not did:
        raise invalid("no did specified in proxy header")
    if not service:
        raise invalid("no service id specified in proxy header")
    if did != CHAT_SERVICE.partition("#")[0]:
        raise invalid("could not resolve proxy did")
    if wanted != CHAT_SERVICE:
        raise invalid("could not resolve proxy did service url")
    return True


def _nowhere(_: MethodCall) -> None:
    raise XrpcError(501, "MethodNotImplemented", "Method Not Implemented")


def _nobody(_: MethodCall) -> None:
    raise _no_token()


def _read_body(method: Method, mime: str, content: bytes) -> Json:
    if not (method.body or method.takes_file):
        return {}
    if not mime:
        raise invalid("Request encoding (Content-Type) required but not provided")
    if len(content) > MAX_BLOB_BYTES:
        raise XrpcError(413, "PayloadTooLarge", "request entity too large")
    if method.body is None:
        return {}
    if mime.partition(";")[0].strip() != "application/json":
        raise invalid(f"Wrong request encoding (Content-Type): {mime}")
    body = _parsed(content)
    try:
        method.body.check(body, "$")
        check_data_model(body, "$")
    except MismatchError as error:
        raise invalid(str(error)) from error
    return body


def _parsed(content: bytes) -> Json:
    try:
        body = json.loads(content, parse_float=_number)
    except ValueError as error:
        raise XrpcError(400, "SyntaxError", str(error)) from error
    if not isinstance(body, dict):
        raise invalid("Expected object value type at $")
    return body


def _number(text: str) -> float:
    """Return the number as JavaScript reads it: `1.0` is the integer 1."""
    value = float(text)
    return int(value) if value.is_integer() else value


def _no_token() -> XrpcError:
    return XrpcError(401, "AuthMissing", "Authentication Required")


def _too_many() -> XrpcError:
    return XrpcError(429, "RateLimitExceeded", "Rate Limit Exceeded")


def _success(result: Json | None) -> Response:
    return JSONResponse(result) if result is not None else Response()


def _refusal(error: XrpcError) -> JSONResponse:
    return JSONResponse({"error": error.name, "message": error.message}, error.status)
