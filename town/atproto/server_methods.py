"""`com.atproto.server.*` and `com.atproto.identity.*`: accounts, sessions, names."""

from __future__ import annotations

from town.atproto import schemas
from town.atproto.lexicon import Fields, String
from town.atproto.methods import Method, MethodCall
from town.atproto.network import SERVICE_DID
from town.atproto.schemas import MAX_BLOB_BYTES
from town.atproto.sessions import Tokens, wrong_login
from town.atproto.values import AtprotoAccount, Json, XrpcError, invalid

_MIN_NAME, _MAX_NAME = 3, 18


def did_document(account: AtprotoAccount, base_url: str) -> Json:
    """Where an account's repository lives; the SDK talks to that address after a login."""
    return {
        "@context": ["https://www.w3.org/ns/did/v1"],
        "id": account.did,
        "alsoKnownAs": [f"at://{account.handle}"],
        "verificationMethod": [],
        "service": [{"id": "#atproto_pds", "type": "AtprotoPersonalDataServer", "serviceEndpoint": base_url}],
    }


def _describe_server(call: MethodCall) -> Json:
    return {
        "did": SERVICE_DID,
        "availableUserDomains": list(call.network.handle_domains),
        "inviteCodeRequired": False,
        "blobUploadLimit": MAX_BLOB_BYTES,
        "links": {},
        "contact": {},
    }


def _create_account(call: MethodCall) -> Json:
    handle, email = call.body["handle"].lower(), call.body.get("email", "")
    domain = next((d for d in call.network.handle_domains if handle.endswith(d)), None)
    if not email:
        raise invalid("Email is required")
    if domain is None:
        raise XrpcError(400, "UnsupportedDomain", "Not a supported handle domain")
    name = handle.removesuffix(domain)
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
