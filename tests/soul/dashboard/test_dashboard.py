"""Proves who can open the owner's page, what it shows of a home, and that decisions made there are carried out."""

import asyncio
import html
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from adapters.atproto.records import web_url
from common.clock import SystemClock
from common.errors import ConfigError, StorageError
from common.settings import load_settings
from modules.runtime.backup import GIB, restore_backup, write_backup
from modules.runtime.control import Control
from modules.runtime.database.file import reading
from modules.runtime.home import MOVED, Home
from modules.services.memory.admission import NewMemory
from modules.services.outbox.bodies import PostBody
from modules.services.outbox.github_bodies import PullRequestBody, PushBody
from modules.services.outbox.types import ProposedAction
from modules.services.owner import OwnerAnswers
from modules.services.rights.requests import ForgetRequests
from modules.services.rights.store import muted
from soul.dashboard.access import door_of
from soul.dashboard.app import days_until, plot_of
from soul.dashboard.serving import serve_many, serving_dashboard
from tests.patience import HANG_S, until
from tests.running_town import RunningTown, awake, call, write_home

PAGES = ("/", "/talk", "/work", "/memory", "/people", "/growing", "/spending", "/log", "/settings")
KIT = "did:plc:kit"
MARKUP = '<img src="x" onerror="alert(1)">'
TOKEN = "a" * 40


def make_home(root: Path, **more: str) -> Home:
    settings = {"OWNER_BLUESKY_SOCIAL_HANDLE_DID": "did:plc:owner", "SOUL_TIMEZONE": "UTC", "SOUL_SPEED": "1"}
    return write_home(root, "rowan", **settings, **more)


@asynccontextmanager
async def opened(home: Home) -> AsyncIterator[httpx.AsyncClient]:
    """Open the page as its owner's browser has it after the printed address was opened."""
    settings = load_settings(home.root).model_copy(update={"dashboard_port": 0})
    async with serving_dashboard(settings, home, SystemClock()) as address:
        base = address.partition("/?")[0]
        headers = {"origin": base}
        async with httpx.AsyncClient(base_url=base, headers=headers, follow_redirects=True) as client:
            answer = await client.get(address)
            assert answer.status_code != httpx.codes.UNAUTHORIZED
            assert "token" not in str(answer.url)
            yield client


def panel(name: str, page: str) -> str:
    """Return the panel of a page whose heading has this id."""
    return page.partition(f'aria-labelledby="{name}"')[2].partition("</section>")[0]


async def act(client: httpx.AsyncClient, name: str, /, **fields: str | list[str]) -> str:
    """Press a button, and return what the page says to it."""
    answer = await client.post(f"/act/{name}", data=fields)
    assert answer.status_code == httpx.codes.OK
    return parse_qs(urlsplit(str(answer.url)).query)["told"][0]


async def test_only_who_knows_the_token_can_look_and_only_the_page_itself_can_act(tmp_path: Path) -> None:
    home = make_home(tmp_path / "rowan")
    async with opened(home) as client:
        base = str(client.base_url)
        async with httpx.AsyncClient(base_url=base, headers={"origin": base.rstrip("/")}) as stranger:
            for page in (*PAGES, "/events", "/static/page.css"):
                assert (await stranger.get(page)).status_code == httpx.codes.UNAUTHORIZED
            assert (await stranger.get("/?token=guessed")).status_code == httpx.codes.UNAUTHORIZED
            assert (await stranger.post("/act/pause")).status_code == httpx.codes.UNAUTHORIZED
        rebound = await client.get("/", headers={"host": "evil.example"})
        assert rebound.status_code == httpx.codes.BAD_REQUEST
        probed = await client.get("/healthz", headers={"host": "10.244.0.5:7780"})
        assert probed.status_code == httpx.codes.SERVICE_UNAVAILABLE  # nobody is awake
        for origin in ("http://evil.example", "null", base.replace("http:", "https:")):
            foreign = await client.post("/act/pause", headers={"origin": origin})
            assert foreign.status_code == httpx.codes.FORBIDDEN
        assert Control(home.memory).standing().may_act
        assert "script-src 'self'" in rebound.headers["content-security-policy"]


