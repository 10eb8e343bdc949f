"""Tests of accounts and sessions: what a login gives, how it is refreshed and ended, and every way it is refused."""

import base64
import hashlib
import hmac
import json
import time

import pytest
from atproto import AsyncClient, AsyncRequest, SessionEvent, models
from atproto import exceptions as ex

from tests.contract.people import Person, UnderTest, refusal

S = "com.atproto.server."
UNVERIFIED = (400, "InvalidToken", "Token could not be verified")
REVOKED = (400, "ExpiredToken", "Token has been revoked")
WRONG = (401, "AuthenticationRequired", "Invalid identifier or password")


def claims(token: str) -> dict[str, object]:
    payload = token.split(".")[1]
    decoded: dict[str, object] = json.loads(base64.urlsafe_b64decode(payload + "=="))
    return decoded


def forged(network: UnderTest, scope: str, did: str, expires: float) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    kind = "refresh+jwt" if scope == "com.atproto.refresh" else "at+jwt"
    payload = {"scope": scope, "sub": did, "aud": "did:web:localhost", "jti": "x", "iat": 1, "exp": int(expires)}
    signed = f"{part({'typ': kind, 'alg': 'HS256'})}.{part(payload)}"
    signature = hmac.digest(network.jwt_secret, signed.encode(), hashlib.sha256)
    return f"{signed}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def test_the_sdk_logs_in_by_handle_and_learns_who_it_is(network_under_test: UnderTest, somebody: Person) -> None:
    client = network_under_test.client()
    events: list[SessionEvent] = []
    client.on_session_change(lambda event, _: events.append(event))
    profile = client.login(somebody.handle, somebody.password)
    assert (profile.did, profile.handle) == (somebody.did, somebody.handle)
    assert events == [SessionEvent.CREATE]


async def test_the_async_sdk_logs_in_posts_and_reads(network_under_test: UnderTest, alice: Person) -> None:
    client = AsyncClient(network_under_test.url, request=AsyncRequest(headers=network_under_test.headers, timeout=20))
    await client.login(alice.handle, alice.password)
    made = await client.send_post("hello")
    found = await client.com.atproto.repo.get_record(
        {"repo": alice.did, "collection": "app.bsky.feed.post", "rkey": made.uri.rsplit("/", 1)[1]}
    )
    assert found.cid == made.cid
    await client.request.close()


@pytest.mark.parametrize("identifier", ["did", "email", "HANDLE"])
def test_login_takes_a_handle_a_did_or_an_address(
    network_under_test: UnderTest, somebody: Person, identifier: str
) -> None:
    names = {
        "handle": somebody.handle,
        "did": somebody.did,
        "email": somebody.handle.replace(".test", "@example.com"),
        "HANDLE": somebody.handle.upper(),
    }
    told = network_under_test.post(
        f"{S}createSession", {"identifier": names[identifier], "password": somebody.password}
    ).json()
    assert (told["did"], told["handle"], told["active"]) == (somebody.did, somebody.handle, True)


def test_a_session_names_the_server_that_the_sdk_is_to_use(network_under_test: UnderTest, somebody: Person) -> None:
    told = network_under_test.get(f"{S}getSession", somebody.token).json()
    [service] = told["didDoc"]["service"]
    port = network_under_test.url.rsplit(":", 1)[1]
    assert service["type"] == "AtprotoPersonalDataServer"
    assert service["serviceEndpoint"].endswith(f":{port}")
    assert told["didDoc"]["alsoKnownAs"] == [f"at://{somebody.handle}"]


def test_tokens_live_two_hours_and_ninety_days(network_under_test: UnderTest, somebody: Person) -> None:
    access, refresh = claims(somebody.token), claims(somebody.refresh_token)
    assert {"scope": access["scope"], "sub": access["sub"]} == {"scope": "com.atproto.access", "sub": somebody.did}
    assert int(str(access["exp"])) - int(str(access["iat"])) == 7200
    assert refresh["scope"] == "com.atproto.refresh"
    assert int(str(refresh["exp"])) - int(str(refresh["iat"])) == 90 * 86400


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"identifier": "{handle}", "password": "wrong"}, WRONG),
        ({"identifier": "{handle}"}, (400, "InvalidRequest", 'Missing required key "password" at $')),
        (
            {"identifier": 5, "password": "x"},
            (400, "InvalidRequest", "Expected string value type (got 5) at $.identifier"),
        ),
    ],
)
def test_a_wrong_login_is_refused(
    network_under_test: UnderTest, somebody: Person, body: dict[str, object], expected: tuple[int, str, str]
) -> None:
    sent = {k: v.format(handle=somebody.handle) if isinstance(v, str) else v for k, v in body.items()}
    assert refusal(network_under_test.post(f"{S}createSession", sent)) == expected


