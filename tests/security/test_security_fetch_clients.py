"""Proves that all HTTP clients are checked alike: nothing that the network says sends a session or a prompt astray."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from starlette.responses import StreamingResponse

from adapters.atproto.client import Atproto
from common.clock import FakeClock, SystemClock
from common.errors import SoulError
from common.result import Err, ErrKind
from modules.runtime.llm.dialect import Message
from modules.runtime.llm.gateway import LLMGateway
from soul.commands.handles import resolve
from tests.certificates import certificate_for
from tests.modules.runtime.llm.scripted_model import scripted_gateway
from tests.running_town import KEY, Mind, replying
from tests.security.small_internet import PUBLIC, SmallInternet, fetch, moved, open_internet, page, untouched
from town.model.service import GatewayMind, model_app
from town.serving import serve


@pytest.fixture
async def https(tmp_path: Path) -> AsyncIterator[SmallInternet]:
    """Open a small internet whose server proves by a trusted certificate that it is public.example."""
    pem = certificate_for("public.example", tmp_path)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pem)
    async with open_internet(server) as internet:
        internet.tls = ssl.create_default_context(cafile=pem)
        yield internet


async def test_the_certificate_is_checked_against_the_name_though_the_address_is_dialled(https: SmallInternet) -> None:
    assert (await fetch(https, "https://public.example/")).success
    https.names.tell("impostor.example", [PUBLIC])
    assert await fetch(https, "https://impostor.example/") == Err("no answer (ConnectError)", kind="transient")
    assert https.backend.taken == [PUBLIC, PUBLIC]


async def test_a_redirect_never_leaves_tls(https: SmallInternet) -> None:
    https.say(moved("http://public.example/"))
    assert await fetch(https, "https://public.example/") == Err("a redirect from https to http", kind="invalid")
    assert len(https.backend.taken) == 1


# --- HTTP clients ------------------------------------------------------------------------------------------------


def bluesky(internet: SmallInternet, folder: Path, url: str = "http://public.example") -> Atproto:
    """Return a client of a service that the owner named, which is the small internet's public server."""
    return Atproto(
        service_url=url,
        identifier="soul.example",
        password="app-password",
        session_path=folder / "session.json",
        clock=FakeClock(),
        min_spacing_s=0,
        transport=lambda: internet.transport(url),
    )


def session(endpoint: str) -> bytes:
    document = {"service": [{"id": "#atproto_pds", "serviceEndpoint": endpoint}]}
    body = {"did": "did:plc:a", "handle": "soul.example", "accessJwt": "a", "refreshJwt": "r", "didDoc": document}
    return page(json.dumps(body).encode(), kind="application/json")


@pytest.mark.parametrize(
    ("endpoint", "kind"),
    [
        ("http://127.0.0.1:{port}", "invalid"),
        ("http://[::1]:{port}", "invalid"),
        ("http://inside.example:{port}", "transient"),
        ("http://127.1:{port}", "invalid"),
    ],
)
async def test_a_did_document_cannot_send_the_session_inside(
    internet: SmallInternet, tmp_path: Path, endpoint: str, kind: ErrKind
) -> None:
    internet.names.tell("inside.example", ["127.0.0.1"])
    internet.say(session(endpoint.format(port=internet.trap.port)))
    client = bluesky(internet, tmp_path)
    assert (await client.authenticate()).success
    read, written = await client.get_profile("somebody.example"), await client.create_post("Tin sings.")
    await client.aclose()
    for result in (read, written):
        assert isinstance(result, Err)
        assert result.kind == kind
        assert "out of bounds" in result.error
    assert untouched(internet)


async def test_a_did_document_cannot_take_the_session_off_tls(https: SmallInternet, tmp_path: Path) -> None:
    https.names.tell("plain.example", [PUBLIC])
    https.say(session("http://plain.example"))
    client = bluesky(https, tmp_path, "https://public.example")
    assert (await client.authenticate()).success
    await client.get_profile("somebody.example")
    await client.aclose()
    assert "plain.example" not in https.names.asked


async def test_a_redirect_by_the_service_is_not_followed_with_the_password(
    internet: SmallInternet, tmp_path: Path
) -> None:
    internet.say(moved(f"http://127.0.0.1:{internet.trap.port}/", "307 Temporary"))
    client = bluesky(internet, tmp_path)
    result = await client.authenticate()
    await client.aclose()
    assert isinstance(result, Err)
    assert result.status == 307
    assert untouched(internet)


def gateway(url: str, internet: SmallInternet) -> LLMGateway:
    return scripted_gateway(
        url, SystemClock(), api_key=KEY, model="test-mind", max_retries=0, transport=lambda: internet.transport(url)
    )


async def test_the_model_is_reached_on_loopback_where_the_owner_named_it(internet: SmallInternet) -> None:
    async with serve(model_app(Mind(replying("Slate.")), api_key=KEY)) as url:
        llm = gateway(f"{url}/v1", internet)
        assert await llm.chat([Message("user", "tin or slate?")]) == "Slate."
        await llm.aclose()
    assert internet.backend.taken == ["127.0.0.1"]


async def test_a_model_service_cannot_send_a_prompt_inside(internet: SmallInternet) -> None:
    internet.say(moved(f"http://127.0.0.1:{internet.trap.port}/v1/chat/completions", "307 Temporary"))
    llm = gateway("http://public.example/v1", internet)
    with pytest.raises(SoulError):
        await llm.chat([Message("user", "hello")])
    await llm.aclose()
    assert untouched(internet)


async def test_the_towns_own_gateway_goes_the_same_way_out() -> None:
    async with serve(model_app(Mind(replying("Tin.")), api_key=KEY)) as url:
        asked = {"messages": [{"role": "user", "content": "tin or slate?"}]}
        answer = await GatewayMind(f"{url}/v1", KEY, "test-mind").forward(asked)
        assert isinstance(answer, StreamingResponse)
        assert b"Tin." in b"".join([bytes(part) async for part in answer.body_iterator if not isinstance(part, str)])
        refused = await GatewayMind("http://127.0.0.1:1/v1", KEY, "test-mind").forward(asked)
        assert refused.status_code == 502


async def test_init_asks_the_service_that_was_typed_and_survives_nonsense(internet: SmallInternet) -> None:
    internet.say(page(b'{"did": "did:plc:owner"}', kind="application/json"))
    typed = f"http://127.0.0.1:{internet.port}"
    assert await asyncio.to_thread(resolve, typed, "owner.example") == "did:plc:owner"
    for nonsense in ("", "bsky", "http://[::1", f"http://127.0.0.1:{internet.port + 1}"):
        assert await asyncio.to_thread(resolve, nonsense, "owner.example") is None
    internet.say(page(b"[]", kind="application/json"))
    assert await asyncio.to_thread(resolve, typed, "owner.example") is None
