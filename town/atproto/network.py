"""State and rules of the network: accounts, sessions, repositories, files and notification of changes. No HTTP.

Everything is in memory and gone with the process. One event loop owns it; no method waits.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import hmac
import json
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from adapters.atproto.richtext import build_facets
from adapters.atproto.types import Actor, Post, ThreadNode
from adapters.atproto.writes import TidSource
from common.clock import Clock, iso, parse_iso
from town.atproto import index
from town.atproto.chat import DECLARATION, ChatService, policy_in
from town.atproto.index import (
    BLOCK,
    POST,
    PROFILE,
    Address,
    AtprotoAccount,
    Index,
    Json,
    NetworkEvent,
    StoredBlob,
    StoredRecord,
    XrpcError,
    blob_cid,
    internal,
    invalid,
    record_cid,
    root_uri,
)
from town.atproto.schemas import check_record, fits, typed_record

Scope = Literal["com.atproto.access", "com.atproto.appPass", "com.atproto.appPassPrivileged", "com.atproto.refresh"]
_ACCESS: tuple[Scope, ...] = ("com.atproto.access", "com.atproto.appPassPrivileged", "com.atproto.appPass")
_KINDS = dict.fromkeys(_ACCESS, "at+jwt") | {"com.atproto.refresh": "refresh+jwt"}
_GRACE = timedelta(hours=2)
_ACCESS_LIFETIME, _REFRESH_LIFETIME = timedelta(hours=2), timedelta(days=90)


class Tokens(NamedTuple):
    """The two tokens of a session."""

    access: str
    refresh: str


@dataclass(frozen=True, slots=True)
class _Refresh:
    did: str
    app_password: str | None
    expires: datetime
    successor: str | None = None


class _AppPassword(NamedTuple):
    password: str
    created_at: str
    is_privileged: bool

    def told(self) -> Json:
        return {"createdAt": self.created_at, "privileged": self.is_privileged}


class TownSessions:
    """Opens, refreshes and closes sessions."""

    def __init__(self, clock: Clock, *, service_did: str, secret: bytes | None = None) -> None:
        self._clock = clock
        self._service_did = service_did
        self._secret = secret or secrets.token_bytes(32)
        self._refresh: dict[str, _Refresh] = {}
        self._app_passwords: dict[str, dict[str, _AppPassword]] = {}

    def login(self, account: AtprotoAccount, password: str) -> Tokens:
        """Open a session. Raises `XrpcError` 401 for a wrong password."""
        if _same(password, account.password):
            return self._open(account.did, None)
        for name, known in self._app_passwords.get(account.did, {}).items():
            if _same(password, known.password):
                return self._open(account.did, name)
        raise wrong_login()

    def refresh(self, token: str) -> tuple[str, Tokens]:
        """Return the session's did and next tokens; the same token may be used again for two hours."""
        key, known = self._known_refresh(token)
        now = self._clock.now()
        successor = known.successor or secrets.token_urlsafe(32)
        self._refresh[key] = replace(known, successor=successor, expires=min(known.expires, now + _GRACE))
        return known.did, self._open(known.did, known.app_password, successor)

    def close(self, token: str) -> None:
        """End the session; its access token stays valid until it expires, as in the protocol."""
        claims = self._claims(token, ("com.atproto.refresh",), allow_expired=True)
        self._refresh.pop(str(claims["jti"]), None)

    def did_of_access(self, token: str, *, main_password_only: bool = False, for_chat: bool = False) -> str:
        """Return whose access token this is. Raises `XrpcError` 400 `ExpiredToken` or `InvalidToken`."""
        claims = self._claims(token, _ACCESS)
        if main_password_only and claims["scope"] != "com.atproto.access":
            raise XrpcError(400, "InvalidToken", "Bad token scope")
        if for_chat and claims["scope"] == "com.atproto.appPass":
            raise XrpcError(400, "InvalidToken", "Bad token method")
        return str(claims["sub"])

    def create_app_password(self, did: str, name: str, *, is_privileged: bool = False) -> Json:
        """Create an app password, shown only here; a privileged one may read and write direct messages."""
        named = self._app_passwords.setdefault(did, {})
        if name in named:
            raise internal()
        letters = "abcdefghijklmnopqrstuvwxyz234567"
        password = "-".join("".join(secrets.choice(letters) for _ in range(4)) for _ in range(4))
        named[name] = _AppPassword(password, iso(self._clock.now()), is_privileged)
        return {"name": name, "password": password, **named[name].told()}

    def app_passwords(self, did: str) -> list[Json]:
        """Return the names and dates of an account's app passwords, newest first."""
        named = self._app_passwords.get(did, {})
        return [{"name": name, **one.told()} for name, one in reversed(named.items())]

    def revoke_app_password(self, did: str, name: str) -> None:
        """Delete an app password and end the sessions that it opened."""
        self._app_passwords.get(did, {}).pop(name, None)
        for key in [k for k, r in self._refresh.items() if r.did == did and r.app_password == name]:
            del self._refresh[key]

    def _known_refresh(self, token: str) -> tuple[str, _Refresh]:
        key = str(self._claims(token, ("com.atproto.refresh",))["jti"])
        known = self._refresh.get(key)
        if known is None or known.expires <= self._clock.now():
            raise XrpcError(400, "ExpiredToken", "Token has been revoked")
        return key, known

    def _open(self, did: str, app_password: str | None, key: str = "") -> Tokens:
        key = key or secrets.token_urlsafe(32)
        now = self._clock.now()
        self._refresh.setdefault(key, _Refresh(did, app_password, now + _REFRESH_LIFETIME))
        access = self._sign({"scope": self._scope(did, app_password), "sub": did}, now, _ACCESS_LIFETIME)
        claims = {"scope": "com.atproto.refresh", "sub": did, "jti": key}
        return Tokens(access, self._sign(claims, now, _REFRESH_LIFETIME))

    def _scope(self, did: str, app_password: str | None) -> Scope:
        if app_password is None:
            return "com.atproto.access"
        known = self._app_passwords.get(did, {}).get(app_password)
        return "com.atproto.appPassPrivileged" if known and known.is_privileged else "com.atproto.appPass"

    def _sign(self, claims: Json, now: datetime, lifetime: timedelta) -> str:
        kind = _KINDS[claims["scope"]]
        times = {"aud": self._service_did, "iat": int(now.timestamp()), "exp": int((now + lifetime).timestamp())}
        signed = f"{_b64({'typ': kind, 'alg': 'HS256'})}.{_b64({**claims, **times})}"
        return f"{signed}.{self._signature(signed)}"

    def _signature(self, signed: str) -> str:
        return _b64_bytes(hmac.digest(self._secret, signed.encode(), hashlib.sha256))

    def _claims(self, token: str, scopes: tuple[Scope, ...], *, allow_expired: bool = False) -> Json:
        signed, _, signature = token.rpartition(".")
        kind = claims = Json()
        if signed and _same(signature, self._signature(signed)):
            kind, claims = (json.loads(_unb64(part)) for part in signed.split(".", 1))
        if claims.get("scope") not in scopes or kind["typ"] != _KINDS[claims["scope"]]:
            raise XrpcError(400, "InvalidToken", "Token could not be verified")
        if not allow_expired and claims["exp"] <= self._clock.now().timestamp():
            raise XrpcError(400, "ExpiredToken", "Token has expired")
        return claims


