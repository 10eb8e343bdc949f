"""Proves that a life listens to its owner and does all else while the spaced requests of its start still wait."""

import asyncio
import json
import random
import re
import shutil
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from adapters.space.chatlog import ChatLog
from adapters.space.server import SpaceServer
from common.clock import SystemClock
from common.result import Ok
from modules.runtime.console import SilentConsole
from modules.runtime.control import Control
from modules.runtime.home import Home
from modules.runtime.status import Stage
from modules.services.work.types import OWNER_LINE
from soul.app import App, open_soul
from tests import patience
from tests.owner_lines import answered
from tests.patience import HANG_S
from tests.program import one_clear_line, soul, started, until
from tests.running_town import RunningTown, awake, replying, settings_of
from tests.soul.room_host.pseudo_terminal import Terminal
from town.atproto.service import Fault
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.serving import serve

LOGIN = "com.atproto.server.createSession"
PROFILE_RECORD = "com.atproto.repo.getRecord"
DOWN = Fault("bad_gateway", LOGIN, times=10_000)


_WAITING = "SELECT payload ->> 'text' FROM work WHERE state = 'pending' AND kind = ? ORDER BY id"


def waiting(home: Home) -> list[str]:
    """Return the owner's messages that wait for an answer, as stored on the disk."""
    if not home.database.exists():
        return []
    connection = sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)
    try:
        return [text for (text,) in connection.execute(_WAITING, (OWNER_LINE,))]
    except sqlite3.OperationalError:
        return []
    finally:
        connection.close()


@asynccontextmanager
async def terminal_of(home: Home) -> AsyncIterator[Terminal]:
    terminal = Terminal(200, 40)
    await terminal.start("run", "--home", str(home.root))
    try:
        yield terminal
    finally:
        await terminal.close()


@pytest.mark.parametrize("kill", [True, False], ids=["kill -9", "Ctrl-C"])
@pytest.mark.slow
async def test_what_is_typed_before_the_login_is_kept_and_answered_by_the_next_life(
    running_town: RunningTown, *, kill: bool
) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1")
    running_town.mind.answer = replying("Slate.")
    running_town.faults.arm(DOWN)
    async with terminal_of(home) as terminal:
        await terminal.until("/help: commands")
        terminal.type("tin or slate?\r")
        await patience.until(lambda: waiting(home) == ["tin or slate?"])
        terminal.type("/help\r")
        await terminal.until("Stop the SOUL; nothing accepted is lost")
        if kill:
            terminal.process.kill()
            await terminal.end()
        else:
            terminal.type("\x03")
            assert await terminal.end() == 0
            assert terminal.is_as_before
    assert running_town.mind.asked == []
    running_town.faults.clear()
    async with started("run", "--home", str(home.root)) as process:
        seen = await until(process, "rowan: Slate.")
    assert "1 of your messages waits for an answer" in seen
    assert "Awake" not in seen


