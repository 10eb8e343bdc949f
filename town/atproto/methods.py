"""What a method of the service is: its name, who may call it, what fits it, and the call it is handed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from starlette.datastructures import QueryParams
from starlette.responses import Response

from town.atproto.lexicon import Boolean, Fields, Integer, Listing, MismatchError, Shape
from town.atproto.network import Network
from town.atproto.values import AtprotoAccount, Json, StoredRecord, XrpcError, invalid
from town.atproto.views import AtprotoViews

Access = Literal["open", "session", "main_password", "refresh", "chat"]
"""Who may call: anybody, any session, one of the account's own password, the holder of a refresh token, or a session
that may read direct messages."""


@dataclass(frozen=True, slots=True)
class MethodCall:
    """One request: its checked parameters and body, and whose session it carries (`did` is empty without one)."""

    network: Network
    base_url: str
    did: str = ""
    token: str = ""
    params: Json = field(default_factory=dict)
    body: Json = field(default_factory=dict)
    content: bytes = b""
    content_type: str = ""

    @property
    def views(self) -> AtprotoViews:
        return AtprotoViews(self.network, self.did or None, self.base_url)

    def page(self, records: list[StoredRecord]) -> tuple[list[StoredRecord], Json]:
        """The records after the cursor, at most `limit`, and the cursor of the next page if there is one."""
        before = _read_cursor(self.params.get("cursor"))
        rest = [r for r in records if before is None or _order(r) < before]
        limit = self.params["limit"]
        if len(rest) <= limit:
            return rest, {}
        return rest[:limit], {"cursor": "{}__{}".format(*_order(rest[limit - 1]))}


Handler = Callable[[MethodCall], Json | Response | None]


@dataclass(frozen=True, slots=True)
class Method:
    """A method of the service. A query has `params`; a procedure takes JSON that fits `body`, or a file."""

    nsid: str
    handler: Handler
    access: Access = "session"
    params: Fields = field(default_factory=Fields)
    defaults: Mapping[str, object] = field(default_factory=dict)
    body: Fields | None = None
    is_procedure: bool = False
    takes_file: bool = False
    points: Callable[[Json], int] = lambda _: 0

    @property
    def verb(self) -> str:
        return "POST" if self.is_procedure or self.body or self.takes_file else "GET"

    def read_params(self, query: QueryParams) -> Json:
        """The query's parameters, typed and filled up. Raises `XrpcError`."""
        shapes = {**self.params.required, **self.params.optional}
        given = {name: _typed(shape, query.getlist(name)) for name, shape in shapes.items() if name in query}
        try:
            self.params.check(given, None)
        except MismatchError as error:
            raise invalid(f"Invalid {self.nsid} params: {error}") from error
        return {**self.defaults, **given}


def require_account(network: Network, actor: str, problem: str) -> AtprotoAccount:
    """The account, or 400 with `problem`."""
    account = network.find(actor)
    if account is None:
        raise invalid(problem)
    return account


def _typed(shape: Shape, texts: list[str]) -> object:
    if isinstance(shape, Listing):
        return texts
    text = texts[-1]
    if isinstance(shape, Integer) and text.lstrip("-").isdigit():
        return int(text)
    if isinstance(shape, Boolean) and text in {"true", "false"}:
        return text == "true"
    return text


def _order(record: StoredRecord) -> tuple[int, int]:
    return int(record.sort_at.timestamp() * 1000), record.seq


def _read_cursor(cursor: str | None) -> tuple[int, int] | None:
    if not cursor:
        return None
    moment, _, seq = cursor.partition("__")
    if not (moment.isdigit() and seq.isdigit()):
        raise XrpcError(502, "InternalServerError", "Internal Server Error")
    return int(moment), int(seq)
