"""`soul bluesky-reset`: deletes every post and reply of the SOUL's account after the owner types yes."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from adapters.atproto.client import Atproto
from adapters.atproto.records import POST
from adapters.web.client import http_transport_factory
from common.clock import Clock, SystemClock
from common.errors import Auth, Transient
from common.result import Err
from common.settings import Settings, load_settings
from common.wording import counted
from modules.runtime.home import Home, HomeLock
from modules.runtime.journal.types import Entry
from modules.services.outbox import store
from soul.commands import options
from soul.commands.beside import journal_beside
from soul.terminal.output import write_lines

PAUSE_S = 0.5
BACK_OFF_S = 30.0
_PROGRESS_EVERY = 10
_YES = "yes"
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Deleted:
    """How many posts were deleted, and the uris of those that were not."""

    count: int
    left: tuple[str, ...]


def run_bluesky_reset(
    root: options.Home,
    *,
    dry_run: options.DryRun = False,
    ask: Callable[[str], str] = input,
    clock: Clock | None = None,
) -> bool:
    """Delete all posts, or with `dry_run` only list them; False if some could not be deleted.

    Raises:
        SoulError: the SOUL is awake, the login fails, or the posts cannot be listed.

    """
    settings = load_settings(root)
    home = Home.at(root, settings.memory_dir)
    clock = clock or SystemClock()
    with HomeLock(home, agent_name=settings.agent_name, started_at=clock.now()):
        return asyncio.run(_reset(settings, home, clock, dry_run=dry_run, ask=ask))


async def _reset(settings: Settings, home: Home, clock: Clock, *, dry_run: bool, ask: Callable[[str], str]) -> bool:
    atproto = Atproto(
        service_url=settings.atproto_service_url,
        identifier=settings.agent_bluesky_username,
        password=settings.agent_bluesky_password.get_secret_value(),
        session_path=home.session,
        clock=clock,
        min_spacing_s=0,
        transport=http_transport_factory(settings.atproto_service_url, private_ok=settings.soul_allow_private_net),
    )
    try:
        login = await atproto.authenticate()
        if isinstance(login, Err):
            raise Auth(f"Bluesky: {login.error}", remedy="Check AGENT_BLUESKY_USERNAME and AGENT_BLUESKY_PASSWORD.")
        uris = await all_posts(atproto)
        write_lines(f"@{login.data.handle} has {counted(len(uris), 'post or reply', 'posts and replies')}")
        if dry_run or not uris:
            write_lines(*uris, *(["Nothing was deleted"] if uris else []))
            return True
        said = await asyncio.to_thread(ask, "All of them will be deleted, and nobody can bring them back. Type yes: ")
        if said.strip() != _YES:
            write_lines("Nothing was deleted")
            return True
        deleted = await delete_all(atproto, uris, clock, write_lines)
        await _forget(settings, home, clock, deleted)
    finally:
        await atproto.aclose()
    write_lines(f"Deleted {deleted.count} of {len(uris)}", *(f"Still there: {uri}" for uri in deleted.left))
    return not deleted.left


async def all_posts(atproto: Atproto) -> list[str]:
    """Return the uris of all posts and replies of the account, newest first. Raises `Transient`."""
    uris: list[str] = []
    cursor: str | None = None
    while True:
        page = await atproto.list_records(POST, cursor=cursor)
        if isinstance(page, Err):
            raise Transient(f"The posts could not be listed: {page.error}", retry_after=page.retry_after)
        uris += [record.uri for record in page.data.items]
        if not (cursor := page.data.cursor):
            return uris


async def delete_all(atproto: Atproto, uris: list[str], clock: Clock, tell: Tell) -> Deleted:
    """Delete these posts one after the other; retry a temporary failure once, after the pause the service asks for."""
    left: list[str] = []
    for number, uri in enumerate(uris, start=1):
        if number > 1:
            await clock.sleep(PAUSE_S)
        result = await atproto.delete_post(uri)
        if isinstance(result, Err) and result.kind in {"transient", "unknown_outcome"}:
            pause_s = max(BACK_OFF_S, result.retry_after or 0.0)
            tell(f"{result.error}; trying again in {pause_s:.0f} s")
            await clock.sleep(pause_s)
            result = await atproto.delete_post(uri)
        if isinstance(result, Err):
            tell(f"{uri}: {result.error}")
            left.append(uri)
        if number % _PROGRESS_EVERY == 0 and number < len(uris):
            tell(f"{number} of {len(uris)}")
    return Deleted(len(uris) - len(left), tuple(left))


async def _forget(settings: Settings, home: Home, clock: Clock, deleted: Deleted) -> None:
    """Let the SOUL say again what the deleted posts said, and record the deletion."""
    if not home.database.exists():
        return
    async with journal_beside(settings, home, clock) as (database, journal):
        await database.run(lambda connection: store.forget_feed_but(connection, deleted.left))
        summary = f"The owner had {counted(deleted.count, 'post')} deleted"
        await journal.record(Entry("life", "owner", summary, line="social"))
