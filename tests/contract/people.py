"""The network that a contract test runs against, and the people whom the test puts into it."""

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
from atproto import AtUri, Client, Request, Session, models

from tests.loopback import NO_TLS
from tests.patience import HANG_S

_NUMBERS = itertools.count(random.randrange(10**6))


@dataclass(frozen=True)
class Person:
    """Someone with an account; `client` is the unmodified SDK, logged in.

    `post` returns once all can read the post: an AppView that meets a reply before its parent notifies nobody.
    """

    did: str
    handle: str
    password: str
    client: Client
    settle: Callable[[], None]

    @property
    def token(self) -> str:
        return str(self._session.access_jwt)

    @property
    def refresh_token(self) -> str:
        return str(self._session.refresh_jwt)

    @property
    def _session(self) -> Session:
        return Session.decode(self.client.export_session_string())

    def post(self, text: str, **kwargs: Any) -> Any:
        made = self.client.send_post(text, **kwargs)
        self.settle()
        return made

    def reply(self, text: str, parent: Any, root: Any = None) -> Any:
        refs = models.AppBskyFeedPost.ReplyRef(
            parent=models.create_strong_ref(parent), root=models.create_strong_ref(root or parent)
        )
        return self.post(text, reply_to=refs)

    def delete(self, uri: str) -> None:
        at = AtUri.from_str(uri)
        self.client.com.atproto.repo.delete_record(
            models.ComAtprotoRepoDeleteRecord.Data(collection=at.collection, repo=self.did, rkey=at.rkey)
        )

    def notifications(self, **params: Any) -> list[Any]:
        return list(self.client.app.bsky.notification.list_notifications(params or None).notifications)


@dataclass
class UnderTest:
    """A network, its address, and how to wait until what was written can be read.

    Once a feed of the service `feeds_did` is announced, it shows the posts that have its name as a tag.
    """

    url: str
    settle: Callable[[], None]
    jwt_secret: bytes
    feeds_did: str
    announce: Callable[[str], None]
    _clients: list[Client] = field(default_factory=list)

    def __post_init__(self) -> None:
        # NOTE(self): an address of its own gives each test its own budget of requests.
        self.headers = {"x-forwarded-for": ".".join(str(random.randint(1, 250)) for _ in range(4))}
        self._http = httpx.Client(base_url=f"{self.url}/xrpc/", headers=self.headers, timeout=HANG_S, verify=NO_TLS)

    def person(self) -> Person:
        """Create an account and return its owner, logged in."""
        name = f"p{next(_NUMBERS)}"
        handle, password = f"{name}.test", f"{name}-password"
        told = self.post(
            "com.atproto.server.createAccount", {"handle": handle, "email": f"{name}@example.com", "password": password}
        ).raise_for_status()
        self.settle()
        account = told.json()
        client = self.client()
        session = Session(handle, account["did"], account["accessJwt"], account["refreshJwt"], self.url)
        client.login(session_string=session.encode())
        return Person(account["did"], handle, password, client, self.settle)

    def client(self) -> Client:
        """Return a client of the SDK that is not logged in."""
        client = Client(self.url, request=Request(headers=self.headers, timeout=20, verify=NO_TLS))
        self._clients.append(client)
        return client

    def get(self, nsid: str, token: str = "", **params: Any) -> httpx.Response:
        return self._http.get(nsid, params=params, headers=_bearer(token))

    def post(self, nsid: str, body: Any = None, token: str = "", **kwargs: Any) -> httpx.Response:
        if body is not None:
            kwargs["json"] = body
        headers = {**_bearer(token), **kwargs.pop("headers", {})}
        return self._http.post(nsid, headers=headers, **kwargs)

    def close(self) -> None:
        self._http.close()
        for client in self._clients:
            client.request.close()


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"} if token else {}


def refusal(response: httpx.Response) -> tuple[int, str, str]:
    """Return the status, the error name and the message of a refusal."""
    body = response.json()
    assert set(body) == {"error", "message"}
    return response.status_code, body["error"], body["message"]