def test_a_body_that_is_no_json_is_refused(network_under_test: UnderTest) -> None:
    post, nsid = network_under_test.post, f"{S}createSession"
    assert refusal(post(nsid))[2] == "Request encoding (Content-Type) required but not provided"
    as_text = refusal(post(nsid, content=b"x", headers={"content-type": "text/plain"}))
    assert as_text == (400, "InvalidRequest", "Wrong request encoding (Content-Type): text/plain")
    broken = refusal(post(nsid, content=b"{bad", headers={"content-type": "application/json"}))
    assert broken[:2] == (400, "SyntaxError")


def test_a_method_is_called_the_right_way_or_refused(network_under_test: UnderTest, somebody: Person) -> None:
    missing = (401, "AuthMissing", "Authentication Required")
    absent = (501, "MethodNotImplemented", "Method Not Implemented")
    assert refusal(network_under_test.get(f"{S}createSession"))[2] == "Incorrect HTTP method (GET) expected POST"
    assert refusal(network_under_test.post(f"{S}describeServer", {}))[2] == "Incorrect HTTP method (POST) expected GET"
    assert refusal(network_under_test.get("app.bsky.feed.noSuchThing")) == missing
    assert refusal(network_under_test.get("app.bsky.feed.noSuchThing", somebody.token)) == absent


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("", (401, "AuthMissing", "Authentication Required")),
        ("garbage", UNVERIFIED),
        ("refresh", UNVERIFIED),
        ("expired", (400, "ExpiredToken", "Token has expired")),
    ],
)
def test_a_bad_access_token_is_refused(
    network_under_test: UnderTest, somebody: Person, token: str, expected: tuple[int, str, str]
) -> None:
    expired = forged(network_under_test, "com.atproto.access", somebody.did, time.time() - 60)
    sent = {"refresh": somebody.refresh_token, "expired": expired}.get(token, token)
    assert refusal(network_under_test.get(f"{S}getSession", sent)) == expected
    assert refusal(network_under_test.get("app.bsky.notification.getUnreadCount", sent)) == expected


def test_another_scheme_than_bearer_is_refused(network_under_test: UnderTest) -> None:
    basic = {"authorization": "Basic eHg6eHg="}
    writing = network_under_test.post(f"{S}createAppPassword", {"name": "x"}, headers=basic)
    assert refusal(writing) == (400, "InvalidToken", "Unexpected authorization type")
    ending = network_under_test.post(f"{S}deleteSession", headers=basic)
    assert refusal(ending) == (401, "AuthMissing", "Authentication Required")


def test_refreshing_twice_with_one_token_leads_to_the_same_session(
    network_under_test: UnderTest, alice: Person
) -> None:
    first = network_under_test.post(f"{S}refreshSession", token=alice.refresh_token).json()
    again = network_under_test.post(f"{S}refreshSession", token=alice.refresh_token).json()
    assert claims(first["refreshJwt"])["jti"] == claims(again["refreshJwt"])["jti"]
    assert claims(first["refreshJwt"])["jti"] != claims(alice.refresh_token)["jti"]
    assert network_under_test.get(f"{S}getSession", first["accessJwt"]).json()["did"] == alice.did


@pytest.mark.parametrize("token", ["access", "garbage"])
def test_only_a_refresh_token_refreshes(network_under_test: UnderTest, somebody: Person, token: str) -> None:
    sent = somebody.token if token == "access" else token
    assert refusal(network_under_test.post(f"{S}refreshSession", token=sent)) == UNVERIFIED
    assert refusal(network_under_test.post(f"{S}deleteSession", token=sent)) == UNVERIFIED


def test_an_expired_refresh_token_still_ends_a_session_but_opens_none(
    network_under_test: UnderTest, somebody: Person
) -> None:
    old = forged(network_under_test, "com.atproto.refresh", somebody.did, time.time() - 60)
    assert refusal(network_under_test.post(f"{S}refreshSession", token=old))[1] == "ExpiredToken"
    assert network_under_test.post(f"{S}deleteSession", token=old).status_code == 200