def wrong_login() -> XrpcError:
    """Return the refusal of an unknown account or a wrong password, which is the same."""
    return XrpcError(401, "AuthenticationRequired", "Invalid identifier or password")


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _b64(value: Json) -> str:
    return _b64_bytes(json.dumps(value, separators=(",", ":")).encode())


def _unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _b64_bytes(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


SERVICE_DID = "did:web:localhost"
Listener = Callable[[NetworkEvent], None]


@dataclass(frozen=True, slots=True)
class WrittenRecord:
    """The result of a write: the stored record, and whether its shape is known to be valid."""

    record: StoredRecord
    validation: str | None


@dataclass(slots=True)
class _Home:
    """All that the network keeps for one account."""

    account: AtprotoAccount
    records: dict[str, dict[str, StoredRecord]] = field(default_factory=lambda: defaultdict(dict))
    blobs: dict[str, StoredBlob] = field(default_factory=dict)
    preferences: list[Json] = field(default_factory=list)
    muted: set[str] = field(default_factory=set)
    seen: tuple[datetime, int] | None = None


class Network:
    """A whole small network. Without a `jwt_secret` tokens are signed with a random one."""

    def __init__(self, *, clock: Clock, jwt_secret: bytes | None = None) -> None:
        self.clock = clock
        self.index = Index()
        self.sessions = TownSessions(clock, service_did=SERVICE_DID, secret=jwt_secret)
        self._homes: dict[str, _Home] = {}
        self._dids: dict[str, str] = {}
        self._listeners: list[Listener] = []
        self._seq = 0
        self._tids = TidSource()
        self.chat = ChatService(
            clock,
            self.next_tid,
            policy_of=lambda did: policy_in(self._value(did, DECLARATION, "self")),
            follows=lambda did, other: self.index.follows.between(did, other) is not None,
            blocks=lambda did, other: self.blocking(did, other) is not None,
        )

    def as_of(self, seconds: float) -> Network:
        """Return the network for reading, indexed as of `seconds` ago, without what was deleted since."""
        until, past = self.clock.now() - timedelta(seconds=seconds), copy.copy(self)
        past.index = Index()
        records = (one for home in self._homes.values() for kind in home.records.values() for one in kind.values())
        for record in sorted((one for one in records if one.indexed_at <= until), key=lambda one: one.seq):
            past.index.add(record)
        return past

    # Accounts

    def create_account(
        self,
        handle: str,
        password: str,
        *,
        display_name: str = "",
        description: str = "",
        avatar: str | None = None,
        email: str = "",
    ) -> AtprotoAccount:
        """Create an account, with a profile record if it has a name or description. Raises `XrpcError` if it cannot."""
        handle = handle.lower()
        if not fits("handle", handle):
            raise invalid(f'Invalid handle (got "{handle}") at $.handle')
        if handle in self._dids:
            raise invalid(f"Handle already taken: {handle}")
        if email and any(home.account.email == email for home in self._homes.values()):
            raise invalid(f"Email already taken: {email}")
        digest = hashlib.sha256(handle.encode()).digest()
        did = "did:plc:" + base64.b32encode(digest).decode().lower()[:24]
        account = AtprotoAccount(did, handle, password, email, avatar)
        self._homes[did] = _Home(account)
        self._dids[handle] = did
        self._tell(NetworkEvent("account", did))
        about = {"displayName": display_name, "description": description}
        if any(about.values()):
            profile = {key: text for key, text in about.items() if text} | {"createdAt": iso(self.clock.now())}
            self.put(did, PROFILE, "self", profile)
        return account

    def accounts(self) -> list[AtprotoAccount]:
        """Return all accounts, oldest first."""
        return [home.account for home in self._homes.values()]

    def find(self, actor: str) -> AtprotoAccount | None:
        """Return the account with this did, handle or e-mail address."""
        did = self._dids.get(actor.lower(), actor)
        if did in self._homes:
            return self._homes[did].account
        return next((h.account for h in self._homes.values() if h.account.email and h.account.email == actor), None)

    def actor(self, did: str) -> Actor:
        """Return an account as shown beside its posts; an uploaded avatar has no URL here, without the service."""
        account, profile = self._homes[did].account, self.profile(did)
        name = str(profile.value.get("displayName", "")) if profile else ""
        return Actor(did, account.handle, name, account.avatar)

    def profile(self, did: str) -> StoredRecord | None:
        """Return the account's profile record."""
        return self._homes[did].records[PROFILE].get("self")

    def preferences(self, did: str) -> list[Json]:
        """Return the account's private settings, to be read or replaced in place."""
        return self._homes[did].preferences

    def mutes(self, did: str) -> set[str]:
        """Return the accounts that an account muted, to be read or changed in place."""
        return self._homes[did].muted

    def blocking(self, did: str, other: str) -> str | None:
        """Return the uri of the record by which an account blocks another one; None if it does not."""
        blocks = (record.uri for record in self.records(did, BLOCK) if record.value.get("subject") == other)
        return next(blocks, None)

    def is_shut(self, did: str, other: str) -> bool:
        """Return whether an account muted another one, or one of them blocks the other."""
        return other in self.mutes(did) or bool(self.blocking(did, other) or self.blocking(other, did))

    # Repositories

    def create(
        self, did: str, collection: str, record: Json, *, rkey: str | None = None, validate: bool | None = None
    ) -> WrittenRecord:
        """Create a record under a fresh key, or under `rkey` if that is free. Raises `XrpcError`."""
        key = rkey or self.next_tid()
        self.check(did, collection, key, record, validate=validate)
        if self.record(did, collection, key):
            raise internal()
        return self.put(did, collection, key, record, validate=validate)

    def check(
        self,
        did: str,
        collection: str,
        rkey: str,
        record: Json,
        *,
        validate: bool | None = None,
        path: str = "$.record",
    ) -> tuple[Json, str | None]:
        """Return the record with its `$type`, and whether its shape is known to be valid. Raises `XrpcError`.

        `path` is the record's place in the request, for the message.
        """
        record = typed_record(collection, record)
        validation = check_record(collection, rkey, record, validate=validate, path=path)
        for reference in _files(record):
            self._check_file(did, reference)
        return record, validation

    def _check_file(self, did: str, reference: Json) -> None:
        """Check a reference to a file against the stored file. Raises `XrpcError`."""
        cid, mime, size = str(reference["ref"]["$link"]), reference.get("mimeType"), reference.get("size")
        blob = self.blob(did, cid)
        if blob is None:
            raise XrpcError(400, "BlobNotFound", f"Could not find blob: {cid}")
        differs = "Referenced {} does not match stored blob. Expected: {}, Got: {}"
        if mime != blob.mime_type:
            raise XrpcError(400, "InvalidMimeType", differs.format("Mimetype", blob.mime_type, mime))
        if size != len(blob.content):
            raise XrpcError(400, "InvalidSize", differs.format("Size", len(blob.content), size))

    def put(self, did: str, collection: str, rkey: str, record: Json, *, validate: bool | None = None) -> WrittenRecord:
        """Store a record under this key, new or changed; identical content changes nothing. Raises `XrpcError`."""
        record, validation = self.check(did, collection, rkey, record, validate=validate)
        try:
            cid = record_cid(record)
        except ValueError as error:
            raise invalid(f"Invalid {collection} record: {error}") from error
        home = self._homes[did].records[collection]
        old = home.get(rkey)
        if old and old.cid == cid:
            return WrittenRecord(old, validation)
        now = _whole_ms(self.clock.now())
        self._seq += 1
        new = StoredRecord(Address(did, collection, rkey), cid, record, now, _sort_time(record, now), self._seq)
        if old:
            self.index.remove(old)
        home[rkey] = new
        self.index.add(new)
        self._tell(NetworkEvent("updated" if old else "created", did, new.uri, collection, cid))
        return WrittenRecord(new, validation)

    def delete(self, did: str, collection: str, rkey: str) -> bool:
        """Delete a record; return whether it existed."""
        old = self._homes[did].records[collection].pop(rkey, None)
        if old is None:
            return False
        self.index.remove(old)
        self._tell(NetworkEvent("deleted", did, old.uri, collection, old.cid))
        return True

    def record(self, did: str, collection: str, rkey: str) -> StoredRecord | None:
        """Return a record, None if there is none."""
        home = self._homes.get(did)
        return home.records[collection].get(rkey) if home else None

    def _value(self, did: str, collection: str, rkey: str) -> Json | None:
        found = self.record(did, collection, rkey)
        return found.value if found else None

    def records(self, did: str, collection: str) -> list[StoredRecord]:
        """Return all records of a collection, by key in descending order."""
        found = self._homes[did].records[collection]
        return [found[rkey] for rkey in sorted(found, reverse=True)]

    def collections(self, did: str) -> list[str]:
        """Return the collections that hold records."""
        return sorted(name for name, records in self._homes[did].records.items() if records)

    def next_tid(self) -> str:
        """Return a fresh record key; keys only grow, even if the clock stands still."""
        return self._tids.next(self.clock.now())

    def upload(self, did: str, mime_type: str, content: bytes) -> StoredBlob:
        """Store a file for this account."""
        blob = StoredBlob(blob_cid(content), mime_type, content)
        self._homes[did].blobs[blob.cid] = blob
        return blob

    def blob(self, did: str, cid: str) -> StoredBlob | None:
        """Return a file of this account."""
        home = self._homes.get(did)
        return home.blobs.get(cid) if home else None

    # Notifications

    def mark_seen(self, did: str, moment: datetime) -> None:
        """Mark what happened until `moment` as read, but not what happens later in the same millisecond."""
        home = self._homes[did]
        mark = (_whole_ms(moment), self._seq)
        home.seen = max(home.seen, mark) if home.seen else mark

    def seen(self, did: str) -> tuple[datetime, int] | None:
        """Return up to where, in the order of records, notifications are read; None before the first marking."""
        return self._homes[did].seen

    # The page

    def post_as(self, did: str, text: str, *, reply_to_uri: str | None = None) -> tuple[str, str]:
        """Post as this account, with facets for links, tags and accounts; return uri and cid. Raises `XrpcError`."""
        record: Json = {"text": text, "createdAt": iso(self.clock.now()), "langs": ["en"]}
        facets = build_facets(text, self._dids)
        if facets:
            record["facets"] = facets
        if reply_to_uri:
            parent = self.index.posts.get(reply_to_uri)
            if parent is None:
                raise XrpcError(400, "NotFound", f"Post not found: {reply_to_uri}")
            above = {"uri": parent.uri, "cid": parent.cid}
            root = parent.value["reply"]["root"] if root_uri(parent) != parent.uri else above
            record["reply"] = {"root": root, "parent": above}
        written = self.create(did, POST, record)
        return written.record.uri, written.record.cid

    def posts(self, limit: int = 100) -> list[Post]:
        """Return the newest posts of all accounts."""
        newest = sorted(self.index.posts.values(), key=lambda record: record.order, reverse=True)
        return [index.post(self, record) for record in newest[:limit]]

    def thread(self, uri: str) -> ThreadNode | None:
        """Return the whole thread that a post belongs to, from its root, replies oldest first."""
        return index.thread(self, uri)

    def likes(self, uri: str) -> list[Actor]:
        """Return who likes a post, newest first."""
        return [self.actor(like.at.did) for like in self.index.likes.to(uri)]

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` at once after each change, until the returned function is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _tell(self, event: NetworkEvent) -> None:
        for listener in list(self._listeners):
            listener(event)


def _files(value: object) -> Iterator[Json]:
    """Yield the references to files in a record, at any depth."""
    if isinstance(value, dict):
        if value.get("$type") == "blob":
            yield value
        for child in value.values():
            yield from _files(child)
    elif isinstance(value, list):
        for child in value:
            yield from _files(child)


def _sort_time(record: Json, now: datetime) -> datetime:
    created = record.get("createdAt")
    if not isinstance(created, str) or not fits("datetime", created):
        return now
    return min(now, _whole_ms(parse_iso(created)))


def _whole_ms(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
