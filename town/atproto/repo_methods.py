"""The methods `com.atproto.repo.*`, `sync.getBlob`, `server.*` and `identity.*`: records, files, accounts, names."""

from starlette.responses import Response

from town.atproto import schemas
from town.atproto.index import AtprotoAccount, Json, StoredBlob, StoredRecord, XrpcError, internal, invalid, record_cid
from town.atproto.network import SERVICE_DID, Tokens, WrittenRecord, wrong_login
from town.atproto.schemas import MAX_BLOB_BYTES, MAX_WRITES, Boolean, Fields, Integer, Shape, String
from town.atproto.views import Method, MethodCall, require_account

_MIN_NAME, _MAX_NAME = 3, 18
_HANDLE_DOMAIN = ".test"


def did_document(account: AtprotoAccount, base_url: str) -> Json:
    """Return an account's DID document with the address of its repository, which the SDK uses after a login."""
    return {
        "@context": ["https://www.w3.org/ns/did/v1"],
        "id": account.did,
        "alsoKnownAs": [f"at://{account.handle}"],
        "verificationMethod": [],
        "service": [{"id": "#atproto_pds", "type": "AtprotoPersonalDataServer", "serviceEndpoint": base_url}],
    }


def _describe_server(_: MethodCall) -> Json:
    return {
        "did": SERVICE_DID,
        "availableUserDomains": [_HANDLE_DOMAIN],
        "inviteCodeRequired": False,
        "blobUploadLimit": MAX_BLOB_BYTES,
        "links": {},
        "contact": {},
    }


def _create_account(call: MethodCall) -> Json:
    handle, email = call.body["handle"].lower(), call.body.get("email", "")
    if not email:
        raise invalid("Email is required")
    if not handle.endswith(_HANDLE_DOMAIN):
        raise XrpcError(400, "UnsupportedDomain", "Not a supported handle domain")
    name = handle.removesuffix(_HANDLE_DOMAIN)
    if "." in name:
        raise XrpcError(400, "InvalidHandle", "Invalid characters in handle")
    if not _MIN_NAME <= len(name) <= _MAX_NAME:
        raise XrpcError(400, "InvalidHandle", f"Handle too {'short' if len(name) < _MIN_NAME else 'long'}")
    password = call.body.get("password", "")
    account = call.network.create_account(handle, password, email=email)
    return _session(call, account, call.network.sessions.login(account, password))


def _create_session(call: MethodCall) -> Json:
    account = call.network.find(call.body["identifier"])
    if account is None:
        raise wrong_login()
    return _session(call, account, call.network.sessions.login(account, call.body["password"]))


def _refresh_session(call: MethodCall) -> Json:
    did, tokens = call.network.sessions.refresh(call.token)
    return _session(call, _account(call, did), tokens)


def _get_session(call: MethodCall) -> Json:
    return _session(call, _account(call, call.did), None)


def _delete_session(call: MethodCall) -> None:
    call.network.sessions.close(call.token)


def _create_app_password(call: MethodCall) -> Json:
    return call.network.sessions.create_app_password(
        call.did, call.body["name"], is_privileged=call.body.get("privileged", False)
    )


def _list_app_passwords(call: MethodCall) -> Json:
    return {"passwords": call.network.sessions.app_passwords(call.did)}


def _revoke_app_password(call: MethodCall) -> None:
    call.network.sessions.revoke_app_password(call.did, call.body["name"])


def _resolve_handle(call: MethodCall) -> Json:
    account = call.network.find(call.params["handle"])
    if account is None:
        raise XrpcError(400, "HandleNotFound", "Unable to resolve handle")
    return {"did": account.did}


def _session(call: MethodCall, account: AtprotoAccount, tokens: Tokens | None) -> Json:
    jwts = {"accessJwt": tokens.access, "refreshJwt": tokens.refresh} if tokens else {}
    return {
        **jwts,
        "did": account.did,
        "didDoc": did_document(account, call.base_url),
        "handle": account.handle,
        "email": account.email,
        "emailConfirmed": False,
        "emailAuthFactor": False,
        "active": True,
    }


def _account(call: MethodCall, did: str) -> AtprotoAccount:
    account = call.network.find(did)
    if account is None:
        raise XrpcError(400, "InvalidToken", "Token could not be verified")
    return account