async def test_a_cookie_that_no_browser_would_send_opens_nothing(tmp_path: Path) -> None:
    async with opened(make_home(tmp_path / "rowan")) as client, httpx.AsyncClient(base_url=client.base_url) as stranger:
        name = next(iter(client.cookies))
        answer = await stranger.get("/", headers={b"cookie": f'{name}="é"'.encode("latin-1")})
        assert answer.status_code == httpx.codes.UNAUTHORIZED


async def test_a_cookie_of_another_program_on_this_host_locks_nobody_out(tmp_path: Path) -> None:
    async with opened(make_home(tmp_path / "rowan")) as client, httpx.AsyncClient(base_url=client.base_url) as browser:
        ((name, value),) = client.cookies.items()
        answer = await browser.get("/growing", headers={"cookie": f'prefs={{"a":1}}; {name}={value}'})
        assert answer.status_code == httpx.codes.OK


async def test_the_pages_of_two_homes_stay_open_in_one_browser(tmp_path: Path) -> None:
    async with opened(make_home(tmp_path / "rowan")) as first, opened(make_home(tmp_path / "ada")) as second:
        browser = httpx.Cookies(first.cookies)
        browser.update(second.cookies)
        for page in (first, second):
            page.cookies = browser
            assert (await page.get("/growing")).status_code == httpx.codes.OK


async def test_beyond_this_machine_it_wants_tls_and_a_token_of_the_owners(tmp_path: Path) -> None:
    def door(**more: str) -> str:
        home = make_home(tmp_path / str(len(list(tmp_path.iterdir()))), **more)
        return door_of(load_settings(home.root), home).public_origin

    public = "https://rowan.example.org"
    for wrong in (
        {"DASHBOARD_HOST": "192.0.2.7"},
        {"DASHBOARD_ORIGIN": public},
        {"DASHBOARD_ORIGIN": "http://rowan.example"},
    ):
        with pytest.raises(ConfigError):
            door(**wrong, DASHBOARD_TOKEN="short")
    for never_sent in (
        "https://Rowan.example.org",
        f"{public}:443",
        "https://rówan.example",
        "https://me@rowan.example",
    ):
        with pytest.raises(ConfigError):
            door(DASHBOARD_ORIGIN=never_sent, DASHBOARD_TOKEN=TOKEN)
    assert door(DASHBOARD_HOST="192.0.2.7", DASHBOARD_ORIGIN=public, DASHBOARD_TOKEN=TOKEN) == public


def test_a_token_that_cannot_be_read_is_made_anew_and_one_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    home = make_home(tmp_path / "rowan")
    settings = load_settings(home.root)
    before = door_of(settings, home).token
    (file,) = home.memory.iterdir()
    for damaged in (b"\xff" * 40, b"a" * 2_000):
        file.write_bytes(damaged)
        after = door_of(settings, home).token
        assert after != before
        assert door_of(settings, home).token == after
    file.unlink()
    file.mkdir()
    with pytest.raises(StorageError):
        door_of(settings, home)


async def test_a_home_in_which_nobody_has_lived_yet_says_so(tmp_path: Path) -> None:
    async with opened(make_home(tmp_path / "rowan")) as client:
        for page in PAGES:
            assert "has not lived here yet" in (await client.get(page)).text or page in {
                "/growing",
                "/log",
                "/settings",
            }


