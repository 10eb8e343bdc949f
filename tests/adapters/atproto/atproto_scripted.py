"""A service that answers as a test says and records what it was asked, for answers that no honest service gives."""

import base64
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from adapters.atproto.client import Atproto
from adapters.atproto.session import AtprotoSession, SessionFile, StoredSession
from common.clock import Clock, FakeClock
from tests.loopback import to_loopback
from tests.patience import HANG_S
from town.serving import connection_dropper

DID = "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa"
DROP = 0


@dataclass(frozen=True)
class Answer:
    """One answer; with status 0 the connection is dropped instead."""

    status: int = 200
    body: object = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    media_type: str = "application/json"


@dataclass(frozen=True)
class Asked:
    """One request as it arrived; `method` is its NSID, `at` the monotonic time of the clock."""

    method: str
    headers: dict[str, str]
    content: bytes
    at: float
    query: tuple[tuple[str, str], ...] = ()


class Scripted:
    """Gives the answers in order and repeats the last one."""

    def __init__(self, clock: Clock, url: str) -> None:
        self._clock = clock
        self.url = url
        self.answers: list[Answer] = [Answer()]
        self.asked: list[Asked] = []

    @property
    def app(self) -> Starlette:
        return Starlette(routes=[Route("/xrpc/{nsid}", self._answer, methods=["GET", "POST"])])

    def client(
        self, folder: Path, clock: FakeClock, *, spacing_s: float = 0, read_timeout_s: float = HANG_S
    ) -> Atproto:
        """Return a client with a stored session that is valid for an hour."""
        path = folder / "session.json"
        session = AtprotoSession(DID, "alice.test", jwt(clock.now() + timedelta(hours=1)), "refresh", self.url)
        SessionFile(path, service_url=self.url, identifier="alice.test").save(StoredSession(session))
        return Atproto(
            transport=to_loopback,
            service_url=self.url,
            identifier="alice.test",
            password="alice-pass",
            session_path=path,
            clock=clock,
            min_spacing_s=spacing_s,
            read_timeout_s=read_timeout_s,
        )

    async def _answer(self, request: Request) -> Response:
        content = await request.body()
        query = tuple(sorted(request.query_params.multi_items()))
        nsid, headers = request.path_params["nsid"], dict(request.headers)
        self.asked.append(Asked(nsid, headers, content, self._clock.monotonic(), query))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer.status == DROP:
            connection_dropper(request.scope)()
            return Response()
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        return Response(body, answer.status, headers=answer.headers, media_type=answer.media_type)


def jwt(expires: datetime, **claims: object) -> str:
    """Return a token that expires at `expires` and has no valid signature."""
    payload = {"exp": int(expires.timestamp()), **claims}
    return ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({}, payload, 0)
    )