@pytest.mark.slow
async def test_a_byte_that_is_no_text_ends_no_talk(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1")
    running_town.mind.answer = replying("Slate.")
    async with terminal_of(home) as terminal:
        await terminal.until("/help: commands")
        terminal.type("caf\udce9 or tea?\r")
        await terminal.until("rowan: Slate.")
    assert any(message.text.endswith("caf? or tea?") for message in running_town.mind.asked[-1].messages)


@pytest.mark.slow
async def test_a_refused_login_ends_the_process_with_its_line_and_the_terminal_as_it_was(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1", AGENT_BLUESKY_PASSWORD="not-the-password")
    one_clear_line(await soul("run", "--home", str(home.root)), "refuses the login", "AGENT_BLUESKY_PASSWORD", code=78)
    later = (await soul("status", "--home", str(home.root))).output
    assert "refuses the login" in later
    assert "Then `soul run`" in later
    async with terminal_of(home) as terminal:
        await terminal.until("refuses the login")
        assert await terminal.end() == 78
        assert "Traceback" not in terminal.text
        assert terminal.is_as_before


@asynccontextmanager
async def living(home: Home, console: SilentConsole | None = None) -> AsyncIterator[App]:
    """Run the SOUL of `home`, logged in, as the program does; its life has ended when the block is left."""
    ended = asyncio.Event()
    async with open_soul(
        settings_of(home), home, console=console or SilentConsole(), clock=SystemClock(), rng=random.Random(1)
    ) as app:
        await app.log_in()
        life = asyncio.create_task(app.run(ended))
        try:
            yield app
        finally:
            ended.set()
            await life


async def summaries(app: App) -> list[str]:
    return [stored.entry.summary for stored in await app.services.journal.recent(1000)]


async def _waits_because(app: App, name: str, why: str) -> bool:
    """Return whether a loop gives `why` as its reason not to run; its timer may have it running at this moment."""
    outcome = await app.scheduler.run_guarded(name)
    assert not outcome.ran
    return why in outcome.reason


@pytest.mark.slow
async def test_room_timers_and_owner_do_not_wait_for_a_start_that_the_network_keeps_waiting(
    running_town: RunningTown, tmp_path: Path
) -> None:
    server = SpaceServer(ChatLog(tmp_path / "room"))
    port = await server.start(0)
    assert isinstance(port, Ok)
    running_town.mind.answer = replying("Slate.")
    running_town.faults.arm(Fault("hang", PROFILE_RECORD, times=10_000, seconds=10 * HANG_S))
    home = running_town.make_home("rowan", SPACE_URL=f"ws://127.0.0.1:{port.data}")
    try:
        async with living(home) as app:
            await patience.until(lambda: [one.name for one in server.get_connected_agents()] == ["rowan"])
            await patience.until(lambda: all(state.next_at for state in app.scheduler.states()))
            assert await answered(app.owner, "tin or slate?") == "Slate."
            for name, why in (("outbox", "may act"), ("expression-check", "feed")):
                await patience.until(partial(_waits_because, app, name, why), what=f"the wait of {name}")
            assert not app.stages.has_reached(Stage.SETTLED)
            assert "Awake" not in await summaries(app)
    finally:
        await server.stop()


async def test_a_life_settles_after_its_login_and_says_what_it_is_before_anything_public_leaves(
    running_town: RunningTown,
) -> None:
    running_town.network.post_as(running_town.account("kit"), "Morning @rowan.test, which roof is louder in the rain?")
    async with living(running_town.make_home("rowan")) as app:
        await app.stages.wait_for(Stage.SETTLED)
        await patience.until(lambda: bool(running_town.texts("rowan")))
        told = (await summaries(app))[::-1]
    wanted = ["On Bluesky as @rowan.test", "The profile says that this is a bot", "Awake"]
    assert [one for one in told if one in wanted] == wanted
    sending = next(place for place, one in enumerate(told) if one.startswith("Sending"))
    assert sending > told.index(wanted[1])


async def test_what_waits_to_leave_for_a_peer_that_was_just_listed_needs_no_yes(running_town: RunningTown) -> None:
    running_town.mind.answer, home = replying("Slate."), running_town.make_home("rowan")
    running_town.network.post_as(running_town.account("kit"), "Morning @rowan.test, which roof is louder in the rain?")
    async with awake(home) as earlier:
        await earlier.app.scheduler.run_guarded("awareness")
    Control(home.memory).pause()
    running_town.faults.arm(Fault("hang", "app.bsky.actor.getProfile", times=10_000, seconds=10 * HANG_S))
    async with living(running_town.make_home("rowan", SOUL_PEERS="kit.test", SOUL_APPROVAL="strangers")) as app:
        await app.stages.wait_for(Stage.CHECKED)
        await patience.until(partial(_has_looked, app, "outbox"), what="a look at the outbox")
        (reply,) = await app.services.outbox.of_kind("reply", 9)
    assert reply.state != "held"


async def _has_looked(app: App, name: str) -> bool:
    return (await app.scheduler.run_guarded(name)).ran


@pytest.mark.parametrize(
    ("login", "why"),
    [("rowan", ""), ("somebody", "the token is rowan's, but .env says somebody")],
    ids=["works", "of another"],
)
async def test_a_token_for_github_that_does_not_work_is_told_at_start(
    running_town: RunningTown, login: str, why: str
) -> None:
    github = GitHubNetwork(clock=SystemClock())
    account = github.create_account("rowan")
    async with serve(github_app(github)) as url:
        given = {"GITHUB_API_URL": url, "AGENT_GITHUB_USERNAME": login, "AGENT_GITHUB_TOKEN": account.token}
        console = SilentConsole()
        async with living(running_town.make_home("rowan", SOUL_ALLOW_PRIVATE_NET="on", **given), console) as app:
            await app.stages.wait_for(Stage.SETTLED)
            github_client = app.services.integrations.github
            await patience.until(lambda: github_client.rate.remaining is not None or bool(warned(console)))
            await patience.until(lambda: bool(warned(console)) == bool(why))
    assert [why in reason for reason in warned(console)] == ([True] if why else [])


def warned(console: SilentConsole) -> list[str]:
    return [reason for _, message, reason in console.lines if message.startswith("The account on GitHub")]


async def test_rights_that_a_token_lacks_and_an_account_that_is_shared_are_told_at_start(
    running_town: RunningTown,
) -> None:
    github = GitHubNetwork(clock=SystemClock())
    github.issue_token(github.create_account("rowan"), "ghp_narrow", ("repo", "read:org"))
    home = running_town.make_home("rowan", SOUL_ALLOW_PRIVATE_NET="on", AGENT_GITHUB_USERNAME="rowan")
    seen = {"discovered_at": "2026-08-03T09:00:00Z", "last_seen_at": "2026-08-03T09:00:00Z"}
    how = {"discovered_via": "social", "confidence": "low"}
    peer = {"bluesky_handle": "twin.test", "github_username": "twin.test", "claims_github": "Rowan", **how, **seen}
    home.memory.mkdir(exist_ok=True)
    (home.memory / "discovered_peers.json").write_text(json.dumps({"peers": {"twin.test": peer}}))
    async with serve(github_app(github)) as url:
        with (home.root / ".env").open("a", encoding="utf-8") as env:
            env.write(f"\nGITHUB_API_URL={url}\nAGENT_GITHUB_TOKEN=ghp_narrow\n")
        console = SilentConsole()
        async with living(home, console) as app:
            await app.stages.wait_for(Stage.SETTLED)
            await patience.until(
                lambda: any("says to be rowan on GitHub too" in reason for _, _, reason in console.lines)
            )
    missing = [reason for _, _, reason in console.lines if "the token lacks the scope" in reason]
    assert ["user:follow" in reason and "settings/tokens/new" in reason for reason in missing] == [True]


@pytest.mark.slow
async def test_a_copy_stops_with_one_line_while_the_first_lives_and_begins_at_once_when_it_ended(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan")
    async with started("run", "--home", str(home.root)) as first:
        await until(first, "Awake")
        copied = Path(shutil.copytree(home.root, home.root.with_name("copy"), symlinks=True))
        ended = await soul("run", "--home", str(copied))
        one_clear_line(ended, code=75)
        assert "@rowan.test" in ended.complaints[0]
        assert "--take-over" in ended.remedies[0]
        assert not (copied / ".memory" / "starts.json").exists(), "its starts are no sign of trouble"
        first.send_signal(signal.SIGINT)
        await first.wait()
    async with started("run", "--home", str(copied)) as second:
        await until(second, "Awake")


@pytest.mark.slow
async def test_the_owners_page_opens_beside_the_life_and_a_taken_port_does_not_keep_it_from_living(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan", DASHBOARD_PORT="0")
    async with started("run", "--dashboard", "--home", str(home.root)) as process:
        seen = await until(process, "Your page: ") + await until(process, "Awake")
        (address,) = re.findall(r"http://\S+token=\S+", seen)
        async with httpx.AsyncClient(follow_redirects=True) as client:
            assert "Awake" in (await client.get(address)).text
            other = running_town.make_home("ada", DASHBOARD_PORT=str(urlsplit(address).port))
            async with started("run", "--dashboard", "--home", str(other.root)) as second:
                assert "No page: " in await until(second, "Awake")
