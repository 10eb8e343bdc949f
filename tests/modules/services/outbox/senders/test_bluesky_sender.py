"""An unreadable body is refused for good with one line, and hinders nothing else. The town stands in for Bluesky.

A post with one link gets a card with what the page says of itself. Whatever the page does, the post leaves.
"""

import sqlite3
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from adapters.atproto.richtext import only_link
from adapters.web.client import WebClient
from common.clock import iso
from common.redact import Redactor
from common.wording import deed
from modules.runtime.console import SilentConsole
from modules.runtime.journal.rows import Journal
from modules.services.outbox.bodies import IntentKind, KnownBody, PostBody, RecordRef, ReplyBody
from modules.services.outbox.policy import admit
from modules.services.outbox.senders.bluesky import (
    CARD_TITLE_MAX_CHARS,
    UNREADABLE,
    BlueskySender,
    LinkCards,
    said_by_page,
)
from modules.services.outbox.types import Intent, ProposedAction, StoredBefore
from tests.adapters.atproto.atproto_town import AtprotoTown, open_atproto_town
from tests.adapters.shared_server import SharedServer
from tests.fresh_database import open_database
from tests.loopback import to_loopback
from tests.modules.services.outbox.body_values import body_of, reply_body
from tests.modules.services.pictures.sharing import Sharing, open_sharing, pictures_in
from tests.outbox_rows import newest_intents
from town.atproto.index import POST, Json
from town.atproto.service import Fault
from town.serving import serve

SECRET = "hunter2-hunter2"
PAGE = """<!doctype html><html><head><title>Rain &amp; roofs</title>
<meta name="description" content="Which roof is louder."></head><body><title>No</title></body></html>"""


@dataclass
class Site:
    """A page on loopback, which counts its requests."""

    page: str = PAGE
    kind: str = "text/html"
    status: int = 200
    url: str = ""
    asked: int = 0
    headers: dict[str, str] = field(default_factory=dict)

    async def answer(self, _: Request) -> Response:
        self.asked += 1
        return Response(self.page, self.status, media_type=self.kind, headers=self.headers)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    async with serve(Starlette(routes=[Route("/{path:path}", site.answer)])) as url:
        site.url = f"{url}/roofs"
        yield site


@dataclass
class Poster:
    """Sends to the town, with cards."""

    town: AtprotoTown
    sender: BlueskySender

    async def send(self, body: KnownBody) -> Json:
        """Send a body, and return the record that exists then."""
        now = self.town.clock.now()
        before = StoredBefore(same_act=None, same_text=None, in_feed=False, created_at=now)
        intent: Intent = admit(ProposedAction(body), [], before, intent_id="a" * 32, now=now).intent
        assert intent.created_at == iso(now)
        sent = await self.sender.send(intent)
        assert sent.success, sent
        found = self.town.network.record(self.town.did("alice"), POST, intent.rkey)
        assert found
        return found.value


@pytest.fixture
async def poster(tmp_path: Path) -> AsyncIterator[Poster]:
    server, web = SharedServer(), WebClient(to_loopback())
    async with serve(server) as url:
        server.url = url
        async with open_atproto_town(server, tmp_path) as town:
            database = await open_database(tmp_path / "soul.db")
            journal = Journal(database, SilentConsole(), town.clock, Redactor())
            pictures = pictures_in(tmp_path / "memory", town.clock, database, journal)
            cards = LinkCards(web, Redactor([SECRET]).text)
            yield Poster(town, BlueskySender(await town.logged_in("alice"), pictures, cards))
            await database.close()
            await web.aclose()


async def test_a_post_with_one_link_has_a_card_of_what_the_page_says(poster: Poster, site: Site) -> None:
    record = await poster.send(PostBody(text=f"Read this: {site.url}"))
    assert record["embed"] == {
        "$type": "app.bsky.embed.external",
        "external": {"uri": site.url, "title": "Rain & roofs", "description": "Which roof is louder."},
    }
    assert record["facets"]