_S = "com.atproto.server."
SERVER_METHODS = (
    Method(f"{_S}describeServer", _describe_server, "open"),
    Method(f"{_S}createAccount", _create_account, "open", body=schemas.CREATE_ACCOUNT),
    Method(f"{_S}createSession", _create_session, "open", body=schemas.CREATE_SESSION),
    Method(f"{_S}refreshSession", _refresh_session, "refresh", is_procedure=True),
    Method(f"{_S}getSession", _get_session),
    Method(f"{_S}deleteSession", _delete_session, "refresh", is_procedure=True),
    Method(f"{_S}createAppPassword", _create_app_password, "main_password", body=schemas.APP_PASSWORD),
    Method(f"{_S}listAppPasswords", _list_app_passwords, "main_password"),
    Method(f"{_S}revokeAppPassword", _revoke_app_password, body=schemas.APP_PASSWORD),
    Method("com.atproto.identity.resolveHandle", _resolve_handle, "open", params=Fields({"handle": String("handle")})),
)


_CREATE, _UPDATE, _DELETE = (f"com.atproto.repo.applyWrites#{kind}" for kind in ("create", "update", "delete"))
_POINTS = {_CREATE: 3, _UPDATE: 2, _DELETE: 1}


def _create_record(call: MethodCall) -> Json:
    did, body = _own_repo(call), call.body
    written = call.network.create(
        did, body["collection"], body["record"], rkey=body.get("rkey"), validate=body.get("validate")
    )
    return _written(written)


def _put_record(call: MethodCall) -> Json:
    did, body = _own_repo(call), call.body
    collection, rkey, validate = body["collection"], body["rkey"], body.get("validate")
    record, _ = call.network.check(did, collection, rkey, body["record"], validate=validate)
    old = call.network.record(did, collection, rkey)
    stands = old.cid if old else None
    if body.get("swapRecord", stands) != stands != record_cid(record):
        raise XrpcError(400, "InvalidSwap", f"Record was at {stands or 'null'}")
    return _written(call.network.put(did, collection, rkey, record, validate=validate))


def _delete_record(call: MethodCall) -> Json:
    call.network.delete(_own_repo(call), call.body["collection"], call.body["rkey"])
    return {}


def _apply_writes(call: MethodCall) -> Json:
    did, writes = _own_repo(call), call.body["writes"]
    if len(writes) > MAX_WRITES:
        raise invalid(f"Too many writes. Max: {MAX_WRITES}")
    keyed = [{"rkey": call.network.next_tid(), **write} for write in writes]
    _check_writes(call, did, keyed)
    return {"results": [_apply(call, did, write) for write in keyed]}


def _check_writes(call: MethodCall, did: str, writes: list[Json]) -> None:
    """Check all writes before the first is applied, so that all or none succeed. Raises `XrpcError`."""
    standing: dict[tuple[str, str], bool] = {}
    validate = call.body.get("validate")
    for place, write in enumerate(writes):
        collection, rkey = write["collection"], write["rkey"]
        if "value" in write:
            path = f"$.writes[{place}].record"
            call.network.check(did, collection, rkey, write["value"], validate=validate, path=path)
        stood = standing.get((collection, rkey), call.network.record(did, collection, rkey) is not None)
        if stood == (write["$type"] == _CREATE):
            raise internal()
        standing[collection, rkey] = write["$type"] != _DELETE


def _apply(call: MethodCall, did: str, write: Json) -> Json:
    kind, collection, rkey = write["$type"], write["collection"], write["rkey"]
    if kind == _DELETE:
        call.network.delete(did, collection, rkey)
        return {"$type": f"{kind}Result"}
    written = call.network.put(did, collection, rkey, write["value"], validate=call.body.get("validate"))
    return {"$type": f"{kind}Result", **_written(written)}


def _get_record(call: MethodCall) -> Json:
    params = call.params
    account = require_account(call.network, params["repo"], f"Could not find repo: {params['repo']}")
    record = call.network.record(account.did, params["collection"], params["rkey"])
    if record is None or params.get("cid") not in (None, record.cid):
        uri = f"at://{account.did}/{params['collection']}/{params['rkey']}"
        raise XrpcError(400, "RecordNotFound", f"Could not locate record: {uri}")
    return _record(record)


