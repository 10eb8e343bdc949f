"""Tests of reading anybody's records from the server that their DID document names, page by page.

A module whose loading is deferred is loaded only once, however many of its names are used.
"""

import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from adapters.atproto.client import PublicRepos
from adapters.atproto.sdk import _Deferred
from common.clock import FakeClock
from common.result import ApiResult, Err, Ok
from tests.adapters.results import err, ok
from tests.loopback import NO_TLS
from town.serving import serve

DID = "did:plc:z72i7hdynmk6r22z27h6tvur"
KIND = "town.soul.control.pause"


@dataclass
class Web:
    """A DID directory and a server in one; `asked` lists the requests that they received."""

    url: str = ""
    document: Any = None
    records: list[Any] = field(default_factory=list)
    page: int = 100
    broken: Response | None = None
    description: Any = None
    asked: list[str] = field(default_factory=list)
    clock: FakeClock = field(default_factory=FakeClock)

    def told(self, **more: Any) -> dict[str, Any]:
        service = {"id": "#atproto_pds", "type": "AtprotoPersonalDataServer", "serviceEndpoint": f"{self.url}/"}
        return {"id": DID, "service": [{"id": "#other"}, service], **more}

    def repos(self, **more: str) -> PublicRepos:
        return PublicRepos(fetch, clock=self.clock, directory_url=self.url, **more)

    async def directory(self, request: Request) -> Response:
        self.asked.append(request.path_params["did"])
        return JSONResponse(self.document if self.document is not None else self.told())

    async def describe(self, request: Request) -> Response:
        self.asked.append(f"{request.query_params['repo']} described")
        return JSONResponse(self.description)

    async def list_records(self, request: Request) -> Response:
        self.asked.append(f"{request.query_params['repo']} {request.query_params['collection']}")
        if self.broken is not None:
            return self.broken
        start = int(request.query_params.get("cursor", "0"))
        end = start + self.page
        more = {"cursor": str(end)} if end < len(self.records) else {}
        return JSONResponse({"records": self.records[start:end], **more})


async def fetch(url: str) -> ApiResult[bytes]:
    async with httpx.AsyncClient(verify=NO_TLS) as client:
        answer = await client.get(url)
    return Ok(answer.content) if answer.is_success else Err(f"HTTP {answer.status_code}", "transient")


def record(key: str, **value: Any) -> dict[str, Any]:
    return {"uri": f"at://{DID}/{KIND}/{key}", "cid": "bafy", "value": value}


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    web = Web()
    routes = [
        Route("/xrpc/com.atproto.repo.listRecords", web.list_records),
        Route("/xrpc/com.atproto.repo.describeRepo", web.describe),
        Route("/{did}", web.directory),
    ]
    async with serve(Starlette(routes=routes)) as url:
        web.url = url
        yield web


async def test_the_document_says_where_the_records_lie_and_is_believed_for_an_hour(web: Web) -> None:
    web.records = [record("all", reason="asleep")]
    repos = web.repos()
    for _ in range(2):
        (found,) = ok(await repos.list_records(DID, KIND))
        assert (found.uri, found.value) == (f"at://{DID}/{KIND}/all", {"reason": "asleep"})
    assert web.asked == [DID, f"{DID} {KIND}", f"{DID} {KIND}"]
    await web.clock.advance(3600)
    ok(await repos.list_records(DID, KIND))
    assert web.asked.count(DID) == 2


async def test_the_collections_of_a_repo_are_named_by_its_server(web: Web) -> None:
    web.description = {"did": DID, "collections": [KIND, 7]}
    assert ok(await web.repos().collections(DID)) == (KIND,)
    web.description = {"did": DID}
    assert err(await web.repos().collections(DID)).kind == "transient"
    assert web.asked.count(f"{DID} described") == 2


async def test_a_server_that_never_comes_to_an_end_is_left_after_ten_pages(web: Web) -> None:
    web.page = 1
    web.records = [record(str(number)) for number in range(50)]
    assert len(ok(await web.repos().list_records(DID, KIND))) == 10


async def test_where_there_is_one_server_for_all_no_document_is_asked(web: Web) -> None:
    web.records = [record("all")]
    assert len(ok(await web.repos(home_url=web.url).list_records("did:plc:anybody", KIND))) == 1
    assert web.asked == [f"did:plc:anybody {KIND}"]


@pytest.mark.parametrize("broken", [Response("<html>", media_type="text/html"), JSONResponse({"records": "none"})])
async def test_an_answer_that_says_nothing_is_no_answer_and_the_address_is_asked_anew(
    web: Web, broken: Response
) -> None:
    web.broken = broken
    repos = web.repos()
    assert err(await repos.list_records(DID, KIND)).kind == "transient"
    web.broken = None
    assert ok(await repos.list_records(DID, KIND)) == ()


@pytest.mark.parametrize(
    "document",
    [
        {"id": "did:plc:somebodyelse", "service": []},
        {"id": DID, "service": ["none", {"id": "#atproto_pds", "serviceEndpoint": 3}]},
        {"id": DID, "service": [{"id": "#atproto_pds", "serviceEndpoint": "file:///etc/passwd"}]},
        {"id": DID, "service": [{"id": "#atproto_pds", "serviceEndpoint": "https://[::1"}]},
        {"id": DID, "service": [{"id": "#atproto_pds", "serviceEndpoint": "https://a\u2100b.example"}]},
    ],
)
async def test_a_document_that_names_no_server_is_an_error(web: Web, document: Any) -> None:
    web.document = document
    assert err(await web.repos().list_records(DID, KIND)).kind == "transient"


@pytest.mark.parametrize("did", ["did:plc:../../x", "did:web:a/b", "did:key:z6Mk"])
async def test_what_is_no_did_is_not_looked_up(web: Web, did: str) -> None:
    assert err(await web.repos().list_records(did, KIND)).kind == "invalid"
    assert web.asked == []


async def test_a_did_of_the_web_is_asked_at_its_own_host() -> None:
    asked: list[str] = []

    async def noting(url: str) -> ApiResult[bytes]:
        asked.append(url)
        return Err("nobody there", "transient")

    repos = PublicRepos(noting, clock=FakeClock())
    err(await repos.list_records("did:web:example.org", KIND))
    err(await repos.list_records("did:web:localhost%3A8080", KIND))
    assert asked == ["https://example.org/.well-known/did.json", "https://localhost:8080/.well-known/did.json"]


async def test_a_file_is_found_on_the_server_of_its_author_or_on_the_only_one(web: Web) -> None:
    query = "did=did%3Aplc%3Az72i7hdynmk6r22z27h6tvur&cid=bafk%26x"
    where = f"/xrpc/com.atproto.sync.getBlob?{query}"
    assert ok(await web.repos().file_url(DID, "bafk&x")) == f"{web.url}{where}"
    assert ok(await web.repos(home_url="http://here").file_url(DID, "bafk&x")) == f"http://here{where}"
    assert err(await web.repos().file_url("did:odd:x", "bafk")).kind == "invalid"


def test_what_is_loaded_late_is_loaded_once_whoever_asks_for_how_many_of_its_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "long_list.py").write_text("class First: ...\nclass Second: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    taken_early = _Deferred("long_list")
    monkeypatch.setitem(sys.modules, "long_list", taken_early)
    first, second = taken_early.First, taken_early.Second
    assert (taken_early.First, taken_early.Second) == (first, second)