async def test_what_a_page_says_of_itself_to_others_goes_before_its_title(poster: Poster, site: Site) -> None:
    site.page = (
        f"<title>Plain</title><meta property='og:title' content=' Roofs\u202e of\n {SECRET} '>"
        f"<meta property='og:description' content='{'long ' * 900}'>"
    )
    card = (await poster.send(PostBody(text=site.url)))["embed"]["external"]
    assert card["title"].startswith("Roofs of ")
    assert SECRET not in card["title"]
    assert "\u202e" not in card["title"]
    assert len(card["description"]) == 1_000


@pytest.mark.parametrize(
    "change",
    [
        {"status": 404},
        {"kind": "application/pdf"},
        {"page": "<p>no title</p>"},
        {"page": "<![odd[<title>Rain</title>"},
        {"page": PAGE + "x" * 600_000},
        {"status": 302, "headers": {"location": "/again"}},
        {"url": "http://127.0.0.1:9/nobody"},
    ],
)
async def test_a_page_that_cannot_be_read_makes_no_card_and_the_post_leaves(
    poster: Poster, site: Site, change: dict[str, object]
) -> None:
    for name, value in change.items():
        setattr(site, name, value)
    record = await poster.send(PostBody(text=f"Read this: {site.url}"))
    assert record["text"] == f"Read this: {site.url}"
    assert "embed" not in record


async def test_nobody_has_us_fetch_a_page_by_writing_to_us(poster: Poster, site: Site) -> None:
    uri, cid = poster.town.network.post_as(poster.town.did("bob"), f"@alice.test what of {site.url} ?")
    ref = RecordRef(uri=uri, cid=cid)
    assert "embed" not in await poster.send(ReplyBody(text=f"It rains there: {site.url}", parent=ref, root=ref))
    assert site.asked == 0


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("none", ""),
        ("one https://a.example/x.", "https://a.example/x"),
        ("bare github.com/a/b", "https://github.com/a/b"),
        ("two https://a.example https://b.example", ""),
        ("a post https://bsky.app/profile/ada.test/post/3kaaaaaaaaa2a", ""),
    ],
)
def test_only_one_link_counts(text: str, link: str) -> None:
    assert only_link(text) == link


@given(st.text(alphabet="<>/\"'=![] -titlemeapogcn&;#x", max_size=200))
def test_no_page_breaks_the_reading(html: str) -> None:
    said = said_by_page(html)
    assert all(isinstance(value, str) for value in said.values())
    assert said_by_page(PAGE)["title"] == "Rain & roofs"
    assert len("Rain & roofs") <= CARD_TITLE_MAX_CHARS


KINDS: tuple[IntentKind, ...] = ("post", "reply", "like", "repost", "follow", "delete")


@pytest.fixture
async def outbox_in_town(tmp_path: Path) -> AsyncIterator[Sharing]:
    async with open_sharing(tmp_path, KINDS) as opened:
        yield opened


async def submitted(sharing: Sharing, kind: IntentKind) -> Intent:
    own_post = f"at://{sharing.town.did('alice')}/app.bsky.feed.post/3kaaaaaaaaa2a"
    return (await sharing.outbox.submit(ProposedAction(body_of(kind, own_post), by_owner=True))).intent