def _list_records(call: MethodCall) -> Json:
    params = call.params
    account = require_account(call.network, params["repo"], f"Could not find repo: {params['repo']}")
    records = call.network.records(account.did, params["collection"])
    if params["reverse"]:
        records.reverse()
    if cursor := params.get("cursor"):
        records = [r for r in records if (r.at.rkey > cursor if params["reverse"] else r.at.rkey < cursor)]
    page = records[: params["limit"]]
    return {"records": [_record(record) for record in page], **({"cursor": page[-1].at.rkey} if page else {})}


def _describe_repo(call: MethodCall) -> Json:
    account = call.network.find(call.params["repo"])
    if account is None:
        raise XrpcError(400, "RepoNotFound", f"Could not find repo for DID: {call.params['repo']}")
    return {
        "handle": account.handle,
        "did": account.did,
        "didDoc": did_document(account, call.base_url),
        "collections": call.network.collections(account.did),
        "handleIsCorrect": True,
    }


def _upload_blob(call: MethodCall) -> Json:
    mime = _sniff(call.content) or call.content_type.partition(";")[0].strip()
    blob = call.network.upload(call.did, mime, call.content)
    ref = {"$link": blob.cid}
    return {"blob": {"$type": "blob", "ref": ref, "mimeType": blob.mime_type, "size": len(blob.content)}}


def _get_blob(call: MethodCall) -> Response:
    did = call.params["did"]
    if call.network.find(did) is None:
        raise XrpcError(400, "RepoNotFound", f"Could not find repo for DID: {did}")
    blob = call.network.blob(did, call.params["cid"])
    if blob is None:
        raise invalid("Blob not found")
    return blob_response(blob)


def blob_response(blob: StoredBlob) -> Response:
    """Return a file as it was uploaded; browsers may show it but run nothing in it."""
    guard = {"x-content-type-options": "nosniff", "content-security-policy": "default-src 'none'; sandbox"}
    return Response(blob.content, media_type=blob.mime_type, headers=guard)


def _own_repo(call: MethodCall) -> str:
    account = call.network.find(call.body["repo"])
    if account is None:
        raise XrpcError(403, "AccountNotFound", "Account not found")
    if account.did != call.did:
        raise XrpcError(401, "AuthenticationRequired", "Authentication Required")
    return account.did


def _written(written: WrittenRecord) -> Json:
    status = {"validationStatus": written.validation} if written.validation else {}
    return {"uri": written.record.uri, "cid": written.record.cid, **status}


def _record(record: StoredRecord) -> Json:
    return {"uri": record.uri, "cid": record.cid, "value": record.value}


def _sniff(content: bytes) -> str | None:
    signatures = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for magic, mime in signatures.items() if content.startswith(magic)), None)


def _all_points(body: Json) -> int:
    return sum(_POINTS[write["$type"]] for write in body["writes"])


_R = "com.atproto.repo."
_REPO = String("AT identifier")
_PLACE = {"repo": _REPO, "collection": String("NSID")}
_LIST_OPTIONS: dict[str, Shape] = {"limit": Integer(1, 100), "cursor": String(), "reverse": Boolean()}
REPO_METHODS = (
    Method(f"{_R}createRecord", _create_record, body=schemas.CREATE_RECORD, points=lambda _: _POINTS[_CREATE]),
    Method(f"{_R}putRecord", _put_record, body=schemas.PUT_RECORD, points=lambda _: _POINTS[_UPDATE]),
    Method(f"{_R}deleteRecord", _delete_record, body=schemas.DELETE_RECORD, points=lambda _: _POINTS[_DELETE]),
    Method(f"{_R}applyWrites", _apply_writes, body=schemas.APPLY_WRITES, points=_all_points),
    Method(
        f"{_R}getRecord",
        _get_record,
        "open",
        Fields({**_PLACE, "rkey": String("record key")}, {"cid": String("CID string")}),
    ),
    Method(f"{_R}listRecords", _list_records, "open", Fields(_PLACE, _LIST_OPTIONS), {"limit": 50, "reverse": False}),
    Method(f"{_R}describeRepo", _describe_repo, "open", Fields({"repo": _REPO})),
    Method(f"{_R}uploadBlob", _upload_blob, takes_file=True),
    Method("com.atproto.sync.getBlob", _get_blob, "open", Fields({"did": String("DID"), "cid": String("CID string")})),
)
