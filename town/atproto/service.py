"""The network over HTTP, as Bluesky's own server speaks: `/xrpc/*`, pictures under `/img/*`, faults under `/town/*`."""

from __future__ import annotations

import json

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from town.atproto.bsky_methods import BSKY_METHODS
from town.atproto.chat import CHAT_SERVICE
from town.atproto.chat_methods import CHAT_METHODS
from town.atproto.faults import AtprotoFaults, Fault
from town.atproto.lexicon import MismatchError, check_data_model
from town.atproto.limits import AtprotoLimits, AtprotoMeter, BucketStanding, Charge
from town.atproto.methods import Method, MethodCall
from town.atproto.network import Network
from town.atproto.repo_methods import REPO_METHODS, blob_response
from town.atproto.schemas import MAX_BLOB_BYTES
from town.atproto.server_methods import SERVER_METHODS
from town.atproto.values import Json, XrpcError, internal, invalid
from town.faults import bad_gateway
from town.serving import drop, until_gone

_METHODS = {method.nsid: method for method in (*SERVER_METHODS, *REPO_METHODS, *BSKY_METHODS)}
_CHAT_METHODS = {method.nsid: method for method in CHAT_METHODS}
_LOGIN = "com.atproto.server.createSession"
_PICTURE_SIZES = {"avatar", "banner", "feed_thumbnail", "feed_fullsize"}
_PICTURE_FORMATS = {"", "jpeg", "webp"}


def atproto_app(
    network: Network, *, limits: AtprotoLimits | None = None, faults: AtprotoFaults | None = None
) -> Starlette:
    """The application that serves `network`; put it on loopback with `town.serving.serve`.

    What a client does wrong is answered as Bluesky's server does, and every answer carries `ratelimit-*` headers,
    but for what is refused on arrival. Only where `faults` is given can they be armed, in process or by
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
        fault = self._faults.meet(nsid)
        content = await request.body()
        if fault and fault.kind == "lost_request":
            return drop(request)
        if fault and fault.kind not in {"hang", "lost_answer"}:
            return self._broken(fault)
        answer = self._answer(nsid, request, content)
        if fault and fault.kind == "lost_answer":
            return drop(request)
        if fault:
            await until_gone(request, self._network.clock.sleep(fault.seconds))
        return answer

    async def picture(self, request: Request) -> Response:
        """A picture as it was uploaded; Bluesky's own service would fit it into the size and turn it into WebP."""
        cid, _, format_ = request.path_params["cid"].partition("@")
        if request.path_params["size"] not in _PICTURE_SIZES or format_ not in _PICTURE_FORMATS:
            return Response(status_code=400)
        blob = self._network.blob(request.path_params["did"], cid)
        if blob is None:
            return Response(status_code=404)
        return blob_response(blob) if blob.mime_type.startswith("image/") else Response("Not an image", 400)

    def _answer(self, nsid: str, request: Request, content: bytes) -> Response:
        try:
            method = _method(nsid, request)
            call = self._call(method, request, content)
        except XrpcError as error:
            return _refusal(error)  # NOTE(self): what is refused on arrival costs nothing and tells no budget
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

    def _call(self, method: Method, request: Request, content: bytes) -> MethodCall:
        params = method.read_params(request.query_params)
        did, token = self._who(method, request)
        mime = request.headers.get("content-type", "")
        body = _read_body(method, mime, content)
        base_url = f"{request.url.scheme}://{request.url.netloc}"
        return MethodCall(self._network, base_url, did, token, params, body, content, mime)

    def _who(self, method: Method, request: Request) -> tuple[str, str]:
        if method.access == "open":
            return "", ""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if not scheme or (scheme.lower() != "bearer" and method.access == "refresh"):
            raise _no_token()
        if scheme.lower() != "bearer":
            raise XrpcError(400, "InvalidToken", "Unexpected authorization type")
        if method.access == "refresh":
            return "", token  # NOTE(self): what a refresh token is still good for depends on the method
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
    """Whether a call goes on to the chat service, as the header `atproto-proxy` asks. Raises `XrpcError`."""
    wanted = request.headers.get("atproto-proxy")
    if not wanted or nsid in _METHODS:
        return False  # NOTE(self): what the server does itself it does whatever the header says
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
    """As JavaScript reads it: `1.0` is the whole number 1."""
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