async def spoil(sharing: Sharing, intent: Intent, stored: str, state: str = "pending") -> None:
    def write(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE intents SET body = ?, state = ? WHERE id = ?", (stored, state, intent.id))

    await sharing.database.run(write)


def errors(sharing: Sharing) -> list[str]:
    return [f"{message} | {detail}" for kind, message, detail in sharing.console.lines if kind == "error"]


@pytest.mark.parametrize(
    ("kind", "stored"), [(kind, '{"text": 7, "uri": 7, "did": 7}') for kind in KINDS] + [("post", '{"text": "cut o')]
)
async def test_an_act_whose_body_cannot_be_read_is_refused_for_good_and_all_else_leaves(
    outbox_in_town: Sharing, kind: IntentKind, stored: str
) -> None:
    spoilt = await submitted(outbox_in_town, kind)
    await spoil(outbox_in_town, spoilt, stored)
    good = (await outbox_in_town.outbox.submit(ProposedAction(PostBody(text="Tin sings.")))).intent
    await outbox_in_town.outbox.deliver_due()
    refused = await outbox_in_town.now(spoilt)
    assert (refused.state, refused.error, refused.attempts) == ("failed", UNREADABLE, 0)
    assert (await outbox_in_town.now(good)).state == "done"
    (line,) = errors(outbox_in_town)
    assert line.startswith(f"Failed: {deed(kind)}")
    assert line.endswith(UNREADABLE)
    report = await outbox_in_town.outbox.deliver_due()
    assert (report.failed, report.next_in_s) == (0, None)
    assert len(errors(outbox_in_town)) == 1


async def test_what_was_on_its_way_is_looked_for_before_it_is_refused(outbox_in_town: Sharing) -> None:
    spoilt = await submitted(outbox_in_town, "post")
    await spoil(outbox_in_town, spoilt, "[1]", "sending")
    await outbox_in_town.outbox.deliver_due()
    assert (await outbox_in_town.now(spoilt)).state == "failed"
    assert [one.id for one in await newest_intents(outbox_in_town.outbox, 9)] == [spoilt.id]


async def test_a_reply_that_waited_is_given_up_where_the_post_that_it_answers_is_gone(outbox_in_town: Sharing) -> None:
    network, outbox, bob = outbox_in_town.town.network, outbox_in_town.outbox, outbox_in_town.town.did("bob")
    asked = [network.post_as(bob, f"Which roof is louder, {roof} or tin?") for roof in ("slate", "copper", "zinc")]
    held = [
        (await outbox.submit(ProposedAction(reply_body(f"Tin, {number} times.", uri, cid=cid), hold="drafts"))).intent
        for number, (uri, cid) in enumerate(asked)
    ]
    network.delete(bob, "app.bsky.feed.post", asked[0][0].rpartition("/")[2])
    await outbox_in_town.town.clock.advance(3600)
    for one in held[:2]:
        await outbox.approve(one.id)
    await outbox.deliver_due()
    outbox_in_town.town.faults.arm(Fault("bad_gateway", "app.bsky.feed.getPostThread", times=9))
    await outbox.approve(held[2].id)
    await outbox.deliver_due()
    assert [(await outbox_in_town.now(one)).state for one in held] == ["failed", "done", "done"]
    (line,) = errors(outbox_in_town)
    assert line.endswith(asked[0][0])


@pytest.mark.parametrize("door", ["deleted", "gated", "blocked", "open"])
async def test_an_approved_reply_leaves_only_while_its_addressee_takes_it(outbox_in_town: Sharing, door: str) -> None:
    network, outbox, bob = outbox_in_town.town.network, outbox_in_town.outbox, outbox_in_town.town.did("bob")
    uri, cid = network.post_as(bob, "Which roof is louder?")
    held = (await outbox.submit(ProposedAction(reply_body("Tin.", uri, cid=cid), hold="drafts"))).intent
    key, at = uri.rpartition("/")[2], "2026-01-01T00:00:00Z"
    match door:
        case "deleted":
            network.delete(bob, POST, key)
        case "gated":
            network.put(bob, "app.bsky.feed.threadgate", key, {"post": uri, "allow": [], "createdAt": at})
        case "blocked":
            network.create(bob, "app.bsky.graph.block", {"subject": outbox.own_did(), "createdAt": at})
    await outbox.approve(held.id)
    await outbox.deliver_due()
    assert (await outbox_in_town.now(held)).state == ("done" if door == "open" else "failed")
    assert [line.endswith(uri) for line in errors(outbox_in_town)] == ([] if door == "open" else [True])