async def test_the_changes_that_a_push_waits_with_are_shown_as_such(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts")
    async with awake(home) as life, opened(home) as client:
        text = f"acme/site: push\n\n1 file\n\ndiff --git a/a.py b/a.py\n@@ -1 +1 @@\n-old\n+{MARKUP}"
        body = PushBody(source="workspace", repo="acme/site", branch="b", sha="a" * 40, folder="f", text=text)
        submitted = await life.app.services.outbox.submit(
            ProposedAction(body, part="push", by_owner=True, own_words=True)
        )
        assert submitted.held, submitted.reason
        page = (await client.get("/")).text
        assert '<span class="gone">-old' in page
        assert '<span class="added">+&lt;' in page
        assert MARKUP not in page


async def test_a_push_and_its_pull_request_are_ticked_together_with_others(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts")
    async with awake(home) as life, opened(home) as client:
        of = {"source": "workspace", "repo": "acme/site", "task": "acme/site#1/1", "epoch": 1}
        bodies = (
            PushBody(**of, branch="b", sha="a" * 40, folder="f", text="One file."),
            PullRequestBody(**of, title="Count", body="It counts.", head="b", base="main"),
            PostBody(text="Lead hums."),
        )
        acts = [ProposedAction(one, part=one.kind, by_owner=True, own_words=True) for one in bodies]
        ids = [(await life.app.services.outbox.submit(one)).intent.id for one in acts]
        assert len(await life.app.services.outbox.held()) == len(ids)
        assert (await act(client, "approve", id=ids)).startswith("Approved")
        assert await life.app.services.outbox.held() == []


async def test_what_the_owner_decides_on_the_page_is_done(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts")
    async with awake(home) as life, opened(home) as client:
        outbox = life.app.services.outbox
        texts = ("Tin roofs sing.", f"Slate is quiet. {MARKUP}")
        yes, no = [(await outbox.submit(ProposedAction(PostBody(text=text)))).intent for text in texts]
        memory = NewMemory("fact", "roofs", "Slate lasts.", source="owner:terminal")
        number = await life.app.services.knowledge.stores.memories.save(memory, life.app.services.clock.now())

        first = (await client.get("/")).text
        assert texts[0] in first
        assert MARKUP not in first
        assert "Slate lasts." in (await client.get("/memory", params={"q": "slate"})).text
        for page in PAGES:
            assert (await client.get(page)).status_code == httpx.codes.OK

        assert (await act(client, "pause", reason="a quiet week")).startswith("Paused")
        assert "a quiet week" in (await client.get("/")).text
        assert "idle" not in panel("alive", (await client.get("/")).text)
        assert "Your token" not in (await client.get("/", params={"told": "Your token expired", "sign": "a"})).text
        await act(client, "approve", id=yes.id)
        await act(client, "reject", id=no.id)
        assert "waits" in (await act(client, "approve", id=no.id))
        states = [found.state for one in (yes, no) if (found := await outbox.get(one.id))]
        assert states == ["pending", "blocked"]

        words = ("Lead hums.", "Zinc rattles.")
        several = [(await outbox.submit(ProposedAction(PostBody(text=text)))).intent.id for text in words]
        page = (await client.get("/")).text
        assert all(f'form="several" name="id" value="{one}"' in page for one in several)
        assert "waits" in await act(client, "reject", id=[*several, no.id])
        assert await act(client, "reject", id=several) == "Rejected: 2 drafts"
        assert await outbox.held() == []

        secret = next(iter(load_settings(home.root).secrets))
        draft = (await outbox.submit(ProposedAction(PostBody(text="Copper turns green.")))).intent
        for refused in ("w" * 301, f"It is {secret}", "Tin roofs sing."):
            told = await act(client, "edit", id=draft.id, text=refused)
            assert "still waits" in told
            assert secret not in told
        assert (await outbox.get(draft.id)) == draft
        await act(client, "edit", id=draft.id, text="Copper turns green,\r\nslowly.")
        edited = await outbox.get(draft.id)
        assert edited is not None
        assert (edited.state, edited.rkey, edited.by_owner) == ("pending", draft.rkey, True)
        assert edited.body.public_text == "Copper turns green,\nslowly."

        assert "no memory the first" in await act(client, "memory_forget", id="the first", back="/memory")
        await act(client, "memory_forget", id=str(number), back="/memory")
        assert "Slate lasts." not in (await client.get("/memory", params={"q": "slate"})).text
        await act(client, "mute", did=KIT)
        with reading(home.database) as connection:
            assert KIT in muted(connection)
        await act(client, "forget", did=KIT)
        assert ForgetRequests(home.memory).all() == []
        await act(client, "forget", did=KIT, sure="yes")
        assert [one.did for one in ForgetRequests(home.memory).all()] == [KIT]


async def test_the_first_page_tells_the_day_with_links_to_the_stories_of_its_cases(running_town: RunningTown) -> None:
    running_town.mind.answer = lambda _: call("stay_silent", reason=f"a joke among friends {MARKUP}")
    home = running_town.make_home("rowan")
    uri, _ = running_town.network.post_as(running_town.account("kit"), "I told @rowan.test, did I not, Sam?")
    async with awake(home) as life, opened(home) as client:
        before = panel("today", (await client.get("/")).text)
        assert ">nothing<" in before.partition("left alone")[2]
        marker = '<!-- task-event {"task":1} -->'
        memory = NewMemory("fact", f"**the mill**{marker}", f"{marker}It *grinds*.", source="owner:terminal")
        await life.app.services.knowledge.stores.memories.save(memory, life.app.services.clock.now())
        await life.look()
        told = panel("today", (await client.get("/")).text)
        assert "1: its own judgement (1: @kit.test)" in told
        assert "(the mill)" in told
        assert "task-event" not in (remembered := (await client.get("/memory")).text)
        assert "It grinds." in remembered
        assert "a joke among friends" in told
        assert MARKUP not in told
        link = html.unescape(told.partition('href="')[2].partition('"')[0])
        story = await client.get(link)
        assert web_url(uri) in story.text


async def test_an_open_page_is_told_when_something_changed(tmp_path: Path) -> None:
    home = make_home(tmp_path / "rowan")
    async with opened(home) as client, client.stream("GET", "/events") as stream:
        assert stream.headers["x-accel-buffering"] == "no"
        lines = (line async for line in stream.aiter_lines() if line)
        assert await anext(lines) == ": still here"
        await asyncio.to_thread(Control(home.memory).pause, "tea")
        async with asyncio.timeout(HANG_S):
            while await anext(lines) != "event: changed":
                pass


async def test_a_monitor_reads_figures_with_the_token_and_health_without_and_neither_names_a_person(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = lambda _: call("stay_silent", reason="a joke among friends")
    home = running_town.make_home("rowan")
    running_town.network.post_as(running_town.account("kit"), "I told @rowan.test, did I not, Sam?")
    async with awake(home) as life, opened(home) as client:
        await life.look()
        await life.app.status.write("running")
        async with httpx.AsyncClient(base_url=str(client.base_url)) as monitor:
            token = door_of(load_settings(home.root), home).token
            for wrong in ({}, {"authorization": "Bearer guessed"}):
                assert (await monitor.get("/metrics", headers=wrong)).status_code == httpx.codes.UNAUTHORIZED
            bearer = {"authorization": f"Bearer {token}"}
            assert (await monitor.get("/", headers=bearer)).status_code == httpx.codes.UNAUTHORIZED
            figures = (await monitor.get("/metrics", headers=bearer)).text
            assert 'soul_entries_total{soul="rowan",kind="decision",loop="awareness",outcome="silent"} 1' in figures
            assert 'soul_alive{soul="rowan"} 1' in figures
            assert "# TYPE soul_acts gauge" in figures, "a deleted act counts no more"
            for private in ("did:", "at://", "kit", "joke", token):
                assert private not in figures
            health = [(await monitor.get(path)).status_code for path in ("/healthz", "/readyz")]
            Control(home.memory).pause("tea")
            paused = [(await monitor.get(path)).status_code for path in ("/healthz", "/readyz")]
    async with opened(home) as client:
        assert (await client.get("/healthz")).status_code == httpx.codes.SERVICE_UNAVAILABLE
    assert (health, paused) == ([200, 200], [200, 503])


async def test_a_draft_is_shown_where_it_waits_and_not_among_the_decisions(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts")
    running_town.network.post_as(running_town.account("kit"), "Morning @rowan.test, which roof is louder in the rain?")
    async with awake(home) as life, opened(home) as client:
        await life.look()
        await life.app.status.write("running")
        page = (await client.get("/")).text
        assert "@kit.test" in panel("waits", page)
        assert "@kit.test" not in panel("lately", page)
        all_souls = asyncio.create_task(serve_many({"houses/one": home.root}, SystemClock(), 0))
        told = [""]

        def is_told() -> bool:
            told.append(told[-1] + capsys.readouterr().out)
            return "token=" in told[-1]

        await until(is_told, what="the address of the page")
        async with httpx.AsyncClient(follow_redirects=True) as browser:
            page = (await browser.get(told[-1].split()[-1])).text
            assert ">rowan</a>" in page
            assert "Slate, because it remembers the rain" in page
            assert "Wake rowan" not in page
        all_souls.cancel()
        await asyncio.gather(all_souls, return_exceptions=True)


async def test_a_home_that_was_moved_says_so_and_shows_its_life_where_it_was_restored(
    running_town: RunningTown, tmp_path: Path
) -> None:
    running_town.mind.answer = lambda _: call("stay_silent", reason="a joke among friends")
    home = running_town.make_home("rowan")
    running_town.network.post_as(running_town.account("kit"), "I told @rowan.test, did I not, Sam?")
    async with awake(home) as life:
        await life.look()
        await life.app.status.write("running")
        write_backup(home, tmp_path / "beside.soul")
    async with opened(home) as client:
        (home.memory / MOVED).write_text("at 2026-11-29 10:00 UTC into rowan.soul\n")
        assert "at 2026-11-29 10:00 UTC into rowan.soul" in panel("alive", (await client.get("/")).text)
    restore_backup(tmp_path / "beside.soul", tmp_path / "new", "", most_bytes=GIB)
    async with opened(Home.at(tmp_path / "new")) as client:
        page = (await client.get("/")).text
        assert "Moved" not in page
        assert "restored from a backup" in panel("alive", page)
        assert "a joke among friends" in panel("lately", page)


def test_the_limit_is_a_line_where_the_bars_can_be_read_beside_it_and_always_told() -> None:
    today = date(2026, 11, 29)
    shown = days_until(today, 3)
    for highest, is_line in ((900_000, True), (3_000, False)):
        plot = plot_of("Tokens a day", {today: highest}, shown, "tokens", cap=2_000_000)
        assert (plot.limit is not None) is is_line
        assert plot.top == ("2,000,000" if is_line else "3,000")
        assert any("2,000,000" in note for note in plot.notes)


async def test_what_the_owner_writes_on_the_page_is_answered_by_the_living_soul(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as life, opened(home) as client:
        shown: asyncio.Queue[str] = asyncio.Queue()
        answers = OwnerAnswers(life.app.owner, console=life.console, say=shown.put_nowait, clock=SystemClock())
        answering = asyncio.create_task(answers.run(greet=False))
        secret = next(iter(load_settings(home.root).secrets))
        assert "terminal" in await act(client, "say", text="/quit", back="/talk")
        assert "in parts" in await act(client, "say", text="雨" * 12_000, back="/talk")
        await client.post("/act/say", data={"text": f"Which roof is louder? {secret} {MARKUP}", "back": "/talk"})
        async with asyncio.timeout(HANG_S):
            await shown.get()
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)
        page = (await client.get("/talk")).text
        assert "Which roof is louder?" in page
        assert "because it remembers the rain" in page
        assert secret not in page
        assert MARKUP not in page