def test_a_deleted_session_cannot_be_refreshed_but_its_access_token_lives_on(
    network_under_test: UnderTest, alice: Person
) -> None:
    for _ in range(2):
        answer = network_under_test.post(f"{S}deleteSession", token=alice.refresh_token)
        assert (answer.status_code, answer.content) == (200, b"")
    assert refusal(network_under_test.post(f"{S}refreshSession", token=alice.refresh_token)) == REVOKED
    assert network_under_test.get(f"{S}getSession", alice.token).status_code == 200


def test_an_app_password_opens_a_lesser_session_until_it_is_revoked(
    network_under_test: UnderTest, alice: Person
) -> None:
    server = alice.client.com.atproto.server
    made = server.create_app_password(models.ComAtprotoServerCreateAppPassword.Data(name="bot"))
    assert [p.name for p in server.list_app_passwords().passwords] == ["bot"]
    body = {"identifier": alice.handle, "password": made.password}
    session = network_under_test.post(f"{S}createSession", body).json()
    assert claims(session["accessJwt"])["scope"] == "com.atproto.appPass"
    lesser = network_under_test.post(f"{S}createAppPassword", {"name": "more"}, session["accessJwt"])
    assert refusal(lesser) == (400, "InvalidToken", "Bad token scope")
    assert network_under_test.post(f"{S}createAppPassword", {"name": "bot"}, alice.token).status_code == 500

    server.revoke_app_password(models.ComAtprotoServerRevokeAppPassword.Data(name="bot"))
    assert refusal(network_under_test.post(f"{S}refreshSession", token=session["refreshJwt"])) == REVOKED
    assert refusal(network_under_test.post(f"{S}createSession", body)) == WRONG


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"handle": "{taken}"}, (400, "InvalidRequest", "Handle already taken: {taken}")),
        ({"handle": "two words.test"}, (400, "InvalidRequest", 'Invalid handle (got "two words.test") at $.handle')),
        ({"handle": "someone.example.com"}, (400, "UnsupportedDomain", "Not a supported handle domain")),
        ({"handle": "too.deep.test"}, (400, "InvalidHandle", "Invalid characters in handle")),
        ({"email": "{address}"}, (400, "InvalidRequest", "Email already taken: {address}")),
    ],
)
def test_an_account_that_cannot_be_is_refused(
    network_under_test: UnderTest, somebody: Person, change: dict[str, str | None], expected: tuple[int, str, str]
) -> None:
    words = {"taken": somebody.handle, "address": somebody.handle.replace(".test", "@example.com")}
    body = {"handle": "newcomer.test", "email": "new@example.com", "password": "x-password", **change}
    sent = {key: value.format(**words) for key, value in body.items() if value is not None}
    status, name, message = expected
    answer = refusal(network_under_test.post(f"{S}createAccount", sent))
    assert answer == (status, name, message.format(**words))


def test_handles_resolve_or_are_not_found(network_under_test: UnderTest, somebody: Person) -> None:
    resolve = "com.atproto.identity.resolveHandle"
    assert network_under_test.client().resolve_handle(somebody.handle).did == somebody.did
    unknown = refusal(network_under_test.get(resolve, handle="nobody-here.test"))
    assert unknown == (400, "HandleNotFound", "Unable to resolve handle")
    assert refusal(network_under_test.get(resolve))[2] == f'Invalid {resolve} params: Missing required key "handle"'
    assert refusal(network_under_test.get(resolve, handle="x y"))[2].endswith('Invalid handle (got "x y")')


def test_the_sdk_raises_bad_request_for_an_expired_token(network_under_test: UnderTest, somebody: Person) -> None:
    expired = forged(network_under_test, "com.atproto.access", somebody.did, time.time() - 60)
    client = network_under_test.client()
    with pytest.raises(ex.BadRequestError) as caught:
        client.com.atproto.server.get_session(headers={"Authorization": f"Bearer {expired}"})
    assert caught.value.response is not None
    assert caught.value.response.content.error == "ExpiredToken"


def test_the_server_describes_itself(network_under_test: UnderTest) -> None:
    told = network_under_test.client().com.atproto.server.describe_server()
    assert told.did == "did:web:localhost"
    assert ".test" in told.available_user_domains
    assert not told.invite_code_required
